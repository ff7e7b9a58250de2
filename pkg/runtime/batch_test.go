package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// batch is a reply with several calls that wait for different people.
type batch struct {
	lines script
	// answers, by the call that each is for.
	answers map[string]session.Answer
	// want are the calls and what became of them, in the order in which the reply declares them.
	want []string
}

// mixed is a batch of five: two run by themselves, one is approved, one denied, and one is the client's.
func mixed() batch {
	return batch{
		lines: script{"go": {
			calls("line", `{"text":"1"}`, "deploy", `{"text":"yes"}`, "locate", `{"text":"me"}`, "deploy", `{"text":"no"}`, "echo", `{"text":"2"}`), says("bye"),
		}},
		answers: map[string]session.Answer{"c2-2": yes(), "c2-3": {Result: json.RawMessage(`"here"`)}, "c2-4": no()},
		want:    []string{"c2-1 success", "c2-2 success", "c2-3 success", "c2-4 denied", "c2-5 success"},
	}
}

// failing is a batch of three that are all approved, and the first fails.
func failing() batch {
	return batch{
		lines: script{"go": {
			calls("broken", `{"text":"1"}`, "deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), says("bye"),
		}},
		answers: map[string]session.Answer{"c2-1": yes(), "c2-2": yes(), "c2-3": yes()},
		want:    []string{"c2-1 error", "c2-2 success", "c2-3 success"},
	}
}

// orders returns the orders in which the answers can come.
func (b batch) orders() (all [][]string) {
	var pick func(taken, left []string)
	pick = func(taken, left []string) {
		if len(left) == 0 {
			all = append(all, slices.Clone(taken))
		}
		for i, call := range left {
			pick(append(slices.Clone(taken), call), slices.Delete(slices.Clone(left), i, i+1))
		}
	}
	var calls []string
	for call := range b.answers {
		calls = append(calls, call)
	}
	slices.Sort(calls)
	pick(nil, calls)
	return all
}

func (b batch) world(t *testing.T, hold bool) *world {
	t.Helper()
	made := newEffects()
	return newWorld(t, made, helper(made, b.lines, func(a *agent.Agent) {
		a.Policy = session.Policy{HoldBatch: hold}
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "broken", Approve: tool.Always[textIn]}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
			made.add(c.Name() + " " + in.Text)
			return "", errors.New("out of order")
		}))
	}))
}

// acts are a start and an answer to each of these calls.
func (b batch) acts(order []string) []act {
	acts := []act{begin("go")}
	for _, call := range order {
		acts = append(acts, func(w *world, p *process) error {
			for _, record := range w.waits() {
				if record.Wait.Call == call {
					_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, b.answers[call])})
					return err
				}
			}
			return fmt.Errorf("nobody is asked about %s", call)
		})
	}
	return acts
}

// came are the results of a session, in the order of its history.
func came(s *session.Session) (all []string) {
	for _, m := range s.Messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				all = append(all, p.ToolResult.CallID+" "+string(p.ToolResult.Status))
			}
		}
	}
	return all
}

// each plays a batch: each act is a process's own, and dies as its fuse says, if it has one. Then another
// process finds what is left, and somebody acts once more. It returns which calls were cut off.
func (w *world) each(acts []act, fuses []*fuse, detached bool) map[string]bool {
	w.t.Helper()
	unknown := map[string]bool{}
	for i, do := range acts {
		p := w.fusedProcess(fuses[i], detached, 1)
		err := do(w, p)
		if err == nil {
			err = p.settle()
		}
		if !p.fuse.blown() {
			require.NoError(w.t, err)
			continue
		}
		for _, item := range w.items(store.KindTool) {
			if item.Tool.State == "started" {
				unknown[item.Tool.Call] = true
			}
		}
		heir := w.fusedProcess(&fuse{}, detached, 1)
		heir.fuse = nil
		require.NoError(w.t, heir.settle(), "act %d died at %v", i, fuses[i].ops)
		require.NoError(w.t, do(w, heir), "act %d done again after dying at %v", i, fuses[i].ops)
		require.NoError(w.t, heir.settle(), "act %d died at %v", i, fuses[i].ops)
	}
	return unknown
}

// TestBatch_in_any_order_killed_everywhere: the calls of one reply are answered in every order, each by
// a process of its own, and each of these processes is killed before and after each of its writes, alone and
// all of them one after the other. The results come in the order in which the calls were declared, what was
// approved runs once, what was denied never, and the agent goes on; also where the first of three that were
// approved fails, and where no call of the batch runs before all is decided.
func TestBatch_in_any_order_killed_everywhere(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]batch{"two auto, one approved, one denied, one of the client": mixed(), "three approved, the first fails": failing()} {
		for i, order := range b.orders() {
			for _, hold := range []bool{false, true} {
				for _, detached := range []bool{false, true} {
					if (i%2 == 0) != (hold == detached) {
						continue // each order is played in two of the four ways
					}
					t.Run(fmt.Sprintf("%s/%v/hold=%v/detached=%v", name, order, hold, detached), func(t *testing.T) {
						t.Parallel()
						b.killEverywhere(t, order, i < 2, hold, detached)
					})
				}
			}
		}
	}
}

// killEverywhere kills those that answer in an order, and with start the one that starts, which knows no order.
func (b batch) killEverywhere(t *testing.T, order []string, start, hold, detached bool) {
	w, acts := b.world(t, hold), b.acts(order)
	calm := make([]*fuse, len(acts))
	for i := range calm {
		calm[i] = &fuse{}
	}
	w.each(acts, calm, detached)
	want := w.outcome()
	b.check(t, w)
	most, runs := 0, sampler(t)
	play := func(label string, dies func(i int) (at int, after bool)) {
		if !runs() {
			return
		}
		fuses := make([]*fuse, len(acts))
		for i := range fuses {
			fuses[i] = &fuse{}
			fuses[i].at, fuses[i].after = dies(i)
		}
		w = w.another()
		unknown := w.each(acts, fuses, detached)
		for i, f := range fuses {
			// Of calls that run side by side the last mark goes with the entry if it comes in time: so the last
			// write of the calm run is sometimes not there, and none else.
			require.True(t, f.at == 0 || f.blown() || f.at == calm[i].n, "%s: act %d", label, i)
			label += fmt.Sprintf("; act %d wrote %v", i, f.ops)
		}
		compare(t, want, w.outcome(), unknown, label)
		if len(unknown) == 0 {
			b.check(t, w)
		}
		require.Zero(t, w.effects.count("deploy no"), label)
		w.checkAtRest()
		if t.Failed() {
			t.Fatal(label)
		}
	}
	for who := range acts {
		if who == 0 && !start {
			continue
		}
		most = max(most, calm[who].n)
		for n := 1; n <= calm[who].n; n++ {
			for _, after := range []bool{false, true} {
				play(fmt.Sprintf("act %d died at write %d (after %v)", who, n, after), func(i int) (int, bool) {
					if i != who {
						return 0, false
					}
					return n, after
				})
			}
		}
	}
	for n := 1; n <= most; n++ {
		for _, after := range []bool{false, true} {
			play(fmt.Sprintf("each act died at write %d (after %v)", n, after), func(i int) (int, bool) { return min(n, calm[i].n), after })
		}
	}
}

// check holds what a batch comes to if nothing was cut off while it ran.
func (b batch) check(t *testing.T, w *world) {
	t.Helper()
	s := w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	require.Equal(t, b.want, came(s), "in the order in which they were declared")
	require.Equal(t, "bye", s.Messages[len(s.Messages)-1].Text(), "the agent goes on")
	for _, e := range w.journal() {
		if e.Kind == session.KindResumed {
			require.Len(t, e.Answers, len(b.answers), "all are taken in at once")
		}
	}
}

// TestBatch_killed_between_answered_and_resumed: the process that gave the last answer dies when it is stored and
// before anybody is told. The sweep of another one goes on with it; nothing is lost, and the answer needs
// no second telling.
func TestBatch_killed_between_answered_and_resumed(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]batch{"mixed": mixed(), "failing": failing()} {
		for _, order := range b.orders() {
			for _, hold := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/hold=%v", name, order, hold), func(t *testing.T) {
					t.Parallel()
					w, acts := b.world(t, hold), b.acts(order)
					last := len(acts) - 1
					for _, do := range acts[:last] {
						p := w.process()
						require.NoError(t, do(w, p))
						require.NoError(t, p.settle())
					}
					dies := w.fusedProcess(&fuse{at: 1, after: true}, true, 1)
					require.ErrorIs(t, acts[last](w, dies), errDied)
					require.Equal(t, []string{"update wait"}, dies.fuse.ops)
					require.Empty(t, w.drain(), "nobody was told")
					require.Equal(t, session.StatusSuspended, w.session().Status)
					for _, record := range w.waits() {
						require.Equal(t, session.WaitAnswered, record.State)
					}
					require.NoError(t, w.process().settle())
					b.check(t, w)
					w.checkAtRest()
				})
			}
		}
	}
}

// TestBatch_the_model_sees_a_failure_and_the_rest: after three calls were approved in one decision and the first
// failed, the next plan has the error and the results of the others, in the order in which the calls were
// declared, with the texts of each.
func TestBatch_the_model_sees_a_failure_and_the_rest(t *testing.T) {
	t.Parallel()
	for _, hold := range []bool{false, true} {
		b := failing()
		var saw []llm.ToolResult
		b.lines["go"][1] = func(_ context.Context, v agent.View) (agent.Reply, error) {
			for _, p := range v.Messages[len(v.Messages)-1].Parts {
				require.NotNil(t, p.ToolResult)
				saw = append(saw, *p.ToolResult)
			}
			return agent.Reply{Text: "bye"}, nil
		}
		w := b.world(t, hold)
		p := w.process()
		w.run(p, "go")
		_, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
		b.check(t, w)
		require.Len(t, saw, 3)
		require.Equal(t, []string{"c2-1", "c2-2", "c2-3"}, []string{saw[0].CallID, saw[1].CallID, saw[2].CallID})
		require.Contains(t, string(saw[0].Output), "out of order")
		require.Equal(t, `"did 2"`, string(saw[1].Output))
		require.Equal(t, `"did 3"`, string(saw[2].Output))
		require.Equal(t, map[string]int{"broken 1": 1, "deploy 2": 1, "deploy 3": 1}, w.effects.all())
		w.checkAtRest()
	}
}
