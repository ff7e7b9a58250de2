package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Texts for the model, in the usual form of other agents' clients.
const (
	TextDenied    = "Tool call was not approved by the user"
	TextNoPause   = "this task does not wait for approvals"
	TextNever     = "calls of this tool are not allowed in this task"
	TextCancelled = "Tool execution cancelled"
	TextClosing   = "Cancelled by user"
	TextUnknown   = "The outcome of this call is not known: it was started and may or may not have taken effect. Check before you try again."
	TextMismatch  = "approval_mismatch: the arguments of this call are not those that were approved, so it was not run. Call it again"
	// TextReport tells of a report about other arguments than the call's.
	TextReport    = "approval_mismatch: what was reported is about other arguments than those of this call, so it was not taken in. Check before you try again."
	TextExpired   = "Nobody decided on this call before its deadline"
	TextDismissed = "Nobody will answer what this call waits for: it was dismissed"
)

// Traits are what planning needs of the declaration of a call's tool.
type Traits struct {
	// Known says that the task's rules and the registry have the tool.
	Known bool
	// Problem says why the arguments are refused; empty when they are fine.
	Problem string
	// Arguments as the tool's function gets them: nil where they are those that were given.
	Arguments json.RawMessage
	Effect    session.Effect
	Client    bool
	Finish    bool
	OnUnknown session.UnknownPolicy
	// Approval returns whether a person has to approve the call. It is called at most once, and
	// only if no approval was requested before.
	Approval func() bool
	// PolicyMayAllow says that the policy of the program may let the call run without that.
	PolicyMayAllow bool
	Expiry         *Expiry
	Who            []string
	Rule           *session.AnswerRule
	// Permission returns the standing permission that covers the call, nil where there is none. It is
	// called only if a person would have to be asked, and nobody was asked about the call before. A nil
	// one is none.
	Permission func() *session.Permission
}

// Expiry says how long a wait stays open and what happens then.
type Expiry struct {
	After   time.Duration
	Outcome session.DeadlineOutcome
	Value   json.RawMessage
	// Remind and Escalate as in [session.Deadline].
	Remind   []time.Duration
	Escalate *session.Escalation
}

// escalate returns whom a deadline escalates to; nil for nobody.
func (x *Expiry) escalate() *session.Escalation {
	if x == nil {
		return nil
	}
	return x.Escalate
}

// Deadline returns the deadline of a wait opened at the given time; nil for a nil expiry.
func (x *Expiry) Deadline(opened time.Time) *session.Deadline {
	if x == nil {
		return nil
	}
	return &session.Deadline{At: opened.Add(x.After), Outcome: x.Outcome, Value: x.Value, After: x.After, Remind: x.Remind, Escalate: x.Escalate}
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
	// Arguments the tool runs with: the model's, or those a person edited, as its function gets them.
	Arguments json.RawMessage
	// Decided is the digest of the arguments that were approved; empty where nobody was asked. It is
	// compared again when the tool is called.
	Decided string
	// Permission is the standing permission that lets the call run without asking; nil where none had to.
	Permission *session.Permission
	// Allowed says that the policy of the program lets the call run without the approval that its tool
	// asks for.
	Allowed bool
	// Pauses says that the policy denies the call, and that the task waits for a message then.
	Pauses bool
	// Replies to questions of the call, for DoRun.
	Replies []session.Answer
	// Policy is the digest of the agent the plan was made under: every wait the call
	// opens says it. Requesters are who asked for the task.
	Policy     string
	Requesters []string
	// Wait of DoWait, without id, nonce and times.
	Wait session.Wait
	// Result of DoResult.
	Result llm.ToolResult
	// NeverRan says that Result gives up a call that has not run, so that its
	// ledger has to be closed first.
	NeverRan bool
	// Mismatch says that Result stands for arguments that are not those that were shown: of a call that
	// was approved, or of what was reported about one.
	Mismatch bool
	// Refused says that Result refuses the call because this program has no such tool, its
	// tool does not take the arguments, or the policy of the task forbids it. It may have run
	// all the same, while it was allowed or by another version of the program: the ledger decides.
	Refused bool
	// Looked says that Result is the verdict about a call whose outcome was unknown, or that
	// none was given. Its worker may have been frozen and have finished since: the ledger
	// decides.
	Looked bool
	// Unknown says that the call was given to a client, that no outcome was reported and that
	// this program's tool of that name is not a client's: Result says that the outcome is not
	// known, unless the tool's policy is to ask a person.
	Unknown bool
	// Failure of DoFail.
	Failure *session.Failure
}

// Plan says what each open call of s needs next, in the order of the calls.
// digest is that of the agent as it is now: what people answered under another one
// counts by the task's policy ([session.ChangePolicy]).
func Plan(s *session.Session, digest string, traits func(c session.Call, arguments json.RawMessage) Traits) []CallPlan {
	plans := make([]CallPlan, 0, len(s.Calls))
	waits, pauses := false, false
	for _, c := range s.Calls {
		p := planCall(s, c, digest, traits)
		waits, pauses = waits || p.Do == DoWait, pauses || p.Pauses
		plans = append(plans, p)
	}
	if pauses {
		giveUpFinish(plans)
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
	// decided is the digest that was approved.
	decided string
	replies []session.Answer
	// shown are, by the wait of a reply, the digests of the arguments it was given for.
	shown  map[string]string
	result *llm.ToolResult
	// mismatch says that result refuses an approval of other arguments.
	mismatch bool
	neverRan bool
	failure  *session.Failure
	// looked says that result, or told, is about an outcome that was unknown.
	looked bool
	// report is the wait of the newest report, of the digest it was given for, reported its result.
	report   *session.Wait
	of       string
	reported *llm.ToolResult
	// told is an outcome that was reported under another definition, by an answer: it counts if the
	// author may still answer for the tool, or if it cannot be requested again.
	told   *llm.ToolResult
	by     session.Answer
	traits func() Traits
}

func planCall(s *session.Session, c session.Call, digest string, traits func(session.Call, json.RawMessage) Traits) CallPlan {
	t := takeCall(s, c, digest, func() Traits { return traits(c, c.Arguments) })
	p := CallPlan{Call: c, Arguments: t.arguments, Decided: t.decided, Policy: digest, Requesters: s.Requesters}
	switch {
	case t.failure != nil:
		p.Do, p.Failure = DoFail, t.failure
		return p
	case t.report != nil && !t.reportsOn(c, digest, traits):
		p.Do, p.Mismatch, p.Looked, p.Result = DoResult, true, t.looked, Result(c, llm.ResultError, TextReport)
		if t.looked {
			p.Result = Result(c, llm.ResultUnknown, TextReport)
		}
		return p
	case t.result != nil:
		p.Do, p.Result, p.NeverRan, p.Looked, p.Mismatch = DoResult, *t.result, t.neverRan, t.looked, t.mismatch
		return p
	}
	p.Traits = traits(c, t.arguments)
	if p.Traits.Arguments != nil {
		p.Arguments = p.Traits.Arguments
	}
	p.Replies = t.repliesFor(p.Arguments)
	// What a client may have done is not repeated here, and the client cannot be asked any more.
	gone := !p.Traits.Client && slices.ContainsFunc(c.Waits, func(w session.Wait) bool { return w.Kind == session.WaitClientTool })
	switch {
	case t.told != nil && (gone || t.report.HeldTo(t.by, p.Traits.Who, p.Traits.Rule, p.Traits.Expiry.escalate())):
		p.Do, p.Result, p.Looked = DoResult, *t.told, t.looked
	case gone:
		p.Do, p.Unknown, p.Result = DoResult, true, Result(c, llm.ResultUnknown, TextUnknown)
	case !p.Traits.Known:
		p.Do, p.Refused, p.Result = DoResult, true, Result(c, llm.ResultError, fmt.Sprintf("There is no tool %q. Use one of the tools you were given.", c.Name))
	case p.Traits.Problem != "":
		p.Do, p.Refused, p.Result = DoResult, true, Result(c, llm.ResultError, p.Traits.Problem)
	case s.Rules.ModeOf(c.Name) == session.ToolNever: // also what was approved before it was forbidden
		p.Do, p.Refused, p.Result = DoResult, true, Result(c, llm.ResultDenied, TextDenied+": "+TextNever)
		p.Pauses = s.Rules.PausesOn(c.Name)
	case t.approved && journal.Digest(p.Arguments) != t.decided: // missing is never yes
		p.Do, p.NeverRan, p.Mismatch, p.Result = DoResult, true, true, Result(c, llm.ResultError, TextMismatch)
	case !t.approved && p.needsApproval(&s.Rules): // asked once: a rule may say something else then
		if s.Rules.Asked.DeniesApprovals() {
			p.Do, p.NeverRan, p.Result = DoResult, true, Result(c, llm.ResultDenied, TextDenied+": "+TextNoPause)
			break
		}
		if p.covered() {
			p.Do, p.Decided = DoRun, journal.Digest(p.Arguments)
			break
		}
		p.Do, p.Wait = DoWait, p.wait(session.WaitApproval)
		if d := p.Wait.Deadline; d != nil && d.Outcome == session.ExpireDefault && asksByPolicy(s, c) {
			d.Outcome, d.Value = session.ExpireDeny, nil // the tool has declared it for its own approval, or the client's result
		}
	case p.Traits.Client:
		p.Do, p.Wait = DoWait, p.wait(session.WaitClientTool)
	default:
		p.Do = DoRun
	}
	return p
}

// asksByPolicy reports whether the policy of the task has calls of the tool wait for an approval. Silence
// never gives that.
func asksByPolicy(s *session.Session, c session.Call) bool {
	return s.Rules.ModeOf(c.Name) == session.ToolPrompt
}

// needsApproval reports whether a call waits for one: the policy of the task says so, or its tool, unless
// the policy of the program and the tool's definition allow the call all the same.
func (p *CallPlan) needsApproval(rules *session.Rules) bool {
	if rules.ModeOf(p.Call.Name) == session.ToolPrompt {
		return true
	}
	asks := p.Traits.Approval != nil && p.Traits.Approval()
	p.Allowed = asks && p.Traits.PolicyMayAllow && rules.PolicyAllows(p.Call.Name)
	return asks && !p.Allowed
}

// covered reports whether a standing permission lets a call run, and keeps which. What a person was
// asked about once is decided by a person.
func (p *CallPlan) covered() bool {
	asked := slices.ContainsFunc(p.Call.Waits, func(w session.Wait) bool { return w.Kind == session.WaitApproval })
	if asked || p.Traits.Client || p.Traits.Permission == nil {
		return false
	}
	p.Permission = p.Traits.Permission()
	return p.Permission != nil
}

func (p *CallPlan) wait(kind session.WaitKind) session.Wait {
	w := session.Wait{
		Kind: kind, Call: p.Call.ID, Tool: p.Call.Name, Arguments: p.Arguments, Digest: journal.Digest(p.Arguments),
		Deadline: p.Traits.Expiry.Deadline(time.Time{}), Who: p.Traits.Who, Policy: p.Policy,
	}
	w.Hold(p.Traits.Rule, p.Requesters)
	return w
}

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

// Result returns the result of a call that tells the model a text.
func Result(c session.Call, status llm.ResultStatus, text string) llm.ToolResult {
	output, err := json.Marshal(text)
	if err != nil {
		output = json.RawMessage(`""`)
	}
	return llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: status, Output: output}
}
