package cli_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestBack: a session goes back to a checkpoint with what it has done since before the eyes of who
// says so, is forked, and compared.
func TestBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b"), 10)
		b.run("resume", "s", "--approve", "w2-1", "--approve", "w2-2").ends(0)
		require.Contains(t, b.run("checkpoints", "s").ends(0).stdout, "suspended")

		var shown client.CheckpointView
		require.NoError(t, json.Unmarshal([]byte(b.run("checkpoints", "s", "2", "-o", "json").ends(0).stdout), &shown))
		require.EqualValues(t, 2, shown.Seq)
		require.Len(t, shown.Waits, 2)
		require.Equal(t, 2, shown.Effects.Count)
		text := b.run("checkpoints", "s", "2").ends(0).stdout
		require.Contains(t, text, "Done since then (2 calls with effects)")
		require.Contains(t, text, b.words()+" resume s --from-checkpoint 2")
		require.Contains(t, b.run("checkpoints", "s", "4", "--compare", "1").ends(0).stdout, "Both begin with the same 1 message; the other one has 0 more")

		refused := b.run("resume", "s", "--from-checkpoint", "1", "-o", "json").ends(5).manifest()
		require.Equal(t, "effects_not_acknowledged", refused.Error.Code)
		require.Equal(t, 2, refused.Error.Effects.Count)
		require.Contains(t, refused.ResumeHint, " resume --from-checkpoint 1 --acknowledge "+refused.Error.Effects.Digest+" s")
		refusal := b.run("resume", "s", "--from-checkpoint", "1", "[{say: other}]").ends(5).stderr
		require.Contains(t, refusal, "it has made 2 calls with effects")
		require.Contains(t, refusal, "deploy  {")
		require.Contains(t, refusal, "to go back all the same: ")
		b.run("resume", "s", "--from-checkpoint", "1", "--acknowledge", "another", "[{say: other}]").ends(5)

		require.Contains(t, b.run("fork", "s", "--checkpoint", "2", "--session", "t").ends(10).stderr, "Session t is a fork of s.")
		b.run("fork", "s", "--session", "t").ends(5)
		require.Equal(t, session.OutcomeCompleted, b.run("fork", "s", "[{say: hello}]", "-o", "json").ends(0).manifest().Outcome)

		require.Equal(t, "other\n", b.run("resume", "s", "--from-checkpoint", "1", "--acknowledge", refused.Error.Effects.Digest, "[{say: other}]").ends(0).stdout)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "back to entry 1, by ada: task 2")
		require.Contains(t, b.run("show", "t").ends(0).stdout, "forked from session s, entry 2: task 1")
		require.Contains(t, b.run("show", "s").ends(0).stdout, "It takes now: run --session, resume --from-checkpoint, fork, send, delete\n")
		runs := strings.Split(b.run("runs", "s").ends(0).stdout, "\n")
		require.Len(t, runs, 5)
		require.Regexp(t, `^2 +1 +submit +completed +3-\d+ +1 +`, runs[2])
		require.Regexp(t, `^3 +2 +resume +completed +`, runs[3])
		require.Len(t, strings.Fields(read(t, log)), 2, "the fork waits, and nothing ran again")

		for _, words := range [][]string{
			{"resume", "s", "--from-checkpoint", "1", "--approve", "w2-1"},
			{"resume", "s", "--acknowledge", "x"},
			{"resume", "s", "--from-checkpoint", "three"},
			{"checkpoints", "s", "--compare", "1"},
			{"fork", "s", ""},
			{"retry", "s", "MESSAGE"},
		} {
			b.run(words...).ends(2)
		}
		b.start("w", deploys(log, "c"), 10)
		require.Contains(t, b.run("resume", "w", "--from-checkpoint", "2").ends(10).stderr, "What was open there is asked anew, under new ids")
		b.run("resume", "s", "--from-checkpoint", "99").ends(3)
		b.run("checkpoints", "s", "99").ends(3)
		b.run("checkpoints", "nobody").ends(3)
		b.run("retry", "s").ends(5)
		b.run("fork", "nobody").ends(3)
	})
}

// TestForks: the forks of a session are listed, a page at a time, as its fork says what it is.
func TestForks(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		b.start("s", "[{say: ok}]", 0)
		require.Contains(t, b.run("sessions", "--forked-from", "s").ends(0).stderr, "No such sessions")
		b.run("fork", "s", "--session", "t").ends(0)
		b.run("fork", "s", "--session", "u", "-c", "1", "[{say: other}]").ends(0)
		first := b.run("sessions", "--forked-from", "s", "--limit", "1").ends(0)
		require.Regexp(t, `t +interrupted +toy`, first.stdout)
		require.NotContains(t, first.stdout, "completed")
		_, next, found := strings.Cut(first.stderr, "There are more: ")
		require.True(t, found)
		require.Regexp(t, `u +completed +toy`, b.shell(strings.TrimSpace(next)).ends(0).stdout)

		var page struct {
			Sessions []struct{ ForkedFrom session.Fork }
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("sessions", "--forked-from", "s", "-o", "json").ends(0).stdout), &page))
		require.Len(t, page.Sessions, 2)
		require.Equal(t, "s", page.Sessions[1].ForkedFrom.Session)
		at, err := session.ParseCheckpoint(page.Sessions[1].ForkedFrom.Checkpoint)
		require.NoError(t, err)
		require.EqualValues(t, 1, at.Seq)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "Forks of it: t, u\n")
		shown := b.run("show", "u").ends(0).stdout
		require.Contains(t, shown, "a fork of session s, entry 1\n")
		require.NotContains(t, shown, "Forks of it")
		require.Equal(t, "s", b.run("resume", "t", "-o", "json", "[{say: more}]").ends(0).manifest().ForkedFrom.Session)
		for i := range 9 {
			b.run("fork", "s", "--session", "more-"+strconv.Itoa(i)).ends(0)
		}
		require.Contains(t, b.run("show", "s").ends(0).stdout, "and more: ")

		require.Contains(t, b.run("sessions", "--forked-from", "s", "--agent", "toy").ends(2).stderr, "--limit and --cursor alone")
		b.run("sessions", "--forked-from", "nobody").ends(3)
	})
}

// TestRetry: a failed session is tried again from where it failed, and from its start.
func TestRetry(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", "[{call: deploy, with: {service: web, log: "+log+"}}, {fail: auth}, {say: ok}]", 10)
		require.Contains(t, b.run("resume", "s", "--approve", "w2-1").ends(1).stderr, b.words()+" retry s")
		b.run("retry", "s").ends(1) // the script fails there again
		require.Len(t, strings.Fields(read(t, log)), 1, "no call is made twice")
		refused := b.run("retry", "s", "--from", "start", "-o", "json").ends(5).manifest()
		require.Contains(t, refused.ResumeHint, " retry --from start --acknowledge ")
		require.Equal(t, "well\n", b.run("retry", "s", "[{say: well}]").ends(0).stdout)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "tried again from entry ")
		b.run("retry", "s").ends(5)
	})
}

// TestTaskRules: a task is held to what was asked, also while it is tried again.
func TestTaskRules(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		words := []string{"run", "--agent", "toy", "--session", "s"}
		const script = "[{call: deploy, with: {service: web}}, {say: ok}]"
		require.Contains(t, b.run(append(words, "--limit", "steps=1", "--allow-tool", "gate", script)...).ends(1).stderr, "limit_reached")
		require.Contains(t, b.run("show", "s").ends(0).stdout, "asked of task 1: steps=1, allowedTools=[\"gate\"]\n")
		require.Contains(t, b.run("show", "s").ends(0).stdout, "to try it again with a higher one: ")
		b.run("retry", "s", "--limit", "steps=1000000").ends(4)
		require.Equal(t, "ok\n", b.run("retry", "s", "--limit", "steps=5").ends(0).stdout)
		b.run("resume", "s", "--from-checkpoint", "1").ends(0) // deploy is not there: nobody is asked
		b.run("resume", "s", "--from-checkpoint", "1", "--allow-tool", "deploy").ends(10)
		require.Equal(t, "ok\n", b.run("resume", "s", "--from-checkpoint", "1", "--pause-on-approval=false").ends(0).stdout)
		shown := b.run("show", "s").ends(0).stdout
		require.Regexp(t, `asked of task \d: steps=5, allowedTools=\["deploy"\], pauseOnApproval=false\n`, shown)
		rules := b.run("resume", "s", "--from-checkpoint", "1", "--pause-on-approval=true", "-o", "json").ends(10).manifest().Rules
		require.Equal(t, &session.TaskRules{Limits: session.AskedLimits{Steps: 5}, AllowedTools: []string{"deploy"}, PauseOnApproval: new(true)}, rules)
		require.NotContains(t, b.run("show", "s").ends(0).stdout, "It is cancelled at")
		b.run("resume", "s", "--from-checkpoint", "1", "--cancel-after", "2h").ends(10)
		require.Contains(t, b.run("show", "s").ends(0).stdout, "It is cancelled at")
		b.run("resume", "s", "--from-checkpoint", "1", "--cancel-after", "0").ends(10)
		require.NotContains(t, b.run("show", "s").ends(0).stdout, "It is cancelled at")
		require.Contains(t, b.run("resume", "s", "--limit", "steps=1").ends(5).stderr, "interrupt it")
		b.run("interrupt", "s").ends(0)
		b.run("resume", "s", "--limit", "steps=1").ends(10)
		b.run("interrupt", "s").ends(0)
		require.Contains(t, b.run("resume", "s", "--allow-tool", "gate", "[{say: ok}]").ends(1).stderr, "limit_reached")
		// Forty steps take longer than that everywhere, and a worker looks between them.
		b.run("run", "--agent", "toy", "--session", "late", "--cancel-after", "1ms", "[{repeat: 40, call: nothing}, {call: deploy, with: {service: web}}]").ends(1)
		require.Contains(t, b.run("show", "late").ends(0).stdout, "cancel    by deadline: it has taken longer than it was given")
		policy := b.file("policy.yaml")
		require.NoError(t, os.WriteFile(policy, []byte("{tools: {deploy: never}}"), 0o600))
		require.Equal(t, "ok\n", b.run("run", "--agent", "toy", "--session", "denied", "--policy", policy, script).ends(0).stdout)
		require.Contains(t, b.run("show", "denied").ends(0).stdout, `policy={"tools":{"deploy":"never"}}`)
		wrong := b.file("wrong.yaml")
		require.NoError(t, os.WriteFile(wrong, []byte("{tools: {deploy: ask}}"), 0o600))
		for _, words := range [][]string{
			{"run", "--agent", "toy", "--policy", wrong, script},
			{"run", "--agent", "toy", "--policy", b.file("none"), script},
			{"run", "--agent", "toy", "--limit", "steps", script},
			{"run", "--agent", "toy", "--limit", "stairs=3", script},
			{"run", "--agent", "toy", "--allow-tool", "rm", script},
			{"resume", "s", "--approve", "w2-1", "--limit", "steps=3"},
			{"run", "--agent", "toy", "--cancel-after", "-1s", script},
			{"run", "--agent", "toy", "--cancel-after", "1us", script},
			{"run", "--agent", "toy", "--cancel-after", "100000h", script},
		} {
			b.run(words...).ends(2)
		}
		require.Contains(t, b.run("run", "--agent", "toy", "--cancel-after", "100000h", script).ends(2).stderr, "--cancel-after 100000h0m0s: it is 87600h0m0s at most")
	})
}

// TestLimitReached: a task that has failed at a limit is tried again by the command that is printed, with
// the message of the command that was refused.
func TestLimitReached(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		const script = "[{repeat: 9, call: nothing}, {say: ok}]"
		failed := b.run("run", "--agent", "toy", "--session", "s", "--limit", "steps=1", script).ends(1).stderr
		require.Contains(t, failed, "the limit steps=1 was asked for with the task")
		_, hint, found := strings.Cut(failed, "to try it again with a higher one: ")
		require.True(t, found)
		hint, _, _ = strings.Cut(hint, "\n")
		require.Contains(t, hint, " retry s --limit steps=2")

		for _, words := range [][]string{{"send", "s", "[{say: hello}]"}, {"resume", "s", "[{say: hello}]"}, {"run", "--session", "s", "[{say: hello}]"}} {
			require.Contains(t, b.run(words...).ends(5).stderr, " retry s --limit steps=2 '[{say: hello}]'\n", words)
		}
		require.Contains(t, b.run("retry", "s", "--limit", "steps=NUMBER").ends(2).stderr, "NUMBER is a word to replace")
		require.Contains(t, b.shell(hint).ends(1).stderr, " retry s --limit steps=4", "a task of its own, with two steps")
		require.Equal(t, "hello\n", b.run("retry", "s", "--limit", "steps=4", "[{say: hello}]").ends(0).stdout)
	})
}

// At a terminal the list is shown, and only a yes goes back.
func TestBack_asks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := b.file("log")
	b.start("s", deploys(log, "a"), 10)
	b.run("resume", "s", "--approve", "w2-1").ends(0)
	const asks = "Go back all the same? [y]es, [N]o: "
	p := b.sit(nil, "resume", "s", "--from-checkpoint", "2")
	p.Sees("has made 1 call with effects since then").Sees("success: ").Sees(asks).Types("perhaps\n").Sees("Please answer y or n").Sees(asks).Types("\n")
	require.Equal(t, 0, p.Leaves(), p.All())
	p = b.sit(nil, "resume", "s", "--from-checkpoint", "2")
	p.Sees(asks).Types("y\n")
	require.Equal(t, 0, p.Leaves(), p.All())
	require.Len(t, strings.Fields(read(t, log)), 1)
	require.Contains(t, b.run("show", "s").ends(0).stdout, "back to entry 2, by ")
}
