package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

type ctxT = context.Context

// remembers keeps what Once makes durable.
func remembers(into map[string]string) func(context.Context, string, json.RawMessage) error {
	var mu sync.Mutex
	return func(ctx context.Context, key string, value json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		into[key] = string(value)
		return ctx.Err()
	}
}

func TestOnce_runs_once_and_remembers_before_it_returns(t *testing.T) {
	t.Parallel()
	kept := map[string]string{}
	c := tool.NewCall(tool.CallConfig{Remember: remembers(kept)})
	runs := 0
	for range 3 {
		got, err := tool.Once(t.Context(), c, "pay", func(ctxT) (receipt, error) {
			runs++
			require.Empty(t, kept)
			return receipt{ID: "r1"}, nil
		})
		require.NoError(t, err)
		require.Equal(t, receipt{ID: "r1"}, got)
		require.Equal(t, map[string]string{"pay": `{"id":"r1"}`}, kept)
	}
	require.Equal(t, 1, runs)
}

func TestOnce_of_an_earlier_run(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{Memo: map[string]json.RawMessage{"pay": json.RawMessage(`{"id":"r0"}`), "nothing": json.RawMessage(`null`)}, Remember: remembers(nil)})
	got, err := tool.Once(t.Context(), c, "pay", func(ctxT) (receipt, error) { panic("must not run") })
	require.NoError(t, err)
	require.Equal(t, receipt{ID: "r0"}, got)
	null, err := tool.Once(t.Context(), c, "nothing", func(ctxT) (*receipt, error) { panic("must not run") })
	require.NoError(t, err)
	require.Nil(t, null)
	_, err = tool.Once(t.Context(), c, "pay", func(ctxT) (int, error) { return 0, nil })
	require.ErrorContains(t, err, "what is remembered does not fit int")
}

func TestOnce_reads_the_same_on_the_first_run(t *testing.T) {
	t.Parallel()
	type secretive struct {
		Kept    string `json:"kept"`
		Dropped string `json:"-"`
	}
	c := tool.NewCall(tool.CallConfig{Remember: remembers(map[string]string{})})
	got, err := tool.Once(t.Context(), c, "k", func(ctxT) (secretive, error) { return secretive{"a", "b"}, nil })
	require.NoError(t, err)
	require.Equal(t, secretive{Kept: "a"}, got)
}

func TestOnce_does_not_remember_errors(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	kept := map[string]string{}
	c := tool.NewCall(tool.CallConfig{Remember: remembers(kept)})
	_, err := tool.Once(t.Context(), c, "k", func(ctxT) (int, error) { return 1, boom })
	require.Equal(t, boom, err)
	require.Panics(t, func() {
		_, _ = tool.Once(t.Context(), c, "k", func(ctxT) (int, error) { panic("no") })
	})
	_, err = tool.Once(t.Context(), c, "k", func(ctx ctxT) (tool.Reply, error) {
		return c.Ask(ctx, tool.Question{ID: "q", Text: "?"})
	})
	require.ErrorIs(t, err, tool.ErrWaiting)
	require.Empty(t, kept)
	got, err := tool.Once(t.Context(), c, "k", func(ctxT) (int, error) { return 7, nil })
	require.NoError(t, err, "the key is free again")
	require.Equal(t, 7, got)
}

func TestOnce_refuses(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	must := func(ctxT) (int, error) { panic("must not run") }
	c := tool.NewCall(tool.CallConfig{Remember: func(context.Context, string, json.RawMessage) error { return full }})

	_, err := tool.Once(t.Context(), tool.NewCall(tool.CallConfig{}), "k", must)
	require.ErrorIs(t, err, tool.ErrOnceReadOnly)
	require.ErrorContains(t, err, "declare the tool tool.Idempotent or tool.SideEffect")

	_, err = tool.Once(t.Context(), c, "", must)
	require.ErrorContains(t, err, "key is empty")

	_, err = tool.Once(t.Context(), c, "caf\xe9", must)
	require.ErrorContains(t, err, `key "caf\xe9" is not UTF-8`, "it would be remembered under another, and run again")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tool.Once(ended, c, "k", must)
	require.ErrorIs(t, err, context.Canceled)

	_, err = tool.Once(t.Context(), c, "k", func(ctxT) (int, error) { return 1, nil })
	require.ErrorIs(t, err, full)
	_, err = tool.Once(t.Context(), c, "k", func(ctxT) (func(), error) { return func() {}, nil })
	require.ErrorContains(t, err, "cannot be made JSON")
	_, err = tool.Once(t.Context(), c, "k", func(ctx ctxT) (int, error) { return tool.Once(ctx, c, "k", must) })
	require.ErrorContains(t, err, "from within itself")
	_, err = tool.Once(t.Context(), c, "k", func(ctx ctxT) (int, error) {
		return tool.Once(ctx, c, "other", func(ctxT) (int, error) { return 1, nil })
	})
	require.ErrorIs(t, err, full, "another key may be nested")
}

func TestOnce_remembers_although_the_call_was_cancelled(t *testing.T) {
	t.Parallel()
	kept := map[string]string{}
	c := tool.NewCall(tool.CallConfig{Remember: remembers(kept)})
	ctx, cancel := context.WithCancel(t.Context())
	got, err := tool.Once(ctx, c, "k", func(ctxT) (int, error) {
		cancel()
		return 7, nil
	})
	require.NoError(t, err)
	require.Equal(t, 7, got)
	require.Equal(t, map[string]string{"k": "7"}, kept)
}

func TestOnce_waits_for_the_same_key(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tool.NewCall(tool.CallConfig{Remember: remembers(map[string]string{})})
		release := make(chan struct{})
		runs := 0
		results := make(chan int, 3)
		for range 3 {
			go func() {
				got, err := tool.Once(t.Context(), c, "k", func(ctxT) (int, error) {
					runs++
					<-release
					return runs, nil
				})
				if err != nil {
					got = -1
				}
				results <- got
			}()
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		synctest.Wait()
		go func() {
			_, err := tool.Once(ctx, c, "k", func(ctxT) (int, error) { panic("must not run") })
			gaveUp <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled, "who waits can be cancelled")
		close(release)
		for range 3 {
			require.Equal(t, 1, <-results)
		}
	})
}
