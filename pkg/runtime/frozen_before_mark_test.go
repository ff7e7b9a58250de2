package runtime_test

import (
	"context"
	"fmt"
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

// frozenAtMark is a worker that is frozen before its first mark for longer than its
// lease, while something happens.
func (w *world) frozenAtMark(happens func()) *process {
	w.t.Helper()
	return w.process(func(cfg *runtime.Config) {
		cfg.Store = &storeHook{Store: cfg.Store, when: markOfCall, happens: func() {
			w.clock.advance(time.Minute)
			happens()
		}}
	})
}

// forAMoment is a store that does not take the first closing of a call, by itself or
// with an entry.
func forAMoment(s store.Store) store.Store {
	over := false
	closes := func(item store.Item) bool {
		first := !over && item.Kind == store.KindTool && item.Tool.State == journal.ToolClosed
		over = over || first
		return first
	}
	return &hook{
		Store: s,
		commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			if slices.ContainsFunc(p.Items, closes) {
				return store.Committed{}, errMoment
			}
			return s.Commit(ctx, p)
		},
		update: func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
			if closes(items[0]) {
				return nil, errMoment
			}
			return s.Update(ctx, key, items...)
		},
	}
}

// What history says did not run never runs: not even by a worker that had the
// approval, and was frozen before its mark until the call was given up. Nor does
// history say so while the call cannot be closed.
func TestFrozen_before_the_mark_of_a_call_that_is_given_up(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		onChange session.ChangePolicy
		expiry   tool.Expiry
		then     func(w *world, p *process) error
		status   session.Status
	}{
		"denied when it was asked anew": {then: func(w *world, p *process) error {
			require.NoError(w.t, p.settle())
			_, err := w.submit(p, session.WaitApproval, no())
			require.NoError(w.t, err)
			return p.settle()
		}, status: session.StatusCompleted},
		"nobody decided when it was asked anew": {expiry: tool.Expiry{Outcome: session.ExpireDeny}, then: untilExpired, status: session.StatusCompleted},
		"the default is no":                     {expiry: tool.Expiry{Outcome: session.ExpireDefault, Value: false}, then: untilExpired, status: session.StatusCompleted},
		"its deadline fails the task":           {expiry: tool.Expiry{Outcome: session.ExpireFail}, then: untilExpired, status: session.StatusFailed},
		"abandoned for a message": {then: func(w *world, p *process) error {
			require.NoError(w.t, p.settle())
			_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("leave it"), Caller: person})
			if err != nil {
				return err
			}
			return p.settle()
		}, status: session.StatusCompleted},
		"its task fails": {onChange: session.ChangeFail, then: func(_ *world, p *process) error { return p.settle() }, status: session.StatusFailed},
		"cancelled": {then: func(w *world, p *process) error {
			w.signal(journal.SignalCancel)
			return p.settle()
		}, status: session.StatusCancelled},
		"its step is given up": {then: func(w *world, p *process) error {
			_, err := p.DeadLetter(context.Background(), w.wake(w.session().Next(), journal.WakeStep))
			return err
		}, status: session.StatusFailed},
	} {
		for _, moment := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/not closed at once=%v", name, moment), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				as := func(system string) agent.Agent {
					lines := script{"go": {calls("guarded", `{"text":"1"}`), says("bye")}}
					return helper(made, lines, func(a *agent.Agent) {
						a.System, a.Policy.OnChange, a.Policy.AbandonOnMessage = system, c.onChange, true
						a.Tools = append(a.Tools, guarded(made, c.expiry))
					})
				}
				w := newWorld(t, made, as("One."))
				p := w.process()
				w.run(p, "go")
				_, err := w.submit(p, session.WaitApproval, yes())
				require.NoError(t, err)
				other := w.process(withAgents(t, as("Another.")), func(cfg *runtime.Config) {
					if cfg.MaxClaims = 1; moment {
						cfg.Store = forAMoment(cfg.Store)
					}
				})
				frozen := w.frozenAtMark(func() {
					err := c.then(w, other)
					if moment && err != nil {
						require.ErrorIs(t, err, store.ErrUnavailable)
						err = c.then(w, other)
					}
					require.NoError(t, err)
					require.Equal(t, c.status, w.session().Status)
					require.Equal(t, journal.ToolClosed, w.items(store.KindTool)[0].Tool.State)
				})
				_, err = frozen.deliverOne(context.Background())
				require.NoError(t, err)
				require.Zero(t, made.count("guarded 1"), "history says that it did not run")
				w.checkAtRest()
			})
		}
	}
}

// guarded is a side effect that a person approves, within an hour if it has a deadline.
func guarded(made *effects, expiry tool.Expiry) tool.Tool {
	spec := tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn]}
	if expiry.Outcome != "" {
		expiry.After = time.Hour
		spec.Expiry = &expiry
	}
	return tool.Define(spec, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
		made.add("guarded " + in.Text)
		return "ran", nil
	})
}

func untilExpired(w *world, p *process) error {
	if err := p.settle(); err != nil {
		return err
	}
	w.clock.advance(time.Hour)
	if _, err := p.Sweep(context.Background()); err != nil {
		return err
	}
	return p.settle()
}
