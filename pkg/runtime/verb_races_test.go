package runtime_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// raced is how often verbs race in one place: a few times, and 200 times with ADJOURN_SWEEPS=all or
// ADJOURN_CRASH_TRIALS=200, as make nightly has it.
func raced() int {
	if n, err := strconv.Atoi(os.Getenv("ADJOURN_CRASH_TRIALS")); err == nil && n >= 200 || os.Getenv("ADJOURN_SWEEPS") == "all" {
		return 200
	}
	return 4
}

// hurried is a process that yields at random before each call of the store, so that others come between.
func (w *world) hurried() *process {
	h := &storeHook{when: func(storeCall) bool {
		for range rand.IntN(40) {
			goruntime.Gosched()
		}
		return false
	}}
	return w.process(func(cfg *runtime.Config) { h.Store = cfg.Store; cfg.Store = h })
}

// A race of verbs on one session, each by a process of its own.
type verbRace struct {
	place func(t *testing.T, w *world)
	verbs []func(w *world, p *process) error
	// holds gets what each was told, nil for success.
	holds func(t *testing.T, w *world, told []error)
}

func verbRaces() map[string]verbRace {
	ctx := context.Background()
	stop := func(kind runtime.SignalKind) func(w *world, p *process) error {
		return func(w *world, p *process) error { _, err := w.stop(p, kind); return err }
	}
	works := func(_ *world, p *process) error { return p.work() }
	back := func(w *world, p *process) error {
		_, err := acknowledging(p, &runtime.BackParams{Key: w.key, Checkpoint: w.suspended, Caller: people})
		return err
	}
	retry := func(w *world, p *process) error {
		if _, err := p.Retry(ctx, runtime.BackParams{Key: w.key, Message: llm.TextParts("more"), Caller: people}); err != nil {
			return err
		}
		return p.work()
	}
	begins := func(t *testing.T, w *world) { t.Helper(); w.start(w.process(), "go") }
	ended := func(want ...session.Status) func(t *testing.T, w *world, told []error) {
		return func(t *testing.T, w *world, told []error) {
			t.Helper()
			for _, err := range told {
				require.True(t, err == nil || stoppedCodes[codeOf(err)], "%v", err)
			}
			require.Contains(t, want, w.session().Status)
		}
	}
	winners := func(t *testing.T, told []error) (n int) {
		t.Helper()
		for _, err := range told {
			if err == nil {
				n++
				continue
			}
			require.True(t, stoppedCodes[codeOf(err)], "%v", err)
		}
		require.Positive(t, n, "nobody won")
		return n
	}
	tasks := func(kind session.Kind) func(t *testing.T, w *world, told []error) {
		return func(t *testing.T, w *world, told []error) {
			t.Helper()
			began := 0
			for _, k := range w.kinds() {
				if k == kind {
					began++
				}
			}
			require.Equal(t, winners(t, told), began, "who was told so began a task")
			require.EqualValues(t, 1+began, w.session().Task)
		}
	}
	races := map[string]verbRace{
		"cancel against the last answer": {
			place: stopPlaces["answered"],
			verbs: []func(w *world, p *process) error{stop(runtime.SignalCancel), func(w *world, p *process) error {
				if _, err := w.answer(p, 1); err != nil {
					return err
				}
				return p.work()
			}},
			holds: ended(session.StatusCancelled, session.StatusCompleted),
		},
		"interrupt against completion": {
			place: begins, verbs: []func(w *world, p *process) error{stop(runtime.SignalInterrupt), works},
			holds: ended(session.StatusInterrupted, session.StatusSuspended),
		},
		"abort against commit": {
			place: begins, verbs: []func(w *world, p *process) error{stop(runtime.SignalAbort), works, works},
			holds: ended(session.StatusFailed),
		},
		"a signal of the old task against a new one": {
			place: backPlaces["completed"],
			verbs: []func(w *world, p *process) error{
				func(w *world, p *process) error {
					_, err := p.Stop(ctx, runtime.StopParams{Key: w.key, Kind: runtime.SignalCancel, Task: 1, Caller: people})
					return err
				},
				func(w *world, p *process) error {
					_, err := p.Start(ctx, runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
					if err != nil {
						return err
					}
					return p.work()
				},
				func(w *world, p *process) error {
					_, err := p.Stop(ctx, runtime.StopParams{Key: w.key, Kind: runtime.SignalAbort, Task: 1, Caller: people})
					return err
				},
			},
			holds: func(t *testing.T, w *world, told []error) {
				require.Equal(t, []error{nil, nil, nil}, told)
				require.EqualValues(t, 2, w.session().Task)
				require.Equal(t, session.StatusCompleted, w.session().Status, "task 2 was not meant")
			},
		},
		"retry against retry": {
			place: func(t *testing.T, w *world) {
				w.run(w.process(), "fails")
				require.Equal(t, session.StatusFailed, w.session().Status)
			},
			verbs: []func(w *world, p *process) error{retry, retry, retry},
			holds: func(t *testing.T, w *world, told []error) {
				require.Equal(t, 1, winners(t, told))
				require.EqualValues(t, 2, w.session().Task)
				require.Equal(t, session.StatusCompleted, w.session().Status)
			},
		},
		"a way back against an answer": {
			place: stopPlaces["answered"],
			verbs: []func(w *world, p *process) error{back, func(w *world, p *process) error { _, err := w.answer(p, 1); return err }},
			holds: func(t *testing.T, w *world, told []error) {
				winners(t, told)
				require.Contains(t, []int64{1, 2}, w.session().Task)
			},
		},
	}
	for _, place := range []string{"waiting", "completed", "aborted"} {
		races["two restores, "+place] = verbRace{place: backPlaces[place], verbs: []func(w *world, p *process) error{back, back}, holds: tasks(session.KindRestored)}
		races["restore against delete, "+place] = verbRace{
			place: backPlaces[place], verbs: []func(w *world, p *process) error{back, func(w *world, p *process) error { _, err := w.delete(p); return err }},
			holds: func(t *testing.T, w *world, told []error) {
				require.NoError(t, told[1])
				require.True(t, told[0] == nil || tooLate(told[0]), "%v", told[0])
				w.checkGone(w.process())
			},
		}
	}
	return races
}

// Two processes carry out verbs on one session at once: one wins, or one after the other does; nothing
// is lost, answered in vain, done twice or left open.
func TestVerbs_at_once(t *testing.T) {
	t.Parallel()
	for name, c := range verbRaces() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			lines := stopScript()
			maps.Copy(lines, script{"fails": {calls("line", `{"text":"1"}`), fails(&llm.Error{Class: llm.ClassInvalid})}})
			world := newWorld(t, made, helper(made, lines))
			for n := range raced() {
				world = world.another()
				w := world
				c.place(t, w)
				if slices.Contains(w.kinds(), session.KindSuspended) {
					w.suspended = checkpointAt(w, w.suspendedAt())
				}
				told := make([]error, len(c.verbs))
				var all sync.WaitGroup
				begin := make(chan struct{})
				for i, verb := range c.verbs {
					p := w.hurried()
					all.Go(func() {
						<-begin
						told[i] = verb(w, p)
					})
				}
				close(begin)
				all.Wait()
				w.clock.advance(time.Minute)
				require.NoError(t, w.process().settle(), "trial %d", n)
				w.checkRaced(fmt.Sprintf("trial %d: %v", n, told))
				c.holds(t, w, told)
			}
		})
	}
}

// checkRaced holds what must be true of a session at rest whoever won a race for it.
func (w *world) checkRaced(label string) {
	w.t.Helper()
	for what, n := range w.effects.all() {
		require.Equal(w.t, 1, n, "%s: %s", label, what)
	}
	if head := w.head().Head; head.Deleted {
		return
	}
	w.checkNothingForgotten()
	s := w.session()
	require.NotEqual(w.t, session.StatusRunning, s.Status, label)
	if s.Status.Ended() {
		w.checkPaired(s)
		w.checkAtRest()
		return
	}
}
