package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// beforeMark is a store on which something happens just before a worker marks a
// call started: the worker was frozen there.
type beforeMark struct {
	store.Store
	happens func()
}

func (b *beforeMark) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if happens := b.happens; happens != nil && items[0].Kind == store.KindTool && items[0].Tool.State == session.ToolStarted {
		b.happens = nil
		happens()
	}
	return b.Store.Update(ctx, key, items...)
}

// frozenAtMark is a worker that is frozen before its first mark for longer than its
// lease, while something happens.
func (w *world) frozenAtMark(happens func()) *process {
	w.t.Helper()
	return w.process(func(cfg *runtime.Config) {
		cfg.Store = &beforeMark{Store: cfg.Store, happens: func() {
			w.clock.advance(time.Minute)
			happens()
		}}
	})
}

// What history says did not run never runs: not even by a worker that had the
// approval, and was frozen before its mark until the call was given up.
func TestFrozen_before_the_mark_of_a_call_that_is_given_up(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy session.ChangePolicy
		then   func(w *world, p *process)
		status session.Status
	}{
		"denied when it was asked anew": {session.ChangeReask, func(w *world, p *process) {
			_, err := w.submit(p, session.WaitApproval, no())
			require.NoError(w.t, err)
			require.NoError(w.t, p.settle())
		}, session.StatusCompleted},
		"its task has failed": {session.ChangeFail, func(*world, *process) {}, session.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			as := func(system string) agent.Agent {
				lines := script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}
				return helper(made, lines, func(a *agent.Agent) { a.System, a.Policy.OnChange = system, c.policy })
			}
			w := newWorld(t, made, as("One."))
			p := w.process()
			w.run(p, "go")
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
			other := w.process(withAgents(t, as("Another.")))
			frozen := w.frozenAtMark(func() {
				require.NoError(t, other.settle())
				c.then(w, other)
				require.Equal(t, c.status, w.session().Status)
			})
			_, err = frozen.deliverOne(context.Background())
			require.NoError(t, err)
			require.Zero(t, made.count("deploy 1"), "history says that it did not run")
			w.checkAtRest()
		})
	}
}
