package runtime_test

import (
	"context"
	"iter"
	"slices"
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

// slow is a store whose writes take longer than anybody waits, the first times:
// as for a process that is stopped in the middle of one.
type slow struct {
	store.Store
	commits, updates atomic.Int64
	written          bool // the write goes through, its answer is lost
}

func (s *slow) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if p.Entry.Kind == session.KindStarted || s.commits.Add(-1) < 0 {
		return s.Store.Commit(ctx, p)
	}
	if s.written {
		if _, err := s.Store.Commit(ctx, p); err != nil {
			return store.Committed{}, err
		}
	}
	<-ctx.Done()
	return store.Committed{}, context.Cause(ctx)
}

func (s *slow) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if tool := items[0].Tool; tool == nil || tool.State != journal.ToolFinished || s.updates.Add(-1) < 0 {
		return s.Store.Update(ctx, key, items...)
	}
	if s.written {
		if _, err := s.Store.Update(ctx, key, items...); err != nil {
			return nil, err
		}
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A worker stopped for longer than a write may take goes on where it was if
// nobody took over: the write is done once more, whether or not the first went through.
func TestWriteOutOfTimeIsDoneOnceMore(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"not written": false, "written": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // on a clock that a busy machine does not overtake
				s := &slow{written: written}
				s.commits.Store(1)
				s.updates.Store(1)
				b := setup(t, func(cfg *runtime.Config) {
					s.Store = cfg.Store
					cfg.Store, cfg.CommitTimeout, cfg.Files.Folder = s, 10*time.Second, t.TempDir()
				})
				b.start(t, "lab", `[{call: append_line, with: {path: lines, text: a}}, {say: done}]`)
				got, err := b.Session(context.Background(), b.key)
				require.NoError(t, err)
				require.Equal(t, session.StatusCompleted, got.Status)
				require.Contains(t, got.Messages[2].Parts[0].ToolResult.Status, "success")
			})
		})
	}
}

// A store that does not answer at all is unavailable; nothing says that a
// command's own time was over.
func TestWriteThatNeverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		s.commits.Store(100)
		b := setup(t, func(cfg *runtime.Config) {
			s.Store = cfg.Store
			cfg.Store, cfg.CommitTimeout = s, 10*time.Second
		})
		_, err := b.Start(context.Background(), runtime.StartParams{Key: b.key, Agent: "lab", Input: llm.TextParts("[{say: done}]"), Caller: person})
		require.NoError(t, err)
		err = b.Drive(context.Background(), b.key, b.queue.Only(b.key))
		require.Equal(t, runtime.CodeStoreUnavailable, runtime.AsError(err).Code)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// between is a store in which something happens after the first look at an
// idempotency record.
type between struct {
	store.Store
	happens func()
}

func (s *between) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	var items []store.Item
	for item, err := range s.Store.Items(ctx, key, kind, id) {
		if err != nil {
			return s.Store.Items(ctx, key, kind, id)
		}
		items = append(items, item)
	}
	if kind == store.KindIdempotency && s.happens != nil {
		happens := s.happens
		s.happens = nil
		happens()
	}
	return func(yield func(store.Item, error) bool) {
		for item := range slices.Values(items) {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// A copy of a request that comes in between is no reason to refuse it.
func TestStartBesideItsCopy(t *testing.T) {
	t.Parallel()
	s := &between{}
	b := setup(t, func(cfg *runtime.Config) { s.Store, cfg.Store = cfg.Store, s })
	p := runtime.StartParams{Key: b.key, Agent: "lab", Input: llm.TextParts("[{say: done}]"), Caller: person, IdempotencyKey: "k"}
	var first runtime.Started
	s.happens = func() {
		var err error
		first, err = b.Start(context.Background(), p)
		require.NoError(t, err)
	}
	second, err := b.Start(context.Background(), p)
	require.NoError(t, err)
	require.True(t, second.Replayed)
	require.Equal(t, first.Checkpoint, second.Checkpoint)

	other := p
	other.Input = llm.TextParts("[{say: something else}]")
	_, err = b.Start(context.Background(), other)
	require.Equal(t, runtime.CodeIdempotencyMismatch, runtime.AsError(err).Code)
}
