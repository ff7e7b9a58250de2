package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestShow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{text: Let me see, calls: [{call: pick}, {call: deploy, with: {service: a}}]}, {say: done}]", 10)
		shown := b.run("show", "s").ends(0).stdout
		for _, text := range []string{
			"session s  toy  paused", "started by ada: task 1, run 1", "step 1: paused, nothing runs", "assistant Let me see",
			`call      c2-2 deploy {"service":"a"}`, "waits     w2-1 for question of pick (c2-1)", "waits     w2-2 for approval of deploy (c2-2)", "Waiting for 2 things",
		} {
			require.Contains(t, shown, text)
		}
		b.run("submit", "s", "w2-1", "--select", "red").ends(10)
		b.run("resume", "s", "--approve", "w2-2").ends(0)
		shown = b.run("show", "s").ends(0).stdout
		for _, text := range []string{"answer    pick c2-1 replied red by ada, after ", "answer    deploy c2-2 approved by ada", "resumed: run 2", `result    c2-2 deploy success: "deployed a"`, "completed", "tokens"} {
			require.Contains(t, shown, text)
		}

		var entries []journal.Entry
		require.NoError(t, json.Unmarshal([]byte(b.run("show", "s", "-o", "json").ends(0).stdout), &entries))
		for i, e := range entries {
			require.Equal(t, int64(i+1), e.Seq)
		}
		require.Equal(t, session.KindCompleted, entries[len(entries)-1].Kind)
		b.run("show", "nobody").ends(3)
		b.run("show", "a/b").ends(2)
	})
}

// TestShow_interrupted: what was answered since is shown, as it is of a session that waits.
func TestShow_interrupted(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: pick}, {say: done}]", 10)
		b.run("interrupt", "s").ends(0)
		require.NotContains(t, b.run("show", "s").ends(0).stdout, "Stored")
		b.run("submit", "s", "w2-1", "--select", "red").ends(0)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "Stored until it goes on:\n  w2-1  question of pick: replied red, by ada")
	})
}

// TestShow_what_was_asked: each task says what was asked of it, also when another one has begun.
func TestShow_what_was_asked(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		r := b.run("run", "--agent", "toy", "--session", "s", "--limit", "steps=1", "[{call: echo, with: {text: a}}, {say: done}]").ends(1)
		require.Contains(t, r.stderr, "Its caller asked for that limit: try it again with a higher one, or start another session.")
		b.run("retry", "s", "--limit", "steps=4").ends(0)
		shown := b.run("show", "s").ends(0).stdout
		require.Contains(t, shown, "      asked     steps=1\n")
		require.Contains(t, shown, "      asked     steps=4\n")
	})
}

// TestShow_left_behind: an answer to what going back leaves behind is not shown as one that counts.
func TestShow_left_behind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: pick}, {say: done}]", 10)
		b.run("submit", "s", "w2-1", "--select", "red", "--no-resume").ends(0)
		b.run("resume", "s", "--from-checkpoint", "1").ends(10)
		require.Regexp(t, `answer    pick c2-1 replied red by ada, after .*; it counts for nothing\n`, b.run("show", "s").ends(0).stdout)
	})
}

// TestShow_overdue: a task that nobody has cancelled yet at its time is not cancelled in the future.
func TestShow_overdue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run("run", "--agent", "toy", "--session", "s", "--cancel-after", "1h", "[{call: pick}, {say: done}]").ends(10)
	b.ahead.Store(int64(2 * time.Hour))
	require.Contains(t, b.run("show", "s").ends(0).stdout, "Its time was over at ")
	b.run("work").ends(0)
	require.NotContains(t, b.run("show", "s").ends(0).stdout, "Its time was over at ")
}

// TestRunsWaited: runs says how long the session had waited before each, as the API does.
func TestRunsWaited(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: pick}, {say: done}]", 10)
		b.ahead.Store(int64(90 * time.Minute))
		b.run("submit", "s", "w2-1", "--select", "red").ends(0)
		lines := strings.Split(b.run("runs", "s").ends(0).stdout, "\n")
		require.NotContains(t, lines[1], "1h30m")
		require.Contains(t, lines[2], " 1h30m ")
		var runs client.Runs
		require.NoError(t, json.Unmarshal([]byte(strings.Replace(b.run("runs", "s", "-o", "json").ends(0).stdout, `"runs"`, `"items"`, 1)), &runs))
		require.Zero(t, runs.Items[0].WaitedMillis)
		require.GreaterOrEqual(t, runs.Items[1].WaitedMillis, (90 * time.Minute).Milliseconds())
	})
}

func TestShowFailures(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.run("run", "--agent", "toy", "--session", "s", "[{fail: refused}]").ends(1)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "reason    model_refused")
	})
}

// TestSessionsFitTheTerminal: a line for each, where a title is longer than there is room.
func TestSessionsFitTheTerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("a-session-with-a-name", "[{say: "+strings.Repeat("long ", 30)+"}]", 0)
	b.start("s", "[{say: "+strings.Repeat("世界 ", 30)+"}]", 0)
	p := b.sit(nil, "sessions")
	require.Equal(t, 0, p.Leaves(), p.All())
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(p.All(), "\r", "")), "\n")
	require.Len(t, lines, 3)
	for _, line := range lines[1:] {
		require.LessOrEqual(t, screen.Columns(line), 80, line)
		require.Greater(t, screen.Columns(line), 70, line)
		require.Contains(t, line, "…")
	}
	require.Contains(t, b.run("sessions").stdout, strings.Repeat("long ", 9), "elsewhere there are 60 characters of it")
}

func TestSessions(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("one", "[{say: ok}]", 0)
		b.start("two", "[{need: what?}]", 10)
		table := b.run("sessions").ends(0).stdout
		require.Regexp(t, `SESSION +STATUS +AGENT`, table)
		require.Regexp(t, `two +suspended +toy`, table)
		require.Regexp(t, `one +completed +toy`, table)
		require.NotContains(t, b.run("sessions", "--status", "completed").ends(0).stdout, "two")
		suspended := func(word string) string {
			return b.run("sessions", "--status", word, "-o", "json").ends(0).stdout // the table says how long ago, and that changes
		}
		require.Contains(t, suspended("suspended"), `"two"`)
		require.Equal(t, suspended("suspended"), suspended("paused"), "the word that run prints")

		var page struct {
			Sessions []struct{ Session, Status, Agent string }
			Cursor   string
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("sessions", "--limit", "1", "-o", "json").ends(0).stdout), &page))
		require.Len(t, page.Sessions, 1)
		require.Equal(t, "two", page.Sessions[0].Session, "the last moved is first")
		require.NotEmpty(t, page.Cursor)
		require.Contains(t, b.run("sessions", "--cursor", page.Cursor).ends(0).stdout, "one")
		b.run("sessions", "--cursor", "nonsense").ends(2)
	})
}

// TestListsKeptToSome: lists are kept to an agent, a tag, a kind and so on, and the
// next page is one of the same list.
func TestListsKeptToSome(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		b.run("run", "--agent", "toy", "--session", "one", "--tag", "blue", "--tag", "big", "[{call: pick}, {say: ok}]").ends(10)
		b.run("run", "--agent", "toy", "--session", "two", "--tag", "blue", "[{call: deploy, with: {service: a}}, {say: ok}]").ends(10)
		b.run("run", "--agent", "hello", "--session", "three", "hi").ends(0)
		for _, c := range []struct{ args, in, out string }{
			{"sessions --tag blue", "one two", "three"},
			{"sessions --tag big", "one", "two three"},
			{"sessions --agent hello", "three", "one two"},
			{"sessions --user ada", "one two three", ""},
			{"sessions --root two", "two", "one three"},
			{"sessions --agent toy --status completed", "", "one two three"},
			{"inbox --kind question", "one", "two"},
			{"inbox --tool deploy", "two", "one"},
			{"inbox --agent toy", "one two", ""},
			{"inbox --root one", "one", "two"},
			{"inbox --user nobody --kind child", "", "one two"},
		} {
			out := b.run(strings.Fields(c.args)...).ends(0).stdout
			for _, id := range strings.Fields(c.in) {
				require.Regexp(t, `(?m)(^|session )`+id+`\b`, out, c.args)
			}
			for _, id := range strings.Fields(c.out) {
				require.NotRegexp(t, `(?m)(^|session )`+id+`\b`, out, c.args)
			}
		}
		first := b.run("sessions", "--tag", "blue", "--limit", "1").ends(0)
		_, next, found := strings.Cut(first.stderr, "There are more: ")
		require.True(t, found)
		second := b.shell(strings.TrimSpace(next)).ends(0)
		require.NotEqual(t, first.stdout, second.stdout)
		require.NotContains(t, second.stdout, "three")
		b.run("inbox", "--kind", "news").ends(2)
		require.Contains(t, b.run("inbox", "--tool", "none").ends(0).stderr, "Nothing of that kind")
		require.Contains(t, b.run("sessions", "--tag", "none").ends(0).stderr, "No such sessions")
		require.Contains(t, b.run("__complete", "inbox", "--kind", "").stdout, "approval")
	})
}

func TestInbox(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		log := b.file("log")
		b.start("s", deploys(log, "a", "b"), 10)
		b.start("q", "[{call: pick}, {say: ok}]", 10)
		require.Contains(t, b.run("inbox").ends(0).stdout, "question of pick  session q, toy")

		var page struct {
			Items []struct {
				Session string
				Command string
				Wait    map[string]any
			}
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("inbox", "-o", "json").ends(0).stdout), &page))
		require.Len(t, page.Items, 3)
		for i, item := range page.Items {
			want := 0
			if i == 0 && item.Session == "s" {
				want = 10 // its sibling is still open
			}
			require.Equal(t, item.Session, item.Wait["sessionId"], "a wait has the form that the API gives it")
			require.Contains(t, item.Command, item.Wait["waitId"])
			require.Equal(t, "open", item.Wait["state"])
			b.shell(strings.Replace(item.Command, "CHOICE", "red", 1)).ends(want)
		}
		require.ElementsMatch(t, []string{"a", "b"}, splitLines(read(t, log)), "each command answers its own wait")
		require.Contains(t, b.run("inbox").ends(0).stderr, "Nothing waits")
	})
}

// TestShowWhatIsAsked: what is asked stands above the command that answers it, whole.
func TestShowWhatIsAsked(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		long := strings.Repeat("word ", 60) + "end?"
		for script, says := range map[string]string{
			"[{call: pick}]":           "\n  question of pick  w2-1\n    | Which color?\n    | - red  Red\n    | - blue  Blue\n\nTo go on:\n",
			"[{call: name}]":           "\n  question of name  w2-1\n    | What is your name?\n\nTo go on:\n",
			"[{call: locate}]":         "\n  result of locate, which runs on your side  w2-1\n\nTo go on:\n",
			"[{need: '" + long + "'}]": "\n  your answer  w2-1\n    | " + long + "\n\nTo go on:\n",
			"[{calls: [{call: deploy, with: {service: a}}, {call: pick}]}]": "  approval of deploy  w2-1\n    | {\n    |   \"service\": \"a\"\n    | }\n\n  question of pick  w2-2\n    | Which color?\n",
		} {
			m := b.run("run", "--agent", "toy", "-o", "json", script).ends(10).manifest()
			require.Contains(t, b.run("show", m.SessionID).ends(0).stdout, says)
		}
	})
}

// TestWhoMayAnswer: who may answer stands beside the wait, and before each command that
// only they may give.
func TestWhoMayAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		m := b.start("s", "[{call: bobs, with: {service: a}}, {say: ok}]", 10)
		require.Equal(t, []string{"bob"}, m.PauseReason.PendingToolCalls[0].Who)
		require.Contains(t, b.run("submit", "s", "w2-1", "--approve").ends(4).stderr, "may be answered by bob only")
		for out, says := range map[string]string{
			b.run("run", "--agent", "toy", "[{call: bobs, with: {service: a}}, {say: ok}]").ends(10).stdout: `(?m)^    may be answered by bob only\n\nApprove \(bob only\): .*\nReject \(bob only\):  `,
			b.run("show", "s").ends(0).stdout:            `(?m)^    may be answered by bob only\n\nTo go on \(bob only\):\n  .*--approve w2-1\n`,
			b.run("inbox", "--root", "s").ends(0).stdout: `(?m)^  may be answered by bob only\n  approve \(bob only\): .*\n  reject \(bob only\):  `,
		} {
			require.Regexp(t, says, out)
		}

		two := b.run("run", "--agent", "toy", "[{calls: [{call: bobs, with: {service: a}}, {call: guarded, with: {service: b}}]}, {say: ok}]").ends(10).stdout
		require.Contains(t, two, "    may be answered by bob, ada only\n")
		require.Regexp(t, `(?m)^Approve all \(bob only\):  .*--approve-all\n`, two)
	})
}

// TestAnsweredBesideWhatIsOpen: what was answered while another wait is open is told,
// with who answered, by everything that tells of the pause.
func TestAnsweredBesideWhatIsOpen(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{calls: [{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}, {call: pick}]}, {say: ok}]", 10)
		require.NotContains(t, b.run("show", "s").ends(0).stdout, "Answered already")
		b.run("submit", "s", "w2-3", "--select", "red").ends(10)
		paused := b.run("submit", "s", "w2-1", "--approve").ends(10).stdout
		for _, out := range []string{paused, b.run("show", "s").ends(0).stdout} {
			require.Regexp(t, `(?m)an approval.*\n\nAnswered already:\n  w2-1  approval of deploy: approved, by ada, (just now|.* ago)\n  w2-3  question of pick: replied red, by ada, .*\n\n  approval of deploy  w2-2\n`, out)
		}
		b.run("resume", "s", "--approve", "w2-2").ends(5)
		stored := b.run("submit", "s", "w2-2", "--approve", "--no-resume").ends(0).stdout
		require.Regexp(t, `(?m)only stored\.\n  w2-1 .*\n  w2-2  approval of deploy: approved, by ada, .*\n  w2-3 .*\nGo on: `, stored)
	})
}

// TestInboxOfStoredAnswers: what was answered and only stored stands on the first page,
// however much else waits, where the filter keeps what was answered.
func TestInboxOfStoredAnswers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		for _, id := range []string{"old", "older"} {
			b.start(id, "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
			b.run("submit", id, "w2-1", "--approve", "--no-resume").ends(0)
		}
		for _, id := range []string{"a", "b", "c"} {
			b.start(id, "[{call: pick}, {say: ok}]", 10)
		}
		stored := func(args ...string) (ids []string, more bool, cursor string) {
			var page struct {
				Stored     []struct{ Session string }
				StoredMore bool
				Cursor     string
			}
			require.NoError(t, json.Unmarshal([]byte(b.run(append([]string{"inbox", "-o", "json"}, args...)...).ends(0).stdout), &page))
			for _, row := range page.Stored {
				ids = append(ids, row.Session)
			}
			return ids, page.StoredMore, page.Cursor
		}
		for _, c := range []struct{ args, has string }{
			{"", "older old"},
			{"--limit 2", "older old"},
			{"--agent toy", "older old"},
			{"--kind approval", "older old"},
			{"--tool deploy --user ada", "older old"},
			{"--root old", "old"},
			{"--kind question", ""},
			{"--agent hello", ""},
			{"--root a", ""},
			{"--tool pick", ""},
		} {
			ids, more, _ := stored(strings.Fields(c.args)...)
			require.Equal(t, strings.Fields(c.has), append([]string{}, ids...), c.args)
			require.False(t, more, c.args)
		}
		_, _, cursor := stored("--limit", "2")
		ids, _, _ := stored("--limit", "2", "--cursor", cursor)
		require.Empty(t, ids, "once is enough")

		ids, more, _ := stored("--limit", "1")
		require.Equal(t, []string{"older"}, ids)
		require.True(t, more)
		r := b.run("inbox", "--limit", "1", "--agent", "toy").ends(0)
		require.Contains(t, r.stderr, "There are more suspended sessions than were looked at for answers that are only stored: ")
		require.Contains(t, r.stderr, " inbox --limit 1000 --agent toy\n")
		filtered := b.run("inbox", "--kind", "approval").ends(0)
		require.Contains(t, filtered.stdout, "answered, and only stored  session old, toy")
		require.NotContains(t, filtered.stderr, "Nothing of that kind")
	})
}

func TestAgents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	text := b.run("agents").ends(0).stdout
	require.Contains(t, text, "toy  Follows scripts.")
	require.Regexp(t, `deploy +side effect, may ask first +Deploys a service`, text)
	require.Regexp(t, `locate +runs on your side`, text)
	b.env["ADJOURN_MODEL"] = "scripted:other"
	require.Contains(t, b.run("agents", "-o", "json").ends(0).stdout, "scripted:other")
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("first-one", "[{say: ok}]", 0)
	require.Contains(t, b.run("__complete", "show", "fi").stdout, "first-one\tcompleted, toy")
	require.Contains(t, b.run("__complete", "run", "--agent", "").stdout, "hello\tSays hello.")
	require.NotContains(t, b.run("__complete", "show", "first-one", "").stdout, "first-one")
	require.Contains(t, b.run("__complete", "sessions", "--status", "").stdout, "suspended")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.NotEmpty(t, b.run("completion", shell).ends(0).stdout)
	}
}
