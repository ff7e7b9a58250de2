package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestInbox_at_a_terminal: it is a list to walk through, where somebody is there and something waits; else
// it is printed.
func TestInbox_at_a_terminal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
		p := b.sit(nil, "inbox")
		p.Sees("1 thing to decide").Sees("approval of deploy").Sees("q quit").Types("\r").Sees("Task 1 so far: 1 step").Sees("a approve").Types("\x1b\x03")
		require.Equal(t, 0, p.Leaves(), p.All())
		require.Contains(t, b.run("inbox").ends(0).stdout, "approve: ", "nothing was decided")
		for _, words := range [][]string{{"inbox", "--no-input"}, {"inbox", "-o", "json"}} {
			p := b.sit(nil, words...)
			require.Equal(t, 0, p.Leaves())
			require.Contains(t, p.All(), "submit s w2-1 --approve")
			require.NotContains(t, p.All(), "Enter open")
		}
		b.run("resume", "s", "--reject-all").ends(0)
		p = b.sit(nil, "inbox")
		p.Sees("Nothing waits for a person")
		require.Equal(t, 0, p.Leaves())
	})
}

// TestActs: a wait is shown, extended, delegated and dismissed from a terminal.
func TestActs(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{calls: [{call: urgent, with: {service: a}}, {call: deploy, with: {service: b}}]}, {say: ok}]", 10)
		shown := b.run("show", "s", "w2-1").ends(0).stdout
		require.Contains(t, shown, "approval of urgent")
		require.Contains(t, shown, "Task 1 so far: 1 step")
		require.Contains(t, shown, "answer: ")
		var before client.WaitView
		require.NoError(t, json.Unmarshal([]byte(b.run("show", "s", "w2-1", "-o", "json").ends(0).stdout), &before))
		require.True(t, before.MayAnswer)
		require.Equal(t, 2, before.Open)

		b.run("extend", "s", "w2-1").ends(2)
		b.run("extend", "s", "w2-1", "--by", "-1h").ends(2)
		b.run("extend", "s", "w2-1", "--until", "tomorrow").ends(2)
		b.run("extend", "s", "w2-1", "--by", "2000h").ends(2)
		b.run("extend", "s", "w2-2", "--by", "1h").ends(5)
		b.run("extend", "s", "w9-9", "--by", "1h").ends(3)
		require.Contains(t, b.run("extend", "s", "w2-1", "--by", "24h", "--reason", "ann is away").ends(0).stdout, ": ann is away\n")
		var after client.Wait
		until := before.Wait.Deadline.At.Add(48 * time.Hour).UTC().Truncate(time.Second)
		require.NoError(t, json.Unmarshal([]byte(b.run("extend", "s", "w2-1", "--until", until.Format(time.RFC3339), "-o", "json").ends(0).stdout), &after))
		require.Equal(t, until, after.Deadline.At.UTC())
		require.Contains(t, b.run("delegate", "s", "w2-1", "ben", "--reason", "his service").ends(0).stdout, "delegated to ben by ")
		require.Contains(t, b.run("delegate", "s", "w2-1", "ben", "--reason", "his service").ends(0).stderr, "Already done")
		b.run("delegate", "s", "w2-1").ends(2)
		for _, words := range [][]string{{"show", "s"}, {"show", "s", "w2-1"}, {"inbox", "--no-input"}} {
			printed := b.run(words...).ends(0).stdout
			require.Equal(t, 1, strings.Count(printed, "delegated to ben by "), printed)
			require.Contains(t, printed, ": his service\n")
		}

		require.Contains(t, b.run("inbox", "--text", "URGENT", "--mine").ends(0).stdout, "w2-1")
		require.NotContains(t, b.run("inbox", "--text", "URGENT").ends(0).stdout, "w2-2")
		require.Contains(t, b.run("inbox", "--older-than", "24h").ends(0).stderr, "Nothing of that kind waits")
		b.run("inbox", "--older-than", "-1h").ends(2)
		b.run("dismiss", "s", "w2-1").ends(2)
		require.Contains(t, b.run("dismiss", "s", "w2-1", "--reason", "withdrawn").ends(10).stdout, "w2-2")
		b.run("submit", "s", "w2-1", "--approve").ends(5)
		shown = b.run("show", "s", "w2-1").ends(0).stdout
		require.Contains(t, shown, "dismissed: withdrawn by ")
		require.Contains(t, shown, "extended until ")
		require.Equal(t, "ok\n", b.run("dismiss", "s", "w2-2", "--reason", "withdrawn too").ends(0).stdout)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "dismissed: withdrawn too")
		var entries []struct {
			Answers []session.Answer `json:"answers"`
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("show", "s", "-o", "json").ends(0).stdout), &entries))
		kinds := []session.AnswerKind{}
		for _, e := range entries {
			for _, a := range e.Answers {
				kinds = append(kinds, a.Kind)
			}
		}
		require.Equal(t, []session.AnswerKind{session.AnswerDismissal, session.AnswerDismissal}, kinds)
		b.run("dismiss", "nobody", "w2-1", "--reason", "x").ends(3)
		b.run("show", "s", "w9-9").ends(3)
	})
}
