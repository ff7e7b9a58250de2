package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/httpapi/wire"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestOnce: what an answer says does not make it one that may be sent again; only
// what it names does.
func TestOnce(t *testing.T) {
	t.Parallel()
	yes := true
	synctest.Test(t, func(t *testing.T) {
		for name, p := range map[string]wire.SubmitRequest{
			"a verdict":     {Kind: session.AnswerVerdict, ToolCallID: "c2-1", Verdict: session.VerdictHappened},
			"with a result": {Kind: session.AnswerVerdict, ToolCallID: "c2-1", Verdict: session.VerdictHappened, Result: []byte("1")},
			"an approval":   {Kind: session.AnswerApproval, ToolCallID: "c2-1", Approved: &yes, Reason: "r", EditedInput: []byte("{}")},
			"a reply":       {Kind: session.AnswerReply, ToolCallID: "c2-1", Selected: []string{"a"}, Text: text("t")},
			"a message":     {Kind: session.AnswerMessage, ToolCallID: "c2-1", Message: wire.Text("m")},
			"an error":      {Kind: session.AnswerClientTool, Error: "e"},
		} {
			s := &script{answers: []answer{problem(503), says(200, "{}")}}
			require.Error(t, submit(over(t, s), p)(t.Context()), name)
			require.Len(t, s.requests, 1, name)

			p.WaitID = "w2-1"
			s = &script{answers: []answer{problem(503), says(200, "{}")}}
			require.NoError(t, submit(over(t, s), p)(t.Context()), "%s of a wait", name)
			require.Len(t, s.requests, 2, name)
		}
	})
}
