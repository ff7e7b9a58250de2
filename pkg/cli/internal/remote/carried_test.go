package remote_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestSubmitCarriesAll: nothing that a caller may say in an answer is lost on the way.
func TestSubmitCarriesAll(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string][]any{"POST /sessions/s/submit": {wire.Submitted{Continuation: wire.ContinuationStored}}}}
	e := over(t, s, nil)
	yes, hold, text := true, false, "words"
	_, err := e.Submit(t.Context(), runtime.SubmitParams{Key: key, HoldResume: true, Answer: session.Answer{
		Wait: "w2-1", Kind: session.AnswerVerdict, ToolCallID: "c2-1", ApprovalID: "n", QuestionID: "q", Approved: &yes, Reason: "why",
		EditedInput: json.RawMessage(`{"a":1}`), Result: json.RawMessage(`2`), Error: "broke", Selected: []string{"red"}, Text: &text,
		Message: llm.TextParts("go"), Verdict: session.VerdictHappened,
	}})
	require.NoError(t, err)
	var sent wire.SubmitRequest
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &sent))
	require.Equal(t, wire.SubmitRequest{
		WaitID: "w2-1", Kind: session.AnswerVerdict, ToolCallID: "c2-1", ApprovalID: "n", QuestionID: "q", Approved: &yes, Reason: "why",
		EditedInput: json.RawMessage(`{"a":1}`), Result: json.RawMessage(`2`), Error: "broke", Selected: []string{"red"}, Text: &text,
		Message: llm.TextParts("go"), Verdict: session.VerdictHappened, AutoResume: &hold,
	}, sent)
}
