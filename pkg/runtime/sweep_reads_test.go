package runtime_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// tally counts what is asked of a store: entries that are read, reads of items, writes.
type tally struct {
	store.Store
	entries, items, writes atomic.Int64
}

func (s *tally) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Store.Entries(ctx, key, after) {
			s.entries.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *tally) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	s.items.Add(1)
	return s.Store.Items(ctx, key, kind, id)
}

func (s *tally) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	s.writes.Add(1)
	return s.Store.Update(ctx, key, items...)
}

// tallied is a process whose store is counted.
func (w *world) tallied() (*process, *tally) {
	s := &tally{Store: w.store}
	return w.process(func(cfg *runtime.Config) { cfg.Store = s }), s
}

// long is a session of so many steps that has just been told to do one thing more.
func long(t *testing.T, last ...turn) (*world, *process) {
	t.Helper()
	made := newEffects()
	var turns []turn
	for range 40 {
		turns = append(turns, calls("line", `{"text":"1"}`))
	}
	w := newWorld(t, made, helper(made, script{"go": append(turns, last...)}))
	p := w.process()
	w.start(p, "go")
	for range 40 {
		worked, err := p.deliverOne(t.Context())
		require.NoError(t, err)
		require.True(t, worked)
	}
	require.EqualValues(t, 81, w.session().Version)
	return w, p
}

// TestSweep_reads_no_history: of a session that runs it reads the last entry or
// two, of one that waits none, however long they are, and it keeps nothing.
func TestSweep_reads_no_history(t *testing.T) {
	t.Parallel()
	kept := func(w *world, p *process, s *tally) bool {
		before := s.entries.Load()
		_, err := p.Messages(context.Background(), w.key)
		require.NoError(w.t, err)
		return s.entries.Load()-before < w.session().Version
	}
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		w, _ := long(t)
		require.Len(t, w.drain(), 1, "the wake is lost")
		w.clock.advance(time.Minute)
		sweeper, s := w.tallied()
		require.Equal(t, 1, sweepOf(t, sweeper).Resent)
		require.Equal(t, []journal.Wake{w.wake(82, journal.WakeStep)}, w.drain())
		require.LessOrEqual(t, s.entries.Load(), int64(2))
		require.False(t, kept(w, sweeper, s))
	})
	t.Run("its worker died", func(t *testing.T) {
		t.Parallel()
		w, p := long(t)
		w.claimAs("gone", 82)
		w.clock.advance(time.Minute)
		sweeper, s := w.tallied()
		require.Equal(t, 1, sweepOf(t, sweeper).Resent)
		require.LessOrEqual(t, s.entries.Load(), int64(2))
		require.NoError(t, p.settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		w.checkAtRest()
	})
	t.Run("a lease for an entry that cannot be", func(t *testing.T) {
		t.Parallel()
		w, _ := long(t)
		w.drain()
		w.claimAs("wrong", 90)
		w.clock.advance(time.Minute)
		sweeper, _ := w.tallied()
		require.Equal(t, 1, sweepOf(t, sweeper).Resent, "HEAD knows an earlier one")
		require.Equal(t, []journal.Wake{w.wake(82, journal.WakeStep)}, w.drain())
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		w, p := long(t, calls("deploy", `{"text":"1"}`))
		require.NoError(t, p.work())
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		next := w.session().Next()
		require.Equal(t, []journal.Wake{w.wake(next, journal.WakeResume)}, w.drain(), "the wake is lost")
		w.clock.advance(time.Minute)
		sweeper, s := w.tallied()
		keys, err := sweeper.Unresumed(t.Context())
		require.NoError(t, err)
		require.Equal(t, []session.Key{w.key}, keys)
		require.Equal(t, 1, sweepOf(t, sweeper).Resumed)
		require.Equal(t, []journal.Wake{w.wake(next, journal.WakeResume)}, w.drain())
		require.Zero(t, s.entries.Load())
		require.False(t, kept(w, sweeper, s))
	})
	t.Run("dead letters", func(t *testing.T) {
		t.Parallel()
		w, _ := long(t)
		w.drain()
		sweeper, s := w.tallied()
		for _, seq := range []int64{40, 81, 82, 83} {
			_, err := sweeper.DeadLetter(t.Context(), w.wake(seq, journal.WakeStep))
			require.NoError(t, err)
		}
		require.LessOrEqual(t, s.entries.Load(), int64(8))
		for range 5 {
			w.claimAs("dying "+newID(), 82)
			w.clock.advance(20 * time.Second)
		}
		_, err := sweeper.DeadLetter(t.Context(), w.wake(82, journal.WakeStep))
		require.NoError(t, err)
		require.Equal(t, session.StatusFailed, w.session().Status)
		require.False(t, kept(w, sweeper, s), "what it had to read whole is not kept")
		w.clock.advance(time.Minute)
		w.checkAtRest()
	})
}

func TestSweep_of_a_deadline_reads_no_history(t *testing.T) {
	t.Parallel()
	w, _ := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	w.clock.advance(2 * time.Hour)
	sweeper, s := w.tallied()
	require.Equal(t, 1, sweepOf(t, sweeper).Expired)
	require.Equal(t, []journal.Wake{w.wake(w.session().Next(), journal.WakeResume)}, w.drain())
	require.Zero(t, s.entries.Load())
}

// TestSweep_looks_seldom_at_what_is_put_off: a session whose model said to come
// back in hours is due then.
func TestSweep_looks_seldom_at_what_is_put_off(t *testing.T) {
	t.Parallel()
	const hours = 3
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {
		fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: hours * time.Hour}), says("bye"),
	}}))
	p := w.process()
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
	w.drain() // what would come back in three hours is lost
	sweeper, s := w.tallied()
	for range hours*60 - 1 {
		w.clock.advance(time.Minute)
		require.Zero(t, sweepOf(t, sweeper))
	}
	require.LessOrEqual(t, s.entries.Load(), int64(hours*4))
	require.LessOrEqual(t, s.items.Load(), int64(hours*4))
	require.LessOrEqual(t, s.writes.Load(), int64(hours*4))
	require.Zero(t, w.head().Head.Resent)
	w.clock.advance(time.Minute)
	require.Equal(t, 1, sweepOf(t, sweeper).Resent, "to the minute")
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkAtRest()
}

// A moment is not worth a write, and a signal does not wait for a model.
func TestSweep_leaves_alone_what_is_put_off_for_a_moment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  time.Duration
		signal *journal.Signal
	}{
		"a moment": {after: 40 * time.Second}, "a signal": {time.Hour, &journal.Signal{ID: "s", Task: 1, Kind: journal.SignalCancel}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: c.after})}}))
			p := w.process()
			w.start(p, "go")
			w.deliver(p, 2, journal.WakeStep)
			if c.signal != nil {
				head := w.head()
				head.Head.Signal = c.signal
				w.update(head)
			}
			w.clock.advance(31 * time.Second)
			sweeper, s := w.tallied()
			require.Zero(t, sweepOf(t, sweeper))
			require.Zero(t, s.writes.Load())
		})
	}
}

// silent is a store that takes its time to answer for some sessions: for ever, if
// it is negative.
type silent struct {
	store.Store
	takes map[session.Key]time.Duration
}

func (s *silent) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	var answers <-chan time.Time
	switch takes := s.takes[key]; {
	case takes == 0:
		return s.Store.Items(ctx, key, kind, id)
	case takes > 0:
		answers = time.After(takes)
	}
	select {
	case <-answers:
		return s.Store.Items(ctx, key, kind, id)
	case <-ctx.Done():
		return func(yield func(store.Item, error) bool) { yield(store.Item{}, context.Cause(ctx)) }
	}
}

// sweepAmong starts sessions of which the last is healthy, and sweeps them once
// their wakes are lost.
func sweepAmong(t *testing.T, ctx context.Context, takes ...time.Duration) (runtime.SweepResult, error) {
	t.Helper()
	s := &silent{takes: map[session.Key]time.Duration{}}
	b := setup(t, func(cfg *runtime.Config) { s.Store, cfg.Store = cfg.Store, s })
	for range append(takes, 0) {
		_, err := b.Start(context.Background(), runtime.StartParams{Key: b.key, Agent: "lab", Input: llm.TextParts("[{say: done}]"), Caller: person})
		require.NoError(t, err)
		if len(takes) > 0 {
			s.takes[b.key], takes = takes[0], takes[1:]
		}
		b.key.ID = newID()
		time.Sleep(time.Millisecond) // the earliest is due first
	}
	time.Sleep(time.Minute)
	return b.Sweep(ctx)
}

// TestSweep_of_sessions_the_store_is_silent_about: they hide no other.
func TestSweep_of_sessions_the_store_is_silent_about(t *testing.T) {
	t.Parallel()
	const never = -1
	t.Run("two of three", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			swept, err := sweepAmong(t, context.Background(), never, never)
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the sweep's own time was not over")
			require.Equal(t, 1, swept.Resent)
		})
	})
	t.Run("many, in the time a function has", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), 95*time.Second, errors.New("over")) // of which a minute passes before
			defer cancel()
			var takes []time.Duration
			for range 20 {
				takes = append(takes, never)
			}
			swept, err := sweepAmong(t, ctx, takes...)
			require.Error(t, err)
			require.Equal(t, 1, swept.Resent)
		})
	})
	t.Run("one that takes longer than its share comes last", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			swept, err := sweepAmong(t, context.Background(), 15*time.Second, never)
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.Equal(t, 2, swept.Resent)
		})
	})
}

// TestDrive_of_a_session_another_process_ends: what is known of it here is behind,
// and nobody here is told.
func TestDrive_of_a_session_another_process_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		_, err := b.Start(context.Background(), runtime.StartParams{Key: b.key, Agent: "lab", Input: llm.TextParts("[{say: done}]"), Caller: person})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		driven := make(chan error, 1)
		go func() {
			driven <- b.Drive(ctx, b.key, b.queue.Only(session.Key{Tenant: session.DefaultTenant, ID: "none"}))
		}()
		time.Sleep(time.Second)
		other, err := runtime.New(b.cfg)
		require.NoError(t, err)
		require.NoError(t, other.Drive(ctx, b.key, b.queue.Only(b.key)))
		require.NoError(t, <-driven)
	})
}
