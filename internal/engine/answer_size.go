package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
)

// SmallAnswer is the encoded size up to which an answer is always taken, however much
// the others of its suspension take: what is open can always be answered.
// [session.MaxWaits] of them are little.
const SmallAnswer = 4 << 10

// EncodedSize returns how many bytes an answer or a message takes in an entry.
func EncodedSize(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0 // it was checked before, or read from the store: its values are JSON
	}
	return len(raw)
}

// FitAnswers keeps the answers of one suspension, which go into one entry, within so
// many encoded bytes: they may have been taken where there was room for more. Of
// the largest, what makes it large is replaced by an error that says so: a call that
// was approved with other arguments does not run. Messages stay: there is one at
// most, with a bound of its own. The values of deadlines stay: programs declare them.
func FitAnswers(answers []session.Answer, most int) []session.Answer {
	out := slices.Clone(answers)
	sizes, sum := make([]int, len(out)), 0
	for i, a := range out {
		sizes[i] = EncodedSize(a)
		sum += sizes[i]
	}
	for sum > most {
		largest := -1
		for i, a := range out {
			if sizes[i] <= SmallAnswer || a.Kind == session.AnswerMessage || a.Kind == session.AnswerExpiry {
				continue
			}
			if largest < 0 || sizes[i] > sizes[largest] {
				largest = i
			}
		}
		if largest < 0 {
			break // nothing large is left
		}
		out[largest] = cutAnswer(out[largest], sizes[largest])
		sum -= sizes[largest]
		sizes[largest] = 0 // no more than that is left of it
	}
	return out
}

// cutAnswer is an answer without what makes it large.
func cutAnswer(a session.Answer, size int) session.Answer {
	a.Votes = slices.Clone(a.Votes)
	for i := range a.Votes {
		a.Votes[i].Reason = ""
	}
	text := fmt.Sprintf("The answer has %d bytes and was too large to keep beside the other answers.", size)
	if a.Reason != "" {
		a.Reason = ""
		if EncodedSize(a) <= SmallAnswer {
			a.Reason = text
			return a
		}
	}
	if len(a.Votes) > 0 && a.EditedInput == nil {
		return a // that reasons are left out changes nothing of the decision
	}
	switch a.Kind {
	case session.AnswerClientTool, session.AnswerChild:
		a.Result, a.Error = nil, text
	case session.AnswerReply:
		a.Text, a.Selected, a.Error = nil, nil, text
	case session.AnswerVerdict:
		a.Result = Result(session.Call{}, "", text).Output
	case session.AnswerApproval:
		// With the digest of what was decided on, this approves nothing.
		a.EditedInput, a.Preview, a.Error = json.RawMessage(`null`), nil, text+" The call was not run."
	case session.AnswerMessage, session.AnswerExpiry, session.AnswerDismissal:
	}
	return a
}
