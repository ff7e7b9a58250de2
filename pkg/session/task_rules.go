package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// TaskRules are what a caller asks of the task that begins. What is left out stays as the agent's
// definition has it.
type TaskRules struct {
	// Limits that are not zero take the place of the agent's: lower ones always, higher ones up to
	// what the agent's definition lets callers raise them to.
	Limits AskedLimits `json:"limits,omitzero"`
	// Model in place of the agent's; one of those that its definition lets callers choose.
	Model string `json:"model,omitempty"`
	// AllowedTools are the only ones of the agent's tools that the task may call. Nil means all,
	// an empty list none.
	AllowedTools []string `json:"allowedTools,omitzero"`
	// HoldBatch true has no call of a reply run before every approval of it is decided; false leaves it
	// to the agent's definition, whatever was asked before.
	HoldBatch *bool `json:"holdBatch,omitempty"`
	// PauseOnApproval false has a call that needs an approval denied at once, for a task that nobody
	// attends; nil means true.
	PauseOnApproval *bool `json:"pauseOnApproval,omitempty"`
	// Policy says which calls need an approval, beside those whose tools say so, and which are denied.
	Policy *ToolPolicy `json:"policy,omitempty"`
	// CancelAfterMillis is how long the task may take, waiting included, before it is cancelled;
	// [Unlimited] takes back what was asked before, and zero leaves it.
	CancelAfterMillis int64 `json:"cancelAfterMillis,omitempty"`
}

// MaxCancelAfter is the longest that may be asked for.
const MaxCancelAfter = 10 * 365 * 24 * time.Hour

// CancelAt is when a task that begins now is to be cancelled; nil is never.
func (r *TaskRules) CancelAt(now time.Time) *time.Time {
	if r == nil || r.CancelAfterMillis <= 0 {
		return nil
	}
	return new(now.UTC().Add(time.Duration(r.CancelAfterMillis) * time.Millisecond))
}

// DeniesApprovals reports whether calls that need an approval are denied at once.
func (r *TaskRules) DeniesApprovals() bool {
	return r != nil && r.PauseOnApproval != nil && !*r.PauseOnApproval
}

// ModeOf returns how calls of a tool are let run.
func (r *TaskRules) ModeOf(tool string) ToolMode {
	if r == nil {
		return ToolAuto
	}
	return r.Policy.Of(tool)
}

// AskedLimits are [Limits] that a caller asks for; zero fields leave what the agent's definition has.
type AskedLimits struct {
	Steps         int64 `json:"steps,omitempty"`
	Tokens        int64 `json:"tokens,omitempty"`
	ActiveMillis  int64 `json:"activeMillis,omitempty"`
	CostMicros    int64 `json:"costMicros,omitempty"`
	ToolCalls     int64 `json:"toolCalls,omitempty"`
	RepeatedCalls int64 `json:"repeatedCalls,omitempty"`
	StateBytes    int64 `json:"stateBytes,omitempty"`
	Depth         int64 `json:"depth,omitempty"`
	Children      int64 `json:"children,omitempty"`
}

// IsZero reports whether nothing is asked.
func (r TaskRules) IsZero() bool {
	return r.Limits == AskedLimits{} && r.Model == "" && r.AllowedTools == nil && r.HoldBatch == nil && r.PauseOnApproval == nil && r.Policy == nil && r.CancelAfterMillis == 0
}

// Over returns r with what it leaves out taken from before: a task that is tried again, or begins from
// a checkpoint, is held to what was asked of the task before, until that is changed.
func (r TaskRules) Over(before *TaskRules) TaskRules {
	if before == nil {
		return r
	}
	r.Limits = AskedLimits(Limits(r.Limits).Or(Limits(before.Limits)))
	if r.Model == "" {
		r.Model = before.Model
	}
	if r.AllowedTools == nil {
		r.AllowedTools = before.AllowedTools
	}
	if r.PauseOnApproval == nil {
		r.PauseOnApproval = before.PauseOnApproval
	}
	if r.HoldBatch == nil {
		r.HoldBatch = before.HoldBatch
	}
	r.Policy = cmp.Or(r.Policy, before.Policy)
	r.CancelAfterMillis = cmp.Or(r.CancelAfterMillis, before.CancelAfterMillis)
	return r
}

// Named returns each limit with its name in JSON, in the order of the fields.
func (l *Limits) Named() []NamedLimit {
	return []NamedLimit{
		{"steps", &l.Steps},
		{"tokens", &l.Tokens},
		{"activeMillis", &l.ActiveMillis},
		{"costMicros", &l.CostMicros},
		{"toolCalls", &l.ToolCalls},
		{"repeatedCalls", &l.RepeatedCalls},
		{"stateBytes", &l.StateBytes},
		{"depth", &l.Depth},
		{"children", &l.Children},
	}
}

// NamedLimit is one of the limits.
type NamedLimit struct {
	Name  string
	Value *int64
}

// Asked returns the limits with those that a caller asks for, none of which may be higher than the
// agent's own, or than the ceiling, whichever is higher. An error says which one is.
func (l Limits) Asked(asked AskedLimits, ceiling Limits) (Limits, error) {
	limits := Limits(asked)
	from, most := limits.Named(), ceiling.Named()
	for i, own := range l.Named() {
		want := *from[i].Value
		if want == 0 {
			continue
		}
		if want < Unlimited {
			return Limits{}, fmt.Errorf("limit %s: %d is no limit", own.Name, want)
		}
		binds := *own.Value > 0
		if binds && higher(want, *own.Value) && (*most[i].Value == 0 || higher(want, *most[i].Value)) {
			return Limits{}, &RaisedLimitError{Limit: own.Name, Asked: want, Most: max(*own.Value, *most[i].Value)}
		}
		*own.Value = want
	}
	return l, nil
}

// higher reports whether a limit is higher than another one; none is the highest.
func higher(a, b int64) bool {
	if a == Unlimited || b == Unlimited {
		return a == Unlimited && b != Unlimited
	}
	return a > b
}

// RaisedLimitError is a limit that is higher than a caller may have it.
type RaisedLimitError struct {
	Limit       string
	Asked, Most int64
}

// Error says which limit it is.
func (e *RaisedLimitError) Error() string {
	asked := fmt.Sprint(e.Asked)
	if e.Asked == Unlimited {
		asked = "none"
	}
	return fmt.Sprintf("limit %s: %s is more than a caller may ask for, which is %d (the agent's definition has it in Callers.RaiseLimits)", e.Limit, asked, e.Most)
}

// What the metadata of a session may be.
const (
	maxMetadata      = 16
	maxMetadataValue = 512
)

// ValidateMetadata refuses metadata of more than 16 values, names that are not 1 to 64 of the
// characters of a tag, and values of more than 512 bytes.
func ValidateMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return fmt.Errorf("metadata has %d values: at most %d", len(metadata), maxMetadata)
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if !validTag(name) {
			return fmt.Errorf("metadata %.70q: a name has 1 to %d letters, digits, or one of _ . : / @ = + -", name, MaxTag)
		}
		if len(metadata[name]) > maxMetadataValue {
			return fmt.Errorf("metadata %s has %d bytes: at most %d", name, len(metadata[name]), maxMetadataValue)
		}
	}
	return nil
}
