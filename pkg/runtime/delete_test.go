package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

func (w *world) delete(p *process) (runtime.Deleted, error) {
	return p.Delete(context.Background(), runtime.DeleteParams{Key: w.key, Caller: people})
}

func (h *storeHook) Delete(ctx context.Context, key session.Key) error {
	h.pass(storeCall{removes: true})
	return h.Store.Delete(ctx, key)
}

func (s *fusedStore) Delete(ctx context.Context, key session.Key) error {
	_, err := fused(s.fuse, "delete", func() (int, error) { return 0, s.Store.Delete(ctx, key) })
	return err
}

func (s *gatedStore) Delete(ctx context.Context, key session.Key) error {
	_, err := gated(s.gate, "delete", func() (int, error) { return 0, s.Store.Delete(ctx, key) })
	return err
}

// kept leaves what was deleted where it is, as a process does that dies before it removes it.
type kept struct{ store.Store }

var errKept = errors.New("not removed")

func (kept) Delete(context.Context, session.Key) error { return errKept }

// deletePlaces are where a session can be deleted: everywhere.
func deletePlaces() map[string]func(t *testing.T, w *world) {
	places := map[string]func(t *testing.T, w *world){}
	for name, place := range stopPlaces {
		places[name] = place
	}
	for name, place := range backPlaces {
		places[name] = place
	}
	return places
}

// checkGone holds that a session is there for nobody and that nothing of it is left but the tombstone.
func (w *world) checkGone(p *process) {
	w.t.Helper()
	w.checkNotFound(p)
	head := w.head().Head
	require.True(w.t, head.Deleted)
	require.Empty(w.t, head.Title)
	for e, err := range w.store.Entries(context.Background(), w.key, 0) {
		w.t.Fatalf("entry %d (%v)", e.Seq, err)
	}
	for _, kind := range []store.ItemKind{store.KindWait, store.KindRun, store.KindTool, store.KindMail, store.KindAudit} {
		require.Empty(w.t, w.items(kind), kind)
	}
}

// checkNotFound holds that every verb and every read says that there is no such session.
func (w *world) checkNotFound(p *process) {
	t, ctx, key := w.t, context.Background(), w.key
	t.Helper()
	id := session.Checkpoint{Session: key.ID, Seq: 1, Token: "x"}.String()
	for name, ask := range map[string]func() error{
		"delete":    func() error { _, err := w.delete(p); return err },
		"interrupt": func() error { _, err := w.stop(p, runtime.SignalInterrupt); return err },
		"cancel":    func() error { _, err := w.stop(p, runtime.SignalCancel); return err },
		"abort":     func() error { _, err := w.stop(p, runtime.SignalAbort); return err },
		"continue":  func() error { _, err := w.goOn(p); return err },
		"message": func() error {
			_, err := p.Resume(ctx, runtime.ResumeParams{Key: key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("more"), Caller: person})
			return err
		},
		"confirm": func() error {
			_, err := p.Resume(ctx, runtime.ResumeParams{Key: key, Mode: runtime.ResumeWithConfirmation, Confirmation: runtime.Confirmation{Wait: "w4-1", Approved: true}, Caller: person})
			return err
		},
		"submit": func() error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: key, Caller: person, Answer: session.Answer{Wait: "w4-1", Kind: session.AnswerApproval, Approved: new(true)}})
			return err
		},
		"decide": func() error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: key, RejectAll: true, Caller: person})
			return err
		},
		"back": func() error {
			_, err := p.GoBack(ctx, runtime.BackParams{Key: key, Checkpoint: id, Caller: people})
			return err
		},
		"retry": func() error { _, err := p.Retry(ctx, runtime.BackParams{Key: key, Caller: people}); return err },
		"fork": func() error {
			_, err := p.Fork(ctx, runtime.ForkParams{Origin: key, ID: "other", Caller: people})
			return err
		},
		"checkpoint": func() error { _, err := p.Checkpoint(ctx, key, id, ""); return err },
		"waits": func() error {
			records, err := p.Waits(ctx, key)
			if err == nil && len(records) == 0 {
				_, err = p.Head(ctx, key)
			}
			return err
		},
		"view":    func() error { _, err := p.View(ctx, key); return err },
		"head":    func() error { _, err := p.Head(ctx, key); return err },
		"session": func() error { _, err := p.Session(ctx, key); return err },
		"journal": func() error { _, err := p.Journal(ctx, key); return err },
		"entries": func() error { _, err := p.Entries(ctx, runtime.EntriesParams{Key: key}); return err },
		"an entry": func() error {
			_, err := p.Entries(ctx, runtime.EntriesParams{Key: key, Limit: 1})
			return err
		},
		"messages": func() error { _, err := p.Messages(ctx, key); return err },
		"runs":     func() error { _, err := p.Runs(ctx, key); return err },
		"forks":    func() error { _, err := p.Forks(ctx, key); return err },
		"await":    func() error { _, err := p.AwaitRest(ctx, key, 0, 0); return err },
	} {
		require.Equal(t, runtime.CodeSessionNotFound, codeOf(ask()), name)
	}
	_, err := p.Start(ctx, runtime.StartParams{Key: key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
	require.Equal(t, runtime.CodeNotResumable, codeOf(err))
	require.ErrorContains(t, err, "its id is never used again")
	page, err := p.Sessions(ctx, runtime.SessionsParams{Tenant: key.Tenant})
	require.NoError(t, err)
	for _, head := range page.Heads {
		require.NotEqual(t, key, head.Key)
	}
	inbox, err := p.Inbox(ctx, runtime.InboxParams{Tenant: key.Tenant})
	require.NoError(t, err)
	for _, item := range inbox.Items {
		require.NotEqual(t, key, item.Key)
	}
}

// Whatever a session does, it is deleted, and is gone for every verb and every read, in the process
// that deletes it and in one that knows it.
func TestDelete(t *testing.T) {
	t.Parallel()
	for name, place := range deletePlaces() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			place(t, w)
			knows := w.process()
			_, err := knows.View(context.Background(), w.key)
			require.NoError(t, err)
			status, effects := w.session().Status, made.all()
			p := w.process()
			out, err := w.delete(p)
			require.NoError(t, err)
			require.Equal(t, runtime.Deleted{Status: status, Task: 1}, out)
			for range 2 {
				w.checkGone(p)
				w.checkGone(knows)
				w.clock.advance(time.Hour)
				require.NoError(t, w.process().settle())
			}
			require.Equal(t, effects, made.all(), "nothing runs any more")
		})
	}
}

// From its entry on a session is gone, though all it has is still there; the sweep removes it, and so
// does a request that comes before.
func TestDelete_before_it_is_removed(t *testing.T) {
	t.Parallel()
	for name, place := range deletePlaces() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			place(t, w)
			knows := w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} })
			_, err := knows.View(context.Background(), w.key)
			require.NoError(t, err)
			effects := made.all()
			dies := w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} })
			_, err = w.delete(dies)
			require.ErrorIs(t, err, errKept)
			require.True(t, w.head().Head.Removing)
			for _, wait := range w.items(store.KindWait) {
				require.NotEqual(t, session.WaitOpen, wait.Wait.State)
			}
			_, err = w.delete(w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} }))
			require.ErrorIs(t, err, errKept)
			require.NoError(t, w.process().work(), "what was sent for it")
			head := w.head()
			for _, p := range []*process{dies, knows} {
				_, err = p.View(context.Background(), w.key)
				require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
				_, err = p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("go"), Caller: person})
				require.Equal(t, runtime.CodeNotResumable, codeOf(err))
				_, err = p.Entries(context.Background(), runtime.EntriesParams{Key: w.key, Limit: 1})
				require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
				_, err = p.Entries(context.Background(), runtime.EntriesParams{Key: w.key})
				require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
				_, err = p.Journal(context.Background(), w.key)
				require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
				page, err := p.Sessions(context.Background(), runtime.SessionsParams{Tenant: w.key.Tenant})
				require.NoError(t, err)
				require.Empty(t, page.Heads)
			}
			require.Equal(t, head.Rev, w.head().Rev, "nobody has written")
			swept, err := w.process().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, runtime.SweepResult{}, swept, "who deletes it has a moment")
			w.clock.advance(11 * time.Second)
			swept, err = w.process().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, runtime.SweepResult{Removed: 1}, swept)
			w.checkGone(w.process())
			swept, err = w.process().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, runtime.SweepResult{}, swept)
			require.Equal(t, effects, made.all())
		})
	}
}

// The same request gets the first answer and removes again; without its key there is no such session.
func TestDelete_repeated(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	ctx, params := context.Background(), runtime.DeleteParams{Key: w.key, Caller: people, IdempotencyKey: "k"}
	_, err := w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} }).Delete(ctx, params)
	require.ErrorIs(t, err, errKept)
	for range 2 {
		out, err := w.process().Delete(ctx, params)
		require.NoError(t, err)
		require.Equal(t, runtime.Deleted{Status: session.StatusSuspended, Task: 1, Replayed: true}, out)
		w.checkGone(w.process())
	}
	params.Key.ID = "another"
	_, err = w.process().Delete(ctx, params)
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
	params.IdempotencyKey = "k2"
	_, err = w.process().Delete(ctx, params)
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err), "there never was one")
	params.Key.ID = "no id!"
	_, err = w.process().Delete(ctx, params)
	require.Equal(t, runtime.CodeInvalidID, codeOf(err))
}

// Where a read fails nothing is done, and the caller is told so.
func TestDelete_failing_reads(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	before := len(w.journal())
	for at := 0; ; at++ {
		failing := &failingRead{at: at}
		p := w.process(func(cfg *runtime.Config) { failing.Store = cfg.Store; cfg.Store = failing })
		_, err := p.Delete(context.Background(), runtime.DeleteParams{Key: w.key, Caller: people, IdempotencyKey: "k"})
		if failing.at >= 0 {
			require.NoError(t, err)
			require.Greater(t, at, 4)
			w.checkGone(w.process())
			return
		}
		require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err), "read %d: %v", at, err)
		require.Len(t, w.journal(), before, "read %d", at)
	}
}

// A deletion whose calls do not fit into one transaction closes the others before.
func TestDelete_many_calls(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var asked []string
	for range 120 {
		asked = append(asked, "deploy", `{"text":"x"}`)
	}
	w := newWorld(t, made, helper(made, script{"go": {calls(asked...), says("bye")}}))
	w.run(w.process(), "go")
	require.Len(t, w.session().Calls, 120)
	_, err := w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} }).Delete(context.Background(), runtime.DeleteParams{Key: w.key, Caller: people})
	require.ErrorIs(t, err, errKept)
	ledgers := w.items(store.KindTool)
	require.Len(t, ledgers, 120)
	for _, ledger := range ledgers {
		require.Equal(t, journal.ToolClosed, ledger.Tool.State)
	}
	_, err = w.delete(w.process())
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	w.checkGone(w.process())
}

// A session that has gone back is deleted as any other, twice at the same moment too.
func TestDelete_after_going_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	_, err := w.goBack(w.process())
	require.NoError(t, err)
	cross := &storeHook{when: readOfEntries, happens: func() {
		_, err := w.delete(w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} }))
		require.ErrorIs(t, err, errKept)
	}}
	_, err = w.delete(w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross }))
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	w.checkGone(w.process())
}

// A store that removes a session bit by bit leaves a tombstone that is due: when whoever deleted it dies
// in between, the sweep goes on with that.
func TestDelete_is_finished_by_the_sweep(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	_, err := w.delete(w.process(func(cfg *runtime.Config) { cfg.Store = kept{cfg.Store} }))
	require.ErrorIs(t, err, errKept)
	head := w.head()
	tomb := *head.Head
	tomb.Deleted, tomb.Removing, tomb.Due = true, false, new(w.clock.Now().Add(time.Minute))
	w.update(store.HeadItem(tomb, head.Rev))
	require.NotEmpty(t, w.items(store.KindRun))
	w.clock.advance(2 * time.Minute)
	swept, err := w.process().Sweep(context.Background())
	require.NoError(t, err)
	require.Equal(t, runtime.SweepResult{Removed: 1}, swept)
	w.checkGone(w.process())
}
