package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// act is what a person or a program does once the session rests. It may be
// done again after a crash, as people and programs do.
type act func(w *world, p *process) error

// scenario is a session from beginning to end.
type scenario struct {
	name   string
	lines  script
	policy session.Policy
	acts   []act
	// together says that its approvals are answered all at once.
	together bool
	// cut is the journal of a session whose call was cut off before it could ask.
	cut []session.Kind
}

func begin(input string) act {
	return func(w *world, p *process) error {
		_, err := p.Start(context.Background(), runtime.StartParams{
			Key: w.key, Agent: "a", Input: llm.TextParts(input), Caller: person, IdempotencyKey: w.key.ID + " " + input,
		})
		return err
	}
}

func answer(kind session.WaitKind, a session.Answer) act {
	return func(w *world, p *process) error {
		if len(w.waits()) == 0 && w.cut {
			return nil // the call ended as unknown before it could ask
		}
		_, err := w.submit(p, kind, a)
		return err
	}
}

var busy = &llm.Error{Class: llm.ClassRateLimited, Message: "busy"}

func scenarios() []scenario {
	return []scenario{
		{name: "plain steps", acts: []act{begin("go")}, lines: script{"go": {
			calls("echo", `{"text":"1"}`), calls("note", `{"text":"n"}`, "note", `{"text":"m"}`), says("bye"),
		}}},
		{name: "side effects", acts: []act{begin("go")}, lines: script{"go": {
			calls("line", `{"text":"1"}`), calls("line", `{"text":"2"}`), says("bye"),
		}}},
		{name: "idempotent and parallel", acts: []act{begin("go")}, lines: script{"go": {
			calls("put", `{"text":"1"}`), calls("line", `{"text":"a"}`, "put", `{"text":"b"}`, "line", `{"text":"c"}`, "echo", `{"text":"d"}`),
		}}},
		{name: "approval", acts: []act{begin("go"), answer(session.WaitApproval, yes())}, lines: script{"go": {
			calls("line", `{"text":"0"}`, "deploy", `{"text":"x"}`), says("bye"),
		}}},
		{name: "denial", acts: []act{begin("go"), answer(session.WaitApproval, no())}, lines: script{"go": {
			calls("deploy", `{"text":"x"}`), says("bye"),
		}}},
		{name: "held batch", policy: session.Policy{HoldBatch: true}, acts: []act{begin("go"), answer(session.WaitApproval, yes())}, lines: script{"go": {
			calls("line", `{"text":"0"}`, "deploy", `{"text":"x"}`, "line", `{"text":"1"}`),
		}}},
		{name: "two decisions", acts: []act{begin("go"), func(w *world, p *process) error {
			_, err := p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Approve: []string{"w2-1"}, Caller: person})
			return err
		}}, lines: script{"go": {calls("deploy", `{"text":"x"}`, "deploy", `{"text":"y"}`)}}},
		{name: "several decisions", together: true, acts: []act{begin("go"), func(w *world, p *process) error {
			_, err := p.Decide(context.Background(), runtime.DecideParams{Key: w.key, ApproveAll: true, Reject: []string{w.waits()[1].Wait.ID}, Caller: person})
			return err
		}}, lines: script{"go": {
			calls("deploy", `{"text":"x"}`, "deploy", `{"text":"y"}`, "line", `{"text":"1"}`, "deploy", `{"text":"z"}`), says("bye"),
		}}},
		{name: "question and once", acts: []act{begin("go"), answer(session.WaitQuestion, session.Answer{Selected: []string{"red"}})}, lines: script{"go": {
			calls("pick", `{"text":"wall"}`), says("bye"),
		}}, cut: []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped, session.KindCompleted}},
		{name: "question of an idempotent tool", acts: []act{begin("go"), answer(session.WaitQuestion, session.Answer{Selected: []string{"red"}})}, lines: script{"go": {
			calls("choose", `{"text":"wall"}`), says("bye"),
		}}},
		{name: "client tool", acts: []act{begin("go"), answer(session.WaitClientTool, session.Answer{Result: json.RawMessage(`false`)})}, lines: script{"go": {
			calls("locate", `{"text":"me"}`), says("bye"),
		}}},
		{name: "input", acts: []act{begin("go"), answer(session.WaitInput, session.Answer{Message: llm.TextParts("here")})}, lines: script{"go": {
			needs("where?"), calls("line", `{"text":"1"}`), says("bye"),
		}}},
		{name: "delayed model", acts: []act{begin("go")}, lines: script{"go": {
			fails(busy), fails(busy), calls("line", `{"text":"1"}`), says("bye"),
		}}},
		{name: "finish", acts: []act{begin("go")}, lines: script{"go": {calls("note", `{"text":"n"}`, "end", `{"text":"e"}`, "line", `{"text":"l"}`)}}},
		{name: "next turn", acts: []act{begin("go"), begin("more")}, lines: script{
			"go": {calls("line", `{"text":"1"}`), says("one")}, "more": {calls("line", `{"text":"2"}`), says("two")},
		}},
		{name: "failure", acts: []act{begin("go")}, lines: script{"go": {calls("line", `{"text":"1"}`), fails(fmt.Errorf("broken"))}}},
	}
}

// outcome is what is compared with the same session without a crash.
type outcome struct {
	kinds    []session.Kind
	statuses map[string]llm.ResultStatus
	messages string
	state    string
	output   string
	made     map[string]int
}

func (w *world) outcome() outcome {
	w.t.Helper()
	s := w.session()
	out := outcome{kinds: w.kinds(), statuses: map[string]llm.ResultStatus{}, made: w.effects.all(), output: string(s.Output)}
	for id, r := range results(s) {
		out.statuses[id] = r.Status
	}
	out.messages, out.state = asJSON(w.t, s.Messages), asJSON(w.t, s.State.Snapshot())
	return out
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// TestCrash_everywhere kills a process before and after each of its writes, with a
// queue in the store's transaction and with one beside it. A new process then finds a session that
// goes on by itself to the end it would have had.
func TestCrash_everywhere(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, detached := range []bool{false, true} {
			for _, steps := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/detached=%v/steps=%d", sc.name, detached, steps), func(t *testing.T) {
					t.Parallel()
					crashEverywhere(t, sc, detached, steps, 0, 0)
				})
			}
		}
	}
}

// crashEverywhere gives the process that dies and the one that takes over clocks of
// their own, so far ahead of the world's.
func crashEverywhere(t *testing.T, sc scenario, detached bool, steps int, dying, heir time.Duration) {
	made := newEffects()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, sc.lines, func(a *agent.Agent) { a.Policy = sc.policy })}})
	require.NoError(t, err)
	w := newWorldOf(t, made, registry)
	p := w.fusedProcess(&fuse{}, detached, steps)
	for _, do := range sc.acts {
		require.NoError(t, do(w, p))
		require.NoError(t, p.settle())
	}
	want := w.outcome()
	w.checkAtRest()
	writes, runs := p.fuse.n, sampler(t)
	for n := 1; n <= writes; n++ {
		for _, after := range []bool{false, true} {
			if !runs() {
				continue
			}
			f := &fuse{at: n, after: after}
			w = w.another()
			unknown := w.crash(sc, f, detached, steps, dying, heir)
			label := fmt.Sprintf("died %d (after %v) of %v", n, after, f.ops)
			want := want
			if w.cut && len(w.waits()) == 0 {
				want.kinds = sc.cut
			}
			compare(t, want, w.outcome(), unknown, label)
			w.checkAtRest()
			if t.Failed() {
				t.Fatal(label)
			}
		}
	}
}

func (w *world) fusedProcess(f *fuse, detached bool, steps int, change ...func(*runtime.Config)) *process {
	p := w.process(append(change, func(cfg *runtime.Config) {
		cfg.Store = &fusedStore{Store: w.store, fuse: f, detached: detached}
		cfg.Queue = &fusedQueue{Queue: w.queue, fuse: f}
		cfg.StepsPerInvocation = steps
	})...)
	p.fuse = f
	return p
}

// dies lets the worker of the first step die after so many operations. The fuse it
// returns says which.
func (w *world) dies(after int) *fuse {
	w.t.Helper()
	f := &fuse{at: after, after: true}
	_, err := w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
	require.ErrorIs(w.t, err, errDied, "%v", f.ops)
	return f
}

// crash plays a scenario with a process that dies, and a second one that takes
// over. It returns the calls that were cut off while they ran.
func (w *world) crash(sc scenario, f *fuse, detached bool, steps int, dying, heir time.Duration) map[string]bool {
	w.t.Helper()
	p := w.fusedProcess(f, detached, steps, off(w, dying))
	unknown := map[string]bool{}
	for _, do := range sc.acts {
		err := do(w, p)
		if err == nil {
			err = p.settle()
		}
		if !f.blown() {
			require.NoError(w.t, err)
			continue
		}
		if p.fuse == nil { // the second process
			require.NoError(w.t, err)
			continue
		}
		for _, item := range w.items(store.KindTool) {
			if item.Tool.State == journal.ToolStarted {
				unknown[item.Tool.Call] = true
			}
		}
		w.cut = sc.cut != nil && len(unknown) > 0
		w.checkTogether(sc, fmt.Sprint(f.ops))
		p = w.fusedProcess(&fuse{}, detached, steps, off(w, heir))
		p.fuse = nil
		// The sweep finds what was committed and never sent, before anybody asks again.
		require.NoError(w.t, p.settle(), "died at %v", f.ops)
		require.NoError(w.t, do(w, p), "done again after dying at %v", f.ops)
		require.NoError(w.t, p.settle(), "died at %v", f.ops)
	}
	return unknown
}

// checkTogether holds that no decision is half there after a crash.
func (w *world) checkTogether(sc scenario, label string) {
	w.t.Helper()
	if !sc.together {
		return
	}
	open, waits := 0, w.waits()
	for _, record := range waits {
		if record.State == session.WaitOpen {
			open++
		}
	}
	require.Contains(w.t, []int{0, len(waits)}, open, "half of a decision, died at %s", label)
}

// compare holds the outcome of a session that died against the one that did not.
func compare(t *testing.T, want, got outcome, unknown map[string]bool, label string) {
	t.Helper()
	require.Equal(t, want.kinds, got.kinds, label)
	for call, status := range got.statuses {
		if status == llm.ResultUnknown && want.statuses[call] != llm.ResultUnknown {
			require.True(t, unknown[call], "%s: %s is unknown, but was not cut off", label, call)
		}
	}
	for call := range unknown {
		if got.statuses[call] != llm.ResultUnknown {
			require.Equal(t, want.statuses[call], got.statuses[call], "%s: %s", label, call)
		}
	}
	for what, n := range got.made {
		if !strings.HasPrefix(what, "put ") { // the same key as often as one likes
			require.LessOrEqual(t, n, want.made[what], "%s: %s", label, what)
		}
	}
	cut := 0
	for _, status := range got.statuses {
		if status == llm.ResultUnknown {
			cut++
		}
	}
	if cut > 0 {
		return
	}
	require.Equal(t, want.messages, got.messages, label)
	require.Equal(t, want.state, got.state, label)
	require.Equal(t, want.output, got.output, label)
	for what := range want.made {
		require.Positive(t, got.made[what], "%s: %s", label, what)
	}
}

// checkAtRest holds what is true of every session that rests.
func (w *world) checkAtRest() {
	w.t.Helper()
	w.checkRecords()
	_, check, err := w.process().VerifyAudit(w.t.Context(), w.key)
	require.NoError(w.t, err)
	require.Empty(w.t, check.Faults)
}

// checkRecords is [world.checkAtRest] where a test has changed what was stored.
func (w *world) checkRecords() {
	t := w.t
	t.Helper()
	entries := w.journal()
	s, err := engine.Fold(w.key, entries)
	require.NoError(t, err)
	require.NotEqual(t, session.StatusRunning, s.Status)
	head := w.head().Head
	require.Equal(t, s.Status, head.Status)
	require.Equal(t, s.Task, head.Task)
	require.Nil(t, head.Due, "nothing is to be swept at rest")
	require.False(t, head.Lease.Live(w.clock.Now(), s.Version, s.Newest.KeepsLease))
	runs := w.items(store.KindRun)
	require.Len(t, runs, int(s.Run), "runs are numbered without gaps")
	for _, item := range runs {
		run := item.Run
		require.Equal(t, run.ID-1, run.PreviousRun)
		require.NotNil(t, run.EndedAt, "run %d has ended", run.ID)
		require.True(t, run.Status.Resting())
		require.Equal(t, run.ID, entries[run.FirstEntry-1].Run)
		require.Equal(t, run.ID, entries[run.LastEntry-1].Run)
		var used session.Amounts
		for _, e := range entries[run.FirstEntry-1 : run.LastEntry] {
			used = used.Add(e.Used.Amounts)
		}
		require.Equal(t, used, run.Used, "what run %d used", run.ID)
	}
	if s.Status == session.StatusSuspended {
		return
	}
	for _, record := range w.waits() {
		require.Contains(t, []session.WaitState{session.WaitTaken, session.WaitClosed}, record.State, record.Wait.ID)
		require.Nil(t, record.Due)
	}
}
