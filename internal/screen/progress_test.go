package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestProgressOfARetry: a step that is put off is named with the reason and the next try.
func TestProgressOfARetry(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	until := time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)
	p := &progress{out: &out, on: true}
	p.entry(runtime.Progress{Kind: session.KindDelayed, Step: 0, Reason: "model call: rate_limited", Until: until})
	require.Equal(t, "step 1: put off, next try at 15:04:05: model call: rate_limited\n", out.String())
}

// TestProgressAfterTheModel: while a tool runs that is read only, no entry comes, and the
// line is not empty.
func TestProgressAfterTheModel(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{out: &out, on: true, smart: true, width: 80}
	p.delta(llm.Event{Kind: llm.EventTextDelta, Text: "I look"})
	p.delta(llm.Event{Kind: llm.EventStop})
	require.Equal(t, "working …", p.status)
	p.entry(runtime.Progress{Kind: session.KindCompleted})
	require.Empty(t, p.status)
}

// TestHang: a line that is too long goes on under its own text.
func TestHang(t *testing.T) {
	t.Parallel()
	require.Equal(t, "  call  one two three four \n        five six seven", Hang("  call  one two three four five six seven", 8, 29))
	require.Equal(t, "  call  one", Hang("  call  one", 8, 0))
}
