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
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestFit_answers_that_are_taken_can_be_written: each answer has its share of the
// entry that takes all of a suspension in, by its size in JSON.
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
	share := (64<<10)/3 - 512 // what names the answer, and who gave it, counts too
	require.Equal(t, runtime.CodeInputTooLarge, codeOf(give(0, 4<<10)), "in six bytes each")
	for i := range 3 { // each without a look at the others, so that answers that cross fit as well
		require.Equal(t, runtime.CodeInputTooLarge, codeOf(give(i, share/6+200)))
		require.NoError(t, give(i, share/6))
		require.NoError(t, give(i, share/6), "the same again")
	}
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// TestFit_edited_input_of_a_larger_program: of answers that were taken where there was
// room for more, what does not fit is an error result, and an approval with it
// approves nothing.
func TestFit_edited_input_of_a_larger_program(t *testing.T) {
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
	w.deliver(small, w.session().Next(), journal.WakeResume)
	require.NoError(t, small.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Len(t, w.effects.all(), 1, "the other one is not run, neither as asked nor as edited")
	got := results(w.session())
	require.Contains(t, string(got["c2-1"].Output)+string(got["c2-2"].Output), "too large to keep")
	closed := 0
	for _, item := range w.items(store.KindTool) {
		if item.Tool.State == journal.ToolClosed {
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
