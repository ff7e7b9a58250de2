package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// begun starts a session with tags and works until it rests.
func (w *world) begun(p *process, who, input string, tags ...string) error {
	w.t.Helper()
	_, err := p.Start(context.Background(), runtime.StartParams{
		Key: w.key, Agent: "a", Input: llm.TextParts(input), Caller: runtime.Caller{Who: who, From: "test"}, Tags: tags,
	})
	if err == nil {
		err = p.work()
	}
	return err
}

func tagged(t *testing.T) *world {
	t.Helper()
	made := newEffects()
	return newWorld(t, made, helper(made, script{"approve": {calls("deploy", `{"text":"1"}`), says("bye")}, "say": {says("bye")}}))
}

func TestTags(t *testing.T) {
	t.Parallel()
	w := tagged(t)
	p := w.process()
	require.Equal(t, runtime.CodeInvalidInput, codeOf(w.begun(p, "ana", "say", "a", "a")))
	require.Empty(t, w.items("head"))
	require.NoError(t, w.begun(p, "ana", "say", "a", "b"))
	require.Equal(t, []string{"a", "b"}, w.journal()[0].Tags)
	require.Equal(t, []string{"a", "b"}, w.head().Head.Tags)
	require.Equal(t, "ana", w.head().Head.StartedBy)
	// A next turn by somebody else: who started it stays, tags stay if none are given.
	require.NoError(t, w.begun(p, "bob", "say"))
	require.Equal(t, []string{"a", "b"}, w.head().Head.Tags)
	require.NoError(t, w.begun(p, "bob", "say", "c"))
	require.Equal(t, []string{"c"}, w.head().Head.Tags)
	require.Equal(t, "ana", w.head().Head.StartedBy)
}

// TestTags_are_part_of_the_request: the same key with other tags is another request.
func TestTags_are_part_of_the_request(t *testing.T) {
	t.Parallel()
	w := tagged(t)
	p := w.process()
	start := func(tags ...string) error {
		_, err := p.Start(context.Background(), runtime.StartParams{
			Key: w.key, Agent: "a", Input: llm.TextParts("say"), Caller: person, Tags: tags, IdempotencyKey: "k",
		})
		return err
	}
	require.NoError(t, start("a"))
	require.NoError(t, start("a"))
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(start("b")))
}

// TestTags_of_a_fork: a fork has tags of its own; the same key with others is another request.
func TestTags_of_a_fork(t *testing.T) {
	t.Parallel()
	w := tagged(t)
	p := w.process()
	require.NoError(t, w.begun(p, "ana", "say", "a"))
	fork := func(id, key string, tags ...string) (runtime.Forked, error) {
		return p.Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: id, Tags: tags, Caller: person, IdempotencyKey: key})
	}
	tags := func(key session.Key) []string {
		head, err := p.Head(context.Background(), key)
		require.NoError(t, err)
		return head.Tags
	}
	forked, err := fork("x", "k", "b", "c")
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c"}, tags(forked.Key))
	again, err := fork("x", "k", "b", "c")
	require.NoError(t, err)
	require.True(t, again.Replayed)
	_, err = fork("x", "k", "b")
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
	_, err = fork("y", "", "b", "b")
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	plain, err := fork("y", "")
	require.NoError(t, err)
	require.Empty(t, tags(plain.Key))
}

// A fork without tags is the same request as it was before forks had any.
func TestTags_fork_repeated_by_a_newer_program(t *testing.T) {
	t.Parallel()
	w := tagged(t)
	require.NoError(t, w.begun(w.process(), "ana", "say"))
	var digest string
	p := w.process(func(cfg *runtime.Config) {
		cfg.Store = &hook{Store: w.store, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			for _, item := range p.Items {
				if item.Idempotency != nil {
					digest = item.Idempotency.Digest
				}
			}
			return w.store.Commit(ctx, p)
		}}
	})
	_, err := p.Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "x", Caller: person, IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Equal(t, journal.Digest([]byte(`["s1","","x",null,{}]`)), digest)
}
