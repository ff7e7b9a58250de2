package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// cutOff is a world whose planner's context ends with a cause before it answers.
func cutOff(t *testing.T) (w *world, deliver func(p *process, cause error) error) {
	t.Helper()
	var end context.CancelCauseFunc
	var cause error
	w = newWorld(t, newEffects(), agent.Agent{Name: "a", Planner: agent.PlannerFunc(func(ctx context.Context, _ agent.View) (agent.Reply, error) {
		end(cause)
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	})})
	return w, func(p *process, why error) error {
		var ctx context.Context
		ctx, end = context.WithCancelCause(context.Background())
		cause = why
		defer end(nil)
		_, err := p.Deliver(ctx, w.wake(2, journal.WakeStep))
		return err
	}
}

func TestDeliver_a_step_that_never_fits_into_its_workers_time_is_given_up(t *testing.T) {
	t.Parallel()
	w, deliver := cutOff(t)
	p := w.process()
	w.start(p, "go")
	for n := int64(1); n <= 5; n++ {
		require.Error(t, deliver(p, runtime.ErrOutOfTime))
		lease := w.head().Head.Lease
		require.Equal(t, n, lease.N)
		require.True(t, lease.Until.After(w.clock.Now()), "it is not given back")
		d, err := p.DeadLetter(context.Background(), w.wake(2, journal.WakeStep))
		require.NoError(t, err)
		require.Positive(t, d.Keep)
		w.clock.advance(20 * time.Second)
	}
	_, err := p.DeadLetter(context.Background(), w.wake(2, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, session.StatusFailed, w.session().Status)
	require.Equal(t, "step_died", w.session().Failure.Type)
}

func TestDeliver_a_worker_that_is_told_to_end_gives_its_lease_back(t *testing.T) {
	t.Parallel()
	w, deliver := cutOff(t)
	p := w.process()
	w.start(p, "go")
	require.ErrorIs(t, deliver(p, nil), context.Canceled)
	require.Empty(t, w.head().Head.Lease.Owner)
}

// TestDeliver_begins_no_step_that_may_not_fit: several steps a message, and a
// worker whose time is half over: the rest is for the next message.
func TestDeliver_begins_no_step_that_may_not_fit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes time.Duration
		steps int64
	}{"quick steps": {time.Second, 16}, "a third of the time each": {20 * time.Second, 2}, "most of it": {40 * time.Second, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			w = newWorld(t, newEffects(), agent.Agent{Name: "a", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
				w.clock.advance(c.takes)
				return agent.Reply{Text: "on", Calls: []agent.Call{{Name: "missing", Arguments: struct{}{}}}}, nil
			})})
			p := w.process(func(cfg *runtime.Config) { cfg.StepsPerInvocation = 16; cfg.Lease = time.Hour })
			w.start(p, "go")
			_, err := p.Deliver(until{context.Background(), w.clock.Now().Add(time.Minute)}, w.wake(2, journal.WakeStep))
			require.NoError(t, err)
			require.Equal(t, c.steps, w.session().Step)
		})
	}
}

// until is a context with a deadline of the test's clock.
type until struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.deadline, true }
