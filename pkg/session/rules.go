package session

import "time"

// Effect says what a tool does to the world, and so how it is run and what
// happens after a crash (docs/design/README.md).
type Effect string

// The effects. The zero value of a tool's spec means SideEffect.
const (
	// ReadOnly tools change nothing: after a crash the whole step is done again.
	ReadOnly Effect = "read_only"
	// Idempotent tools may run again with the same idempotency key.
	Idempotent Effect = "idempotent"
	// SideEffect tools run at most once, held by a ledger.
	SideEffect Effect = "side_effect"
)

// UnknownPolicy says what happens when it is not known whether a side effect happened, because
// its worker died or it was cut off.
type UnknownPolicy string

// The policies. Tell and Ask run a tool at most once; Probe and Retry are declared at-least-once.
const (
	UnknownTell  UnknownPolicy = "tell"
	UnknownAsk   UnknownPolicy = "ask"
	UnknownProbe UnknownPolicy = "probe"
	UnknownRetry UnknownPolicy = "retry"
)

// Unlimited lifts one limit.
const Unlimited int64 = -1

// Limits bound one task. In an agent's definition zero means the default and
// [Unlimited] means none. Rules name every limit their writer knew; one that is
// not there (zero) does not bind the task.
type Limits struct {
	// Steps counts replies of the planner, failed model calls included.
	Steps int64 `json:"steps"`
	// Tokens counts input and output of all model calls.
	Tokens int64 `json:"tokens"`
	// ActiveMillis is wall time spent working; waiting does not count.
	ActiveMillis int64 `json:"activeMillis"`
	// CostMicros is money in millionths of the agent's currency, for models with a price.
	CostMicros int64 `json:"costMicros"`
	// ToolCalls counts the calls that replies ask for; one that asks for more than is left fails
	// the task before any of them runs. No limit unless it is set.
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// RepeatedCalls is how often in a row the same tool may be called with the same arguments and
	// have the same result: then the agent is stuck. No limit unless it is set, because a tool that
	// is asked whether something is ready yet is called like that, too.
	RepeatedCalls int64 `json:"repeatedCalls,omitempty"`
	// StateBytes is how large the custom state may be. No limit unless it is set.
	StateBytes int64 `json:"stateBytes,omitempty"`
	// Depth of sub-agents below this session and Children started by this task.
	Depth    int64 `json:"depth"`
	Children int64 `json:"children"`
}

// DefaultLimits are used where an agent's definition says zero.
func DefaultLimits() Limits {
	return Limits{
		Steps: 100, Tokens: 2_000_000, ActiveMillis: int64(time.Hour / time.Millisecond),
		CostMicros: Unlimited, Depth: 5, Children: 50,
	}
}

// Or fills the zero fields of l from d.
func (l Limits) Or(d Limits) Limits {
	or := func(v, w int64) int64 {
		if v == 0 {
			return w
		}
		return v
	}
	return Limits{
		Steps: or(l.Steps, d.Steps), Tokens: or(l.Tokens, d.Tokens), ActiveMillis: or(l.ActiveMillis, d.ActiveMillis),
		CostMicros: or(l.CostMicros, d.CostMicros), ToolCalls: or(l.ToolCalls, d.ToolCalls),
		RepeatedCalls: or(l.RepeatedCalls, d.RepeatedCalls), StateBytes: or(l.StateBytes, d.StateBytes), Depth: or(l.Depth, d.Depth), Children: or(l.Children, d.Children),
	}
}

// Left returns what is left of the limits after so much was used. Nothing goes
// below zero; a limit that does not bind is [Unlimited]. It is worked out from
// what was used each time, so that a limit that is added or raised later counts
// from there. Those of calls and of the state are not in it ([Session.LimitUses]).
func (l Limits) Left(used Amounts) Limits {
	left := func(limit, used int64) int64 {
		if limit <= 0 {
			return Unlimited
		}
		return max(limit-used, 0)
	}
	return Limits{
		Steps: left(l.Steps, used.Steps), Tokens: left(l.Tokens, used.Tokens),
		ActiveMillis: left(l.ActiveMillis, used.ActiveMillis), CostMicros: left(l.CostMicros, used.CostMicros),
		Depth: left(l.Depth, 0), Children: left(l.Children, 0),
	}
}

// Exhausted names the first limit that is used up, in the words of the JSON
// form, or returns "". Depth and Children bound new sub-agents only.
func (l Limits) Exhausted() string {
	switch {
	case l.Steps == 0:
		return "steps"
	case l.Tokens == 0:
		return "tokens"
	case l.ActiveMillis == 0:
		return "activeMillis"
	case l.CostMicros == 0:
		return "costMicros"
	}
	return ""
}

// Amounts counts what was used of the limits.
type Amounts struct {
	Steps        int64 `json:"steps,omitempty"`
	Tokens       int64 `json:"tokens,omitempty"`
	ActiveMillis int64 `json:"activeMillis,omitempty"`
	CostMicros   int64 `json:"costMicros,omitempty"`
}

// Add returns the sum of both.
func (a Amounts) Add(b Amounts) Amounts {
	return Amounts{
		Steps: a.Steps + b.Steps, Tokens: a.Tokens + b.Tokens,
		ActiveMillis: a.ActiveMillis + b.ActiveMillis, CostMicros: a.CostMicros + b.CostMicros,
	}
}

// Rules are what a task is held to, written down when it starts.
type Rules struct {
	// Needs names the features that a program must support to work on the task (see
	// [journal.Entry]).
	Needs []string `json:"needs,omitempty"`
	Agent string   `json:"agent"`
	// Digest of the agent's definition: what was approved is what runs.
	Digest string `json:"digest"`
	Model  string `json:"model,omitempty"`
	// Limits the task started with.
	Limits Limits `json:"limits"`
	// SessionLimits bound all tasks of the session together.
	SessionLimits Limits `json:"sessionLimits,omitzero"`
	Policy        Policy `json:"policy,omitzero"`
	// Tools the task may call, sorted.
	Tools []string `json:"tools,omitempty"`
	// Asked is what the caller asked for; the other fields have it in them already.
	Asked *TaskRules `json:"asked,omitempty"`
	// ProgramPolicy is the policy of tools of the program that began the task.
	ProgramPolicy *ToolPolicy `json:"programPolicy,omitempty"`
	// CancelAt is when the task is cancelled, whatever it does or waits for; nil is never.
	CancelAt *time.Time `json:"cancelAt,omitempty"`
	// Retention is how long the session is kept after the task has ended; 0 is for ever.
	Retention time.Duration `json:"retention,omitempty"`
}

// Policy is what an agent decided about people and changes.
type Policy struct {
	// TextNeedsInput: a reply of text alone means "I need you".
	TextNeedsInput bool `json:"textNeedsInput,omitempty"`
	// HoldBatch: no call of a reply runs before every approval of it is decided.
	HoldBatch bool `json:"holdBatch,omitempty"`
	// AbandonOnMessage: a user message closes open waits as one recorded move; otherwise
	// it is refused. So it is where others alone may answer one of them, or where an
	// approval or a reply is stored whose call has not run yet.
	AbandonOnMessage bool `json:"abandonOnMessage,omitempty"`
	// OnChange says what a resumption does with answers that were given under another
	// definition of the agent than that of now.
	OnChange ChangePolicy `json:"onChange,omitempty"`
}

// ChangePolicy says what happens when an agent was changed while a task waited.
type ChangePolicy string

// The change policies. The zero value means ChangeReask: approvals and replies that were given
// under another definition are requested again. A denial stays one, also that of a deadline. A
// report of something done (a client's result, a verdict) is requested again only if its author
// may not give it any more, because a client would do it a second time.
const (
	ChangeGoOn  ChangePolicy = "go_on"
	ChangeReask ChangePolicy = "reask"
	ChangeFail  ChangePolicy = "fail"
)
