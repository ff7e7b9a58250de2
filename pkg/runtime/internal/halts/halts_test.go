package halts_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// tried is a store that counts reads, takes a time for each, and may fail, lose answers or be overtaken.
type tried struct {
	store.Store
	reads  atomic.Int64
	takes  time.Duration
	fails  atomic.Bool
	before func() // an update
	lost   bool   // the answer of the next update
}

var errDown = errors.New("the store is down")

func (s *tried) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	s.reads.Add(1)
	time.Sleep(s.takes)
	if s.fails.Load() {
		return func(yield func(store.Item, error) bool) { yield(store.Item{}, errDown) }
	}
	return s.Store.Items(ctx, key, kind, id)
}

func (s *tried) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	out, err := s.Store.Update(ctx, key, items...)
	if s.lost && err == nil {
		s.lost = false
		return nil, &store.ConflictError{Item: &out[0]} // as to who tries again
	}
	return out, err
}

// setup opens a store in memory, with the halts of one process.
func setup(t *testing.T) (*halts.Halts, *tried) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s := &tried{Store: db.Store()}
	return process(t, s), s
}

func process(t *testing.T, s store.Store) *halts.Halts {
	t.Helper()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{
		{Name: "a", Planner: agent.Replies(agent.Reply{})}, {Name: "b", Planner: agent.Replies(agent.Reply{})},
	}})
	require.NoError(t, err)
	return halts.New(halts.Config{Store: s, Registry: registry, Now: time.Now})
}

func set(t *testing.T, h *halts.Halts, p halts.Params) {
	t.Helper()
	_, err := h.Set(t.Context(), p)
	require.NoError(t, err)
}

func scopeOf(t *testing.T, h *halts.Halts, tenant, name string) string {
	t.Helper()
	halt, err := h.Of(t.Context(), tenant, name)
	require.NoError(t, err)
	if halt == nil {
		return ""
	}
	return halt.Scope()
}

func TestOf_scopes(t *testing.T) {
	t.Parallel()
	h, _ := setup(t)
	require.Empty(t, scopeOf(t, h, "acme", "a"))
	set(t, h, halts.Params{Tenant: "acme", Agent: "a", Who: "ann"})
	require.Equal(t, "agent a of tenant acme", scopeOf(t, h, "acme", "a"))
	require.Empty(t, scopeOf(t, h, "acme", "b"))
	require.Empty(t, scopeOf(t, h, "globex", "a"))
	set(t, h, halts.Params{Tenant: "acme"})
	require.Equal(t, "tenant acme", scopeOf(t, h, "acme", "a"))
	require.Equal(t, "tenant acme", scopeOf(t, h, "acme", "b"))
	set(t, h, halts.Params{Agent: "b", Operator: true})
	require.Equal(t, "agent b", scopeOf(t, h, "globex", "b"))
	require.Empty(t, scopeOf(t, h, "globex", "a"))
	set(t, h, halts.Params{Operator: true})
	require.Equal(t, "everything", scopeOf(t, h, "globex", "a"))
	all, err := h.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 4)
	some, err := h.List(t.Context(), "globex")
	require.NoError(t, err)
	require.Len(t, some, 2)
}

func TestLift(t *testing.T) {
	t.Parallel()
	h, _ := setup(t)
	mine, operators := halts.Params{Tenant: "acme", Who: "ann"}, halts.Params{Tenant: "acme", Operator: true, Reason: "unpaid"}
	set(t, h, mine)
	set(t, h, operators)
	set(t, h, halts.Params{Tenant: "globex"})
	lifted, err := h.Lift(t.Context(), mine)
	require.NoError(t, err)
	require.Len(t, lifted.Halts, 1)
	require.Equal(t, "ann", lifted.Halts[0].Who)
	require.Len(t, lifted.Left, 1, "what the operator set, a caller does not lift")
	require.Equal(t, "unpaid", lifted.Left[0].Reason)
	lifted, err = h.Lift(t.Context(), mine)
	require.NoError(t, err)
	require.Empty(t, lifted.Halts)
	require.Equal(t, "tenant acme", scopeOf(t, h, "acme", "a"))
	lifted, err = h.Lift(t.Context(), halts.Params{Operator: true})
	require.NoError(t, err)
	require.Empty(t, lifted.Halts, "just the scope that is given")
	require.Len(t, lifted.Left, 2)
	set(t, h, mine)
	lifted, err = h.Lift(t.Context(), operators)
	require.NoError(t, err)
	require.Len(t, lifted.Halts, 2)
	require.Empty(t, lifted.Left)
	require.Empty(t, scopeOf(t, h, "acme", "a"))
}

func TestSet_twice(t *testing.T) {
	t.Parallel()
	h, s := setup(t)
	first, err := h.Set(t.Context(), halts.Params{Operator: true, Reason: "one", Who: "ann"})
	require.NoError(t, err)
	require.False(t, first.Already)
	again, err := h.Set(t.Context(), halts.Params{Operator: true, Reason: "two", Who: "bob"})
	require.NoError(t, err)
	require.True(t, again.Already)
	require.Equal(t, "one", again.Halt.Reason)
	s.lost = true
	mine, err := h.Set(t.Context(), halts.Params{Tenant: "acme", Who: "cy"})
	require.NoError(t, err)
	require.False(t, mine.Already, "an earlier try of the same call has set it")
}

func TestSet_beside_others(t *testing.T) {
	t.Parallel()
	h, s := setup(t)
	other := process(t, s.Store)
	s.before = func() { set(t, other, halts.Params{Tenant: "globex"}) }
	set(t, h, halts.Params{Tenant: "acme"})
	all, err := h.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 2)
}

func TestSet_refuses(t *testing.T) {
	t.Parallel()
	h, s := setup(t)
	for want, p := range map[string]halts.Params{
		"only whoever runs the program": {Agent: "a"},
		"no agent \"c\"":                {Agent: "c", Operator: true},
		"1024 bytes":                    {Operator: true, Reason: string(make([]byte, 1025))},
		"UTF-8":                         {Operator: true, Reason: "\xff"},
		"invalid id":                    {Tenant: "*", Operator: true},
	} {
		_, err := h.Set(t.Context(), p)
		require.ErrorContains(t, err, want)
	}
	_, err := h.Lift(t.Context(), halts.Params{Agent: "a"})
	require.ErrorContains(t, err, "only whoever runs the program")
	_, err = h.Lift(t.Context(), halts.Params{Agent: "c", Operator: true})
	require.NoError(t, err, "an agent that another program has")
	s.fails.Store(true)
	_, err = h.Set(t.Context(), halts.Params{Operator: true})
	require.ErrorIs(t, err, errDown)
	_, err = h.List(t.Context(), "")
	require.ErrorIs(t, err, errDown)
}

// TestOf_reads_once_a_second: however often it is asked, and by however many; and nothing while it is not.
func TestOf_reads_once_a_second(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := setup(t)
		s.takes = 50 * time.Millisecond
		for range 64 {
			go func() {
				for range 1000 {
					_, err := h.Of(context.Background(), "acme", "a")
					assert.NoError(t, err)
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		time.Sleep(20 * time.Second)
		reads := s.reads.Load()
		require.LessOrEqual(t, reads, int64(11))
		require.GreaterOrEqual(t, reads, int64(9))
		time.Sleep(time.Minute)
		require.Equal(t, reads, s.reads.Load())
	})
}

// TestOf_within_two_seconds: another process's halt is known two seconds later, also where reads take long.
func TestOf_within_two_seconds(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"at once": 0, "a read takes a second": time.Second, "four": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h, s := setup(t)
				s.takes = takes
				other := process(t, s.Store)
				stop := make(chan struct{})
				var setAt atomic.Int64
				for i := range 8 {
					go func() {
						time.Sleep(time.Duration(i) * 137 * time.Millisecond)
						for {
							halt, err := h.Of(context.Background(), "acme", "a")
							if at := setAt.Load(); err == nil && halt == nil && at != 0 {
								assert.Less(t, time.Since(time.Unix(0, at)), 2*time.Second)
							}
							select {
							case <-stop:
								return
							case <-time.After(73 * time.Millisecond):
							}
						}
					}()
				}
				time.Sleep(7 * time.Second)
				set(t, other, halts.Params{Operator: true})
				setAt.Store(time.Now().UnixNano())
				time.Sleep(20 * time.Second)
				close(stop)
				time.Sleep(5 * time.Second)
				if halt, err := h.Of(t.Context(), "acme", "a"); takes > halts.Counts {
					require.ErrorIs(t, err, store.ErrUnavailable)
				} else {
					require.NoError(t, err)
					require.Equal(t, "everything", halt.Scope())
				}
			})
		})
	}
}

// TestOf_store_fails: what was read counts a little longer, then nothing is known; nobody asks more often for that.
func TestOf_store_fails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := setup(t)
		require.Empty(t, scopeOf(t, h, "acme", "a"))
		s.fails.Store(true)
		time.Sleep(1500 * time.Millisecond)
		require.Empty(t, scopeOf(t, h, "acme", "a"), "for a moment")
		time.Sleep(400 * time.Millisecond)
		for range 10 {
			_, err := h.Of(t.Context(), "acme", "a")
			require.ErrorIs(t, err, errDown)
		}
		require.EqualValues(t, 2, s.reads.Load())
		s.fails.Store(false)
		time.Sleep(time.Second)
		require.Empty(t, scopeOf(t, h, "acme", "a"))
		_, err := s.Store.Update(t.Context(), session.Key{Tenant: store.Everywhere}, store.TenantItem(journal.TenantRecord{Name: "halts", Value: []byte(`[]`)}, 0))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		_, err = h.Of(t.Context(), "acme", "a")
		require.ErrorIs(t, err, store.ErrCorrupt, "what cannot be understood stops everything too")
	})
}

// TestOf_caller_leaves: who waits for the read of another may leave, and who reads may be stopped.
func TestOf_caller_leaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := setup(t)
		s.takes = time.Second
		ctx, leave := context.WithCancel(t.Context())
		var first, second error
		go func() { _, first = h.Of(ctx, "acme", "a") }()
		synctest.Wait()
		go func() { _, second = h.Of(ctx, "acme", "a") }()
		synctest.Wait()
		leave()
		synctest.Wait()
		require.ErrorIs(t, second, context.Canceled)
		time.Sleep(time.Second)
		synctest.Wait()
		require.NoError(t, first)
		require.EqualValues(t, 1, s.reads.Load())
		require.Empty(t, scopeOf(t, h, "acme", "a"))
	})
}

// Of two halts of one scope that of who runs the program is told: the caller's, lifted, would change nothing.
func TestOf_operators_first(t *testing.T) {
	t.Parallel()
	h, _ := setup(t)
	set(t, h, halts.Params{Tenant: "acme", Who: "ann"})
	set(t, h, halts.Params{Tenant: "acme", Operator: true, Reason: "unpaid"})
	halt, err := h.Of(t.Context(), "acme", "a")
	require.NoError(t, err)
	require.Equal(t, "unpaid", halt.Reason)
}

// What was read by a clock that has been set back since is not known to be fresh: it is read again.
func TestOf_clock_set_back(t *testing.T) {
	t.Parallel()
	other, s := setup(t)
	now := time.Now()
	h := halts.New(halts.Config{Store: s, Now: func() time.Time { return now }})
	require.Empty(t, scopeOf(t, h, "acme", "a"))
	set(t, other, halts.Params{Operator: true})
	now = now.Add(-time.Hour)
	require.Equal(t, "everything", scopeOf(t, h, "acme", "a"))
}

// late is a store whose first read tells after a time what it was.
type late struct {
	store.Store
	takes time.Duration
	reads atomic.Int64
}

func (s *late) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	var read []store.Item
	for item, err := range s.Store.Items(ctx, key, kind, id) {
		if err != nil {
			return func(yield func(store.Item, error) bool) { yield(store.Item{}, err) }
		}
		read = append(read, item)
	}
	if s.reads.Add(1) == 1 {
		time.Sleep(s.takes)
	}
	return func(yield func(store.Item, error) bool) {
		for _, item := range read {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// A read that began before this process set a halt does not make it forget that.
func TestOf_read_before_a_change(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, s := setup(t)
		h := process(t, &late{Store: s.Store, takes: 500 * time.Millisecond})
		read := make(chan error, 1)
		go func() {
			_, err := h.Of(context.Background(), "acme", "a")
			read <- err
		}()
		synctest.Wait()
		set(t, h, halts.Params{Operator: true})
		require.NoError(t, <-read)
		require.Equal(t, "everything", scopeOf(t, h, "acme", "a"))
	})
}
