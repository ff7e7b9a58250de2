package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var errDied = errors.New("the process died")

// fuse ends a process at its n-th write: before it, or after it and before its
// answer came. Everything the process tries afterwards fails.
type fuse struct {
	at    int // 0: never
	after bool

	mu   sync.Mutex
	n    int
	over bool
	ops  []string
}

func (f *fuse) blown() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

func (f *fuse) enter(op string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return 0, errDied
	}
	f.n++
	f.ops = append(f.ops, op)
	if f.n == f.at && !f.after {
		f.over = true
		return 0, errDied
	}
	return f.n, nil
}

func (f *fuse) leave(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = f.over || n == f.at
	return f.over
}

func fused[T any](f *fuse, op string, write func() (T, error)) (T, error) {
	var none T
	n, err := f.enter(op)
	if err != nil {
		return none, err
	}
	out, err := write()
	if f.leave(n) {
		return none, errDied
	}
	return out, err
}

// fusedStore is the store as a process sees it that will die. Reads are not
// counted: dying at one is dying before the next write.
type fusedStore struct {
	store.Store
	fuse *fuse
	// detached leaves the wakes and the next claim to the runtime, as a store does
	// that shares no transaction with its queue.
	detached bool
}

func (s *fusedStore) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	return fused(s.fuse, "claim "+string(p.Mode), func() (store.Item, error) { return s.Store.Claim(ctx, p) })
}

func (s *fusedStore) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if s.detached {
		p.Wakes, p.Claim = nil, nil
	}
	return fused(s.fuse, "commit "+string(p.Entry.Kind), func() (store.Committed, error) {
		out, err := s.Store.Commit(ctx, p)
		if s.detached {
			out.Enqueued = false
		}
		return out, err
	})
}

// updating names an update by what it writes.
func updating(items []store.Item) string {
	if len(items) == 1 {
		return "update " + string(items[0].Kind)
	}
	return fmt.Sprintf("update %d of %s", len(items), items[0].Kind)
}

func (s *fusedStore) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	return fused(s.fuse, updating(items), func() ([]store.Item, error) { return s.Store.Update(ctx, key, items...) })
}

// fusedQueue is the queue of such a process.
type fusedQueue struct {
	queue.Queue
	fuse *fuse
}

func (q *fusedQueue) Send(ctx context.Context, wakes ...journal.Wake) error {
	_, err := fused(q.fuse, "send", func() (int, error) { return 0, q.Queue.Send(ctx, wakes...) })
	return err
}

func (q *fusedQueue) Acknowledge(ctx context.Context, d ...queue.Delivery) error {
	_, err := fused(q.fuse, "acknowledge", func() (int, error) { return 0, q.Queue.Acknowledge(ctx, d...) })
	return err
}

func (q *fusedQueue) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	_, err := fused(q.fuse, "postpone", func() (int, error) { return 0, q.Queue.Postpone(ctx, d, delay) })
	return err
}

func (q *fusedQueue) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	if q.fuse.blown() {
		return nil, errDied
	}
	return q.Queue.Receive(ctx, p)
}
