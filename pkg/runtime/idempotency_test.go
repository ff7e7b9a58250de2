package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// writes is a store that remembers what is written in one transaction each.
func writes(s store.Store, made *[][]store.Item) store.Store {
	return &hook{
		Store: s,
		update: func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
			*made = append(*made, items)
			return s.Update(ctx, key, items...)
		},
		commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			*made = append(*made, p.Items)
			return s.Commit(ctx, p)
		},
	}
}

// records returns the records of keys among items.
func records(items []store.Item) (found []journal.Idempotency) {
	for _, item := range items {
		if item.Kind == store.KindIdempotency {
			found = append(found, *item.Idempotency)
		}
	}
	return found
}

// TestRequest_record_is_written_with_what_it_did: a request writes once, and its
// key's record with it; also where there is nothing to do but to remember that.
func TestRequest_record_is_written_with_what_it_did(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, request := range keyed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := in(t, request.status)
			var made [][]store.Item
			require.NoError(t, request.send(w, w.process(func(cfg *runtime.Config) { cfg.Store = writes(w.store, &made) })))
			require.Len(t, made, 1)
			require.Len(t, records(made[0]), 1)
		})
	}
	yesTo := func(w *world, i int) runtime.SubmitParams {
		return runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[i].Wait, yes())}
	}
	for name, c := range map[string]struct {
		status string
		send   func(w *world, p *process, key string) (replayed bool, err error)
		// other is another request of the same verb.
		other func(w *world, p *process, key string) error
	}{
		"an answer given before": {"two", func(w *world, p *process, key string) (bool, error) {
			params := yesTo(w, 0)
			params.IdempotencyKey = key
			out, err := p.Submit(ctx, params)
			return out.Replayed, err
		}, func(w *world, p *process, key string) error {
			params := yesTo(w, 1)
			params.IdempotencyKey = key
			_, err := p.Submit(ctx, params)
			return err
		}},
		"decisions taken before": {"two", func(w *world, p *process, key string) (bool, error) {
			out, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, RejectAll: true, IdempotencyKey: key})
			return out.Replayed, err
		}, func(w *world, p *process, key string) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Reject: []string{"w2-1"}, IdempotencyKey: key})
			return err
		}},
		"going on with what waits": {"interrupted, two", func(w *world, p *process, key string) (bool, error) {
			out, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person, IdempotencyKey: key})
			return out.Replayed, err
		}, func(w *world, p *process, key string) error {
			_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("hey"), IdempotencyKey: key})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			var p *process
			if c.status == "two" {
				w, p = in(t, c.status)
				_, err := c.send(w, p, "")
				require.NoError(t, err)
			} else {
				w, p = interruptedWaiting(t)
				w.interrupt()
			}
			var made [][]store.Item
			keyed := w.process(func(cfg *runtime.Config) { cfg.Store = writes(w.store, &made) })
			replayed, err := c.send(w, keyed, "k")
			require.NoError(t, err)
			require.False(t, replayed)
			require.Len(t, made, 1)
			require.Len(t, records(made[0]), 1)
			replayed, err = c.send(w, p, "k")
			require.NoError(t, err)
			require.True(t, replayed)
			require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(c.other(w, p, "k")))
		})
	}
}

// TestRequest_repeated_sends_again: whoever carried a request out dies before it
// sends, and nothing but the repeated request drives the session on: no time passes.
func TestRequest_repeated_sends_again(t *testing.T) {
	t.Parallel()
	for name, request := range keyed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := in(t, request.status)
			f := &fuse{}
			require.NoError(t, request.send(w, w.fusedProcess(f, true, 1)))
			sends := 0
			for i, op := range f.ops {
				if op == "send" {
					sends = i + 1
				}
			}
			if sends == 0 {
				return // held, or something is open
			}
			require.NoError(t, p.work())
			want := w.kinds()

			w, p = in(t, request.status)
			f = &fuse{at: sends}
			require.Error(t, request.send(w, w.fusedProcess(f, true, 1)))
			require.NoError(t, p.work())
			require.Less(t, len(w.kinds()), len(want), "nobody has sent")
			require.NoError(t, request.send(w, p))
			require.NoError(t, p.work())
			require.Equal(t, want, w.kinds())
		})
	}
}

// TestRequest_key_of_another_tenant: the same caller and key of two tenants are two keys.
func TestRequest_key_of_another_tenant(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "completed")
	other := session.Key{Tenant: "other"}
	for i, params := range []runtime.StartParams{
		{Key: session.Key{Tenant: w.key.Tenant}, Agent: "a", Input: llm.TextParts("say"), Caller: person, IdempotencyKey: "k"},
		{Key: other, Agent: "a", Input: llm.TextParts("input"), Caller: person, IdempotencyKey: "k"},
	} {
		first, err := p.Start(ctx, params)
		require.NoError(t, err, i)
		require.False(t, first.Replayed, i)
		require.Equal(t, params.Key.Tenant, first.Key.Tenant)
		again, err := p.Start(ctx, params)
		require.NoError(t, err, i)
		require.True(t, again.Replayed, i)
		require.Equal(t, first.Key, again.Key)
	}
}

// TestRequest_key_lasts as long as what may repeat it: events stay in a queue of
// failed ones for 14 days. After that the key is free for another request.
func TestRequest_key_lasts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		event bool
		lasts time.Duration
	}{"a caller's": {false, 24 * time.Hour}, "an event's": {true, 14 * 24 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := in(t, "completed")
			params := runtime.StartParams{
				Key: session.Key{Tenant: w.key.Tenant}, Agent: "a", Input: llm.TextParts("say"), Caller: person, IdempotencyKey: "k", Event: c.event,
			}
			began := w.clock.Now()
			first, err := p.Start(ctx, params)
			require.NoError(t, err)
			w.clock.advance(c.lasts - time.Nanosecond)
			again, err := p.Start(ctx, params)
			require.NoError(t, err)
			require.True(t, again.Replayed)
			other := params
			other.Input = llm.TextParts("message")
			_, err = p.Start(ctx, other)
			require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
			w.clock.advance(began.Add(c.lasts).Sub(w.clock.Now()))
			next, err := p.Start(ctx, other)
			require.NoError(t, err, "the key is free again")
			require.False(t, next.Replayed)
			require.NotEqual(t, first.Key, next.Key)
			again, err = p.Start(ctx, other)
			require.NoError(t, err)
			require.True(t, again.Replayed)
			require.Equal(t, next.Key, again.Key)
		})
	}
}

// TestRequest_key_of_events is another one than the same key of a caller.
func TestRequest_key_of_events(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "completed")
	params := runtime.StartParams{Key: session.Key{Tenant: w.key.Tenant}, Agent: "a", Input: llm.TextParts("say"), Caller: person, IdempotencyKey: "k"}
	first, err := p.Start(ctx, params)
	require.NoError(t, err)
	params.Event, params.Input = true, llm.TextParts("message")
	event, err := p.Start(ctx, params)
	require.NoError(t, err)
	require.NotEqual(t, first.Key, event.Key)
}

// A key belongs to one request, whatever is different in another one: else a message that nobody has
// taken would be answered with success.
func TestIdempotency_of_going_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	first := func() runtime.BackParams {
		return runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Message: llm.TextParts("more"), Caller: people, IdempotencyKey: "k"}
	}
	_, err := w.process().GoBack(context.Background(), first())
	require.NoError(t, err)
	w.drain() // as if it had died before it sent
	again, err := w.process().GoBack(context.Background(), first())
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Len(t, w.drain(), 1, "it is sent for again, without a sweep")
	acknowledged := first()
	acknowledged.Acknowledge = "digest"
	again, err = w.process().GoBack(context.Background(), acknowledged)
	require.NoError(t, err)
	require.True(t, again.Replayed, "what was acknowledged is no part of what is asked")
	w.drain()
	for name, change := range map[string]func(*runtime.BackParams){
		"another checkpoint":  func(p *runtime.BackParams) { p.Checkpoint = checkpointAt(w, 1) },
		"another message":     func(p *runtime.BackParams) { p.Message = llm.TextParts("other") },
		"no message":          func(p *runtime.BackParams) { p.Message = nil },
		"a rule":              func(p *runtime.BackParams) { p.Rules.Limits.Steps = 3 },
		"a tool that is left": func(p *runtime.BackParams) { p.Rules.AllowedTools = []string{"line"} },
	} {
		p := first()
		change(&p)
		_, err := w.process().GoBack(context.Background(), p)
		require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err), name)
	}
	fork := runtime.ForkParams{Origin: w.key, ID: "copy", Message: llm.TextParts("more"), Caller: people, IdempotencyKey: "f"}
	_, err = w.process().Fork(context.Background(), fork)
	require.NoError(t, err)
	for name, change := range map[string]func(*runtime.ForkParams){
		"another id":      func(p *runtime.ForkParams) { p.ID = "other" },
		"another message": func(p *runtime.ForkParams) { p.Message = llm.TextParts("other") },
		"a rule":          func(p *runtime.ForkParams) { p.Rules.Limits.Steps = 3 },
	} {
		p := fork
		change(&p)
		_, err := w.process().Fork(context.Background(), p)
		require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err), name)
	}
}
