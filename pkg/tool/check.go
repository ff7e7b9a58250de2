package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// SpecError is one mistake of a tool's definition.
type SpecError struct {
	Tool string
	// Field of the [Spec].
	Field string
	// Problem says what is wrong and what to do.
	Problem string
}

// Error says tool, field and problem.
func (e *SpecError) Error() string {
	return fmt.Sprintf("tool %q: %s: %s", e.Tool, e.Field, e.Problem)
}

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check lists every mistake of a spec, its schema aside.
func check[In any](spec Spec[In], client bool) error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &SpecError{Tool: spec.Name, Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if !namePattern.MatchString(spec.Name) {
		wrong("Name", "%q does not fit model providers: use 1 to 64 letters, digits, _ or -", spec.Name)
	}
	switch spec.Effect {
	case "", session.ReadOnly, session.Idempotent, session.SideEffect:
	default:
		wrong("Effect", "%q is no effect: use tool.ReadOnly, tool.Idempotent or tool.SideEffect", spec.Effect)
	}
	switch spec.OnUnknown {
	case "", session.UnknownTell, session.UnknownAsk, session.UnknownRetry:
		if spec.Probe != nil {
			wrong("Probe", "it is never asked unless OnUnknown is tool.UnknownProbe")
		}
	case session.UnknownProbe:
		if spec.Probe == nil {
			wrong("Probe", "tool.UnknownProbe needs a function that finds out what happened")
		}
	default:
		wrong("OnUnknown", "%q is no policy: use tool.UnknownTell, UnknownAsk, UnknownProbe or UnknownRetry", spec.OnUnknown)
	}
	if spec.OnUnknown != "" && !client && (spec.Effect == session.ReadOnly || spec.Effect == session.Idempotent) {
		wrong("OnUnknown", "a tool that is %s is simply run again: leave it empty, or make the effect tool.SideEffect", spec.Effect)
	}
	if spec.Timeout < 0 {
		wrong("Timeout", "%s is negative: leave it zero for %s", spec.Timeout, DefaultTimeout)
	}
	if spec.Timeout > 0 && spec.Timeout < time.Millisecond && !client {
		wrong("Timeout", "%s is too short for any tool: a number without a unit is nanoseconds, write 5 * time.Second", spec.Timeout)
	}
	if client {
		if spec.Timeout > 0 {
			wrong("Timeout", "it is for tools that run here: use Expiry for how long to wait for the client")
		}
		if spec.OnUnknown != "" {
			wrong("OnUnknown", "it is for tools that run here: the client says what happened")
		}
	}
	checkExpiry(spec, client, wrong)
	checkRule(spec, wrong)
	checkStanding(spec, client, wrong)
	checkMayAllow(spec, client, wrong)
	return errors.Join(errs...)
}

// checkRule is about who may answer, and how many must.
func checkRule[In any](spec Spec[In], wrong func(field, format string, args ...any)) {
	if slices.Contains(spec.Who, "") {
		wrong("Who", "it holds an empty name, which nobody has")
	}
	if slices.Contains(spec.Roles, "") {
		wrong("Roles", "it holds an empty role, which nobody has")
	}
	named := len(slices.Compact(slices.Sorted(slices.Values(spec.Who))))
	for _, count := range []struct {
		field string
		is    int
	}{{"Need", spec.Need}, {"Noes", spec.Noes}} {
		switch {
		case count.is < 0:
			wrong(count.field, "%d is negative: leave it zero for one", count.is)
		case count.is > session.MaxVotes:
			wrong(count.field, "%d people are more than %d, the most there may be", count.is, session.MaxVotes)
		case count.is < 2:
		case spec.Approve == nil:
			wrong(count.field, "it counts votes on an approval, and the tool asks for none: set Approve. One person answers a question, or for a client")
		case named > 0 && len(spec.Roles) == 0 && count.is > named:
			wrong(count.field, "%d people are needed, and Who names %d", count.is, named)
		}
	}
	switch spec.Assurance {
	case "", session.AssuranceLink, session.AssuranceSignedIn:
	default:
		wrong("Assurance", "%q is no assurance: use tool.AssuranceLink or tool.AssuranceSignedIn", spec.Assurance)
	}
	if x := spec.Expiry; x != nil && x.Outcome == session.ExpireDefault && spec.Approve != nil && isTrue(x.Value) && spec.answerRule().NeedsPeople() {
		wrong("Expiry", "a default of true would approve without the people that Need, Noes, NotRequester and Assurance ask for: use false, deny, fail or reask")
	}
}

func isTrue(v any) bool {
	raw, err := marshalValue(v)
	return err == nil && string(raw) == "true"
}

// checkStanding is about permissions for later calls.
func checkStanding[In any](spec Spec[In], client bool, wrong func(field, format string, args ...any)) {
	switch s := spec.Standing; {
	case s == nil:
	case client:
		wrong("Standing", "the client decides about its own tools: leave it nil")
	case spec.Need > 1 || spec.Noes > 1:
		wrong("Standing", "several people decide about each call (Need, Noes), and one cannot allow the next ones for them")
	case s.MaxAge < 0 || s.MaxAge > session.MaxStanding || s.MaxAge > 0 && s.MaxAge < time.Second:
		wrong("Standing", "MaxAge is %s: use a second to %s, or zero for that", s.MaxAge, session.MaxStanding)
	}
}

// checkMayAllow is about a policy that lets calls run without the approval: not where the definition asks for
// people that nothing else can stand for.
func checkMayAllow[In any](spec Spec[In], client bool, wrong func(field, format string, args ...any)) {
	if !spec.PolicyMayAllow {
		return
	}
	const field = "PolicyMayAllow"
	switch {
	case client:
		wrong(field, "it is for tools that run here")
	case spec.Approve == nil:
		wrong(field, "the tool asks for no approval: set Approve, or leave it out")
	case spec.answerRule().NeedsPeople():
		wrong(field, "a policy would approve without the people that Need, Noes, NotRequester and Assurance ask for: leave it out")
	}
}

func checkExpiry[In any](spec Spec[In], client bool, wrong func(field, format string, args ...any)) {
	if spec.Expiry == nil {
		return
	}
	kind := session.WaitClientTool
	switch {
	case client && spec.Approve != nil && spec.Expiry.Outcome == session.ExpireDefault:
		wrong("Expiry", "a default would be both the approval and the client's result: use deny, fail or reask")
		return
	case client:
	case spec.Approve != nil:
		kind = session.WaitApproval
	case spec.OnUnknown == session.UnknownAsk:
		kind = session.WaitUnknown
	default:
		wrong("Expiry", "the tool waits for nobody: it has no approval rule and runs here")
		return
	}
	if err := spec.Expiry.check(kind); err != nil {
		wrong("Expiry", "%s", err)
	}
	if to := spec.Expiry.Escalate; to != nil && len(spec.Who)+len(spec.Roles) == 0 {
		wrong("Expiry", "it escalates to others, and everyone who sees the session may answer already: name in Who or Roles who is asked first")
	}
}

// Expiry is the deadline of a wait and what happens then.
type Expiry struct {
	// After is the time from asking to the deadline.
	After time.Duration
	// Outcome says what the expiry means.
	Outcome DeadlineOutcome
	// Value is the answer of [ExpireDefault]: true or false for an
	// approval, any JSON for a client's result, text for input and text questions,
	// an id or a []string of ids for questions with choices.
	Value any
	// Remind is how long before the deadline whoever may answer is reminded: at most 4 times, each
	// shorter than After.
	Remind []time.Duration
	// Escalate has others asked as well when the deadline has passed. The wait is then open for
	// a time of its own, and Outcome comes at the end of that. Whoever might answer before still may.
	Escalate *Escalation
}

func (e *Expiry) clone() *Expiry {
	if e == nil {
		return nil
	}
	c := *e
	c.Remind, c.Escalate = slices.Clone(e.Remind), e.Escalate.Clone()
	return &c
}

// check says everything that is wrong with the expiry of a wait of this kind.
// A nil expiry waits for ever and is never wrong.
func (e *Expiry) check(kind session.WaitKind) error {
	if e == nil {
		return nil
	}
	var errs []error
	if e.After <= 0 {
		errs = append(errs, fmt.Errorf("expiry after %s: the time must be more than zero", e.After))
	}
	errs = append(errs, session.CheckReminders(e.After, e.Remind), e.checkEscalation(kind))
	switch e.Outcome {
	case session.ExpireDefault:
		if err := e.checkValue(kind); err != nil {
			errs = append(errs, err)
		}
	case session.ExpireDeny, session.ExpireFail, session.ExpireReask:
		if e.Value != nil {
			errs = append(errs, fmt.Errorf("expiry with outcome %s takes no value: only default does", e.Outcome))
		}
	default:
		errs = append(errs, fmt.Errorf("expiry outcome %q: use tool.ExpireDeny, ExpireDefault, ExpireFail or ExpireReask", e.Outcome))
	}
	return errors.Join(errs...)
}

func (e *Expiry) escalate() *session.Escalation {
	if e == nil {
		return nil
	}
	return e.Escalate
}

func (e *Expiry) checkEscalation(kind session.WaitKind) error {
	if e.Escalate != nil && (kind == session.WaitInput || kind == session.WaitChild) {
		return fmt.Errorf("a wait of kind %s has nobody to escalate to: everyone who sees the session may answer it", kind)
	}
	return e.Escalate.Check()
}

func (e *Expiry) checkValue(kind session.WaitKind) error {
	raw, err := marshalValue(e.Value)
	if err != nil {
		return fmt.Errorf("expiry default value: %w", err)
	}
	is := func(targets ...any) bool {
		for _, target := range targets {
			if json.Unmarshal(raw, target) == nil && string(raw) != "null" {
				return true
			}
		}
		return false
	}
	switch kind {
	case session.WaitApproval:
		if !is(new(bool)) {
			return fmt.Errorf("expiry with outcome default needs a value: true approves, false does not; it has %s", value(e.Value))
		}
	case session.WaitQuestion:
		if !is(new(string), new([]string)) {
			return errors.New("expiry with outcome default needs a value: a text, or the ids of choices")
		}
	case session.WaitInput:
		if !is(new(string)) {
			return errors.New("expiry with outcome default needs a value: the text of a user message")
		}
	case session.WaitClientTool:
		if e.Value == nil {
			return errors.New("expiry with outcome default needs a value: the result of the tool (json.RawMessage(`null`) for null)")
		}
	case session.WaitUnknown, session.WaitChild:
		return fmt.Errorf("expiry of a wait of kind %s has no default: use deny, fail or reask", kind)
	}
	return nil
}
