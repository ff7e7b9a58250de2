package runtime_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// tenAndABit is an agent whose first step takes 10.123 s and waits for an approval, and whose second
// takes as long and ends.
func tenAndABit() agent.Agent {
	pause := 10*time.Second + 123*time.Millisecond
	after := func(next turn) turn {
		return func(ctx context.Context, v agent.View) (agent.Reply, error) {
			time.Sleep(pause)
			return next(ctx, v)
		}
	}
	return helper(newEffects(), script{"go": {after(calls("deploy", `{"text":"1"}`)), after(says("bye"))}})
}

// Who waits for a session is told by the very commit: no time passes in between, though the next
// look at the store is far off.
func TestAwait_is_told_by_the_commit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, tenAndABit()))
		ctx := context.Background()
		b.begin(t, "go")
		began := time.Now()
		go func() { _ = b.Drive(ctx, b.key, b.queue.Only(b.key)) }()
		told := make(chan time.Duration, 2)
		go func() {
			page, err := b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: 1, Wait: time.Hour})
			if err != nil || len(page.Entries) == 0 {
				t.Errorf("%v %v", page, err)
			}
			told <- time.Since(began)
		}()
		rests, err := b.AwaitRest(ctx, b.key, 0, time.Hour)
		require.NoError(t, err)
		require.True(t, rests)
		require.Equal(t, 10123*time.Millisecond, time.Since(began))
		require.Equal(t, 10123*time.Millisecond, <-told)
		synctest.Wait()

		// A session that was answered goes on, and rests again past that.
		_, err = b.Decide(ctx, runtime.DecideParams{Key: b.key, ApproveAll: true, Checkpoint: b.session(t).Checkpoint().String(), Caller: person})
		require.NoError(t, err)
		began = time.Now()
		go func() { _ = b.Drive(ctx, b.key, b.queue.Only(b.key)) }()
		rests, err = b.AwaitRest(ctx, b.key, 0, time.Hour)
		require.NoError(t, err)
		require.True(t, rests)
		require.Equal(t, 10123*time.Millisecond, time.Since(began))
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
	})
}

// The same of a process of its own that works on the same file.
func TestAwait_is_told_of_another_process(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	synctest.Test(t, func(t *testing.T) {
		process := func() (*bundle, *sqlite.DB) {
			db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
			require.NoError(t, err)
			return setup(t, withAgents(t, tenAndABit()), func(cfg *runtime.Config) {
				cfg.Store, cfg.Queue, cfg.DeadLetters = db.Store(), db.Queue(), db.DeadLetters()
			}), db
		}
		waits, file := process()
		works, other := process()
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { worked <- works.Work(ctx, other.Queue(), runtime.WorkParams{}) }()
		time.Sleep(time.Second)
		waits.begin(t, "go")
		began := time.Now()
		rests, err := waits.AwaitRest(ctx, waits.key, 0, time.Hour)
		require.NoError(t, err)
		require.True(t, rests)
		require.LessOrEqual(t, time.Since(began)-10123*time.Millisecond, 2*20*time.Millisecond, "one for the message, one for the entry")
		stop()
		require.NoError(t, <-worked)
		require.NoError(t, file.Close())
		require.NoError(t, other.Close())
	})
}

// Who drives a session that another worker of this program has is told when it rests.
func TestDrive_is_told_by_the_commit_of_another(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, tenAndABit()))
		b.begin(t, "go")
		taken, err := b.queue.Receive(t.Context(), queue.ReceiveParams{Max: 1, Visibility: time.Minute})
		require.NoError(t, err)
		require.Len(t, taken, 1)
		began := time.Now()
		go func() {
			_, _ = b.Deliver(t.Context(), taken[0].Wake)
			_ = b.queue.Acknowledge(t.Context(), taken[0])
		}()
		b.drive(t)
		require.Equal(t, session.StatusSuspended, b.session(t).Status)
		// Its cache has the session for as long as the other one puts it back.
		require.LessOrEqual(t, time.Since(began)-10123*time.Millisecond, 20*time.Millisecond)
		synctest.Wait()
	})
}

// Work that is asked whether it is done ends with the last commit, however long it would stay
// idle, and stays while there is something left that is in no queue.
func TestWork_ends_when_it_is_done(t *testing.T) {
	t.Parallel()
	ends := func(b *bundle) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			head, err := b.Head(ctx, b.key)
			return head.Status != session.StatusRunning, err
		}
	}
	t.Run("with the last commit", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, withAgents(t, tenAndABit()))
			b.begin(t, "go")
			began := time.Now()
			require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: time.Hour, Done: ends(b)}))
			require.Equal(t, session.StatusSuspended, b.session(t).Status)
			require.Equal(t, 10123*time.Millisecond, time.Since(began))
			began = time.Now()
			require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: time.Hour, Done: ends(b)}))
			require.Equal(t, 20*time.Millisecond, time.Since(began), "there was nothing to do, and nothing came that a dead worker put off")
		})
	})
	t.Run("not before a retry that is put off", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, withAgents(t, helper(newEffects(), script{"go": {fails(busy), says("bye")}})))
			b.begin(t, "go")
			require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: time.Hour, Done: ends(b)}))
			require.Equal(t, session.StatusCompleted, b.session(t).Status)
		})
	})
	t.Run("not before a copy that is put off for a moment", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			slow := func(context.Context, agent.View) (agent.Reply, error) {
				time.Sleep(50 * time.Millisecond)
				return agent.Reply{Text: "bye"}, nil
			}
			b := setup(t, withAgents(t, helper(newEffects(), script{"go": {slow}})), func(cfg *runtime.Config) { cfg.Lease = 200 * time.Millisecond })
			b.begin(t, "go")
			require.NoError(t, b.queue.Send(t.Context(), journal.NewWake(b.key, 2, journal.WakeStep)))
			began := time.Now()
			require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: time.Hour, Done: ends(b)}))
			require.Equal(t, session.StatusCompleted, b.session(t).Status)
			require.Greater(t, time.Since(began), 100*time.Millisecond, "the copy waited for the lease of the other")
			require.Less(t, time.Since(began), 400*time.Millisecond)
			time.Sleep(time.Hour)
			left, err := b.queue.Receive(t.Context(), queue.ReceiveParams{Max: 10, Visibility: time.Minute})
			require.NoError(t, err)
			require.Empty(t, left)
		})
	})
	t.Run("idle all the same", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t)
			began := time.Now()
			never := func(context.Context) (bool, error) { return false, nil }
			require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: time.Second, Done: never}))
			require.LessOrEqual(t, time.Since(began), 2*time.Second)
		})
	})
	t.Run("with its error", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t)
			broken := errors.Join(store.ErrUnavailable, errors.New("no answer"))
			err := b.Work(t.Context(), b.queue, runtime.WorkParams{Done: func(context.Context) (bool, error) { return false, broken }})
			require.ErrorIs(t, err, broken)
			require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
			ctx, stop := context.WithCancel(t.Context())
			require.NoError(t, b.Work(ctx, b.queue, runtime.WorkParams{Done: func(context.Context) (bool, error) {
				stop()
				return false, broken
			}}), "it was told to stop")
		})
	})
}
