package runtime_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// A verb's own signal is not on HEAD. When its entry is refused, because a frozen worker has marked
// its call after all, it does not become the weaker one that HEAD holds.
func TestStop_keeps_its_strength(t *testing.T) {
	t.Parallel()
	for _, kind := range []runtime.SignalKind{runtime.SignalCancel, runtime.SignalAbort} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}})).withMarksApart()
			w.start(w.process(), "go")
			w.drain()
			w.dies(2)
			require.Equal(t, session.KindReplied, w.session().Newest.Kind)
			out, err := w.stop(w.process(), runtime.SignalInterrupt)
			require.NoError(t, err)
			require.Equal(t, runtime.StopSent, out.Outcome)
			w.clock.advance(time.Minute)
			cross := &storeHook{when: anyCommit, happens: func() {
				w.update(store.ToolItem(journal.ToolRecord{Call: "c2-1", State: journal.ToolStarted, Attempt: "frozen", At: w.clock.Now()}, 0))
			}}
			out, err = w.stop(w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross }), kind)
			require.NoError(t, err)
			require.Equal(t, stoppedAs[kind], out.Status)
			require.Equal(t, stoppedAs[kind], w.session().Status)
			require.Equal(t, llm.ResultUnknown, results(w.session())["c2-1"].Status)
			require.Equal(t, llm.ResultCancelled, results(w.session())["c2-2"].Status)
			w.checkAtRest()
		})
	}
}

// A stronger signal comes between the claim of a verb and its entry, which obeys it. A repeat gets
// the same answer.
func TestStop_overtaken_by_a_stronger_one(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.start(w.process(), "go")
	cross := &storeHook{when: anyCommit, happens: func() {
		out, err := w.stop(w.process(), runtime.SignalAbort)
		require.NoError(t, err)
		require.Equal(t, runtime.StopSent, out.Outcome)
	}}
	p := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
	params := runtime.StopParams{Key: w.key, Kind: runtime.SignalCancel, Caller: people, IdempotencyKey: "k"}
	first, err := p.Stop(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, runtime.Stopped{Outcome: runtime.StopDone, Task: 1, Status: session.StatusFailed}, first)
	require.Equal(t, session.StatusFailed, w.session().Status)
	again, err := p.Stop(context.Background(), params)
	require.NoError(t, err)
	first.Replayed = true
	require.Equal(t, first, again)
}

// A request without a task is about the one that is present when it comes: the next turn, which
// begins between any two of its calls, goes on.
func TestStop_before_the_next_turn_everywhere(t *testing.T) {
	t.Parallel()
	for _, kind := range stops {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			for at := 0; ; at++ {
				w = w.another()
				w.run(w.process(), "go")
				calls := 0
				cross := &storeHook{when: func(storeCall) bool { calls++; return calls > at }}
				cross.happens = func() {
					_, err := w.stop(w.process(), runtime.SignalCancel)
					require.NoError(t, err)
					w.start(w.process(), "more")
				}
				out, err := w.stop(w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross }), kind)
				if err != nil {
					require.Equal(t, runtime.CodeSessionEnded, codeOf(err))
				}
				if calls <= at {
					return
				}
				if at > 0 { // before, it is about the next turn
					require.LessOrEqual(t, out.Task, int64(1), "crossed at call %d", at)
					require.NoError(t, w.process().settle())
					require.Equal(t, session.StatusCompleted, w.session().Status, "crossed at call %d", at)
				}
			}
		})
	}
}

// lostClaim is a store whose first claim is granted, and its answer lost.
func lostClaim(s store.Store) store.Store {
	lost := false
	return &hook{Store: s, claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
		item, err := s.Claim(ctx, p)
		if !lost {
			lost = true
			return store.Item{}, store.ErrUnavailable
		}
		return item, err
	}}
}

// Whatever became of the claim of a verb that fails, nobody waits for its lease.
func TestStop_gives_its_lease_back(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(store.Store) store.Store{
		"the answer to the claim is lost": lostClaim,
		"the entry is not written": func(s store.Store) store.Store {
			return &storeHook{Store: s, refuse: func(journal.Entry) bool { return true }}
		},
		"the journal cannot be read": func(s store.Store) store.Store {
			claimed := false
			return &hook{Store: s, claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
				claimed = true
				return s.Claim(ctx, p)
			}, entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
				if claimed {
					return unreadEntries(store.ErrUnavailable)
				}
				return s.Entries(ctx, key, after)
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.start(w.process(), "go")
			_, err := w.stop(w.process(func(cfg *runtime.Config) { cfg.Store = broken(cfg.Store) }), runtime.SignalCancel)
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.Empty(t, w.head().Head.Lease.Owner)
			out, err := w.stop(w.process(), runtime.SignalCancel)
			require.NoError(t, err)
			require.Equal(t, runtime.StopDone, out.Outcome, "by itself: it is left to nobody")
		})
	}
}

// The verb is frozen before its claim. A worker does the step meanwhile, and dies in the next one:
// the claim is refused, and yet nobody works.
func TestStop_claims_what_has_moved_on(t *testing.T) {
	t.Parallel()
	for _, kind := range stops {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.start(w.process(), "go")
			frozen := &storeHook{when: func(c storeCall) bool { return c.claim == store.ClaimTake }, happens: func() {
				w.deliver(w.process(), 2, journal.WakeStep)
				w.drain()
				w.claimAs("a worker that dies", w.session().Next())
				w.clock.advance(time.Hour)
			}}
			out, err := w.stop(w.process(func(cfg *runtime.Config) { frozen.Store = cfg.Store; cfg.Store = frozen }), kind)
			require.NoError(t, err)
			require.Equal(t, runtime.Stopped{Outcome: runtime.StopDone, Task: 1, Status: stoppedAs[kind]}, out)
			require.Equal(t, stoppedAs[kind], w.session().Status)
		})
	}
}

// The claim of a verb is granted for an entry that a frozen worker has just written, after all: the
// session waits, and its answer counts.
func TestStop_claims_what_has_just_suspended(t *testing.T) {
	t.Parallel()
	for _, kind := range stops {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"2"}`), says("bye")}}))
			frozen := &storeHook{when: commits(session.KindSuspended)}
			p := w.process(func(cfg *runtime.Config) { frozen.Store = cfg.Store; cfg.Store = frozen })
			w.start(p, "go")
			at, goOn, done := make(chan bool), make(chan bool), make(chan error, 1)
			frozen.happens = func() {
				w.clock.advance(time.Minute)
				claims := &storeHook{when: func(c storeCall) bool { return c.claim == store.ClaimTake }, happens: func() { close(at); <-goOn }}
				verb := w.process(func(cfg *runtime.Config) { claims.Store = cfg.Store; cfg.Store = claims })
				go func() {
					_, err := w.stop(verb, kind)
					done <- err
				}()
				<-at
			}
			require.NoError(t, p.work())
			require.Equal(t, session.StatusSuspended, w.session().Status)
			_, err := w.answer(w.process(), 0)
			require.NoError(t, err)
			close(goOn)
			require.NoError(t, <-done)
			require.Equal(t, stoppedAs[kind], w.session().Status)
			w.checkNothingForgotten()
			if kind != runtime.SignalInterrupt {
				w.checkAtRest()
			}
		})
	}
}

// What is told as cancelled is closed in its ledger, with the entry.
func TestStop_closes_calls(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	_, err := w.stop(w.process(), runtime.SignalCancel)
	require.NoError(t, err)
	closed := 0
	for _, item := range w.items(store.KindTool) {
		if item.Tool.State == journal.ToolClosed {
			require.Equal(t, llm.ResultCancelled, results(w.session())[item.ID].Status)
			closed++
		}
	}
	require.Equal(t, 2, closed)
}

// A signal that was left for a session that is put off sends for it again when the request is
// repeated, and when its message has become a dead letter.
func TestStop_delayed_is_sent_for_again(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "late")
	w.drain()
	w.claimAs("somewhere else", w.session().Next())
	params := runtime.StopParams{Key: w.key, Kind: runtime.SignalCancel, Caller: people, IdempotencyKey: "k"}
	_, err := w.process().Stop(context.Background(), params)
	require.NoError(t, err)
	require.Len(t, w.drain(), 1)
	again, err := w.process().Stop(context.Background(), params)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Len(t, w.drain(), 1)
	w.clock.advance(time.Minute)
	_, err = w.process().DeadLetter(context.Background(), w.wake(w.session().Next(), journal.WakeStep))
	require.NoError(t, err)
	w.clock.advance(time.Minute)
	require.NoError(t, w.process().work())
	require.Equal(t, session.StatusCancelled, w.session().Status)
}

// Who has no name is told of as nobody known.
func TestStop_by_nobody_known(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.start(w.process(), "go")
	_, err := w.process().Stop(context.Background(), runtime.StopParams{Key: w.key, Kind: runtime.SignalAbort})
	require.NoError(t, err)
	require.Equal(t, "Aborted by an unknown caller.", w.session().Failure.Message)
}
