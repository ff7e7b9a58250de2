package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// What the watcher saw of a step does not replace what its last write has shown
// since: a signal that came just before that write stops the next step before it plans.
func TestWatch_older_HEAD_does_not_replace_a_newer_one(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		w := realTime(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`), func(context.Context, agent.View) (agent.Reply, error) {
			made.add("planned")
			return agent.Reply{Text: "bye"}, nil
		}}}, func(context.Context, string) { time.Sleep(1500 * time.Millisecond) })) // the watcher looks
		p := w.process(func(cfg *runtime.Config) {
			cfg.StepsPerInvocation = 9
			cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
				if e.Kind == session.KindStepped {
					w.signal(journal.SignalCancel)
				}
			}}
		})
		w.start(p, "go")
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, []session.Kind{session.KindStarted, session.KindStepped, session.KindCancelled}, w.kinds())
		require.Zero(t, made.count("planned"))
	})
}

// The lease that was moved on since the watcher looked is the one that is given back
// when the step cannot go on.
func TestWatch_keeps_the_lease_that_was_moved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		line := calls("line", `{"text":"1"}`)
		w := realTime(t, made, helper(made, script{"go": {func(ctx context.Context, v agent.View) (agent.Reply, error) {
			time.Sleep(1500 * time.Millisecond) // the watcher looks, before the reply moves the lease
			return line(ctx, v)
		}, says("bye")}}))
		down := &storeHook{Store: w.store, refuse: func(e journal.Entry) bool { return e.Kind == session.KindStepped }}
		p := w.process(func(cfg *runtime.Config) { cfg.Store = down })
		w.start(p, "go")
		_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
		require.Empty(t, w.head().Head.Lease.Owner, "nobody waits for it")
		require.Equal(t, acknowledged, w.deliver(w.process(), 3, journal.WakeStep))
		require.Equal(t, 1, made.count("line 1"))
	})
}

// The lease that was moved on is the one that is renewed, for as long as a tool works.
func TestWatch_renews_the_lease_that_was_moved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		w = realTime(t, made, hooked(made, script{"go": {calls("hook", `{"text":"a"}`), says("bye")}}, func(context.Context, string) {
			for range 11 {
				time.Sleep(5 * time.Second)
				lease := w.head().Head.Lease
				require.True(t, lease.Live(time.Now(), 2, true), "a working step is never without a lease")
				require.EqualValues(t, 3, lease.Seq)
			}
		}))
		p := w.process()
		w.start(p, "go")
		require.NoError(t, p.work())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Equal(t, 1, made.count("hook a"))
	})
}

// A signal that is left over from an earlier task does not stop a step that works
// long enough for its watcher to see it.
func TestWatch_signal_of_an_earlier_task(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		w = realTime(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`), says("bye")}}, func(ctx context.Context, _ string) {
			head := w.head()
			head.Head.Signal = &journal.Signal{ID: newID(), Task: head.Head.Task - 1, Kind: journal.SignalCancel, Who: "ann"}
			w.update(head)
			time.Sleep(1500 * time.Millisecond)
			require.NoError(t, ctx.Err())
		}))
		p := w.process()
		w.start(p, "go")
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, []session.Kind{session.KindStarted, session.KindStepped}, w.kinds())
	})
}
