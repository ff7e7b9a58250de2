package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestFit_answers_that_are_taken_can_be_written: answers have a bound together, by
// their size in JSON, so that the entry that takes them in can be written.
func TestFit_answers_that_are_taken_can_be_written(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var list []string
	for i := range 3 {
		list = append(list, "locate", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.StepBytes = 64 << 10 })
	w.run(p, "go")
	give := func(i, bytes int) error {
		result := json.RawMessage(`"` + strings.Repeat("<", bytes) + `"`)
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[i].Wait, session.Answer{Result: result})})
		return err
	}
	require.Equal(t, runtime.CodeInputTooLarge, codeOf(give(0, 12<<10)), "alone, in six bytes each")
	require.NoError(t, give(0, 8<<10))
	require.NoError(t, give(0, 8<<10), "the same again")
	require.Equal(t, runtime.CodeInputTooLarge, codeOf(give(1, 4<<10)), "together")
	require.NoError(t, give(1, 2<<10))
	require.Equal(t, runtime.CodeInputTooLarge, codeOf(give(2, 2<<10)))
	require.NoError(t, give(2, 10), "a small one is always taken")
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// TestFit_edited_input_that_crossed: of answers that cross, what does not fit any
// more is an error result, and an approval with it approves nothing.
func TestFit_edited_input_that_crossed(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "two")
	for _, record := range w.waits() {
		a := yes()
		a.EditedInput = json.RawMessage(`{"text":"` + strings.Repeat("x", 40<<10) + `"}`)
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, a)})
		require.NoError(t, err, "where there is room")
	}
	w.drain()
	small := w.process(func(cfg *runtime.Config) { cfg.StepBytes = 64 << 10 })
	w.deliver(small, w.session().Next(), session.WakeResume)
	require.NoError(t, small.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Len(t, w.effects.all(), 1, "the other one is not run, neither as asked nor as edited")
	got := results(w.session())
	require.Contains(t, string(got["c2-1"].Output)+string(got["c2-2"].Output), "too large to keep")
	closed := 0
	for _, item := range w.items(store.KindTool) {
		if item.Tool.State == session.ToolClosed {
			closed++
		}
	}
	require.Equal(t, 1, closed)
}

// TestResume_message_leaves_stored_answers: a message throws no approval away that was
// only stored.
func TestResume_message_leaves_stored_answers(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "approve")
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: true, Answer: fill(w.waits()[0].Wait, yes())})
	require.NoError(t, err)
	_, err = p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("go")})
	require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
	_, err = w.goOn(p)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("deploy 1"))
}
