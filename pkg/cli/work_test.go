package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

func TestWorkOnSeveral(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		b.run("run", "--agent", "toy", "--session", fmt.Sprintf("s%d", i), "--wait", "0s", "[{repeat: 3, call: deploy, with: {service: 1}}, {say: ok}]").ends(0)
	}
	b.run("run", "--agent", "toy", "--session", "w", "--wait", "0s", "[{need: what?}]").ends(0)
	r := b.run("work", "--concurrency", "3").ends(0)
	for i := range 5 {
		require.Contains(t, r.stdout, fmt.Sprintf("s%d  completed", i))
	}
	require.Contains(t, r.stdout, "w  suspended")
	require.Contains(t, r.stderr, "inbox")
	require.Contains(t, b.run("work").ends(0).stderr, "nothing to do")
	b.run("work", "--concurrency", "0").ends(2)
	b.run("work", "--wait", "-1s").ends(2)
}

// another is the registry of a program that has not the agent of the others.
func another() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "another", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
		return agent.Reply{Text: "me"}, nil
	})}}})
}

// TestWorkLeavesOthersTheirs: what belongs to another program neither keeps work
// from ending nor is a failure of what could be done.
func TestWorkLeavesOthersTheirs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run("run", "--agent", "toy", "--session", "running", "--wait", "0s", "[{say: ok}]").ends(0)
	b.run("run", "--agent", "toy", "--session", "answered", "[{call: name}, {say: ok}]").ends(10)
	b.run("submit", "answered", "w2-1", "--reply", "Ada", "--wait", "0s").ends(0)
	b.registry = another
	r := b.run("work").ends(3)
	require.Contains(t, r.stderr, `session running is left to the program that has its agent "toy"`)
	require.Contains(t, r.stderr, "session answered is left")
	b.registry = registry
	b.run("work").ends(0)
	require.Contains(t, b.run("sessions").ends(0).stdout, "completed")
}

// TestAnswersToTheAgentOfAnother: what this program stores of an answer is said, with
// who goes on with it; it prints no command that cannot.
func TestAnswersToTheAgentOfAnother(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		script, says string
		args         []string
	}{
		"submit":  {"[{call: deploy, with: {service: a}}, {say: ok}]", "the answer is stored", []string{"submit", "s", "w2-1", "--approve"}},
		"decide":  {"[{call: deploy, with: {service: a}}, {say: ok}]", "the decision is stored", []string{"resume", "s", "--approve", "w2-1"}},
		"message": {"[{need: where?}, {say: ok}]", "the message is stored", []string{"resume", "s", "here"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.start("s", answer.script, 10)
			b.registry = another
			r := b.run(append(answer.args, "-o", "json")...).ends(3)
			require.Contains(t, r.stderr, answer.says+`, but nobody goes on with it here: its agent "toy" is not in this program`)
			require.Contains(t, r.manifest().Error.Message, answer.says)
			require.Empty(t, r.manifest().ResumeHint, "this program cannot")
			require.NotContains(t, r.stderr, "resume s")
			r = b.run(append(answer.args, "--wait", "0s")...).ends(0)
			require.Contains(t, r.stdout, "Its agent toy is not in this program")
			require.NotContains(t, r.stdout, "resume s")
			r = b.run("resume", "s").ends(3)
			require.NotContains(t, r.stderr, "stored", "nothing was brought")
			b.registry = registry
			b.run("work").ends(0)
			require.Contains(t, b.run("sessions").ends(0).stdout, "completed")
		})
	}
	t.Run("on a terminal", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
		p := b.sit([]string{asAnother + "=1"}, "resume", "s")
		p.Sees(prompt).Types("y\n").Sees("your answer is stored, but nobody goes on with it here")
		require.Equal(t, 3, p.Leaves(), p.All())
	})
	t.Run("only stored", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
		b.registry = another
		for _, look := range [][]string{{"submit", "s", "w2-1", "--approve", "--no-resume"}, {"inbox"}, {"show", "s"}} {
			out := b.run(look...).ends(0).stdout
			require.Contains(t, out, "Its agent toy is not in this program")
			require.NotContains(t, out, "resume s")
		}
	})
}

func TestWatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{say: ok}]").ends(0)
	ctx, cancel := context.WithCancel(t.Context())
	b.decorate = func(p app.Parts) app.Parts {
		p.Store = &watching{Store: p.Store, ended: cancel}
		return p
	}
	r := b.runIn(ctx, "", "--data", b.data, "work", "--watch").ends(130)
	require.Contains(t, r.stderr, "until interrupted")
	require.Contains(t, r.stdout, "s  completed")
}

// watching tells when a session has ended.
type watching struct {
	store.Store
	ended func()
}

func (w *watching) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	done, err := w.Store.Commit(ctx, p)
	if p.Entry.Status.Ended() {
		w.ended()
	}
	return done, err
}

func TestWorkRunsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{call: hang}]").ends(0)
	r := b.run("work", "--wait", "200ms").ends(124)
	require.Contains(t, r.stderr, "work left")
}

// broken fails every commit from the n-th on.
type broken struct {
	store.Store
	left atomic.Int64
}

func (f *broken) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if f.left.Add(-1) < 0 {
		return store.Committed{}, fmt.Errorf("%w: %w", store.ErrUnavailable, errors.New("the disk is full"))
	}
	return f.Store.Commit(ctx, p)
}

func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	for left := range int64(4) {
		t.Run(fmt.Sprintf("after %d commits", left), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.decorate = func(p app.Parts) app.Parts {
				f := &broken{Store: p.Store}
				f.left.Store(left)
				p.Store = f
				return p
			}
			script := "[{call: deploy, with: {service: 1}}, {call: deploy, with: {service: 1}}, {say: ok}]"
			r := b.run("run", "--agent", "toy", "--session", "s", "-o", "json", script)
			if left == 0 {
				// Nothing was begun, so nothing is there.
				require.Equal(t, string(runtime.CodeStoreUnavailable), r.ends(1).manifest().Error.Code)
				require.Equal(t, "adjourn: "+b.data+": the disk is full\n", r.stderr)
				b.decorate = nil
				b.run("show", "s").ends(3)
				return
			}
			m := r.ends(1).manifest()
			require.Equal(t, session.OutcomeError, m.Outcome)
			require.Equal(t, b.data+": the disk is full", m.Error.Message)
			require.Contains(t, m.ResumeHint, "resume s", "what to do when there is room again")
			b.decorate = nil
			require.Contains(t, b.run("work").ends(0).stdout, "s  completed")
		})
	}
}

// mute loses what is sent by itself; what goes with a commit is not.
type mute struct{ queue.Queue }

func (mute) Send(context.Context, ...journal.Wake) error { return errors.New("died before it sent") }

// Whoever gives the last answer and dies before sending for what follows leaves
// a session that is suspended and waits for nothing.
func TestWorkGoesOnAfterAnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: api}}, {say: ok}]", 10)
	b.start("other", "[{call: deploy, with: {service: api}}, {say: ok}]", 10)
	b.decorate = func(p app.Parts) app.Parts {
		p.Queue = mute{p.Queue}
		return p
	}
	b.run("resume", "s", "--approve", "w2-1").ends(1)
	b.decorate = nil
	r := b.run("work").ends(0)
	require.Contains(t, r.stdout, "s  completed")
	require.NotContains(t, r.stdout, "other", "nobody has decided on it")
	require.Contains(t, read(t, filepath.Join(filepath.Dir(b.data), "pause.json")), "other")
}

func TestWorkKeepsThePauseFileTrue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: api}}, {say: ok}]", 10)
	b.run("resume", "s", "--approve", "w2-1", "--wait", "0s").ends(0)
	require.Contains(t, b.run("work").ends(0).stdout, "s  completed")
	require.NoFileExists(t, filepath.Join(filepath.Dir(b.data), "pause.json"))
}

// TestWorkTellsOfStoredAnswers: work leaves them as they are, and says what goes on.
func TestWorkTellsOfStoredAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.program = b.install()
	store := func(id string) {
		b.start(id, "[{call: deploy, with: {service: api}}, {say: ok}]", 10)
		b.run("submit", id, "w2-1", "--approve", "--no-resume").ends(0)
	}
	store("s")
	b.start("other", "[{call: deploy, with: {service: api}}, {say: ok}]", 10)
	_, hint, found := strings.Cut(b.run("work").ends(0).stderr, "Answers to session s are only stored: it goes on when somebody says so: ")
	require.True(t, found)
	store("t")
	require.Contains(t, b.run("work").ends(0).stderr, "Answers to 2 sessions are only stored: each goes on when somebody says so: ")
	require.JSONEq(t, `{"worked": [], "running": false, "stored": ["t", "s"]}`, b.run("work", "-o", "json").ends(0).stdout)
	require.Equal(t, "ok\n", b.shell(strings.TrimSpace(hint)).ends(0).stdout)
}

// TestWorkWritesThePauseFile: a session that pauses under work is in the pause file as
// it stands then, with a hint that works.
func TestWorkWritesThePauseFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.program = b.install()
	path := filepath.Join(filepath.Dir(b.data), "pause.json")
	b.start("s", "[{call: deploy, with: {service: one}}, {call: deploy, with: {service: two}}, {say: ok}]", 10)
	b.run("submit", "s", "w2-1", "--approve", "--wait", "0s").ends(0)
	b.run("work").ends(0)
	var m report.Manifest
	require.NoError(t, json.Unmarshal([]byte(read(t, path)), &m))
	require.Contains(t, string(m.PauseReason.PendingToolCalls[0].Arguments), "two")
	require.Equal(t, "ok\n", b.shell(m.ResumeHint).ends(0).stdout)
	require.NoFileExists(t, path)
}

func TestLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.env["ADJOURN_LOG"] = "debug"
	require.Equal(t, "ok\n", b.run("run", "--agent", "toy", "[{say: ok}]").ends(0).stdout, "the log is talk, not data")
	b.env["ADJOURN_LOG"] = "loud"
	require.Contains(t, b.run("run", "--agent", "toy", "[{say: ok}]").ends(2).stderr, "ADJOURN_LOG")
}

func TestResultFromStdin(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{call: locate}, {say: ok}]", 10)
		b.pipe("nonsense", "submit", "s", "w2-1", "--result", "-").ends(2)
		b.pipe(`{"city": "Bern"}`, "submit", "s", "w2-1", "--result", "-").ends(0)
		require.Contains(t, b.run("show", "s").stdout, "Bern")
	})
}
