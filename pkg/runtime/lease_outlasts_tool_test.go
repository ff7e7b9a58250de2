package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// What may run twice starts under a lease that outlives it by this worker's own
// clock, each time: else another worker overtakes it while it runs.
func TestTools_at_least_once_start_under_a_lease_that_outlives_them(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.UnknownPolicy{session.UnknownRetry, session.UnknownProbe} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			const timeout, grace, lease, young = 50 * time.Millisecond, 7 * time.Second, 20 * time.Second, 2 * time.Second
			var w *world
			var left []time.Duration
			made := newEffects()
			spec := tool.Spec[textIn]{Name: "slow", OnUnknown: policy, Timeout: timeout}
			if policy == session.UnknownProbe {
				spec.Probe = func(context.Context, *tool.Call, textIn) (any, bool, error) {
					w.clock.advance(time.Second)
					return nil, false, nil
				}
			}
			slow := tool.Define(spec, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
				made.add("slow")
				left = append(left, w.head().Head.Lease.Until.Sub(w.clock.Now()))
				if made.count("slow") > 1 {
					return "did", nil
				}
				w.clock.advance(15 * time.Second)
				<-ctx.Done()
				return "", ctx.Err()
			})
			w = newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
			w.run(w.process(func(cfg *runtime.Config) {
				cfg.ToolGrace, cfg.Lease, cfg.Grace, cfg.WatchEvery = grace, lease, young, time.Hour
			}), "go")
			require.Equal(t, []time.Duration{young + timeout + grace + lease, young + timeout + grace + lease}, left)
			require.Equal(t, session.StatusCompleted, w.session().Status)
			w.checkAtRest()
		})
	}
}

// beforeRenewal is a store on which something happens before a lease is renewed.
func beforeRenewal(s store.Store, happens func()) store.Store {
	return &hook{Store: s, claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
		if p.Mode == store.ClaimRenew {
			happens()
		}
		return s.Claim(ctx, p)
	}}
}

// A worker that has lost its lease starts nothing that the new holder may run, too.
func TestTools_at_least_once_do_not_start_without_the_lease(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.UnknownPolicy{session.UnknownRetry, session.UnknownProbe} {
		for lost := range 2 { // how often it has run when the lease is lost
			t.Run(fmt.Sprintf("%s/after %d runs", policy, lost), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				spec := tool.Spec[textIn]{Name: "slow", OnUnknown: policy, Timeout: 20 * time.Millisecond}
				if policy == session.UnknownProbe {
					spec.Probe = func(context.Context, *tool.Call, textIn) (any, bool, error) { return nil, false, nil }
				}
				slow := tool.Define(spec, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
					made.add("slow")
					<-ctx.Done()
					return "", ctx.Err()
				})
				w := newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`)}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
				p := w.process(func(cfg *runtime.Config) {
					cfg.WatchEvery = time.Hour
					cfg.Store = beforeRenewal(cfg.Store, func() {
						if made.count("slow") < lost {
							return
						}
						w.clock.advance(time.Hour)
						now := w.clock.Now()
						_, err := w.store.Claim(context.Background(), store.ClaimParams{
							Key: w.key, Mode: store.ClaimTake, Owner: "somebody", Seq: 3, Now: now, Until: now.Add(time.Minute),
						})
						require.NoError(t, err)
					})
				})
				w.start(p, "go")
				_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
				require.NoError(t, err)
				require.Equal(t, lost, made.count("slow"))
				require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
			})
		}
	}
}
