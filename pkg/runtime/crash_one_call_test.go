package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var errMoment = fmt.Errorf("%w: for a moment", store.ErrUnavailable)

// flaky does not answer its n-th call, reads included; nothing has happened then.
type flaky struct {
	store.Store
	queue.Queue

	mu    sync.Mutex
	n, at int
	op    string
}

func (s *flaky) fail(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.n != s.at {
		return nil
	}
	s.op = op
	return errMoment
}

func (s *flaky) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if err := s.fail("claim " + string(p.Mode)); err != nil {
		return store.Item{}, err
	}
	return s.Store.Claim(ctx, p)
}

func (s *flaky) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if err := s.fail("commit " + string(p.Entry.Kind)); err != nil {
		return store.Committed{}, err
	}
	p.Wakes = nil
	out, err := s.Store.Commit(ctx, p)
	out.Enqueued = false
	return out, err
}

func (s *flaky) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if err := s.fail(updating(items)); err != nil {
		return nil, err
	}
	return s.Store.Update(ctx, key, items...)
}

func (s *flaky) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	if err := s.fail("find"); err != nil {
		return store.Page{}, err
	}
	return s.Store.Find(ctx, p)
}

func (s *flaky) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	if err := s.fail("entries"); err != nil {
		return func(yield func(journal.Entry, error) bool) { yield(journal.Entry{}, err) }
	}
	return s.Store.Entries(ctx, key, after)
}

func (s *flaky) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if err := s.fail("items " + string(kind)); err != nil {
		return func(yield func(store.Item, error) bool) { yield(store.Item{}, err) }
	}
	return s.Store.Items(ctx, key, kind, id)
}

func (s *flaky) Send(ctx context.Context, wakes ...journal.Wake) error {
	if err := s.fail("send"); err != nil {
		return err
	}
	return s.Queue.Send(ctx, wakes...)
}

// settleThrough is settle for a store that fails once: its errors are passing ones.
func settleThrough(t *testing.T, p *process) {
	t.Helper()
	for range 3 {
		err := p.settle()
		if err == nil {
			return
		}
		require.ErrorIs(t, err, store.ErrUnavailable)
	}
	t.Fatal("the store failed once, and more than one thing came of it")
}

// TestCrash_of_one_call of the store or the queue, and of nothing else: the same end.
func TestCrash_of_one_call(t *testing.T) {
	t.Parallel()
	more := append(scenarios(), scenario{
		name: "message to an interrupted session", lines: script{"go": {calls("line", `{"text":"1"}`), says("bye")}, "message": {says("heard")}},
		acts: []act{func(w *world, p *process) error {
			if len(w.items(store.KindHead)) == 0 {
				if err := begin("go")(w, p); err != nil {
					return err
				}
			}
			if w.head().Head.Signal == nil && w.head().Head.Status == session.StatusRunning {
				w.signal(journal.SignalInterrupt)
			}
			return nil
		}, func(w *world, p *process) error {
			if w.session().Status != session.StatusInterrupted {
				return nil
			}
			_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("message"), Caller: person})
			return err
		}},
	}, scenario{
		name: "continue", lines: script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}},
		acts: []act{begin("go"), func(w *world, p *process) error {
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, HoldResume: true, Caller: person, Answer: fill(w.open(session.WaitApproval).Wait, yes())})
			return err
		}, func(w *world, p *process) error {
			if w.session().Status != session.StatusSuspended {
				return nil
			}
			_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person})
			return err
		}},
	})
	for _, sc := range more {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, sc.lines, func(a *agent.Agent) { a.Policy = sc.policy }))
			play := func(w *world, at int) (*flaky, outcome) {
				s := &flaky{Store: w.store, Queue: w.queue, at: at}
				p := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.Queue = s, s })
				p.queue = w.queue
				for _, do := range sc.acts {
					if err := do(w, p); err != nil {
						require.ErrorIs(t, err, store.ErrUnavailable, "%s", s.op)
						require.NoError(t, do(w, p), s.op)
					}
					settleThrough(t, p)
					w.cut = sc.cut != nil && s.op == "update tool"
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
				s, got := play(w, at)
				unknown := map[string]bool{}
				if s.op == "update tool" { // its mark may be left: nobody can say
					for call := range got.statuses {
						unknown[call] = true
					}
				}
				want := want
				if w.cut && len(w.waits()) == 0 {
					want.kinds = sc.cut
				}
				compare(t, want, got, unknown, fmt.Sprintf("call %d, %s, was not answered", at, s.op))
				w.checkAtRest()
			}
		})
	}
}
