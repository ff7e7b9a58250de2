package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// takeCall takes in the answers of a call. traits are those of its tool as it is now.
func takeCall(s *session.Session, c session.Call, digest string, traits func() Traits) taken {
	t := taken{arguments: c.Arguments, traits: traits}
	for _, a := range c.Answers {
		var w session.Wait
		if i := slices.IndexFunc(c.Waits, func(w session.Wait) bool { return w.ID == a.Wait }); i >= 0 {
			w = c.Waits[i]
		}
		switch a.Kind {
		case session.AnswerApproval:
			t.takeApproval(s, c, a, w, digest)
		case session.AnswerClientTool, session.AnswerVerdict:
			t.takeReport(s, c, a, w, digest)
		case session.AnswerChild:
			t.result = clientResult(c, a)
		case session.AnswerReply:
			t.takeReply(s, c, a, w, digest)
		case session.AnswerExpiry:
			t.takeExpiry(s, c, a, w, digest)
		case session.AnswerDismissal:
			t.takeDismissal(c, a, w)
		case session.AnswerMessage:
		}
	}
	return t
}

// reply adds a reply to a question.
func (t *taken) reply(a session.Answer, w session.Wait) {
	if t.shown == nil {
		t.shown = map[string]string{}
	}
	t.replies, t.shown[a.Wait] = append(t.replies, a), w.Digest
}

// repliesFor returns the replies that were given for a call with these arguments.
func (t *taken) repliesFor(arguments json.RawMessage) []session.Answer {
	if len(t.replies) == 0 {
		return t.replies
	}
	is := journal.Digest(arguments)
	return slices.DeleteFunc(t.replies, func(a session.Answer) bool { return t.shown[a.Wait] != is })
}

// reportsOn reports whether a report is about the call as it is: its wait showed what its digest says,
// the report is for that, and under the same definition the call has these arguments. Under another
// one the call may have others by now, and what was done is still done.
func (t *taken) reportsOn(c session.Call, digest string, traits func(session.Call, json.RawMessage) Traits) bool {
	w := t.report
	if t.result != nil && t.result != t.reported {
		return true // another answer decides
	}
	if w.Digest == "" || journal.Digest(w.Arguments) != w.Digest || t.of != "" && t.of != w.Digest {
		return false
	}
	if w.Policy != digest || journal.Digest(t.arguments) == w.Digest {
		return true
	}
	is := traits(c, t.arguments)
	return !is.Known || is.Arguments != nil && journal.Digest(is.Arguments) == w.Digest
}

// stands reports whether an answer counts that was given under the definition with which w was
// opened: always if the definition is the same now; otherwise by the task's policy, which is to
// continue, to fail, or to ask again. To continue, whoever answered must be known to be among those
// who may now, and to be as many: a rule that was made stricter holds for what has not run yet. A
// report of what has happened counts.
func (t *taken) stands(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) bool {
	if w.Policy == digest {
		return true
	}
	switch s.Rules.Policy.OnChange {
	case session.ChangeGoOn:
		if a.Kind == session.AnswerClientTool || a.Kind == session.AnswerVerdict {
			return true
		}
		now := t.traits()
		return !now.Known || w.HeldTo(a, now.Who, now.Rule, now.Expiry.escalate())
	case session.ChangeFail:
		t.failure = &session.Failure{Type: "agent_changed", Retryable: true, Message: fmt.Sprintf("The agent was changed while %s (%s) waited for people, and its policy is not to go on with what they answered under another definition.", c.ID, c.Name)}
	case session.ChangeReask, "":
	}
	return false
}

func (t *taken) takeApproval(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	if a.Approved == nil || !*a.Approved {
		text := TextDenied
		if a.Reason != "" {
			text += ": " + a.Reason
		}
		result := Result(c, llm.ResultDenied, text)
		t.result, t.neverRan = &result, true
		return
	}
	t.approve(s, c, a, w, digest)
}

// approve takes a yes, if it was given to the agent as it is now or the policy is to go on.
func (t *taken) approve(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	if !t.stands(s, c, a, w, digest) {
		return // the approval was for something else
	}
	if a.ShownDigest == "" && w.ShownDigest != "" && a.Error == "" && a.Kind == session.AnswerApproval {
		return // a door that does not know of previews and claims has not shown them: it is asked again
	}
	// What runs is what was shown, or what the answer put in its place, and the
	// answer says that it was given for just that: missing is never yes. What the
	// tool's function gets of it is compared once its definition is known.
	decided := w.Digest
	if a.EditedInput != nil {
		decided = journal.Digest(a.EditedInput)
	}
	if a.EditedInput != nil && !w.TakesEdits() {
		decided = ""
	}
	if journal.Digest(w.Arguments) != w.Digest || journal.ShownDigest(w) != w.ShownDigest || a.ShownDigest != w.ShownDigest {
		decided = ""
	}
	if w.Votes() && !w.Tally(a.Votes, nil).Approved {
		decided = ""
	}
	if a.Error == "" && decided != "" && decided == a.Digest {
		t.approved, t.decided = true, decided
		if a.EditedInput != nil {
			t.arguments = a.EditedInput
		}
		return
	}
	text := TextMismatch
	if a.Error != "" {
		text = a.Error // what was edited could not be kept
	}
	result := Result(c, llm.ResultError, text)
	t.result, t.neverRan, t.mismatch = &result, true, a.Error == ""
}

// takeReply takes a reply to a question of the call. One that could not be kept ends
// the call, which has only asked so far.
func (t *taken) takeReply(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	if a.Error != "" {
		result := Result(c, llm.ResultError, a.Error)
		t.result, t.neverRan = &result, true
		return
	}
	if t.stands(s, c, a, w, digest) {
		t.reply(a, w)
	}
}

// takeReport takes in a report of what has happened: a client's result, a verdict. To request
// again what is done would do it twice, so it still counts under another definition, unless its
// author may not report it any more.
func (t *taken) takeReport(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	result := clientResult(c, a)
	if t.looked = a.Kind == session.AnswerVerdict; t.looked {
		result = verdictResult(c, a)
	}
	t.report, t.of, t.reported = &w, a.Digest, result
	if t.stands(s, c, a, w, digest) {
		t.result, t.told = result, nil
		return
	}
	t.result, t.told, t.by = nil, result, a
}

func (t *taken) takeExpiry(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	switch a.Outcome {
	case session.ExpireFail:
		t.failure = &session.Failure{Type: "wait_expired", Retryable: true, Message: fmt.Sprintf("Nobody answered %s of %s (%s) before its deadline.", w.Kind, c.ID, c.Name)}
	case session.ExpireDefault:
		t.takeDefault(s, c, a, w, digest)
	case session.ExpireDeny:
		if w.Kind == session.WaitQuestion {
			t.reply(a, w)
			return
		}
		status := llm.ResultTimedOut
		text := TextExpired
		if w.Kind == session.WaitUnknown {
			status, text = llm.ResultUnknown, TextUnknown
		}
		result := Result(c, status, text)
		t.result, t.neverRan, t.looked = &result, w.Kind == session.WaitApproval, w.Kind == session.WaitUnknown
	case session.ExpireReask:
	}
}

// takeDefault takes the value a deadline declared as if it were an answer.
func (t *taken) takeDefault(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	switch w.Kind {
	case session.WaitApproval:
		var approved bool
		if json.Unmarshal(a.Result, &approved) == nil && approved && !w.Rule.NeedsPeople() && !asksByPolicy(s, c) {
			t.approve(s, c, a, w, digest)
			return
		}
		result := Result(c, llm.ResultTimedOut, TextExpired)
		t.result, t.neverRan = &result, true
	case session.WaitQuestion:
		t.takeReply(s, c, a, w, digest)
	case session.WaitClientTool, session.WaitChild, session.WaitUnknown, session.WaitInput:
		if w.Kind == session.WaitClientTool && !t.stands(s, c, a, w, digest) {
			return // the client has done nothing: it can be asked anew
		}
		t.result = &llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: a.Result}
	}
}

// takeDismissal ends a call of which somebody said that nobody will answer for it, whatever
// definition was shown. What was not run stays so; what is unknown stays unknown.
func (t *taken) takeDismissal(c session.Call, a session.Answer, w session.Wait) {
	status, text := llm.ResultDenied, TextDismissed+" by "+a.Who+": "+a.Reason
	switch w.Kind {
	case session.WaitApproval, session.WaitQuestion:
		t.neverRan = true
	case session.WaitUnknown:
		status, text, t.looked = llm.ResultUnknown, TextUnknown+" "+text, true
	case session.WaitClientTool, session.WaitChild, session.WaitInput:
		status = llm.ResultError
	}
	result := Result(c, status, text)
	t.result, t.told = &result, nil
}

func clientResult(c session.Call, a session.Answer) *llm.ToolResult {
	if a.Error != "" {
		result := Result(c, llm.ResultError, a.Error)
		return &result
	}
	return &llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: a.Result}
}

func verdictResult(c session.Call, a session.Answer) *llm.ToolResult {
	var result llm.ToolResult
	switch {
	case a.Verdict == session.VerdictHappened && a.Result != nil:
		result = llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: a.Result}
	case a.Verdict == session.VerdictHappened:
		result = Result(c, llm.ResultSuccess, "A person checked: the call took effect.")
	default:
		text := "A person checked: the call did not take effect."
		if a.Reason != "" {
			text += " " + a.Reason
		}
		result = Result(c, llm.ResultError, text)
	}
	return &result
}
