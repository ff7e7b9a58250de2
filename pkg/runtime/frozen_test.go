package runtime_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// gate stops a worker at its n-th write, before or after it, like a sandbox that
// is frozen, until it is thawed.
type gate struct {
	at     int
	after  bool
	frozen chan struct{}
	thawed chan struct{}

	mu   sync.Mutex
	n    int
	ops  []string
	once sync.Once
	busy atomic.Int32 // writes under way
}

func newGate(at int, after bool) *gate {
	return &gate{at: at, after: after, frozen: make(chan struct{}), thawed: make(chan struct{})}
}

func (g *gate) pass(op string, before bool) {
	g.mu.Lock()
	if !before {
		g.busy.Add(-1)
	} else {
		g.busy.Add(1)
		g.n++
		g.ops = append(g.ops, op)
	}
	stop := g.n == g.at && before != g.after
	g.mu.Unlock()
	if stop {
		g.once.Do(func() { close(g.frozen) })
	}
	select {
	case <-g.frozen: // the whole sandbox stands still
		if before {
			g.busy.Add(-1)
			defer g.busy.Add(1)
		}
		<-g.thawed
	default:
	}
}

func (g *gate) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.ops)
}

func gated[T any](g *gate, op string, write func() (T, error)) (T, error) {
	g.pass(op, true)
	out, err := write()
	g.pass(op, false)
	return out, err
}

type gatedStore struct {
	store.Store
	gate     *gate
	detached bool
}

func (s *gatedStore) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	return gated(s.gate, "claim "+string(p.Mode), func() (store.Item, error) { return s.Store.Claim(ctx, p) })
}

func (s *gatedStore) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if s.detached {
		p.Wakes, p.Claim = nil, nil
	}
	return gated(s.gate, "commit "+string(p.Entry.Kind), func() (store.Committed, error) {
		out, err := s.Store.Commit(ctx, p)
		out.Enqueued = out.Enqueued && !s.detached
		return out, err
	})
}

func (s *gatedStore) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	return gated(s.gate, updating(items), func() ([]store.Item, error) { return s.Store.Update(ctx, key, items...) })
}

type gatedQueue struct {
	queue.Queue
	gate *gate
}

func (q *gatedQueue) Send(ctx context.Context, wakes ...journal.Wake) error {
	_, err := gated(q.gate, "send", func() (int, error) { return 0, q.Queue.Send(ctx, wakes...) })
	return err
}

func (q *gatedQueue) Acknowledge(ctx context.Context, d ...queue.Delivery) error {
	_, err := gated(q.gate, "acknowledge", func() (int, error) { return 0, q.Queue.Acknowledge(ctx, d...) })
	return err
}

// TestFrozen_everywhere stops a worker at each of its writes for longer than its
// lease. Another one takes the session to its end; then the first goes on and
// must find that it lost.
func TestFrozen_everywhere(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, detached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/detached=%v", sc.name, detached), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, sc.lines, func(a *agent.Agent) { a.Policy = sc.policy }))
				want, g := w.freeze(t, sc, newGate(0, false), detached)
				runs := sampler(t)
				for n := 1; n <= g.n; n++ {
					for _, after := range []bool{false, true} {
						if !runs() {
							continue
						}
						w = w.another()
						got, g := w.freeze(t, sc, newGate(n, after), detached)
						label := fmt.Sprintf("frozen at %d (after %v) of %v", n, after, g.list())
						want := want
						if w.cut && len(w.waits()) == 0 {
							want.kinds = sc.cut
						}
						compare(t, want.outcome, got.outcome, got.unknown, label)
						w.checkAtRest()
					}
				}
			})
		}
	}
}

type frozenOutcome struct {
	outcome
	unknown map[string]bool
}

func (w *world) freeze(t *testing.T, sc scenario, g *gate, detached bool) (frozenOutcome, *gate) {
	t.Helper()
	first := w.process(func(cfg *runtime.Config) {
		cfg.Store = &gatedStore{Store: w.store, gate: g, detached: detached}
		cfg.Queue = &gatedQueue{Queue: w.queue, gate: g}
		cfg.WatchEvery = time.Hour // the watcher of a frozen sandbox is frozen too
	})
	p := first
	unknown := map[string]bool{}
	for _, do := range sc.acts {
		done := make(chan error, 1)
		go func() {
			err := do(w, p)
			if err == nil {
				err = p.settle()
			}
			done <- err
		}()
		frozen := g.frozen
		if p != first {
			frozen = nil
		}
		select {
		case err := <-done:
			require.NoError(t, err, g.list())
			continue
		case <-frozen:
		}
		for g.busy.Load() > 0 {
			goruntime.Gosched()
		}
		for _, item := range w.items(store.KindTool) {
			if item.Tool.State == journal.ToolStarted {
				unknown[item.Tool.Call] = true
			}
		}
		w.cut = sc.cut != nil && len(unknown) > 0
		second := w.process(func(cfg *runtime.Config) { cfg.Store = &fusedStore{Store: w.store, fuse: &fuse{}, detached: detached} })
		require.NoError(t, second.settle(), g.list())
		require.NoError(t, do(w, second), g.list())
		require.NoError(t, second.settle(), g.list())
		before := len(w.journal())
		close(g.thawed)
		<-done // whatever it was told: its work was thrown away
		require.Len(t, w.journal(), before, "the frozen worker wrote after it had lost: %v", g.list())
		p = second
	}
	return frozenOutcome{w.outcome(), unknown}, g
}

// frozenTool is a side effect that stops in the middle until it is thawed.
func frozenTool(made *effects, policy session.UnknownPolicy, frozen, thawed chan struct{}) tool.Tool {
	var once sync.Once
	spec := tool.Spec[textIn]{Name: "slow", Timeout: time.Minute, OnUnknown: policy}
	if policy == session.UnknownProbe {
		spec.Probe = func(context.Context, *tool.Call, textIn) (any, bool, error) {
			return "found", made.count("slow") > 0, nil
		}
	}
	return tool.Define(spec, func(context.Context, *tool.Call, textIn) (string, error) {
		first := false
		once.Do(func() { first = true })
		if first {
			close(frozen)
			<-thawed
		}
		made.add("slow")
		return "done slowly", nil
	})
}

// TestFrozen_in_a_tool: what another worker makes of a call that was started
// and never finished, by the tool's policy.
func TestFrozen_in_a_tool(t *testing.T) {
	t.Parallel()
	for policy, want := range map[session.UnknownPolicy]struct {
		status llm.ResultStatus
		times  int
		waits  time.Duration
	}{
		session.UnknownTell:  {llm.ResultUnknown, 1, 20 * time.Second},
		session.UnknownAsk:   {llm.ResultSuccess, 1, 20 * time.Second}, // whatever the person says, who did not see it
		session.UnknownProbe: {llm.ResultSuccess, 2, time.Minute + 20*time.Second},
		session.UnknownRetry: {llm.ResultSuccess, 2, time.Minute + 20*time.Second},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			made, frozen, thawed := newEffects(), make(chan struct{}), make(chan struct{})
			w := newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"x"}`)}}, func(a *agent.Agent) {
				a.Tools = append(a.Tools, frozenTool(made, policy, frozen, thawed))
			}))
			first := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
			w.start(first, "go")
			done := make(chan error, 1)
			go func() { done <- first.work() }()
			<-frozen
			began := w.clock.Now()
			second := w.process()
			for len(w.journal()) == 2 {
				w.clock.advance(time.Second)
				_, err := second.Sweep(context.Background())
				require.NoError(t, err)
				require.NoError(t, second.work())
			}
			require.GreaterOrEqual(t, w.clock.Now().Sub(began), want.waits, "overtaking waits for the lease, which outlives the timeout where the tool may run again")
			require.NoError(t, second.settle())
			close(thawed)
			require.NoError(t, <-done)
			if policy == session.UnknownAsk {
				require.Equal(t, session.StatusSuspended, w.session().Status)
				_, err := w.submit(second, session.WaitUnknown, session.Answer{Verdict: session.VerdictNotHappened})
				require.NoError(t, err)
			}
			require.NoError(t, second.settle())
			require.Equal(t, want.status, results(w.session())["c2-1"].Status)
			require.Equal(t, want.times, made.count("slow"))
			require.Equal(t, session.StatusCompleted, w.session().Status)
			w.checkAtRest()
		})
	}
}

// TestFrozen_in_the_model: a reply that comes after the lease has lapsed is thrown away.
func TestFrozen_in_the_model(t *testing.T) {
	t.Parallel()
	frozen, thawed := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	slow := func(context.Context, agent.View) (agent.Reply, error) {
		if asked.Add(1) > 1 {
			return agent.Reply{Text: "second"}, nil
		}
		close(frozen)
		<-thawed
		return agent.Reply{Text: "first"}, nil
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), slow}}))
	first := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
	w.start(first, "go")
	done := make(chan error, 1)
	go func() { done <- first.work() }()
	<-frozen
	require.NoError(t, w.process().settle())
	close(thawed)
	require.NoError(t, <-done)
	require.Equal(t, "second", w.session().Messages[3].Text())
	require.Equal(t, int32(2), asked.Load())
	w.checkAtRest()
}
