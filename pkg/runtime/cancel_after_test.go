package runtime_test

import (
	"context"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// cancelledAfter are rules by which a task is cancelled after a time.
func cancelledAfter(d time.Duration) session.TaskRules {
	return session.TaskRules{CancelAfterMillis: d.Milliseconds()}
}

// sweep returns what a sweep of a new process did.
func (w *world) sweep() runtime.SweepResult {
	w.t.Helper()
	swept, err := w.process().Sweep(context.Background())
	require.NoError(w.t, err)
	return swept
}

// Wherever nobody works, the sweep cancels a task whose time is over, and not before.
func TestCancelAfter_where_nobody_works(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.rules = cancelledAfter(30 * time.Minute)
			place(t, w)
			at := epoch.Add(30 * time.Minute)
			require.Equal(t, at, *w.head().Head.CancelAt)
			require.False(t, w.head().Head.Due.After(at))
			before, effects := w.journal(), made.all()

			w.clock.advance(at.Sub(w.clock.Now()) - time.Second)
			require.Zero(t, w.sweep().Cancelled)
			w.drain()
			require.Len(t, w.journal(), len(before))
			w.clock.advance(time.Second)
			require.Equal(t, runtime.SweepResult{Cancelled: 1}, w.sweep())
			require.Equal(t, session.StatusCancelled, w.session().Status)
			require.Len(t, w.journal(), len(before)+1)
			signal := w.journal()[len(before)].Signal
			require.Equal(t, "deadline", signal.Who)
			require.Equal(t, journal.FromRules, signal.From)
			require.Equal(t, journal.ReasonDeadline, signal.Reason)
			require.Nil(t, w.head().Head.CancelAt)
			require.Nil(t, w.head().Head.Due)
			require.Equal(t, effects, made.all())
			valid(t, w.session())
			w.checkAtRest()
			require.Equal(t, runtime.SweepResult{}, w.sweep())

			w.rules = session.TaskRules{}
			w.run(w.process(), "more")
			require.Equal(t, session.StatusCompleted, w.session().Status, "the next turn has a time of its own, or none")
		})
	}
}

// While a session waits, nothing is read or written for its deadline.
func TestCancelAfter_costs_nothing_while_it_waits(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.rules = cancelledAfter(30 * 24 * time.Hour)
	w.run(w.process(), "go")
	rev := w.head().Rev
	for range 29 {
		w.clock.advance(24 * time.Hour)
		require.Equal(t, runtime.SweepResult{}, w.sweep())
	}
	require.Equal(t, rev, w.head().Rev)
	w.clock.advance(24 * time.Hour)
	require.Equal(t, runtime.SweepResult{Cancelled: 1}, w.sweep())
}

// A worker cancels what it works on itself, within a second.
func TestCancelAfter_while_the_model_speaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		began, after := time.Now(), time.Duration(0)
		slow := func(ctx context.Context, _ agent.View) (agent.Reply, error) {
			<-ctx.Done()
			after = time.Since(began)
			return agent.Reply{}, ctx.Err()
		}
		w := newWorld(t, made, helper(made, script{"go": {slow}}))
		p := w.process(func(cfg *runtime.Config) { cfg.Now = time.Now })
		w.rules = cancelledAfter(5 * time.Second)
		w.clock.advance(time.Since(epoch))
		w.start(p, "go")
		require.NoError(t, p.work())
		require.GreaterOrEqual(t, after, 5*time.Second)
		require.LessOrEqual(t, after, 6*time.Second)
		require.Equal(t, []session.Kind{session.KindStarted, session.KindCancelled}, w.kinds())
		require.Equal(t, "deadline", w.journal()[1].Signal.Who)
		valid(t, w.session())
	})
}

// An answer that comes before the sweep does is stored, and taken in; what it allows does not run.
func TestCancelAfter_the_last_answer_comes_late(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.rules = cancelledAfter(time.Hour)
	w.run(w.process(), "go")
	effects := made.all()
	w.clock.advance(time.Hour)
	for i := range 2 {
		_, err := w.answer(w.process(), i)
		require.NoError(t, err)
	}
	require.NoError(t, w.process().work())
	require.Equal(t, session.StatusCancelled, w.session().Status)
	require.Equal(t, effects, made.all())
	w.checkNothingForgotten()
	valid(t, w.session())
}

// Who resumes a task whose time is over, before the sweep comes to it, finds it cancelled, and need not
// answer what counts for nothing; unless it is given more time with that.
func TestCancelAfter_resumed_late(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"waiting", "answered", "held", "interrupted", "delayed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.rules = cancelledAfter(2 * time.Hour)
			stopPlaces[name](t, w)
			w.clock.advance(2 * time.Hour)
			_, err := w.withRules(w.process(), session.TaskRules{})
			require.Equal(t, runtime.CodeNotResumable, codeOf(err))
			require.Equal(t, session.StatusCancelled, w.session().Status)
			require.Equal(t, journal.Deadline, w.session().Newest.Stopped.Who)
			w.checkNothingForgotten()
		})
	}
}

// Whatever happens between any two calls of the sweep that cancels, one of the two wins.
func TestCancelAfter_crossed_everywhere(t *testing.T) {
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
		"another sweep": func(_ *world, p *process) error {
			_, err := p.Sweep(context.Background())
			return err
		},
		"abort": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalAbort)
			return err
		},
		"interrupt": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalInterrupt)
			if codeOf(err) == runtime.CodeSessionEnded {
				return nil
			}
			return err
		},
		"a worker": func(_ *world, p *process) error { return p.work() },
	}
	for name, place := range stopPlaces {
		for what, crosses := range crossings {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, stopScript()))
				for at := 0; ; at++ {
					world = world.another()
					w := world
					w.rules = cancelledAfter(2 * time.Hour)
					place(t, w)
					effects := made.all()
					w.clock.advance(2 * time.Hour)
					p, over := w.crossed(at, func() { require.NoError(t, crosses(w, w.process())) })
					_, err := p.Sweep(context.Background())
					require.NoError(t, err, "crossed at call %d", at)
					require.NoError(t, w.process().settle(), "crossed at call %d", at)
					require.True(t, w.session().Status.Ended(), "crossed at call %d: %s", at, w.session().Status)
					require.Equal(t, effects, made.all(), "crossed at call %d", at)
					w.checkNothingForgotten()
					if over() {
						break
					}
				}
			})
		}
	}
}

// A sweep dies at any of its writes; the next one finishes.
func TestCancelAfter_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			world := newWorld(t, made, helper(made, stopScript()))
			for at := 1; ; at++ {
				for _, after := range []bool{false, true} {
					world = world.another()
					w := world
					w.rules = cancelledAfter(2 * time.Hour)
					place(t, w)
					effects := made.all()
					w.clock.advance(2 * time.Hour)
					f := &fuse{at: at, after: after}
					_, _ = w.fusedProcess(f, true, 1).Sweep(context.Background())
					require.NoError(t, w.process().settle(), "%v", f.ops)
					require.Equal(t, session.StatusCancelled, w.session().Status, "%v", f.ops)
					require.Equal(t, effects, made.all(), "%v", f.ops)
					if !f.blown() {
						return
					}
				}
			}
		})
	}
}

// A task that is tried again, or goes on elsewhere, has the time anew, unless it is asked for otherwise.
func TestCancelAfter_begins_anew(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.rules = cancelledAfter(time.Hour)
	w.run(w.process(), "go")
	w.clock.advance(50 * time.Minute)
	_, err := w.goBack(w.process())
	require.NoError(t, err)
	require.Equal(t, w.clock.Now().Add(time.Hour), *w.head().Head.CancelAt)

	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people, Rules: session.TaskRules{CancelAfterMillis: session.Unlimited}}
	_, err = acknowledging(w.process(), &params)
	require.NoError(t, err)
	require.Nil(t, w.head().Head.CancelAt)
	w.clock.advance(24 * time.Hour)
	require.Zero(t, w.sweep().Cancelled)
}

func TestCancelAfter_refused(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	for _, millis := range []int64{-2, session.MaxCancelAfter.Milliseconds() + 1, 1 << 62} {
		_, err := w.process().Start(context.Background(), runtime.StartParams{
			Key: w.key, Agent: "a", Input: llm.TextParts("go"), Caller: person, Rules: session.TaskRules{CancelAfterMillis: millis},
		})
		require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
		require.ErrorContains(t, err, "cancelAfterMillis")
	}
}

// Whoever resumes with more time while a sweep is about to cancel has the time.
func TestCancelAfter_put_off_while_the_sweep_looks(t *testing.T) {
	t.Parallel()
	for name, millis := range map[string]int64{"taken back": session.Unlimited, "put off": (5 * time.Hour).Milliseconds()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				made := newEffects()
				w := newWorld(t, made, helper(made, stopScript()))
				w.rules = cancelledAfter(2 * time.Hour)
				stopPlaces["interrupted"](t, w)
				w.clock.advance(2 * time.Hour)
				taken := false
				p, over := w.crossed(at, func() {
					_, err := w.withRules(w.process(), session.TaskRules{CancelAfterMillis: millis})
					taken = err == nil
				})
				_, err := p.Sweep(context.Background())
				require.NoError(t, err)
				require.NotEqual(t, taken, w.session().Status == session.StatusCancelled, "crossed at call %d", at)
				if over() {
					break
				}
			}
		})
	}
}

// One sweep is there for all: to cancel a task it neither holds nor keeps what was said in its session.
func TestCancelAfter_in_little_memory(t *testing.T) {
	const tasks, size = 16, 1 << 20
	for name, input := range map[string]string{"waiting": "go", "delayed": "late"} {
		t.Run(name, func(t *testing.T) {
			made := newEffects()
			lines := stopScript()
			lines["large"] = []turn{says(strings.Repeat("x", size))}
			w := newWorld(t, made, helper(made, lines))
			for range tasks {
				w.run(w.process(), "large")
			}
			w.rules = cancelledAfter(time.Minute)
			w.run(w.process(), input)
			w.drain()
			w.clock.advance(time.Minute)
			p := w.process()
			before := heap()
			require.Equal(t, runtime.SweepResult{Cancelled: 1}, sweepOf(t, p))
			require.Less(t, heap()-before, int64(tasks*size/4))
			goruntime.KeepAlive(p)
			require.Equal(t, session.StatusCancelled, w.session().Status)
			valid(t, w.session())
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	goruntime.GC()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Who cancels a task whose time is over before the sweep does is in the journal, and why.
func TestCancelAfter_a_person_is_first(t *testing.T) {
	t.Parallel()
	for name, place := range stopPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.rules = cancelledAfter(2 * time.Hour)
			place(t, w)
			w.clock.advance(2 * time.Hour)
			_, err := w.stop(w.process(), runtime.SignalCancel)
			require.NoError(t, err)
			entries := w.journal()
			signal := entries[len(entries)-1].Signal
			require.Equal(t, people.Who+": enough", signal.Who+": "+signal.Reason)
		})
	}
}

// A session that a halt holds, and a command drives, is cancelled at its deadline too.
func TestCancelAfter_driven_and_halted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
		_, err := b.Halt(t.Context(), everything)
		require.NoError(t, err)
		_, err = b.Start(t.Context(), runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("go"), Caller: person, Rules: cancelledAfter(3 * time.Second)})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, b.Drive(ctx, b.key, b.queue.Only(b.key)))
		require.Equal(t, session.StatusCancelled, b.session(t).Status)
	})
}
