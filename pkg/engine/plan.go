package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// Texts the model is told, as other agents' clients know them.
const (
	TextDenied    = "Tool call was not approved by the user"
	TextCancelled = "Tool execution cancelled"
	TextClosing   = "Cancelled by user"
	TextUnknown   = "The outcome of this call is not known: it was started and may or may not have taken effect. Check before you try again."
	TextMismatch  = "approval_mismatch: the arguments of this call are not those that were approved, so it was not run. Call it again"
	TextExpired   = "Nobody decided on this call before its deadline"
)

// Traits are what planning needs to know of a call's tool.
type Traits struct {
	// Known says that the task's rules and the registry have the tool.
	Known bool
	// Problem says why the arguments are refused; empty when they are fine.
	Problem   string
	Effect    session.Effect
	Client    bool
	Finish    bool
	OnUnknown session.UnknownPolicy
	// Approval tells whether a person has to approve the call; asked at most once, and only when nobody did.
	Approval func() bool
	Expiry   *Expiry
	Who      []string
}

// Expiry says how long a wait stays open and what happens then.
type Expiry struct {
	After   time.Duration
	Outcome session.DeadlineOutcome
	Value   json.RawMessage
}

// Deadline returns the deadline of a wait opened at the given time; nil for a nil expiry.
func (x *Expiry) Deadline(opened time.Time) *session.Deadline {
	if x == nil {
		return nil
	}
	return &session.Deadline{At: opened.Add(x.After), Outcome: x.Outcome, Value: x.Value, After: x.After}
}

// Do says what a call needs next.
type Do string

// What a call can need.
const (
	// DoRun: run the tool.
	DoRun Do = "run"
	// DoWait: open a wait.
	DoWait Do = "wait"
	// DoResult: the result is known without running anything.
	DoResult Do = "result"
	// DoFail: an expiry fails the task.
	DoFail Do = "fail"
)

// CallPlan says what one open call needs next.
type CallPlan struct {
	Call   session.Call
	Traits Traits
	Do     Do
	// Arguments the tool runs with: the model's, or those a person edited.
	Arguments json.RawMessage
	// Replies to questions of the call, for DoRun.
	Replies []session.Answer
	// Wait of DoWait, without id, nonce and times.
	Wait session.Wait
	// Result of DoResult.
	Result llm.ToolResult
	// NeverRan says that Result gives up a call that has not run, so that its
	// ledger has to be closed first.
	NeverRan bool
	// Refused says that Result refuses the call because this program has no such
	// tool or its tool does not take the arguments. A program before it may have run
	// the call all the same: only its ledger knows.
	Refused bool
	// Failure of DoFail.
	Failure *session.Failure
}

// Plan says what each open call of s needs next, in the order of the calls.
// digest is that of the agent as it is now: an approval given under another one
// counts only if the policy is to go on.
func Plan(s *session.Session, digest string, traits func(c session.Call, arguments json.RawMessage) Traits) []CallPlan {
	plans := make([]CallPlan, 0, len(s.Calls))
	waits := false
	for _, c := range s.Calls {
		p := planCall(s, c, digest, traits)
		waits = waits || p.Do == DoWait
		plans = append(plans, p)
	}
	if !waits || !s.Rules.Policy.HoldBatch {
		return plans
	}
	// The batch is held: what could run waits for the decisions on its siblings.
	return slices.DeleteFunc(plans, func(p CallPlan) bool { return p.Do == DoRun })
}

// taken is what the answers of a call come to.
type taken struct {
	arguments json.RawMessage
	approved  bool
	replies   []session.Answer
	result    *llm.ToolResult
	neverRan  bool
	failure   *session.Failure
}

func planCall(s *session.Session, c session.Call, digest string, traits func(session.Call, json.RawMessage) Traits) CallPlan {
	t := takeCall(s, c, digest)
	p := CallPlan{Call: c, Arguments: t.arguments, Replies: t.replies}
	switch {
	case t.failure != nil:
		p.Do, p.Failure = DoFail, t.failure
		return p
	case t.result != nil:
		p.Do, p.Result, p.NeverRan = DoResult, *t.result, t.neverRan
		return p
	}
	p.Traits = traits(c, t.arguments)
	switch {
	case !p.Traits.Known:
		p.Do, p.Refused, p.Result = DoResult, true, Result(c, llm.ResultError, fmt.Sprintf("There is no tool %q. Use one of the tools you were given.", c.Name))
	case p.Traits.Problem != "":
		p.Do, p.Refused, p.Result = DoResult, true, Result(c, llm.ResultError, p.Traits.Problem)
	case !t.approved && p.Traits.Approval != nil && p.Traits.Approval():
		p.Do, p.Wait = DoWait, p.wait(session.WaitApproval, digest)
	case p.Traits.Client:
		p.Do, p.Wait = DoWait, p.wait(session.WaitClientTool, digest)
	default:
		p.Do = DoRun
	}
	return p
}

func (p *CallPlan) wait(kind session.WaitKind, digest string) session.Wait {
	return session.Wait{
		Kind: kind, Call: p.Call.ID, Tool: p.Call.Name, Arguments: p.Arguments, Digest: session.Digest(p.Arguments),
		Deadline: p.Traits.Expiry.Deadline(time.Time{}), Who: p.Traits.Who, Policy: digest,
	}
}

func takeCall(s *session.Session, c session.Call, digest string) taken {
	t := taken{arguments: c.Arguments}
	for _, a := range c.Answers {
		var w session.Wait
		if i := slices.IndexFunc(c.Waits, func(w session.Wait) bool { return w.ID == a.Wait }); i >= 0 {
			w = c.Waits[i]
		}
		switch a.Kind {
		case session.AnswerApproval:
			t.takeApproval(s, c, a, w, digest)
		case session.AnswerClientTool, session.AnswerChild:
			t.result = clientResult(c, a)
		case session.AnswerReply:
			t.takeReply(c, a)
		case session.AnswerVerdict:
			t.result = verdictResult(c, a)
		case session.AnswerExpiry:
			t.takeExpiry(s, c, a, w, digest)
		case session.AnswerMessage:
		}
	}
	return t
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
	if w.Policy != digest {
		switch s.Rules.Policy.OnChange {
		case session.ChangeGoOn:
		case session.ChangeFail:
			t.failure = &session.Failure{Type: "agent_changed", Retryable: true, Message: fmt.Sprintf("The agent was changed after %s was approved, and its policy is not to run what was approved under another definition.", c.ID)}
			return
		case session.ChangeReask, "":
			return // the approval was for something else: ask again
		}
	}
	// What runs is what was shown, or what the answer put in its place, and the
	// answer says that it was given for just that: missing is never yes.
	shown, runs := w.Digest, t.arguments
	if a.EditedInput != nil {
		runs = a.EditedInput
		shown = session.Digest(runs)
	}
	if digest := session.Digest(runs); digest == shown && digest == a.Digest {
		t.approved, t.arguments = true, runs
		return
	}
	text := TextMismatch
	if a.Error != "" {
		text = a.Error // what was edited could not be kept
	}
	result := Result(c, llm.ResultError, text)
	t.result, t.neverRan = &result, true
}

// takeReply takes a reply to a question of the call. One that could not be kept ends
// the call, which has only asked so far.
func (t *taken) takeReply(c session.Call, a session.Answer) {
	if a.Error == "" {
		t.replies = append(t.replies, a)
		return
	}
	result := Result(c, llm.ResultError, a.Error)
	t.result, t.neverRan = &result, true
}

func (t *taken) takeExpiry(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	switch a.Outcome {
	case session.ExpireFail:
		t.failure = &session.Failure{Type: "wait_expired", Retryable: true, Message: fmt.Sprintf("Nobody answered %s of %s (%s) before its deadline.", w.Kind, c.ID, c.Name)}
	case session.ExpireDefault:
		t.takeDefault(s, c, a, w, digest)
	case session.ExpireDeny:
		if w.Kind == session.WaitQuestion {
			t.replies = append(t.replies, a)
			return
		}
		status := llm.ResultTimedOut
		text := TextExpired
		if w.Kind == session.WaitUnknown {
			status, text = llm.ResultUnknown, TextUnknown
		}
		result := Result(c, status, text)
		t.result, t.neverRan = &result, w.Kind == session.WaitApproval
	case session.ExpireReask:
	}
}

// takeDefault takes the value a deadline declared as if it were an answer.
func (t *taken) takeDefault(s *session.Session, c session.Call, a session.Answer, w session.Wait, digest string) {
	switch w.Kind {
	case session.WaitApproval:
		var approved bool
		if json.Unmarshal(a.Result, &approved) == nil && approved {
			t.approve(s, c, a, w, digest)
			return
		}
		result := Result(c, llm.ResultTimedOut, TextExpired)
		t.result, t.neverRan = &result, true
	case session.WaitQuestion:
		t.replies = append(t.replies, a)
	case session.WaitClientTool, session.WaitChild, session.WaitUnknown, session.WaitInput:
		t.result = &llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: a.Result}
	}
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

// Result returns the result of a call that tells the model a text.
func Result(c session.Call, status llm.ResultStatus, text string) llm.ToolResult {
	output, err := json.Marshal(text)
	if err != nil {
		output = json.RawMessage(`""`)
	}
	return llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: status, Output: output}
}
