package tool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func stateOf(t *testing.T, values map[string]string) *session.State {
	t.Helper()
	s := new(session.State)
	for key, value := range values {
		require.NoError(t, s.Apply(session.StateOp{Op: session.StateReplace, Key: key, Value: json.RawMessage(value)}))
	}
	return s
}

func TestCall_says_who_it_is(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := tool.NewCall(tool.CallConfig{
		Session: session.Key{Tenant: "default", ID: "s"}, Task: 2, ID: "c3-1", Name: "refund", IdempotencyKey: "key",
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.Equal(t, "default/s", c.Session().String())
	require.Equal(t, int64(2), c.Task())
	require.Equal(t, "c3-1", c.ID())
	require.Equal(t, "refund", c.Name())
	require.Equal(t, "key", c.IdempotencyKey())
	c.Log().Info("hello")
	require.Contains(t, log.String(), "hello")
	require.Contains(t, log.String(), "session=default/s call=c3-1 tool=refund")
	tool.NewCall(tool.CallConfig{}).Log().Info("dropped")
}

func TestState_sees_the_base_and_the_calls_own_changes(t *testing.T) {
	t.Parallel()
	base := stateOf(t, map[string]string{"notes": `["a"]`, "count": `1`})
	c := tool.NewCall(tool.CallConfig{State: base})

	count, ok, err := tool.State[int](c, "count")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 1, count)

	none, ok, err := tool.State[[]string](c, "missing")
	require.NoError(t, err)
	require.False(t, ok)
	require.Nil(t, none)

	require.NoError(t, c.Append("notes", "b"))
	require.NoError(t, c.Replace("count", 2))
	require.NoError(t, c.Append("count", 3)) // a value that is no list becomes a list of both
	require.NoError(t, c.Append("fresh", map[string]int{"x": 1}))

	notes, ok, err := tool.State[[]string](c, "notes")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []string{"a", "b"}, notes)
	counts, _, err := tool.State[[]int](c, "count")
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, counts)
	fresh, _, err := tool.State[[]map[string]int](c, "fresh")
	require.NoError(t, err)
	require.Equal(t, []map[string]int{{"x": 1}}, fresh)

	_, ok, err = tool.State[string](c, "count")
	require.ErrorContains(t, err, `state "count"`)
	require.True(t, ok)

	raw, _ := base.Get("notes")
	require.JSONEq(t, `["a"]`, string(raw), "the base is as it was")
	require.Equal(t, []session.StateOp{
		{Op: session.StateAppend, Key: "notes", Value: json.RawMessage(`"b"`)},
		{Op: session.StateReplace, Key: "count", Value: json.RawMessage(`2`)},
		{Op: session.StateAppend, Key: "count", Value: json.RawMessage(`3`)},
		{Op: session.StateAppend, Key: "fresh", Value: json.RawMessage(`{"x":1}`)},
	}, c.Taken().StateOps)
}

func TestState_reads_what_the_ops_will_make(t *testing.T) {
	t.Parallel()
	base := stateOf(t, map[string]string{"k": `[1]`})
	c := tool.NewCall(tool.CallConfig{State: base})
	require.NoError(t, c.Append("k", []int{2}))
	require.NoError(t, c.Append("k", nil))
	seen, _, err := tool.State[json.RawMessage](c, "k")
	require.NoError(t, err)
	for _, op := range c.Taken().StateOps {
		require.NoError(t, base.Apply(op))
	}
	made, _ := base.Get("k")
	require.JSONEq(t, string(made), string(seen))
	require.JSONEq(t, `[1,[2],null]`, string(seen))
}

func TestCall_Emit(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{ID: "c1-0"})
	require.NoError(t, c.Emit("progress", 50))
	require.NoError(t, c.Emit("done", nil))
	require.Equal(t, []session.CustomEvent{
		{Call: "c1-0", Name: "progress", Data: json.RawMessage(`50`)},
		{Call: "c1-0", Name: "done", Data: json.RawMessage(`null`)},
	}, c.Taken().Events)
}

func TestCall_refuses_what_cannot_be_kept(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", tool.MaxValueBytes)
	long := strings.Repeat("k", tool.MaxKeyBytes+1)
	for name, c := range map[string]struct {
		do   func(*tool.Call) error
		want string
	}{
		"append_no_json":   {func(c *tool.Call) error { return c.Append("k", func() {}) }, `append state "k": the value cannot be made JSON`},
		"replace_no_json":  {func(c *tool.Call) error { return c.Replace("k", make(chan int)) }, `replace state "k": the value cannot be made JSON`},
		"replace_panics":   {func(c *tool.Call) error { return c.Replace("k", evil{}) }, "cannot be made JSON: no"},
		"append_too_large": {func(c *tool.Call) error { return c.Append("k", big) }, "at most 1048576 are allowed"},
		"append_no_key":    {func(c *tool.Call) error { return c.Append("", 1) }, "key is empty"},
		"key_is_no_text":   {func(c *tool.Call) error { return c.Replace("\xff", 1) }, `key "\xff" is not UTF-8`},
		"replace_long_key": {func(c *tool.Call) error { return c.Replace(long, 1) }, "key has 257 bytes"},
		"emit_no_json":     {func(c *tool.Call) error { return c.Emit("e", func() {}) }, `emit "e": the value cannot be made JSON`},
		"emit_too_large":   {func(c *tool.Call) error { return c.Emit("e", big) }, `emit "e": the value has`},
		"emit_no_name":     {func(c *tool.Call) error { return c.Emit("", 1) }, "name is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := tool.NewCall(tool.CallConfig{})
			require.ErrorContains(t, c.do(call), c.want)
			require.Equal(t, tool.Taken{}, call.Taken())
		})
	}
}

func TestCall_bounds_what_one_call_adds(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{})
	big := strings.Repeat("x", tool.MaxValueBytes-100)
	for range 4 {
		require.NoError(t, c.Append("k", big))
	}
	require.ErrorContains(t, c.Emit("e", big), "would add more than 4194304 bytes")
	require.ErrorContains(t, c.Replace("k", big), "would add more than 4194304 bytes")
	require.NoError(t, c.Emit("small", 1), "what fits is still taken")
}

func TestCall_over(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{Remember: remembers(map[string]string{})})
	require.NoError(t, c.Append("k", 1))
	taken := c.Taken()
	require.ErrorIs(t, c.Append("k", 2), tool.ErrCallOver)
	require.ErrorIs(t, c.Replace("k", 2), tool.ErrCallOver)
	require.ErrorIs(t, c.Emit("e", 2), tool.ErrCallOver)
	_, err := c.Ask(t.Context(), tool.Question{ID: "q", Text: "?"})
	require.ErrorIs(t, err, tool.ErrCallOver)
	_, err = tool.Once(t.Context(), c, "k", func(ctxT) (int, error) { panic("must not run") })
	require.ErrorIs(t, err, tool.ErrCallOver)
	require.Equal(t, taken, c.Taken())
}

func TestCall_is_safe_for_the_goroutines_of_a_tool(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{State: stateOf(t, map[string]string{"n": `[]`}), Remember: remembers(map[string]string{})})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_ = c.Append("n", i)
			_ = c.Emit("e", i)
			_, _, _ = tool.State[[]int](c, "n")
			_, _ = c.Ask(t.Context(), tool.Question{ID: fmt.Sprint("q", i%5), Text: "?"})
			_, _ = tool.Once(t.Context(), c, fmt.Sprint("o", i%5), func(ctxT) (int, error) { return i, nil })
		})
	}
	wg.Wait()
	taken := c.Taken()
	require.Len(t, taken.StateOps, 20)
	require.Len(t, taken.Events, 20)
	require.Len(t, taken.Questions, 5)
}
