package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// freezer stops its process once, before it reads waits or before it sends, after it
// has written something; something happens meanwhile.
type freezer struct {
	at      string
	happens func()
	armed   bool
}

func (f *freezer) pass(op string) {
	if happens := f.happens; f.armed && op == f.at && happens != nil {
		f.happens = nil
		happens()
	}
}

// on makes a process one that the freezer stops.
func (f *freezer) on(cfg *runtime.Config) {
	cfg.Store, cfg.Queue = &freezingStore{cfg.Store, f}, &freezingQueue{cfg.Queue, f}
}

type freezingStore struct {
	store.Store
	f *freezer
}

func (s *freezingStore) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if kind == store.KindWait && strings.HasSuffix(id, "*") { // those of a suspension
		s.f.pass("waits")
	}
	return s.Store.Items(ctx, key, kind, id)
}

func (s *freezingStore) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	out, err := s.Store.Update(ctx, key, items...)
	s.f.armed = true
	return out, err
}

type freezingQueue struct {
	queue.Queue
	f *freezer
}

func (q *freezingQueue) Send(ctx context.Context, wakes ...journal.Wake) error {
	q.f.pass("send")
	return q.Queue.Send(ctx, wakes...)
}

// Whoever drives on is frozen after it has read HEAD. Somebody else goes on, the
// session asks anew, and that is answered with an answer that is only to be stored.
// What was read of the first suspension says nothing about the second one.
func TestStale_nobody_drives_on_what_a_later_answer_only_stores(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	drives := map[string]func(w *world, p *process) error{
		"answerer": func(w *world, p *process) error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
			return err
		},
		"keyed answerer": func(w *world, p *process) error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, IdempotencyKey: "k", Answer: fill(w.waits()[0].Wait, yes())})
			return err
		},
		"sweep": func(w *world, p *process) error {
			died := w.fusedProcess(&fuse{at: 1, after: true}, false, 1) // answers, and dies before it sends
			_, err := died.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
			require.Error(w.t, err)
			w.clock.advance(time.Minute)
			_, err = p.Sweep(ctx)
			return err
		},
	}
	for name, drive := range drives {
		for _, at := range []string{"waits", "send"} {
			t.Run(fmt.Sprintf("%s/%s", name, at), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}}))
				w.run(w.process(), "go")
				f := &freezer{at: at, armed: name == "sweep"}
				met := false
				f.happens = func() {
					met = true
					other := w.process()
					_, err := other.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())}) // the same again: sends
					require.NoError(t, err)
					require.NoError(t, other.work())
					require.Len(t, w.waits(), 2)
					out, err := other.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: true, Answer: fill(w.waits()[1].Wait, yes())})
					require.NoError(t, err)
					require.Equal(t, runtime.ContinuationStored, out.Continuation)
				}
				require.NoError(t, drive(w, w.process(f.on)))
				require.True(t, met)
				require.NoError(t, w.process().settle())
				require.Equal(t, session.StatusSuspended, w.session().Status, "nobody said go on: %v %v", w.kinds(), made.all())
				require.Equal(t, 1, made.count("deploy 1"))
				require.Zero(t, made.count("deploy 2"))
				// Who says so goes on with it.
				_, err := w.goOn(w.process())
				require.NoError(t, err)
				require.NoError(t, w.process().settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
			})
		}
	}
}

// A continue that loses to another one looks again, and finds the session interrupted
// anew by somebody who means that it rests.
func TestStale_continue_leaves_no_later_interruption(t *testing.T) {
	t.Parallel()
	w, p := interruptedWaiting(t)
	w.interrupt()
	s := &storeHook{Store: w.store, when: anyCommit}
	slow := w.process(func(cfg *runtime.Config) { cfg.Store = s })
	s.happens = func() {
		_, err := w.goOn(p)
		require.NoError(t, err)
		w.interrupt()
	}
	_, err := w.goOn(slow)
	require.Equal(t, runtime.CodeAlreadyRunning, codeOf(err), "%v", w.kinds())
	require.Equal(t, session.StatusInterrupted, w.session().Status)
	_, err = w.goOn(slow)
	require.NoError(t, err, "asked anew, it is about what is there now")
	require.Equal(t, session.StatusSuspended, w.session().Status)
}
