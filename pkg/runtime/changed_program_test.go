package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The writes of a worker on a reply with one side effect: claim, commit replied,
// claim, ledger started, (the effect,) ledger finished, commit stepped.
var diedWith = map[string]int{"nothing": 4, "started": 5, "finished": 6}

var goLine = script{"go": {calls("line", `{"text":"1"}`), says("bye")}}

// diedOver is a session whose worker died over the call of line and left its ledger
// so: as a worker does, or as somebody else's write.
func diedOver(t *testing.T, ledger string) *world {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, goLine))
	w.start(w.process(), "go")
	at, dies := diedWith[ledger]
	if !dies {
		at = diedWith["nothing"]
	}
	_, err := w.fusedProcess(&fuse{at: at}, true, 1).deliverOne(context.Background())
	require.ErrorIs(t, err, errDied)
	require.Equal(t, session.KindReplied, w.session().Newest.Kind)
	if !dies {
		w.update(store.ToolItem(journal.ToolRecord{Call: "c2-1", State: journal.ToolState(ledger), Attempt: "gone", At: w.clock.Now()}, 0))
	}
	return w
}

// deployed is a worker of a program deployed since, whose agent was changed.
func (w *world) deployed(change func(*agent.Agent)) *process {
	w.t.Helper()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(w.effects, goLine, change)}})
	require.NoError(w.t, err)
	return w.process(func(cfg *runtime.Config) { cfg.Registry = registry })
}

// lineIs replaces the tool line.
func lineIs(t tool.Tool) func(*agent.Agent) {
	return func(a *agent.Agent) {
		i := slices.IndexFunc(a.Tools, func(t tool.Tool) bool { return t.Name() == "line" })
		a.Tools[i] = t
	}
}

// lineAs is line with another spec; it has the same effect.
func lineAs[In any](made *effects, spec tool.Spec[In]) func(*agent.Agent) {
	spec.Name = "line"
	return lineIs(tool.Define(spec, func(context.Context, *tool.Call, In) (string, error) {
		made.add("line 1")
		return "did 1", nil
	}))
}

type moreIn struct {
	Text string `json:"text"`
	Path string `json:"path"`
}

func found(_ context.Context, _ *tool.Call, in textIn) (any, bool, error) {
	return "found " + in.Text, true, nil
}

// TestChanged_program: a worker died over a call, and the program deployed since
// has another tool of that name, or none. What the ledger says counts before what
// the tool is now, so that the effect happens once and the model is told of it.
func TestChanged_program(t *testing.T) {
	t.Parallel()
	schema := func(policy session.UnknownPolicy) func(*effects) func(*agent.Agent) {
		return func(made *effects) func(*agent.Agent) {
			spec := tool.Spec[moreIn]{OnUnknown: policy}
			if policy == session.UnknownProbe {
				spec.Probe = func(context.Context, *tool.Call, moreIn) (any, bool, error) { return "found", true, nil }
			}
			return lineAs(made, spec)
		}
	}
	spec := func(spec tool.Spec[textIn]) func(*effects) func(*agent.Agent) {
		return func(made *effects) func(*agent.Agent) { return lineAs(made, spec) }
	}
	approved := func(policy session.UnknownPolicy) func(*effects) func(*agent.Agent) {
		s := tool.Spec[textIn]{OnUnknown: policy, Approve: tool.Always[textIn]}
		if policy == session.UnknownProbe {
			s.Probe = found
		}
		return spec(s)
	}
	const (
		asksApproval = "waits for " + string(session.WaitApproval)
		asksClient   = "waits for " + string(session.WaitClientTool)
		asksVerdict  = "waits for " + string(session.WaitUnknown)
		did, unknown = string(llm.ResultSuccess), string(llm.ResultUnknown)
		refused      = string(llm.ResultError)
		cancelled    = string(llm.ResultCancelled)
	)
	for name, c := range map[string]struct {
		change func(*effects) func(*agent.Agent)
		// what becomes of the call, by its ledger
		nothing, asking, closed, started, finished string
		// closes says that a call nobody has run never will be.
		closes bool
	}{
		"nothing":              {spec(tool.Spec[textIn]{}), did, did, cancelled, unknown, did, false},
		"schema":               {schema(""), refused, refused, refused, unknown, did, true},
		"schema, ask":          {schema(session.UnknownAsk), refused, refused, refused, asksVerdict, did, true},
		"schema, probe":        {schema(session.UnknownProbe), refused, refused, refused, unknown, did, true},
		"schema, retry":        {schema(session.UnknownRetry), refused, refused, refused, unknown, did, true},
		"gone":                 {func(*effects) func(*agent.Agent) { return func(a *agent.Agent) { a.Tools = a.Tools[1:] } }, refused, refused, refused, unknown, did, true},
		"a client's":           {func(*effects) func(*agent.Agent) { return lineIs(tool.DefineClient(tool.Spec[textIn]{Name: "line"})) }, asksClient, asksClient, asksClient, unknown, did, true},
		"read only":            {spec(tool.Spec[textIn]{Effect: session.ReadOnly}), did, did, cancelled, unknown, did, false},
		"idempotent":           {spec(tool.Spec[textIn]{Effect: session.Idempotent}), did, did, cancelled, unknown, did, false},
		"approved":             {approved(""), asksApproval, asksApproval, cancelled, unknown, did, false},
		"approved, ask":        {approved(session.UnknownAsk), asksApproval, asksApproval, cancelled, asksVerdict, did, false},
		"approved, probe":      {approved(session.UnknownProbe), asksApproval, asksApproval, cancelled, asksApproval, did, false},
		"approved, retry":      {approved(session.UnknownRetry), asksApproval, asksApproval, cancelled, asksApproval, did, false},
		"read only, approved":  {spec(tool.Spec[textIn]{Effect: session.ReadOnly, Approve: tool.Always[textIn]}), asksApproval, asksApproval, cancelled, unknown, did, false},
		"the planner, refuses": {func(*effects) func(*agent.Agent) { return func(a *agent.Agent) { a.Planner = refusing } }, did, did, cancelled, unknown, did, false},
	} {
		for ledger, want := range map[string]string{"nothing": c.nothing, "asking": c.asking, "closed": c.closed, "started": c.started, "finished": c.finished} {
			t.Run(name+"/"+ledger, func(t *testing.T) {
				t.Parallel()
				w := diedOver(t, ledger)
				before := w.effects.count("line 1")
				p := w.deployed(c.change(w.effects))
				require.NoError(t, p.settle())
				s := w.session()
				got := string(results(s)["c2-1"].Status)
				if s.Status == session.StatusSuspended {
					got = "waits for " + string(s.Waits[0].Kind)
				}
				require.Equal(t, want, got, "%s", results(s)["c2-1"].Output)
				ran := 0
				if want == did && ledger != "finished" {
					ran = 1
				}
				require.Equal(t, before+ran, w.effects.count("line 1"), "the effect")
				if want == did {
					require.JSONEq(t, `"did 1"`, string(results(s)["c2-1"].Output), "what the tool returned, when it ran")
				}
				items := w.items(store.KindTool)
				if c.closes && before == 0 {
					require.Equal(t, journal.ToolClosed, items[0].Tool.State, "it will not run here")
				}
				if before > 0 {
					require.Contains(t, []journal.ToolState{journal.ToolStarted, journal.ToolFinished}, items[0].Tool.State, "what happened stays on record")
				}
				w.checkAtRest()
			})
		}
	}
}

var refusing = agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
	return agent.Reply{}, &llm.Error{Class: llm.ClassInvalid, Message: "no"}
})

// TestChanged_program_then_answered: what is asked about a call that may have run is
// answered, and that is the end of it.
func TestChanged_program_then_answered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec   tool.Spec[textIn]
		client bool
		ledger string
		kind   session.WaitKind
		answer session.Answer
		status llm.ResultStatus
		output string
		made   int
	}{
		"retried once it is approved":      {tool.Spec[textIn]{OnUnknown: session.UnknownRetry, Approve: tool.Always[textIn]}, false, "started", session.WaitApproval, yes(), llm.ResultSuccess, `"did 1"`, 2},
		"looked for once it is approved":   {tool.Spec[textIn]{OnUnknown: session.UnknownProbe, Approve: tool.Always[textIn], Probe: found}, false, "started", session.WaitApproval, yes(), llm.ResultSuccess, `"found 1"`, 1},
		"not tried again, as it is denied": {tool.Spec[textIn]{OnUnknown: session.UnknownRetry, Approve: tool.Always[textIn]}, false, "started", session.WaitApproval, no(), llm.ResultUnknown, "", 1},
		"run once it is approved":          {tool.Spec[textIn]{Approve: tool.Always[textIn]}, false, "nothing", session.WaitApproval, yes(), llm.ResultSuccess, `"did 1"`, 1},
		"looked up by a person":            {tool.Spec[textIn]{OnUnknown: session.UnknownAsk}, false, "started", session.WaitUnknown, session.Answer{Verdict: session.VerdictHappened}, llm.ResultSuccess, "", 1},
		"done by the client":               {tool.Spec[textIn]{}, true, "nothing", session.WaitClientTool, session.Answer{Result: json.RawMessage(`7`)}, llm.ResultSuccess, `7`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := diedOver(t, c.ledger)
			change := lineAs(w.effects, c.spec)
			if c.client {
				change = lineIs(tool.DefineClient(tool.Spec[textIn]{Name: "line"}))
			}
			p := w.deployed(change)
			require.NoError(t, p.settle())
			_, err := w.submit(p, c.kind, c.answer)
			require.NoError(t, err)
			require.NoError(t, p.settle())
			s := w.session()
			require.Equal(t, session.StatusCompleted, s.Status)
			require.Equal(t, c.status, results(s)["c2-1"].Status)
			if c.output != "" {
				require.JSONEq(t, c.output, string(results(s)["c2-1"].Output))
			}
			require.Equal(t, c.made, w.effects.count("line 1"))
			w.checkAtRest()
		})
	}
}

// TestChanged_program_after_an_approval: the call was approved and run, and its
// worker died; the approval is void under the agent as it is now. Nobody is asked
// to approve what has happened.
func TestChanged_program_after_an_approval(t *testing.T) {
	t.Parallel()
	for ledger, c := range map[string]struct {
		at     int
		status session.Status
		want   llm.ResultStatus
	}{
		"nothing":  {5, session.StatusSuspended, ""},
		"started":  {6, session.StatusCompleted, llm.ResultUnknown},
		"finished": {7, session.StatusCompleted, llm.ResultSuccess},
	} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			lines := script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}
			w := newWorld(t, made, helper(made, lines))
			p := w.process()
			w.run(p, "go")
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
			f := &fuse{at: c.at - 1}
			_, err = w.fusedProcess(f, true, 1).deliverOne(context.Background())
			require.ErrorIs(t, err, errDied, "%v", f.ops)
			before := made.count("deploy 1")
			registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, lines, func(a *agent.Agent) { a.System = "Something else." })}})
			require.NoError(t, err)
			require.NoError(t, w.process(func(cfg *runtime.Config) { cfg.Registry = registry }).settle())
			require.Equal(t, c.status, w.session().Status, "%v", f.ops)
			require.Equal(t, c.want, results(w.session())["c2-1"].Status)
			require.Equal(t, before, made.count("deploy 1"))
			w.checkAtRest()
		})
	}
}

// TestChanged_program_and_a_frozen_worker: one of the program before is stopped just
// before it starts the call. When it goes on, the call is over and does not run.
func TestChanged_program_and_a_frozen_worker(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*effects) func(*agent.Agent){
		"refused":    func(made *effects) func(*agent.Agent) { return lineAs(made, tool.Spec[moreIn]{}) },
		"a client's": func(*effects) func(*agent.Agent) { return lineIs(tool.DefineClient(tool.Spec[textIn]{Name: "line"})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, goLine))
			w.start(w.process(), "go")
			g := newGate(diedWith["nothing"], false)
			frozen := w.process(func(cfg *runtime.Config) {
				cfg.Store, cfg.WatchEvery = &gatedStore{Store: w.store, gate: g, detached: true}, time.Hour
			})
			done := make(chan error, 1)
			go func() {
				_, err := frozen.Deliver(context.Background(), w.wake(2, journal.WakeStep))
				done <- err
			}()
			select {
			case <-g.frozen:
			case <-time.After(10 * time.Second):
				t.Fatal("never stopped")
			}
			p := w.deployed(change(made))
			require.NoError(t, p.settle())
			close(g.thawed)
			require.NoError(t, <-done, "%v", g.list())
			require.Empty(t, made.all())
			require.NoError(t, p.settle())
			require.Empty(t, made.all())
			w.checkAtRest()
		})
	}
}

// TestChanged_program_and_a_lost_lease: only who owns the lease says that an outcome
// is not known. The owner may be at the call right now.
func TestChanged_program_and_a_lost_lease(t *testing.T) {
	t.Parallel()
	w := diedOver(t, "started")
	w.clock.advance(time.Minute)
	s := &storeHook{Store: w.store, when: readOf(store.KindTool), happens: func() {
		w.clock.advance(time.Minute)
		w.claimAs("elsewhere", 3)
	}}
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(w.effects, goLine, lineAs(w.effects, tool.Spec[moreIn]{}))}})
	require.NoError(t, err)
	p := w.process(func(cfg *runtime.Config) { cfg.Registry, cfg.Store = registry, s })
	require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
	require.Nil(t, s.happens)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
}

// TestChanged_program_after_every_write: wherever a worker died, the program
// deployed since makes no effect twice, and says "refused", or asks the client,
// only of what has not happened.
func TestChanged_program_after_every_write(t *testing.T) {
	t.Parallel()
	lines := script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`, "line", `{"text":"3"}`), calls("line", `{"text":"4"}`), says("bye")}}
	for name, change := range map[string]func(*effects) func(*agent.Agent){
		"schema":     func(made *effects) func(*agent.Agent) { return lineAs(made, tool.Spec[moreIn]{}) },
		"gone":       func(*effects) func(*agent.Agent) { return func(a *agent.Agent) { a.Tools = a.Tools[1:] } },
		"a client's": func(*effects) func(*agent.Agent) { return lineIs(tool.DefineClient(tool.Spec[textIn]{Name: "line"})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, lines))
			registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, lines, change(made))}})
			require.NoError(t, err)
			effects := map[string]string{"c2-1": "line 1", "c2-2": "deploy 2", "c2-3": "line 3"}
			n, died := 1, true
			for ; died; n++ {
				w = w.another()
				f := &fuse{at: n}
				for _, p := range []*process{w.fusedProcess(f, true, 1), w.process(func(cfg *runtime.Config) { cfg.Registry = registry })} {
					_ = begin("go")(w, p)
					_ = p.settle()
					_, _ = decide(w, p, runtime.DecideParams{ApproveAll: true})
					_ = p.settle()
				}
				died = f.blown()
				s := w.session()
				for call, effect := range effects {
					times, r := made.count(effect), results(s)[call]
					require.LessOrEqual(t, times, 1, "%s, died at %v", effect, f.ops)
					if r.Status == llm.ResultSuccess && effect != "deploy 2" {
						require.Equal(t, 1, times, "%s, died at %v", effect, f.ops)
					}
					if r.Status == llm.ResultError || slices.ContainsFunc(s.Waits, func(wait session.Wait) bool { return wait.Call == call }) {
						require.Zero(t, times, "%s, died at %v", effect, f.ops)
					}
				}
				w.checkAtRest()
			}
			require.Greater(t, n, 15)
		})
	}
}
