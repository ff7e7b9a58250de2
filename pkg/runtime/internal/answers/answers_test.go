package answers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var key = session.Key{Tenant: "acme", ID: "s1"}

// codeOf is the code of a refusal, "" if nothing is refused.
func codeOf(t *testing.T, err error) codes.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	r := (*refusal.Error)(nil)
	require.ErrorAs(t, err, &r)
	return r.Code
}

func wait(id string, kind session.WaitKind, state session.WaitState, who ...string) journal.WaitRecord {
	return journal.WaitRecord{Wait: session.Wait{ID: id, Kind: kind, Call: "c" + id[1:], Tool: "deploy", Who: who}, State: state}
}

func answered(id string, kind session.WaitKind, answer session.Answer) journal.WaitRecord {
	w := wait(id, kind, session.WaitAnswered)
	w.Answer = &answer
	return w
}

// TestCheckAbandon: a message abandons what the policy lets it, and never what a person decided.
func TestCheckAbandon(t *testing.T) {
	t.Parallel()
	open := wait("w1-0", session.WaitApproval, session.WaitOpen)
	approved := answered("w1-1", session.WaitApproval, session.Answer{Approved: new(true), Who: "ann"})
	denied := answered("w1-1", session.WaitApproval, session.Answer{Approved: new(false), Who: "ann"})
	replied := answered("w1-1", session.WaitQuestion, session.Answer{Text: new("yes"), Who: "ann"})
	result := answered("w1-1", session.WaitClientTool, session.Answer{Result: json.RawMessage("1"), Who: "ann"})
	heldApproval := approved
	heldApproval.Held = true
	for name, test := range map[string]struct {
		status session.Status
		gives  bool // Policy.AbandonOnMessage
		waits  []journal.WaitRecord
		want   codes.Code
	}{
		"open, and the policy keeps it":         {session.StatusSuspended, false, []journal.WaitRecord{open}, codes.StillWaiting},
		"open, and the policy abandons it":      {session.StatusSuspended, true, []journal.WaitRecord{open}, ""},
		"open, of an interrupted session":       {session.StatusInterrupted, false, []journal.WaitRecord{open}, ""},
		"for others only":                       {session.StatusSuspended, true, []journal.WaitRecord{wait("w1-0", session.WaitApproval, session.WaitOpen, "bob")}, codes.NotAllowed},
		"for the caller too":                    {session.StatusSuspended, true, []journal.WaitRecord{wait("w1-0", session.WaitApproval, session.WaitOpen, "bob", "eve")}, ""},
		"an approval is stored beside":          {session.StatusSuspended, true, []journal.WaitRecord{open, approved}, codes.StillWaiting},
		"a reply is stored beside":              {session.StatusSuspended, true, []journal.WaitRecord{open, replied}, codes.StillWaiting},
		"a denial is stored beside":             {session.StatusSuspended, true, []journal.WaitRecord{open, denied}, ""},
		"a client's result is stored beside":    {session.StatusSuspended, true, []journal.WaitRecord{open, result}, ""},
		"all is answered":                       {session.StatusSuspended, true, []journal.WaitRecord{approved}, codes.AlreadyRunning},
		"all is answered, and only stored":      {session.StatusSuspended, true, []journal.WaitRecord{heldApproval}, codes.StillWaiting},
		"all is answered, interrupted":          {session.StatusInterrupted, false, []journal.WaitRecord{approved}, codes.StillWaiting},
		"interrupted, and the answer is denial": {session.StatusInterrupted, false, []journal.WaitRecord{denied}, ""},
		"interrupted, and nothing waits":        {session.StatusInterrupted, false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &session.Session{Key: key, Status: test.status}
			s.Rules.Policy.AbandonOnMessage = test.gives
			err := answers.CheckAbandon(s, test.waits, answers.Caller{Who: "eve"})
			require.Equal(t, test.want, codeOf(t, err), "%v", err)
		})
	}
}

// TestCheckAbandon_held_batch: an approval that an entry took in, of a call that has not run, is kept too.
func TestCheckAbandon_held_batch(t *testing.T) {
	t.Parallel()
	approval := session.Wait{ID: "w1-1", Kind: session.WaitApproval, Call: "c1-1", Tool: "deploy"}
	s := &session.Session{Key: key, Status: session.StatusSuspended, Calls: []session.Call{{
		ID: "c1-1", Waits: []session.Wait{approval}, Answers: []session.Answer{{Wait: "w1-1", Approved: new(true), Who: "ann"}},
	}}}
	s.Rules.Policy.AbandonOnMessage = true
	err := answers.CheckAbandon(s, []journal.WaitRecord{wait("w1-0", session.WaitQuestion, session.WaitOpen)}, answers.Caller{Who: "eve"})
	require.Equal(t, codes.StillWaiting, codeOf(t, err), "%v", err)
	require.ErrorContains(t, err, "ann")
}

// TestCheckFields: an answer has the fields of its kind, and no others.
func TestCheckFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer session.Answer
		want   string // a part of the refusal; "" if there is none
	}{
		"an approval":               {session.Answer{Kind: session.AnswerApproval, ApprovalID: "w1-0_x", Approved: new(true), Reason: "ok", EditedInput: json.RawMessage("{}")}, ""},
		"an approval with text":     {session.Answer{Kind: session.AnswerApproval, Approved: new(true), Text: new("yes")}, "text"},
		"a result":                  {session.Answer{Kind: session.AnswerClientTool, ToolCallID: "c1-0", Result: json.RawMessage("1")}, ""},
		"a result that is approved": {session.Answer{Kind: session.AnswerClientTool, Result: json.RawMessage("1"), Approved: new(true)}, "approved"},
		"a reply of both kinds":     {session.Answer{Kind: session.AnswerReply, Selected: []string{"a"}, Text: new("a")}, "selected and text"},
		"a message with a verdict":  {session.Answer{Kind: session.AnswerMessage, Message: []llm.Part{}, Verdict: session.VerdictHappened}, "verdict"},
		"a verdict with its result": {session.Answer{Kind: session.AnswerVerdict, Verdict: session.VerdictHappened, Result: json.RawMessage("1")}, ""},
		"a result of nothing":       {session.Answer{Kind: session.AnswerVerdict, Verdict: session.VerdictNotHappened, Result: json.RawMessage("1")}, "result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := answers.CheckFields(key, test.answer)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, codes.InvalidInput, codeOf(t, err))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestCheckSettled: the same answer sent again is no error; another one, or one that is too late, is.
func TestCheckSettled(t *testing.T) {
	t.Parallel()
	first := session.Answer{Kind: session.AnswerReply, Selected: []string{"a", "b"}, Who: "ann", When: time.Unix(1, 0)}
	settled := answered("w1-0", session.WaitQuestion, first)
	expired, closed := settled, wait("w1-0", session.WaitQuestion, session.WaitClosed)
	expired.State = session.WaitExpired
	for name, test := range map[string]struct {
		record journal.WaitRecord
		answer session.Answer
		want   codes.Code
	}{
		"by another person, in another order": {settled, session.Answer{Kind: session.AnswerReply, Selected: []string{"b", "a"}, Who: "bob", When: time.Unix(9, 0)}, ""},
		"another choice":                      {settled, session.Answer{Kind: session.AnswerReply, Selected: []string{"a"}}, codes.AlreadyAnswered},
		"for another reason":                  {settled, session.Answer{Kind: session.AnswerReply, Selected: []string{"a", "b"}, Reason: "so"}, codes.AlreadyAnswered},
		"after its deadline":                  {expired, first, codes.Expired},
		"after the session went on":           {closed, first, codes.SessionEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, codeOf(t, answers.CheckSettled(key, test.record, test.answer, answers.Caller{Who: test.answer.Who})))
		})
	}
}

// TestAnsweredWithAnotherReason: who says the same for another reason is told that only
// the reason differs.
func TestAnsweredWithAnotherReason(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	was := session.Answer{Kind: session.AnswerApproval, Approved: &yes, Reason: "checked", Who: "ada"}
	record := answered("w2-1", session.WaitApproval, was)
	again := was
	require.NoError(t, answers.CheckSettled(key, record, again, answers.Caller{Who: again.Who}))
	again.Reason = "looks good"
	require.ErrorContains(t, answers.CheckSettled(key, record, again, answers.Caller{Who: again.Who}), "was answered before, with another reason, by ada")
	again.Approved = &no
	require.ErrorContains(t, answers.CheckSettled(key, record, again, answers.Caller{Who: again.Who}), "was answered before, differently, by ada")
}
