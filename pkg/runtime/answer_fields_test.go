package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestSubmit_an_answer_says_one_thing: a field that does not belong to an answer is
// refused by its name, before anything is read or written, whoever sends it.
func TestSubmit_an_answer_says_one_thing(t *testing.T) {
	t.Parallel()
	word, yes := "blue", true
	raw := json.RawMessage(`{"id":"7"}`)
	for name, c := range map[string]struct {
		world  string
		kind   session.WaitKind
		answer session.Answer
		says   string
	}{
		"selected and text":           {"pick", session.WaitQuestion, session.Answer{Selected: []string{"red"}, Text: &word}, "selected and text"},
		"none selected, and text":     {"toppings", session.WaitQuestion, session.Answer{Selected: []string{}, Text: &word}, "selected and text"},
		"text and selected":           {"name", session.WaitQuestion, session.Answer{Selected: []string{"red"}, Text: &word}, "selected and text"},
		"a reply with an error":       {"name", session.WaitQuestion, session.Answer{Text: &word, Error: "x"}, "error does not belong"},
		"a result that is approved":   {"client", session.WaitClientTool, session.Answer{Result: raw, Approved: &yes}, "approved does not belong"},
		"a result with a reason":      {"client", session.WaitClientTool, session.Answer{Result: raw, Reason: "x"}, "reason does not belong"},
		"a result of a child":         {"client", session.WaitClientTool, session.Answer{Result: raw, Status: session.StatusCompleted}, "status does not belong"},
		"an approval with a result":   {"approve", session.WaitApproval, session.Answer{Approved: &yes, Result: raw}, "result does not belong"},
		"an approval with an error":   {"approve", session.WaitApproval, session.Answer{Approved: &yes, Error: "x"}, "error does not belong"},
		"an approval and its expiry":  {"approve", session.WaitApproval, session.Answer{Approved: &yes, Outcome: session.ExpireDefault}, "outcome does not belong"},
		"a message with text":         {"input", session.WaitInput, session.Answer{Message: llm.TextParts("x"), Text: &word}, "text does not belong"},
		"a message that is a verdict": {"input", session.WaitInput, session.Answer{Message: llm.TextParts("x"), Verdict: session.VerdictHappened}, "verdict does not belong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t, c.world)
			before := w.items(store.KindWait)
			_, err := w.submit(p, c.kind, c.answer)
			require.Equal(t, runtime.CodeInvalidInput, codeOf(err), "%v", err)
			require.ErrorContains(t, err, c.says)
			after := w.items(store.KindWait)
			require.EqualValues(t, 1, after[0].Wait.Audit.Count, "that it was refused is recorded")
			require.Equal(t, before[0].Wait.Wait, after[0].Wait.Wait)
			require.Equal(t, []any{before[0].Wait.State, before[0].Wait.Answer}, []any{after[0].Wait.State, after[0].Wait.Answer})
		})
	}
	t.Run("what did not happen has no result", func(t *testing.T) {
		t.Parallel()
		w, p := expiring(t, session.WaitUnknown, session.ExpireDeny, nil)
		for _, result := range []string{`null`, `{"id":"7"}`} {
			_, err := w.submit(p, session.WaitUnknown, session.Answer{Verdict: session.VerdictNotHappened, Result: json.RawMessage(result)})
			require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
			require.ErrorContains(t, err, "result does not go with the verdict not_happened")
		}
		_, err := w.submit(p, session.WaitUnknown, session.Answer{Verdict: session.VerdictNotHappened, Text: &word})
		require.ErrorContains(t, err, "text does not belong")
	})
	t.Run("no way to resume brings such an answer", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "approve")
		_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person, Mode: runtime.ResumeWithConfirmation, Confirmation: runtime.Confirmation{Wait: "w2-1", EditedInput: json.RawMessage(`{"text":"2"}`)}})
		require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
		require.ErrorContains(t, err, "edited input goes with an approval")
	})
}
