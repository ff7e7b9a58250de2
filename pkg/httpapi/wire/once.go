package wire

import (
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/session"
)

// AnswersOnce reports whether the answer, sent again, can count for nothing that
// was asked since: it names a wait, an approval, a question or a client's call. A
// verdict on a call, or a message, would also answer what is asked next.
func (r SubmitRequest) AnswersOnce() bool {
	return r.WaitID != "" || r.ApprovalID != "" || r.QuestionID != "" || r.Kind == session.AnswerClientTool && r.ToolCallID != ""
}

// AnswersOnce reports whether the request, sent again, can decide or answer nothing
// that came since: it brings nothing, names the checkpoint, or names the waits it
// decides. A call may be asked about anew.
func (r ResumeRequest) AnswersOnce() bool {
	switch {
	case r.CheckpointID != "":
		return true
	case r.Message != nil, r.Confirmation != nil:
		return false
	}
	d := r.Decisions
	return d == nil || !d.ApproveAll && !d.RejectAll && !slices.ContainsFunc(slices.Concat(d.Approve, d.Reject), namesNoWait)
}

// namesNoWait tells a call's id, c2-1, from its wait's, w2-1.
func namesNoWait(id string) bool { return !strings.HasPrefix(id, "w") }
