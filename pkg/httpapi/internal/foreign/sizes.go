package foreign

import (
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/refused"
)

// maxAnswerID bounds each id in an answer: ours are shorter.
const maxAnswerID = 256

// CheckSizes refuses an answer that is larger than a server takes: an error or a reason, and a result or a reply,
// have so many bytes at most.
func CheckSizes(a client.SubmitRequest, maxError, maxResult int) error {
	text := len(strings.Join(a.Selected, ""))
	if a.Text != nil {
		text += len(*a.Text)
	}
	for _, field := range []struct {
		name       string
		size, most int
	}{
		{"waitId", len(a.WaitID), maxAnswerID},
		{"toolCallId", len(a.ToolCallID), maxAnswerID},
		{"approvalId", len(a.ApprovalID), maxAnswerID},
		{"id", len(a.QuestionID), maxAnswerID},
		{"error", len(a.Error), maxError},
		{"reason", len(a.Reason), maxError},
		{"result", len(a.Result), maxResult},
		{"editedInput", len(a.EditedInput), maxResult},
		{"the reply", text, maxResult},
	} {
		if field.size > field.most {
			return refused.New(string(codes.InputTooLarge), "%s has %d bytes: this server takes %d at most. Put large data where a tool can read it", field.name, field.size, field.most)
		}
	}
	return nil
}
