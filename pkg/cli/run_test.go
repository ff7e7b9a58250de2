package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"completed", []string{"run", "--agent", "toy", "[{say: hi}]"}, 0, ""},
		{"failed", []string{"run", "--agent", "toy", "[{fail: refused}]"}, 1, "failed"},
		{"paused on an approval", []string{"run", "--agent", "toy", "[{call: deploy, with: {service: a}}]"}, 10, ""},
		{"paused on input", []string{"run", "--agent", "toy", "[{need: which region?}]"}, 10, ""},
		{"no input", []string{"run", "--agent", "toy"}, 2, "stdin is empty"},
		{"blank input", []string{"run", "--agent", "toy", "  "}, 2, "empty"},
		{"input that is not text", []string{"run", "--agent", "toy", "\xff\xfe"}, 2, "UTF-8"},
		{"two inputs", []string{"run", "--agent", "toy", "a", "--input-file", "b"}, 2, "twice"},
		{"input file that is not there", []string{"run", "--agent", "toy", "--input-file", "/does/not/exist"}, 2, "no such file"},
		{"input in words", []string{"run", "--agent", "toy", "two", "words"}, 2, `quote the input`},
		{"no agent", []string{"run", "hi"}, 2, "hello, toy"},
		{"unknown agent", []string{"run", "--agent", "toi", "hi"}, 3, "hello, toy"},
		{"bad session id", []string{"run", "--agent", "toy", "--session", "a/b", "hi"}, 2, "a/b"},
		{"malformed script", []string{"run", "--agent", "toy", "[{cal: deploy}]"}, 1, ""},
		{"empty session id", []string{"run", "--agent", "toy", "--session=", "hi"}, 2, "--session is empty"},
		{"empty key", []string{"run", "--agent", "toy", "--idempotency-key", "", "hi"}, 2, "--idempotency-key is empty"},
		{"resume nobody", []string{"resume", ""}, 2, "the session is empty"},
		{"show nobody", []string{"show", ""}, 2, "the session is empty"},
		{"submit to nobody", []string{"submit", "", "w2-1", "--approve"}, 2, "the session is empty"},
		{"negative wait", []string{"run", "--agent", "toy", "--wait", "-1s", "hi"}, 2, "--wait"},
		{"unknown command", []string{"rnu"}, 2, "--help"},
		{"unknown flag", []string{"run", "--agnet", "toy"}, 2, "adjourn run --help"},
		{"unknown output", []string{"run", "--output", "yaml", "hi"}, 2, "text or json"},
		{"resume nothing", []string{"resume"}, 2, "which session"},
		{"resume in an empty place", []string{"resume", "nobody"}, 3, "--data"},
		{"show in an empty place", []string{"show", "nobody"}, 3, "--data"},
		{"submit in an empty place", []string{"submit", "nobody", "--call", "c", "--reply", "x"}, 3, "--data"},
		{"submit without a session", []string{"submit", "--call", "c", "--reply", "x"}, 2, "session is missing"},
		{"checkpoint that is none", []string{"resume", "-c", "xyz"}, 2, "checkpoint"},
		{"decisions and a message", []string{"resume", "s", "hi", "--approve", "w1-0"}, 2, "cannot go together"},
		{"contradiction", []string{"resume", "s", "--approve", "w1-0", "--reject", "w1-0"}, 2, "both approved and rejected"},
		{"all contradict", []string{"resume", "s", "--approve-all", "--reject-all"}, 2, "contradict"},
		{"approval and rejection of all", []string{"resume", "s", "--approve", "w2-1", "--reject-all"}, 2, "--reject-all and --approve contradict each other"},
		{"edit and rejection of all", []string{"resume", "s", "--edit", "w2-1={}", "--reject-all"}, 2, "--reject-all and --edit contradict each other"},
		{"edit that names its wait twice", []string{"submit", "s", "w2-1", "--edit", `w2-1={"service":"q"}`}, 2, `--edit takes the JSON alone here, for the wait stands behind the session: --edit '{"service":"q"}'`},
		{"reason for nothing", []string{"resume", "s", "--reason", "x"}, 2, "--reason"},
		{"edit without JSON", []string{"resume", "s", "--edit", "c1-0={"}, 2, "not valid JSON"},
		{"edit without a wait", []string{"resume", "s", "--edit", "{}"}, 2, "WAIT=JSON"},
		{"empty message", []string{"resume", "s", " "}, 2, "empty"},
		{"answer to nothing", []string{"submit", "s", "--reply", "x"}, 2, "which wait?"},
		{"answer to no wait", []string{"submit", "s", "", "--reply", "x"}, 2, "the wait is empty"},
		{"answer to no call", []string{"submit", "s", "--call", "", "--result", "1"}, 2, "--call is empty"},
		{"answer to a wait as a call", []string{"submit", "s", "--call", "w2-1", "--result", "1"}, 2, "behind the session"},
		{"approval of no", []string{"submit", "s", "w2-1", "--approve=false"}, 2, "it takes no value"},
		{"rejection of no", []string{"submit", "s", "w2-1", "--reject=false"}, 2, "it takes no value"},
		{"approval of no, for all", []string{"resume", "s", "--approve-all=false"}, 2, "it takes no value"},
		{"rejection of no, for all", []string{"resume", "s", "--reject-all=0"}, 2, "it takes no value"},
		{"empty checkpoint", []string{"resume", "s", "-c", "", "--approve", "w2-1"}, 2, "--checkpoint is empty"},
		{"empty filter of waits", []string{"inbox", "--tool", ""}, 2, "--tool is empty"},
		{"empty filter of sessions", []string{"sessions", "--status="}, 2, "--status is empty"},
		{"answer to two things", []string{"submit", "s", "w2-1", "--call", "c2-1", "--result", "1"}, 2, "give one of them"},
		{"answer with three words", []string{"submit", "s", "w2-1", "x"}, 2, "too many arguments"},
		{"no answer", []string{"submit", "s", "w1-0"}, 2, "--result"},
		{"two answers", []string{"submit", "s", "w1-0", "--reply", "x", "--error", "y"}, 2, "one answer at a time"},
		{"empty reply", []string{"submit", "s", "w1-0", "--reply", ""}, 2, "--reply is empty"},
		{"reply of white space", []string{"submit", "s", "w1-0", "--reply", " \t\n"}, 2, "--reply is empty"},
		{"result that is not JSON", []string{"submit", "s", "w1-0", "--result", "done"}, 2, `double quotes`},
		{"verdict nobody knows", []string{"submit", "s", "w1-0", "--verdict", "maybe"}, 2, "not_happened"},
		{"a result of what did not happen", []string{"submit", "s", "w1-0", "--verdict", "not_happened", "--result", "1"}, 2, "--result cannot go with --verdict not_happened"},
		{"a reason for a reply", []string{"submit", "s", "w1-0", "--reply", "x", "--reason", "y"}, 2, "--reason goes with"},
		{"status nobody knows", []string{"sessions", "--status", "asleep"}, 2, "suspended"},
		{"limit too high", []string{"inbox", "--limit", "5000"}, 2, "1000"},
		{"no sessions", []string{"sessions"}, 0, "No sessions: there is no data file "},
		{"nothing waits", []string{"inbox"}, 0, "Nothing waits: there is no data file "},
		{"sessions of one status", []string{"sessions", "suspended"}, 2, `too many arguments, from "suspended" on: to list those of a status: --status suspended`},
		{"inbox of somebody", []string{"inbox", "extra"}, 2, `too many arguments, from "extra" on: `},
		{"work on something", []string{"work", "photos"}, 2, `too many arguments, from "photos" on: it works on every session`},
		{"agents of something", []string{"agents", "photos"}, 2, `too many arguments, from "photos" on: `},
		{"help about nothing", []string{"help", "nosuch"}, 2, `unknown command "nosuch" for "adjourn"`},
		{"help about a command", []string{"help", "run"}, 0, ""},
		{"no such sessions", []string{"sessions", "--agent", "toy"}, 0, "No sessions: there is no data file "},
		{"nothing of a kind waits", []string{"inbox", "--kind", "question"}, 0, "Nothing waits: there is no data file "},
		{"nothing to do", []string{"work"}, 0, "There was nothing to do: there is no data file "},
		{"nothing to do", []string{"work"}, 0, "nothing to do"},
		{"help", []string{"--help"}, 0, ""},
		{"version", []string{"version"}, 0, ""},
		{"agents", []string{"agents"}, 0, ""},
		{"completion", []string{"completion", "bash"}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := setup(t).run(c.args...).ends(c.code)
			require.Contains(t, r.stderr, c.says)
		})
	}
}

func TestMistakesHaveJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code string
		exit int
	}{
		"flag":    {[]string{"run", "--nope", "-o", "json"}, "usage", 2},
		"agent":   {[]string{"run", "--output=json", "--agent", "nope", "hi"}, "unknown_agent", 3},
		"session": {[]string{"resume", "nobody", "-o", "json"}, "session_not_found", 3},
		"setting": {[]string{"run", "-o", "json", "--agent", "toy", "hi"}, "invalid_setting", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if name == "setting" {
				b.env["ADJOURN_LEASE"] = "soon"
			}
			m := b.run(c.args...).ends(c.exit).manifest()
			require.Equal(t, session.OutcomeError, m.Outcome)
			require.Equal(t, c.code, m.Error.Code)
			require.NotEmpty(t, m.Error.Message)
		})
	}
}

func TestListsMakeNoDataFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, args := range [][]string{{"sessions"}, {"inbox"}, {"show", "x"}, {"work"}, {"resume", "x"}, {"submit", "x", "--call", "c", "--reply", "y"}, {"__complete", "show", ""}} {
		b.run(args...)
		require.NoDirExists(t, filepath.Dir(b.data), "%v", args)
	}
	require.JSONEq(t, `{"sessions": []}`, b.run("sessions", "-o", "json").ends(0).stdout)
	require.JSONEq(t, `{"items": []}`, b.run("inbox", "-o", "json").ends(0).stdout)
	require.JSONEq(t, `{"worked": [], "running": false}`, b.run("work", "-o", "json").ends(0).stdout)
}

func TestInput(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		script := "- say: hi there\n"
		path := b.file("script.yaml")
		require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
		require.Equal(t, "hi there\n", b.pipe(script, "run", "--agent", "toy").ends(0).stdout)
		require.Equal(t, "hi there\n", b.pipe(script, "run", "--agent", "toy", "-").ends(0).stdout)
		require.Equal(t, "hi there\n", b.pipe(script, "run", "--agent", "toy", "--input-file", "-").ends(0).stdout)
		require.Equal(t, "hi there\n", b.pipe("other", "run", "--agent", "toy", "--input-file", path).ends(0).stdout)
		require.Equal(t, "hi there\n", b.pipe("other", "run", "--agent", "toy", script).ends(0).stdout)
	})
}

func TestHugeInput(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		huge := strings.Repeat("x", 10<<20)
		for _, r := range []result{b.pipe(huge, "run", "--agent", "toy", "-o", "json"), b.run("run", "--agent", "toy", "-o", "json", huge)} {
			m := r.ends(2).manifest()
			require.Equal(t, string(runtime.CodeInputTooLarge), m.Error.Code)
			require.Contains(t, m.Error.Message, "4 MiB")
		}
		b.run("sessions").ends(0)
	})
}

func TestWhichAgent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.env["ADJOURN_AGENT"] = "hello"
	require.Equal(t, "hello\n", b.run("run", "hi").ends(0).stdout)
	b.env["ADJOURN_AGENT"] = "gone"
	b.run("run", "hi").ends(3)
	delete(b.env, "ADJOURN_AGENT")
	b.run("run", "--agent", "hello", "--session", "s", "hi").ends(0)
	require.Equal(t, "hello\n", b.run("run", "--session", "s", "again").ends(0).stdout, "a next turn keeps its agent")

	b.registry = func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "only", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
			return agent.Reply{Text: "me"}, nil
		})}}})
	}
	require.Equal(t, "me\n", b.run("run", "hi").ends(0).stdout)
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		first := b.run("run", "--agent", "toy", "--idempotency-key", "k", "-o", "json", "[{say: one}]").ends(0).manifest()
		second := b.run("run", "--agent", "toy", "--idempotency-key", "k", "-o", "json", "[{say: one}]").ends(0)
		require.Equal(t, first, second.manifest())
		require.Contains(t, second.stderr, "carried out before")
		other := b.run("run", "--agent", "toy", "--idempotency-key", "k", "-o", "json", "[{say: two}]")
		require.NotEqual(t, 0, other.code)
		require.Equal(t, string(runtime.CodeIdempotencyMismatch), other.manifest().Error.Code)
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "-o", "json", "[{say: late}]").ends(0).manifest()
	require.Equal(t, session.OutcomeRunning, m.Outcome)
	require.Contains(t, m.ResumeHint, "resume s")
	r := b.run("work", "-o", "json").ends(0)
	require.JSONEq(t, `{"worked": [{"session": "s", "status": "completed"}], "running": false}`, r.stdout)
	b.run("resume", "s").ends(5)
}

func TestWaitRunsOut(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		m := b.run("run", "--agent", "toy", "--session", "s", "--wait", "150ms", "-o", "json", "[{call: hang}]").ends(124).manifest()
		require.Equal(t, session.OutcomeRunning, m.Outcome)
	})
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.decorate = func(p app.Parts) app.Parts {
		p.Store = &cancelling{Store: p.Store, cancel: cancel}
		return p
	}
	r := b.runIn(ctx, "", "--data", b.data, "run", "--agent", "toy", "--session", "s", "-o", "json", "[{call: hang}, {say: done}]").ends(130)
	require.Equal(t, session.OutcomeInterrupted, r.manifest().Outcome)
	require.Contains(t, r.manifest().ResumeHint, "resume s")
	require.NotContains(t, r.stderr, "Stopping")
	require.JSONEq(t, `{"worked": [], "running": false}`, b.run("work", "-o", "json").ends(0).stdout, "nothing but a resume goes on with it")
	b.run("run", "--agent", "toy", "--session", "t", "--wait", "50ms", "[{call: hang}, {say: done}]").ends(124)

	for _, quiet := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		cancel = stop
		r = b.runIn(ctx, "", "--data", b.data, "work", fmt.Sprintf("--quiet=%t", quiet)).ends(130)
		stop()
		require.NotEqual(t, quiet, strings.Contains(r.stderr, "Stopping; tools may finish for 5 s"))
	}
}

// With a server Ctrl-C stops watching, and says how to stop the session.
func TestInterrupt_watching(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	r := b.runIn(ctx, "", append(b.where(), "run", "--agent", "toy", "--session", "s", "[{call: hang}, {say: done}]")...).ends(130)
	require.Contains(t, r.stderr, "To stop the session itself: adjourn "+b.words()+" interrupt s")
	require.Contains(t, b.run("interrupt", "s").ends(0).stdout, "Session s was interrupted")
}

// cancelling interrupts when the first lease is taken.
type cancelling struct {
	store.Store
	cancel func()
}

func (c *cancelling) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	item, err := c.Store.Claim(ctx, p)
	time.AfterFunc(50*time.Millisecond, c.cancel)
	return item, err
}

func TestDataFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.file("notes.txt")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database\n", 100)), 0o600))
	r := b.runIn(t.Context(), "", "--data", path, "run", "--agent", "toy", "-o", "json", "[{say: hi}]").ends(1)
	require.Equal(t, string(runtime.CodeNotOurs), r.manifest().Error.Code)
	require.Equal(t, strings.Repeat("not a database\n", 100), read(t, path), "the file is not touched")

	if os.Getuid() != 0 { // root writes everywhere
		dir := b.file("closed")
		require.NoError(t, os.Mkdir(dir, 0o500))
		r = b.runIn(t.Context(), "", "--data", filepath.Join(dir, "x.db"), "run", "--agent", "toy", "-o", "json", "[{say: hi}]").ends(1)
		require.Equal(t, string(runtime.CodeStoreUnavailable), r.manifest().Error.Code)
	}
	r = b.runIn(t.Context(), "", "--data", filepath.Join(path, "x.db"), "run", "--agent", "toy", "-o", "json", "[{say: hi}]").ends(1)
	require.Equal(t, string(runtime.CodeStoreUnavailable), r.manifest().Error.Code)
}
