package runtime_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// flood is somebody's adapter that bounds nothing. It counts what was taken of it.
type flood struct {
	event llm.Event
	taken int
}

func (f *flood) Stream(context.Context, llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for yield(f.event, nil) {
			f.taken += len(f.event.Text)
			if f.event.Kind == llm.EventToolStart {
				f.event.Index++
			}
		}
	}
}

// TestModelsThatNeverEnd: an endless reply fails the task, with what to do about it.
func TestModelsThatNeverEnd(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]llm.Event{
		"text":  {Kind: llm.EventTextDelta, Text: strings.Repeat("x", 64<<10)},
		"calls": {Kind: llm.EventToolStart, ToolCall: llm.ToolCall{Name: "rm"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &flood{event: event}
			open := func(context.Context, string, func(string) string) (llm.Model, error) { return f, nil }
			b := setup(t, func(cfg *runtime.Config) {
				registry, err := agent.NewRegistry(agent.Config{Models: agent.Models{"theirs": open}, Agents: []agent.Agent{{Name: "a", Model: "theirs:m"}}})
				require.NoError(t, err)
				cfg.Registry = registry
			})
			b.start(t, "a", "hi")
			m, err := b.View(t.Context(), b.key)
			require.NoError(t, err)
			require.Equal(t, session.OutcomeFailed, m.Outcome)
			require.Equal(t, "model_invalid", m.Failure.Type)
			require.Contains(t, m.Failure.Message, "MaxOutputTokens")
			require.LessOrEqual(t, f.taken, llm.MaxReply)
			require.LessOrEqual(t, f.event.Index, llm.MaxParts)
		})
	}
}
