package session

import (
	"fmt"
	"maps"
	"slices"
)

// ToolMode says how a call of a tool is let run.
type ToolMode string

// The modes. None of them lets a call run without the approval that its tool wants: auto leaves that
// to the tool.
const (
	ToolAuto   ToolMode = "auto"
	ToolPrompt ToolMode = "prompt" // only with an approval
	ToolNever  ToolMode = "never"  // it is denied at once
)

// ToolPolicy says for the tools of a task which of their calls need an approval, beside what the tools
// themselves say, and which are denied.
type ToolPolicy struct {
	// Tools by name; names of other tools than the agent's are of no consequence.
	Tools map[string]ToolMode `json:"tools,omitempty"`
	// Default is for all others; empty means auto.
	Default ToolMode `json:"default,omitempty"`
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
	return nil
}

func (m ToolMode) valid() bool { return m == ToolAuto || m == ToolPrompt || m == ToolNever }
