package session

import (
	"fmt"
	"maps"
	"slices"
)

// ToolMode says how a call of a tool is let run.
type ToolMode string

// The modes. None of them lets a call run without the approval that its tool wants, but for auto in the
// policy of a program ([Rules.PolicyAllows]).
const (
	ToolAuto   ToolMode = "auto"
	ToolPrompt ToolMode = "prompt" // only with an approval
	ToolNever  ToolMode = "never"  // it is denied
)

// strictness orders the modes.
var strictness = map[ToolMode]int{ToolAuto: 0, ToolPrompt: 1, ToolNever: 2}

// NeverMode says what follows when a call is denied because its tool is never let run.
type NeverMode string

// The ways. Whatever a person says where the task pauses, the call has been denied and does not run.
const (
	NeverReject NeverMode = "reject" // the agent is told, and goes on
	NeverPause  NeverMode = "pause"  // the task waits for a message that says how to go on
)

// ToolPolicy says for the tools of a task which of their calls need an approval, beside what the tools
// themselves say, and which are denied.
type ToolPolicy struct {
	// Tools by name; names of other tools than the agent's are of no consequence.
	Tools map[string]ToolMode `json:"tools,omitempty"`
	// Default is for all others; empty means auto.
	Default ToolMode `json:"default,omitempty"`
	// Never is what follows a call that is denied; empty means reject.
	Never NeverMode `json:"never,omitempty"`
}

// Of returns the mode of a tool; without a policy it is auto.
func (p *ToolPolicy) Of(tool string) ToolMode {
	if p == nil {
		return ToolAuto
	}
	mode, ok := p.Tools[tool]
	if !ok {
		mode = p.Default
	}
	if mode == "" {
		mode = ToolAuto
	}
	return mode
}

// Validate refuses words that are no modes.
func (p *ToolPolicy) Validate() error {
	if p == nil {
		return nil
	}
	for _, tool := range slices.Sorted(maps.Keys(p.Tools)) {
		if !p.Tools[tool].valid() {
			return fmt.Errorf("policy: %.80q is no mode of tool %.80q: say %s, %s or %s", p.Tools[tool], tool, ToolAuto, ToolPrompt, ToolNever)
		}
	}
	if p.Default != "" && !p.Default.valid() {
		return fmt.Errorf("policy: %.80q is no default: say %s, %s or %s", p.Default, ToolAuto, ToolPrompt, ToolNever)
	}
	if p.Never != "" && p.Never != NeverReject && p.Never != NeverPause {
		return fmt.Errorf("policy: %.80q is nothing that follows what is never allowed: say %s or %s", p.Never, NeverReject, NeverPause)
	}
	return nil
}

func (m ToolMode) valid() bool { return m == ToolAuto || m == ToolPrompt || m == ToolNever }

// names reports whether a policy says auto of this very tool, rather than by its default.
func (p *ToolPolicy) names(tool string) bool { return p != nil && p.Tools[tool] == ToolAuto }

// pauses reports whether a policy has a task wait after a call of the tool.
func (p *ToolPolicy) pauses(tool string) bool {
	return p != nil && p.Never == NeverPause && p.Of(tool) == ToolNever
}

// And returns the policy that is as strict as both: auto is said of a tool only where both say it of that
// very tool, so that nothing is loosened that one of them leaves alone.
func (p *ToolPolicy) And(other *ToolPolicy) *ToolPolicy {
	if p == nil && other == nil {
		return nil
	}
	both := &ToolPolicy{}
	for _, of := range []*ToolPolicy{p, other} {
		if of == nil {
			continue
		}
		if strictness[of.Default] > strictness[both.Default] {
			both.Default = of.Default
		}
		if of.Never == NeverPause {
			both.Never = NeverPause
		}
		for tool := range of.Tools {
			mode := stricter(p.Of(tool), other.Of(tool))
			if mode == ToolAuto && (!p.names(tool) || !other.names(tool)) {
				continue
			}
			if both.Tools == nil {
				both.Tools = map[string]ToolMode{}
			}
			both.Tools[tool] = mode
		}
	}
	return both
}

func stricter(a, b ToolMode) ToolMode {
	if strictness[b] > strictness[a] {
		return b
	}
	return a
}

// needs names the features that a program must have to hold a task to the policy.
func (p *ToolPolicy) needs() (words []string) {
	if p != nil && p.Never == NeverPause {
		words = append(words, NeedsPolicyPause)
	}
	return words
}

// HoldTo adds the policies of programs to the rules of a task that begins: that of the program that
// begins it, and that which the task before was held to, where it is tried again or begins from a
// checkpoint. So neither a program without its policy nor one with another policy loosens it.
func (r *Rules) HoldTo(program *ToolPolicy) {
	r.ProgramPolicy = program.And(program) // a copy
	if program != nil {
		r.need(append(program.needs(), NeedsProgramPolicy)...)
	}
}

// HoldAlso adds the policy of the task before; see [Rules.HoldTo].
func (r *Rules) HoldAlso(before *ToolPolicy) {
	r.HoldTo(r.ProgramPolicy.And(before))
}

func (r *Rules) need(words ...string) {
	for _, word := range words {
		if !slices.Contains(r.Needs, word) {
			r.Needs = append(slices.Clip(r.Needs), word)
		}
	}
}

// HoldToAsked notes that a program must know the policy that a caller asks for.
func (r *Rules) HoldToAsked(policy *ToolPolicy) {
	if policy != nil {
		r.need(append(policy.needs(), NeedsToolPolicy)...)
	}
}

// ModeOf returns how calls of a tool are let run: the stricter of what the caller asked for and what the
// program says.
func (r *Rules) ModeOf(tool string) ToolMode {
	return stricter(r.Asked.ModeOf(tool), r.ProgramPolicy.Of(tool))
}

// PolicyAllows reports whether the policy of the program lets calls of a tool run without the approval that
// its rule asks for, if its definition says that a policy may: it says auto of this very tool, and the
// caller's policy does not ask for more. A caller's policy never allows that: whoever asks for a task would
// approve what it does.
func (r *Rules) PolicyAllows(tool string) bool {
	return r.ProgramPolicy.names(tool) && r.ModeOf(tool) == ToolAuto
}

// PausesOn reports whether the task waits for a message after a call of a tool was denied. One that nobody
// attends does not.
func (r *Rules) PausesOn(tool string) bool {
	if r.Asked.DeniesApprovals() {
		return false
	}
	return r.ProgramPolicy.pauses(tool) || r.Asked != nil && r.Asked.Policy.pauses(tool)
}
