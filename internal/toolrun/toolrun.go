// Package toolrun holds what the runtime and tooltest share of running a tool: what its
// definition means to the engine, what it waits for, and what follows when the outcome of
// a run is not known.
package toolrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// MaxTimeouts is how often a tool that is declared at-least-once may time out in
// one step before the model is told that its outcome is not known.
const MaxTimeouts = 3

// Traits tells the engine about a tool and the arguments of a call.
func Traits(t tool.Tool, arguments json.RawMessage) engine.Traits {
	effective, err := t.Effective(arguments)
	out := engine.Traits{
		Known: true, Arguments: effective, Effect: t.Effect(), Client: t.Client(), Finish: t.Finish(), OnUnknown: t.OnUnknown(),
		Expiry: Expiry(t.Expiry()), Who: t.Who(), Rule: t.Rule(),
		Approval: func() bool { return t.HasApproval() && t.NeedsApproval(effective) }, PolicyMayAllow: t.PolicyMayAllow(),
	}
	if err != nil {
		out.Problem = err.Error()
	}
	return out
}

// ErrMismatch says that a call was approved with other arguments than the tool's function would get.
var ErrMismatch = errors.New(engine.TextMismatch)

// ErrPermissionOver says that a standing permission ended after the step began and before the call did.
var ErrPermissionOver = errors.New("the permission for this call ended before the call could begin, so it was not started. Call it again, and a person is asked")

// CheckDecided compares what was approved with what the tool's function gets, at the moment before it
// does: [ErrMismatch], unless nobody had to be asked. What a standing permission covers begins before
// that ends: [ErrPermissionOver].
func CheckDecided(t tool.Tool, p engine.CallPlan, now time.Time) error {
	if p.Decided == "" {
		return nil
	}
	effective, err := t.Effective(p.Arguments)
	if err != nil || journal.Digest(effective) != p.Decided || journal.Digest(p.Arguments) != p.Decided {
		return ErrMismatch
	}
	if p.Permission != nil && !now.Before(p.Permission.Standing.Until) {
		return ErrPermissionOver
	}
	return nil
}

// Expiry turns a tool's deadline into the engine's type.
func Expiry(x *tool.Expiry) *engine.Expiry {
	if x == nil {
		return nil
	}
	out := &engine.Expiry{After: x.After, Outcome: x.Outcome, Remind: x.Remind, Escalate: x.Escalate}
	if x.Value != nil {
		if raw, err := json.Marshal(x.Value); err == nil { // the registry checked it
			out.Value = raw
		}
	}
	return out
}

// QuestionWait is the wait that a question opens. Whoever may decide about the tool may
// answer its questions, unless the question names others: then the tool's names and roles do not
// count, and what else its rule asks does.
func QuestionWait(p engine.CallPlan, q tool.Question) session.Wait {
	w := session.Wait{
		Kind: session.WaitQuestion, Call: p.Call.ID, Tool: p.Call.Name, Arguments: p.Arguments, Digest: journal.Digest(p.Arguments),
		Question: toolcall.Shown(q), Deadline: Expiry(q.Expiry).Deadline(time.Time{}), Who: q.Who, Policy: p.Policy,
	}
	rule := p.Traits.Rule
	if rule != nil && !slices.Equal(q.Who, p.Traits.Who) {
		own := *rule
		own.Roles, rule = nil, &own
	}
	w.Hold(rule, p.Requesters)
	return w
}

// UnknownWait is the wait for a person's verdict on a call whose outcome is not known.
func UnknownWait(p engine.CallPlan) session.Wait {
	w := session.Wait{
		Kind: session.WaitUnknown, Call: p.Call.ID, Tool: p.Call.Name, Arguments: p.Arguments, Digest: journal.Digest(p.Arguments),
		Text: engine.TextUnknown, Who: p.Traits.Who, Policy: p.Policy,
	}
	w.Hold(p.Traits.Rule, p.Requesters)
	// The default of a deadline is for the tool's approval. It cannot say in advance
	// what happened, so a verdict has no deadline then.
	if x := p.Traits.Expiry; x != nil && x.Outcome != session.ExpireDefault {
		w.Deadline = x.Deadline(time.Time{})
	}
	return w
}

// AfterTimeout ends a call that timed out as [Unknown] does, and says why it is not known.
func AfterTimeout(p engine.CallPlan, timeout time.Duration) (*llm.ToolResult, *session.Wait) {
	text := TextTimedOut(timeout)
	if p.Traits.OnUnknown == session.UnknownAsk {
		w := UnknownWait(p)
		w.Text = text
		return nil, &w
	}
	result := engine.Result(p.Call, llm.ResultUnknown, text)
	return &result, nil
}

// Unknown ends a call of which nothing more can be found out: by the tool's policy a
// person is asked (a wait) or the model is told (a result).
func Unknown(p engine.CallPlan) (*llm.ToolResult, *session.Wait) {
	if p.Traits.OnUnknown == session.UnknownAsk {
		w := UnknownWait(p)
		return nil, &w
	}
	result := engine.Result(p.Call, llm.ResultUnknown, engine.TextUnknown)
	return &result, nil
}

// Probe asks the tool whether an earlier run took effect. Its result is that of the call;
// nil says that the run had no effect and the tool is to run again.
func Probe(ctx context.Context, t tool.Tool, c *tool.Call, p engine.CallPlan) *llm.ToolResult {
	if err := CheckDecided(t, p, time.Time{}); err != nil { // it only looks
		result := engine.Result(p.Call, llm.ResultUnknown, engine.TextUnknown+" "+err.Error())
		return &result
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout())
	defer cancel()
	output, happened, err := t.Probe(ctx, c, p.Arguments)
	switch {
	case err != nil:
		result := engine.Result(p.Call, llm.ResultUnknown, engine.TextUnknown+" Looking for it failed: "+err.Error())
		return &result
	case happened:
		result := Success(p.Call, output)
		return &result
	}
	return nil
}

// Success is the result of a call whose tool returned an output.
func Success(c session.Call, output json.RawMessage) llm.ToolResult {
	return llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: output}
}

// TimedOut is the result of a call whose tool did not end in time and had no side effect.
func TimedOut(c session.Call, timeout time.Duration) llm.ToolResult {
	return engine.Result(c, llm.ResultTimedOut, fmt.Sprintf("The tool did not finish within %s.", timeout))
}

// TextTimedOut is what is told of a side effect that did not end in time.
func TextTimedOut(timeout time.Duration) string {
	return fmt.Sprintf("The tool did not finish within %s. %s", timeout, engine.TextUnknown)
}

// TimedOutAgain is the result of a call that may be run again and timed out each time.
func TimedOutAgain(c session.Call, timeout time.Duration, times int) llm.ToolResult {
	return engine.Result(c, llm.ResultUnknown, fmt.Sprintf("%s It did not finish within %s, %d times.", engine.TextUnknown, timeout, times))
}

// CheckEdited refuses arguments that a person has edited and the tool does not accept.
func CheckEdited(t tool.Tool, edited json.RawMessage) error {
	if err := journal.CheckValue(edited); err != nil {
		return fmt.Errorf("the edited input %w", err)
	}
	effective, err := t.Effective(edited)
	if wrong := (*tool.ArgumentError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("the edited input of %s is not valid; it holds all arguments, also those that stay:%s", t.Name(), wrong.List())
	}
	if err != nil {
		return fmt.Errorf("the edited input is refused: %w", err)
	}
	if journal.Digest(effective) != journal.Digest(edited) {
		return fmt.Errorf("the edited input is not what %s would get, and so not what would be approved; it would get %s: give that", t.Name(), effective)
	}
	return nil
}

// ReplyFields says what the two fields of a reply are called where it is written.
type ReplyFields struct{ Text, Selected string }

// CheckReply refuses a reply that does not fit its question.
func CheckReply(q session.Question, a session.Answer, fields ReplyFields) error {
	if q.Kind == session.QuestionText {
		if a.Text == nil {
			return fmt.Errorf("the question takes %s", fields.Text)
		}
		return nil
	}
	if a.Selected == nil {
		return fmt.Errorf("the question takes %s: %s", fields.Selected, choices(q))
	}
	if q.Kind == session.QuestionChoice && len(a.Selected) != 1 {
		return fmt.Errorf("choose exactly one of %s", choices(q))
	}
	for i, id := range a.Selected {
		if !slices.ContainsFunc(q.Choices, func(c session.Choice) bool { return c.ID == id }) {
			return fmt.Errorf("%q is not a choice: choose from %s", id, choices(q))
		}
		if slices.Contains(a.Selected[:i], id) {
			return fmt.Errorf("%q is chosen twice", id)
		}
	}
	return nil
}

func choices(q session.Question) string {
	ids := make([]string, len(q.Choices))
	for i, c := range q.Choices {
		ids[i] = c.ID
	}
	return strings.Join(ids, ", ")
}
