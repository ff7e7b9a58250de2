package runtime_test

import (
	"context"
	"fmt"
	"iter"
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

// refusedLate is a store on which time passes after a claim was refused.
func refusedLate(s store.Store, passes func()) store.Store {
	return &hook{Store: s, claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
		head, err := s.Claim(ctx, p)
		if err != nil && p.Mode == store.ClaimTake {
			passes()
		}
		return head, err
	}}
}

// A claim is refused, and when its refusal is looked at the lease in the way has
// lapsed: the message comes back and claims anew. Nothing is done without a claim,
// because another worker may be granted one at any moment.
func TestClaim_refused_just_before_the_lease_lapses(t *testing.T) {
	t.Parallel()
	for _, warm := range []bool{true, false} {
		for _, kind := range []journal.WakeKind{journal.WakeStep, journal.WakeResume} {
			t.Run(fmt.Sprintf("%s/warm=%v", kind, warm), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				asked := 0
				lines := script{"go": {calls("locate", `{"text":"a"}`), func(context.Context, agent.View) (agent.Reply, error) {
					asked++
					return agent.Reply{Text: "bye"}, nil
				}}}
				w := newWorld(t, made, helper(made, lines))
				p := w.process()
				w.run(p, "go")
				_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: []byte(`1`)})
				require.NoError(t, err)
				seq := int64(3)
				if kind == journal.WakeStep {
					f := &fuse{at: 3} // resumed is there, its step is not
					require.ErrorIs(t, w.fusedProcess(f, true, 1).work(), errDied)
					require.Equal(t, session.KindResumed, w.session().Newest.Kind, f.ops)
					w.clock.advance(time.Hour)
					seq = 4
				}
				w.drain()
				before := w.kinds()
				w.claimAs("somebody", seq)
				late := w.process(func(cfg *runtime.Config) {
					cfg.Store = refusedLate(w.store, func() { w.clock.advance(time.Minute) })
				})
				if warm {
					_, err := late.View(context.Background(), w.key)
					require.NoError(t, err)
				}
				kept := w.deliver(late, seq, kind)
				require.Positive(t, kept.Keep, "it comes back")
				require.Equal(t, kept.Keep, kept.KeepAfter(9), "at once: nobody is at it any more")
				require.Equal(t, before, w.kinds())
				require.Zero(t, asked)
				w.deliver(late, seq, kind)
				require.NoError(t, late.work())
				require.Equal(t, session.StatusCompleted, w.session().Status)
				require.Equal(t, 1, asked)
			})
		}
	}
}

// failingAfterClaim is a store that fails once after the first claim that is granted: at a
// commit, or at a read of waits.
func failingAfterClaim(s store.Store, atCommit bool) store.Store {
	commit, items := false, false
	return &hook{
		Store: s,
		claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
			head, err := s.Claim(ctx, p)
			if err == nil && p.Mode == store.ClaimTake {
				commit, items = atCommit, !atCommit
			}
			return head, err
		},
		commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			if commit {
				commit = false
				return store.Committed{}, store.ErrUnavailable
			}
			return s.Commit(ctx, p)
		},
		items: func(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
			if items && kind == store.KindWait {
				items = false
				return unreadItems(store.ErrUnavailable)
			}
			return s.Items(ctx, key, kind, id)
		},
	}
}

// A resumption that cannot be committed gives its lease back: nobody waits for it to lapse.
func TestResume_that_fails_gives_its_lease_back(t *testing.T) {
	t.Parallel()
	for _, atCommit := range []bool{true, false} {
		t.Run(fmt.Sprintf("commit=%v", atCommit), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"a"}`), says("bye")}}))
			p := w.process()
			w.run(p, "go")
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
			w.drain()
			down := w.process(func(cfg *runtime.Config) {
				cfg.Store = failingAfterClaim(w.store, atCommit)
			})
			_, err = down.Deliver(context.Background(), w.wake(3, journal.WakeResume))
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.Empty(t, w.head().Head.Lease.Owner)
			w.deliver(w.process(), 3, journal.WakeResume)
			require.Equal(t, 1, made.count("deploy a"), "without a second having passed")
		})
	}
}

// The watcher renews the lease of the entry before, while the commit has moved it
// on to the next: the refusal shows the step's own lease, which is no loss.
func TestWatch_does_not_take_the_move_of_its_own_lease_for_a_loss(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{true, false} {
		t.Run(fmt.Sprintf("detached=%v", detached), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"a"}`), says("bye")}}))
				slow := func() { time.Sleep(7 * time.Second) }
				p := w.process(func(cfg *runtime.Config) {
					cfg.Now = time.Now
					cfg.Store = movedSlowly(afterCommit(w.store, detached, func(e journal.Entry) {
						if e.Kind == session.KindReplied && !detached {
							slow()
						}
					}), slow)
				})
				w.clock.advance(time.Since(epoch))
				w.start(p, "go")
				w.deliver(p, w.drain()[0].Seq, journal.WakeStep)
				require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
				require.Equal(t, 1, made.count("line a"))
			})
		})
	}
}

// movedSlowly is a store that moves a lease and lets time pass before it says so.
func movedSlowly(s store.Store, pass func()) store.Store {
	return &hook{Store: s, claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
		head, err := s.Claim(ctx, p)
		if p.Mode == store.ClaimMove {
			pass()
		}
		return head, err
	}}
}

// A lease that somebody else holds is a loss: the step ends at once.
func TestWatch_sees_that_the_lease_is_lost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		began := time.Now()
		w = newWorld(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`)}}, func(ctx context.Context, _ string) {
			now := time.Now().Add(time.Hour)
			_, err := w.store.Claim(ctx, store.ClaimParams{Key: w.key, Mode: store.ClaimTake, Owner: "somebody", Seq: 2, Now: now, Until: now.Add(time.Minute)})
			require.NoError(t, err)
			<-ctx.Done()
		}))
		p := w.process(func(cfg *runtime.Config) { cfg.Now = time.Now })
		w.start(p, "go")
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Less(t, time.Since(began), 7*time.Second, "at the next renewal")
		require.Equal(t, []session.Kind{session.KindStarted}, w.kinds())
	})
}
