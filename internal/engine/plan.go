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

// Result returns the result of a call that tells the model a text.
func Result(c session.Call, status llm.ResultStatus, text string) llm.ToolResult {
	output, err := json.Marshal(text)
	if err != nil {
		output = json.RawMessage(`""`)
	}
	return llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: status, Output: output}
}
