package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var stops = []runtime.SignalKind{runtime.SignalInterrupt, runtime.SignalCancel, runtime.SignalAbort}

// stoppedAs is the status that each way to stop leads to.
var stoppedAs = map[runtime.SignalKind]session.Status{
	runtime.SignalInterrupt: session.StatusInterrupted, runtime.SignalCancel: session.StatusCancelled, runtime.SignalAbort: session.StatusFailed,
}

func (w *world) stop(p *process, kind runtime.SignalKind) (runtime.Stopped, error) {
	return p.Stop(context.Background(), runtime.StopParams{Key: w.key, Kind: kind, Reason: "enough", Caller: people})
}

// stopScript has a side effect, two approvals, and an end.
func stopScript() script {
	return script{
		"go":   {calls("line", `{"text":"1"}`), calls("deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), says("bye")},
		"more": {says("again")},
		"late": {fails(&llm.Error{Class: llm.ClassOverloaded, RetryAfter: time.Hour}), says("bye")},
	}
}

// stopPlaces are where nobody works on a session.
var stopPlaces = map[string]func(t *testing.T, w *world){
	"just started": func(_ *testing.T, w *world) { w.start(w.process(), "go"); w.drain() },
	"after a reply whose tool was started": func(_ *testing.T, w *world) {
		w.start(w.process(), "go")
		w.drain()
		w.dies(2)
		w.clock.advance(time.Minute)
	},
	"between two steps": func(_ *testing.T, w *world) {
		w.start(w.process(), "go")
		w.deliver(w.process(), 2, journal.WakeStep)
		w.drain()
	},
	"delayed": func(_ *testing.T, w *world) { w.run(w.process(), "late") },
	"waiting": func(_ *testing.T, w *world) { w.run(w.process(), "go") },
	"answered": func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		_, err := w.answer(w.process(), 0)
		require.NoError(t, err)
	},
	"held": func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		for _, record := range w.waits() {
			_, err := w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, yes()), HoldResume: true})
			require.NoError(t, err)
		}
	},
	"interrupted": func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		_, err := w.stop(w.process(), runtime.SignalInterrupt)
		require.NoError(t, err)
	},
}

// Where nobody works, the verb itself stops the task: no worker, no sweep is needed.
func TestStop_where_nobody_works(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		for _, kind := range stops {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, stopScript()))
				place(t, w)
				before, waits := w.journal(), w.waits()
				out, err := w.stop(w.process(), kind)
				require.NoError(t, err)
				s := w.session()
				require.Equal(t, stoppedAs[kind], s.Status)
				if name == "interrupted" && kind == runtime.SignalInterrupt {
					require.Equal(t, runtime.Stopped{Outcome: runtime.StopNothing, Task: 1, Status: s.Status}, out)
					require.Len(t, w.journal(), len(before))
					return
				}
				require.Equal(t, runtime.Stopped{Outcome: runtime.StopDone, Task: 1, Status: s.Status}, out)
				entry := w.journal()[len(before)]
				require.Len(t, w.journal(), len(before)+1)
				require.Equal(t, "enough", entry.Signal.Reason)
				require.Equal(t, people.Who, entry.Signal.Who)
				require.Equal(t, people.From, entry.Signal.From)
				view, err := w.process().View(context.Background(), w.key)
				require.NoError(t, err)
				require.Equal(t, &session.StoppedBy{Kind: session.Verb(kind), Reason: "enough", Who: people.Who, At: entry.Signal.At}, view.Stopped)
				require.Nil(t, w.head().Head.Signal)
				require.Empty(t, w.drain(), "nothing drives it on")
				w.clock.advance(time.Hour)
				require.NoError(t, w.process().settle())
				require.Equal(t, stoppedAs[kind], w.session().Status)
				switch kind {
				case runtime.SignalInterrupt:
					require.Equal(t, asJSON(t, withoutDue(waits)), asJSON(t, withoutDue(w.waits())), "the same waits, answers and nonces")
				case runtime.SignalCancel:
					valid(t, s)
					w.checkAtRest()
					_, err := w.process().Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
					require.NoError(t, err)
					require.NoError(t, w.process().settle())
					require.Equal(t, session.StatusCompleted, w.session().Status, "the next turn")
				case runtime.SignalAbort:
					require.Equal(t, "aborted", s.Failure.Type)
					require.Contains(t, s.Failure.Message, "bob: enough")
					require.Empty(t, s.Calls)
					w.checkAtRest()
				}
				if n := made.count("line 1"); n > 0 {
					require.NotEqual(t, llm.ResultCancelled, results(w.session())["c2-1"].Status)
				}
			})
		}
	}
}

// withoutDue leaves out what the sweep takes away from the answered waits of an interrupted session.
func withoutDue(records []journal.WaitRecord) []journal.WaitRecord {
	for i := range records {
		if records[i].State != session.WaitOpen {
			records[i].Due = nil
		}
	}
	return records
}

// What was interrupted goes on, once, with what it had.
func TestStop_interrupt_and_continue(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			place(t, w)
			_, err := w.stop(w.process(), runtime.SignalInterrupt)
			require.NoError(t, err)
			p := w.process()
			_, err = w.goOn(p)
			require.NoError(t, err)
			require.NoError(t, p.settle())
			for w.session().Status == session.StatusSuspended {
				for _, record := range w.waits() {
					if record.State == session.WaitOpen {
						_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, yes())})
						require.NoError(t, err)
					}
				}
				if name == "held" {
					_, err := w.goOn(p)
					require.NoError(t, err)
				}
				require.NoError(t, p.settle())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			for what, n := range made.all() {
				require.Equal(t, 1, n, what)
			}
			w.checkAtRest()
		})
	}
}

// Where a worker works, the signal is left for it. A stronger one takes its place.
func TestStop_where_a_worker_works(t *testing.T) {
	t.Parallel()
	for _, first := range stops {
		for _, second := range stops {
			t.Run(string(first)+", "+string(second), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, stopScript()))
				w.start(w.process(), "go")
				w.claimAs("somewhere else", 2)
				want, newest := first, w.session().Newest
				for _, kind := range []runtime.SignalKind{first, second} {
					out, err := w.stop(w.process(), kind)
					require.NoError(t, err)
					require.Equal(t, runtime.Stopped{Outcome: runtime.StopSent, Task: 1, Status: session.StatusRunning}, out)
				}
				if second.Strength() > first.Strength() {
					want = second
				}
				require.Equal(t, want, w.head().Head.Signal.Kind)
				require.Equal(t, newest, w.session().Newest)
				w.clock.advance(time.Minute)
				require.NoError(t, w.process().settle())
				require.Equal(t, stoppedAs[want], w.session().Status)
				require.Empty(t, made.all())
			})
		}
	}
}

// A verb that stops a step where nobody works obeys the stronger of its own signal and HEAD's.
func TestStop_obeys_the_stronger_signal(t *testing.T) {
	t.Parallel()
	for _, there := range stops {
		for _, kind := range stops {
			t.Run(string(there)+" on HEAD, "+string(kind), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, stopScript()))
				w.start(w.process(), "go")
				id := w.signal(there)
				out, err := w.stop(w.process(), kind)
				require.NoError(t, err)
				want := kind
				if there.Strength() >= kind.Strength() {
					want = there
				}
				require.Equal(t, runtime.Stopped{Outcome: runtime.StopDone, Task: 1, Status: stoppedAs[want]}, out)
				require.Equal(t, want == there, w.journal()[1].Signal.ID == id)
				require.Nil(t, w.head().Head.Signal)
			})
		}
	}
}

// Who has the lease of a session that is put off may give it back, to come again when the delay is
// over: the signal does not sleep till then.
func TestStop_delayed_while_its_lease_is_taken(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("the message is lost=%v", lost), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.run(w.process(), "late")
			w.claimAs("somewhere else", w.session().Next())
			out, err := w.stop(w.process(), runtime.SignalCancel)
			require.NoError(t, err)
			require.Equal(t, runtime.StopSent, out.Outcome)
			if lost {
				w.drain()
			}
			w.clock.advance(21 * time.Second)
			if lost {
				w.clock.advance(time.Minute)
				sweepOf(t, w.process())
			}
			require.NoError(t, w.process().work())
			require.Equal(t, session.StatusCancelled, w.session().Status)
		})
	}
}

// A signal is for one task. One for a task that has ended does nothing to the next.
func TestStop_task(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	p := w.process()
	w.start(p, "more")
	require.NoError(t, p.settle())
	stop := func(kind runtime.SignalKind, task int64) (runtime.Stopped, error) {
		return p.Stop(context.Background(), runtime.StopParams{Key: w.key, Kind: kind, Task: task, Caller: people})
	}
	for _, task := range []int64{0, 1} {
		for _, kind := range []runtime.SignalKind{runtime.SignalCancel, runtime.SignalAbort} {
			out, err := stop(kind, task)
			require.NoError(t, err)
			require.Equal(t, runtime.Stopped{Outcome: runtime.StopNothing, Task: 1, Status: session.StatusCompleted}, out)
		}
		_, err := stop(runtime.SignalInterrupt, task)
		require.Equal(t, runtime.CodeSessionEnded, codeOf(err))
	}
	w.start(p, "go")
	for _, kind := range []runtime.SignalKind{runtime.SignalCancel, runtime.SignalAbort} {
		out, err := stop(kind, 1)
		require.NoError(t, err)
		require.Equal(t, runtime.Stopped{Outcome: runtime.StopNothing, Task: 1, Status: session.StatusRunning}, out)
	}
	_, err := stop(runtime.SignalInterrupt, 1)
	require.Equal(t, runtime.CodeSessionEnded, codeOf(err))
	require.Nil(t, w.head().Head.Signal)
	_, err = stop(runtime.SignalCancel, 3)
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	out, err := stop(runtime.SignalCancel, 2)
	require.NoError(t, err)
	require.Equal(t, runtime.Stopped{Outcome: runtime.StopDone, Task: 2, Status: session.StatusCancelled}, out)
}

func TestStop_refusals(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	p := w.process()
	w.start(p, "go")
	for code, params := range map[runtime.Code][]runtime.StopParams{
		runtime.CodeInvalidInput:    {{Key: w.key}, {Key: w.key, Kind: "pause"}, {Key: w.key, Kind: runtime.SignalCancel, Task: -1}, {Key: w.key, Kind: runtime.SignalCancel, Reason: "\xff"}},
		runtime.CodeInputTooLarge:   {{Key: w.key, Kind: runtime.SignalCancel, Reason: strings.Repeat("x", runtime.MaxReason+1)}},
		runtime.CodeSessionNotFound: {{Key: session.Key{Tenant: w.key.Tenant, ID: "nobody"}, Kind: runtime.SignalCancel}, {Key: session.Key{Tenant: "other", ID: w.key.ID}, Kind: runtime.SignalCancel}},
		runtime.CodeInvalidID:       {{Key: session.Key{Tenant: w.key.Tenant, ID: "a b"}, Kind: runtime.SignalCancel}},
	} {
		for _, params := range params {
			_, err := p.Stop(context.Background(), params)
			require.Equal(t, code, codeOf(err), "%+v", params)
		}
	}
	require.Len(t, w.journal(), 1)
	require.Nil(t, w.head().Head.Signal)
}

// A repeated request gets the first answer, whatever has become of the session.
func TestStop_repeated(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		for _, kind := range stops {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, stopScript()))
				place(t, w)
				p := w.process()
				params := runtime.StopParams{Key: w.key, Kind: kind, Caller: people, IdempotencyKey: "k"}
				first, err := p.Stop(context.Background(), params)
				require.NoError(t, err)
				require.False(t, first.Replayed)
				switch kind {
				case runtime.SignalInterrupt:
					_, err = w.goOn(p)
				case runtime.SignalCancel:
					_, err = p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
				case runtime.SignalAbort:
				}
				require.NoError(t, err)
				before := len(w.journal())
				again, err := p.Stop(context.Background(), params)
				require.NoError(t, err)
				require.True(t, again.Replayed)
				again.Replayed = false
				require.Equal(t, first, again)
				require.Len(t, w.journal(), before, "it stops nothing that came after it")
				params.Reason = "another"
				_, err = p.Stop(context.Background(), params)
				require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
			})
		}
	}
}

// Whatever happens between any two calls of the verb, one of the two wins, and the session is whole.
func TestStop_crossed_everywhere(t *testing.T) {
	t.Parallel()
	crossings := map[string]func(w *world, p *process) error{
		"the last answers": func(w *world, p *process) error {
			for i := range w.waits() {
				if _, err := w.answer(p, i); err != nil && !stoppedCodes[codeOf(err)] {
					return err
				}
			}
			return p.work()
		},
		"a worker": func(_ *world, p *process) error { return p.work() },
		"another stop": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalCancel)
			return err
		},
		"a message": func(w *world, p *process) error {
			_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("more"), Caller: person})
			if err != nil && codeOf(err) == "" {
				return err
			}
			return nil
		},
		"a claim": func(w *world, _ *process) error {
			_, err := w.store.Claim(context.Background(), store.ClaimParams{
				Key: w.key, Mode: store.ClaimTake, Owner: "somewhere else", Seq: w.session().Next(), Now: w.clock.Now(), Until: w.clock.Now().Add(20 * time.Second),
			})
			if errors.Is(err, store.ErrLeaseHeld) {
				return nil
			}
			return err
		},
	}
	for name, place := range stopPlaces {
		for what, crosses := range crossings {
			for _, kind := range stops {
				t.Run(name+"/"+what+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					made := newEffects()
					world := newWorld(t, made, helper(made, stopScript()))
					for at := 0; ; at++ {
						world = world.another()
						w := world
						place(t, w)
						p, over := w.crossed(at, func() { require.NoError(t, crosses(w, w.process())) })
						out, err := w.stop(p, kind)
						if err != nil {
							require.True(t, stoppedCodes[codeOf(err)], "%v", err)
						}
						w.clock.advance(time.Minute)
						require.NoError(t, w.process().settle(), "crossed at call %d", at)
						s := w.session()
						for what, n := range made.all() {
							require.Equal(t, 1, n, what)
						}
						w.checkNothingForgotten()
						if out.Outcome == runtime.StopDone {
							require.Equal(t, out.Status, s.Status, "crossed at call %d", at)
						}
						if out.Outcome == runtime.StopSent {
							require.True(t, s.Status.Ended() || s.Status == session.StatusInterrupted, "crossed at call %d: a signal that was accepted is obeyed", at)
						}
						if over() {
							break
						}
					}
				})
			}
		}
	}
}

// stoppedCodes refuse what comes too late.
var stoppedCodes = map[runtime.Code]bool{
	runtime.CodeSessionEnded: true, runtime.CodeAlreadyRunning: true, runtime.CodeAlreadyAnswered: true, runtime.CodeNotResumable: true,
	runtime.CodeStillWaiting: true, runtime.CodeWaitNotFound: true, runtime.CodeStaleCheckpoint: true,
}

// checkNothingForgotten holds that each answer that was accepted is in the history, or still to be
// taken in, and that a call that took effect is not told as cancelled.
func (w *world) checkNothingForgotten() {
	t := w.t
	t.Helper()
	s, taken := w.session(), map[string]bool{}
	for _, e := range w.journal() {
		for _, a := range e.Answers {
			taken[a.Wait] = true
		}
	}
	for _, record := range w.waits() {
		if record.State == session.WaitAnswered || record.State == session.WaitTaken {
			rests := s.Status == session.StatusInterrupted || s.Status == session.StatusSuspended
			require.True(t, taken[record.Wait.ID] || rests && record.State == session.WaitAnswered, "the answer of %s is forgotten", record.Wait.ID)
		}
	}
	for id, r := range results(s) {
		if r.Status != llm.ResultCancelled {
			continue
		}
		for _, item := range w.items(store.KindTool) {
			require.False(t, item.ID == id && item.Tool.State != journal.ToolClosed, "%s: told as cancelled", id)
		}
	}
}

// A process that stops a task dies at any of its writes; who asked asks again.
func TestStop_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		for _, kind := range stops {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, stopScript()))
				for at := 1; ; at++ {
					for _, after := range []bool{false, true} {
						world = world.another()
						w := world
						place(t, w)
						f := &fuse{at: at, after: after}
						params := runtime.StopParams{Key: w.key, Kind: kind, Caller: people, IdempotencyKey: newID()}
						_, err := w.fusedProcess(f, true, 1).Stop(context.Background(), params)
						if !f.blown() {
							require.NoError(t, err)
							return
						}
						w.clock.advance(time.Minute)
						out, err := w.process().Stop(context.Background(), params)
						require.NoError(t, err, "%v", f.ops)
						require.Contains(t, []runtime.StopOutcome{runtime.StopDone, runtime.StopNothing}, out.Outcome)
						require.Equal(t, stoppedAs[kind], w.session().Status, "%v", f.ops)
						require.NoError(t, w.process().settle())
						require.Equal(t, stoppedAs[kind], w.session().Status, "%v", f.ops)
						w.checkNothingForgotten()
					}
				}
			})
		}
	}
}

// The verb is stopped for longer than its lease, between its claim and its entry. A worker has
// begun a probed call meanwhile, and is in the middle of it: the entry is refused, for who goes on
// after it would begin the call once more (model/configs_verbs.go, S25).
func TestStop_frozen_before_its_entry(t *testing.T) {
	t.Parallel()
	for _, kind := range stops {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.start(w.process(), "go")
			w.drain()
			w.dies(2)
			w.clock.advance(time.Minute)
			frozen := &storeHook{when: anyCommit}
			p := w.process(func(cfg *runtime.Config) { frozen.Store = cfg.Store; cfg.Store = frozen })
			seq := w.session().Next()
			frozen.happens = func() {
				w.clock.advance(time.Minute)
				w.claimAs("somewhere else", seq)
			}
			out, err := w.stop(p, kind)
			require.NoError(t, err)
			require.Equal(t, runtime.StopSent, out.Outcome, "it is left to the worker that has the step now")
			require.Equal(t, seq, w.session().Next())
			require.Equal(t, kind, w.head().Head.Signal.Kind)
			require.Equal(t, "somewhere else", w.head().Head.Lease.Owner)
		})
	}
}

// What a client or a person said before counts, also where the task is cancelled.
func TestStop_keeps_what_was_answered(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"here"`)})
	require.NoError(t, err)
	_, err = w.stop(p, runtime.SignalCancel)
	require.NoError(t, err)
	got := results(w.session())
	require.Equal(t, llm.ResultSuccess, got["c2-1"].Status)
	require.Equal(t, llm.ResultCancelled, got["c2-2"].Status)
	valid(t, w.session())
	w.checkAtRest()
	_, err = w.submit(p, session.WaitApproval, yes())
	require.Equal(t, runtime.CodeSessionEnded, codeOf(err))
}
