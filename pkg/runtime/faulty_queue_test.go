package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// chaosQueue is a standard queue at its worst: it delivers twice, in any order,
// and again while a message is still being worked on.
type chaosQueue struct {
	mu       sync.Mutex
	rng      *rand.Rand
	clock    *clock
	messages []*chaosMessage
}

type chaosMessage struct {
	wake    journal.Wake
	visible time.Time
	gone    bool
}

func (q *chaosQueue) Send(_ context.Context, wakes ...journal.Wake) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, wake := range wakes {
		for range 1 + q.rng.IntN(2) {
			q.messages = append(q.messages, &chaosMessage{wake: wake, visible: q.clock.Now().Add(wake.Delay)})
		}
	}
	return nil
}

func (q *chaosQueue) Receive(_ context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var visible []int
	for i, m := range q.messages {
		if !m.gone && !q.clock.Now().Before(m.visible) {
			visible = append(visible, i)
		}
	}
	if len(visible) == 0 {
		return nil, nil
	}
	i := visible[q.rng.IntN(len(visible))]
	if q.rng.IntN(4) > 0 { // else its visibility is lost at once
		q.messages[i].visible = q.clock.Now().Add(p.Visibility)
	}
	return []queue.Delivery{{Wake: q.messages[i].wake, Message: fmt.Sprint(i), Receipt: fmt.Sprint(i)}}, nil
}

func (q *chaosQueue) change(d queue.Delivery, f func(*chaosMessage)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var i int
	_, _ = fmt.Sscan(d.Receipt, &i)
	f(q.messages[i])
}

func (q *chaosQueue) Acknowledge(_ context.Context, deliveries ...queue.Delivery) error {
	for _, d := range deliveries {
		q.change(d, func(m *chaosMessage) { m.gone = q.rng.IntN(5) > 0 }) // else it comes once more
	}
	return nil
}

func (q *chaosQueue) Postpone(_ context.Context, d queue.Delivery, delay time.Duration) error {
	q.change(d, func(m *chaosMessage) { m.visible = q.clock.Now().Add(delay) })
	return nil
}

// TestCrash_with_a_queue_at_its_worst duplicates, reorders and forgets to hide messages,
// while workers die at random writes and others take over.
func TestCrash_with_a_queue_at_its_worst(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, sc.lines, func(a *agent.Agent) { a.Policy = sc.policy })}})
			require.NoError(t, err)
			w := newWorldOf(t, made, registry)
			p := w.fusedProcess(&fuse{}, true, 1)
			for _, do := range sc.acts {
				require.NoError(t, do(w, p))
				require.NoError(t, p.settle())
			}
			want := w.outcome()
			seeds := uint64(5)
			if os.Getenv("ADJOURN_CRASH_TRIALS") != "" {
				seeds = 50
			}
			for seed := range seeds {
				w = w.another()
				rng := rand.New(rand.NewPCG(seed, 1))
				q := &chaosQueue{rng: rng, clock: w.clock}
				worker := func(f *fuse) *process {
					p := w.process(func(cfg *runtime.Config) {
						cfg.Store = &fusedStore{Store: w.store, fuse: f, detached: true}
						cfg.Queue = &fusedQueue{Queue: q, fuse: f}
						cfg.StepsPerInvocation = 1 + int(seed%2)
					})
					p.fuse = f
					return p
				}
				unknown := map[string]bool{}
				for _, do := range sc.acts {
					for tries := 0; ; tries++ {
						f := &fuse{at: 1 + rng.IntN(30), after: rng.IntN(2) == 0}
						if tries == 4 {
							f.at = 0
						}
						p := worker(f)
						err := do(w, p)
						if err == nil {
							err = p.settle()
						}
						if err == nil {
							break
						}
						require.True(t, f.blown(), "seed %d: %v", seed, err)
						for _, item := range w.items(store.KindTool) {
							if item.Tool.State == journal.ToolStarted {
								unknown[item.Tool.Call] = true
							}
						}
						w.cut = sc.cut != nil && len(unknown) > 0
						w.checkTogether(sc, fmt.Sprint(f.ops))
						require.NoError(t, worker(&fuse{}).settle())
					}
				}
				want := want
				if w.cut && len(w.waits()) == 0 {
					want.kinds = sc.cut
				}
				compare(t, want, w.outcome(), unknown, fmt.Sprintf("seed %d", seed))
				w.checkAtRest()
			}
		})
	}
}

// TestCrash_many_workers_on_one_session lets four workers take whatever comes,
// each message twice and never hidden.
func TestCrash_many_workers_on_one_session(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {
		calls("line", `{"text":"1"}`), calls("line", `{"text":"2"}`, "put", `{"text":"p"}`, "line", `{"text":"3"}`), calls("echo", `{"text":"e"}`), says("bye"),
	}}))
	q := &chaosQueue{rng: rand.New(rand.NewPCG(7, 7)), clock: w.clock}
	w.cfg.Queue = q
	w.start(w.process(), "go")
	var wg sync.WaitGroup
	for range 4 {
		p := w.process()
		wg.Go(func() {
			for range 120 {
				if _, err := p.deliverOne(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p := w.process()
	require.NoError(t, p.settle())
	w.checkAtRest()
	require.Equal(t, []session.Kind{
		session.KindStarted, session.KindReplied, session.KindStepped, session.KindReplied, session.KindStepped, session.KindStepped, session.KindCompleted,
	}, w.kinds())
	for _, n := range []string{"line 1", "line 2", "line 3"} {
		require.Equal(t, 1, made.count(n), "no worker died, so nothing is unknown and nothing happens twice")
	}
}

// lossyStore loses the answer of its n-th write, which has happened. Its
// transport then either tries again by itself, or gives the error back.
type lossyStore struct {
	store.Store
	at      int
	retries bool

	mu   sync.Mutex
	n    int
	lost string
}

func (s *lossyStore) lose(op string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.n == s.at {
		s.lost = op
	}
	return s.n == s.at
}

var errLostAnswer = fmt.Errorf("%w: the answer was lost", store.ErrUnavailable)

func lossy[T any](s *lossyStore, op string, write func() (T, error)) (T, error) {
	out, err := write()
	if !s.lose(op) || err != nil && !errors.Is(err, store.ErrConflict) {
		return out, err
	}
	if s.retries {
		return write()
	}
	var none T
	return none, errLostAnswer
}

func (s *lossyStore) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	return lossy(s, "claim "+string(p.Mode), func() (store.Item, error) { return s.Store.Claim(ctx, p) })
}

func (s *lossyStore) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	return lossy(s, "commit "+string(p.Entry.Kind), func() (store.Committed, error) { return s.Store.Commit(ctx, p) })
}

func (s *lossyStore) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	return lossy(s, updating(items), func() ([]store.Item, error) { return s.Store.Update(ctx, key, items...) })
}

// TestCrash_lost_answers: a write whose answer is lost has happened, and its
// writer finds that out by its own attempt id, at once or when it comes back.
func TestCrash_lost_answers(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, retries := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/retries=%v", sc.name, retries), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, sc.lines, func(a *agent.Agent) { a.Policy = sc.policy }))
				play := func(w *world, at int) (*lossyStore, outcome) {
					s := &lossyStore{Store: w.store, at: at, retries: retries}
					p := w.process(func(cfg *runtime.Config) { cfg.Store = s })
					for _, do := range sc.acts {
						if err := do(w, p); err != nil {
							require.ErrorIs(t, err, store.ErrUnavailable, "%s: only the lost answer is an error", s.lost)
							require.False(t, retries, "%s: a transport that tries again hides the loss", s.lost)
							if len(w.items(store.KindHead)) > 0 {
								require.NoError(t, p.settle())
							}
							require.NoError(t, do(w, p), s.lost)
						}
						require.NoError(t, p.settle(), s.lost)
						w.cut = sc.cut != nil && !retries && s.lost == "update tool"
					}
					return s, w.outcome()
				}
				s, want := play(w, 0)
				runs := sampler(t)
				for at := 1; at <= s.n; at++ {
					if !runs() {
						continue
					}
					w = w.another()
					lossy, got := play(w, at)
					unknown := map[string]bool{}
					if !retries && lossy.lost == "update tool" {
						for call := range got.statuses {
							unknown[call] = true
						}
					}
					want := want
					if w.cut && len(w.waits()) == 0 {
						want.kinds = sc.cut
					}
					compare(t, want, got, unknown, fmt.Sprintf("lost the answer of write %d, %s", at, lossy.lost))
					w.checkAtRest()
				}
			})
		}
	}
}
