package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/llm"
)

// cutOff marks text that ended at the output limit, for people and for the model
// that reads it again.
const cutOff = "[cut off at the output limit]"

// modelPlanner asks a model for the next reply.
type modelPlanner struct {
	model           llm.Model
	system          string
	tools           []llm.ToolSpec // sorted by name
	choice          llm.ToolChoice
	maxOutputTokens int64
}

func newModelPlanner(model llm.Model, a Agent, allowed []string, textNeedsInput bool) *modelPlanner {
	p := &modelPlanner{model: model, system: a.System, maxOutputTokens: a.MaxOutputTokens}
	for _, t := range a.Tools {
		if slices.Contains(allowed, t.Name()) {
			p.tools = append(p.tools, t.Spec())
		}
	}
	slices.SortFunc(p.tools, func(a, b llm.ToolSpec) int { return cmp.Compare(a.Name, b.Name) })
	// An agent that must end with structured output has nothing to say in text,
	// unless its text is how it asks for people.
	if a.Output != nil && !textNeedsInput && slices.Contains(allowed, FinishTool) {
		p.choice = llm.ChoiceRequired
	}
	return p
}

// Plan sends the conversation and makes a reply of what comes back.
func (p *modelPlanner) Plan(ctx context.Context, v View) (Reply, error) {
	got, err := llm.Collect(p.model.Stream(ctx, llm.Request{
		System: p.system, Messages: v.Messages, Tools: p.tools, Choice: p.choice,
		MaxOutputTokens: p.maxOutputTokens, Delays: v.Delays,
	}), v.Watch)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Parts: got.Message.Parts, Usage: got.Usage, CostMicros: got.CostMicros, Model: got.Model, ResponseID: got.ResponseID, Finish: got.Stop}
	if reply.Parts == nil {
		reply.Parts = []llm.Part{}
	}
	switch got.Stop {
	case llm.StopRefused:
		return Reply{}, &llm.Error{Class: llm.ClassRefused, Message: cmp.Or(got.Message.Text(), "the model refused to answer")}
	case llm.StopLength:
		return p.cutOff(reply)
	case llm.StopNeedsInput:
		// With calls beside it the question comes too early: they run first.
		reply.NeedsInput = len(got.Message.ToolCalls()) == 0
	case llm.StopEnd, llm.StopToolCalls:
	}
	return reply, nil
}

// cutOff makes the best of a reply that ended at the output limit. Only its last
// part can be incomplete. A call there must not run with half its arguments, nor
// with none: they become a text that says why, which the tool's schema refuses,
// so that the model is told. Calls before it are whole. Text is marked.
func (p *modelPlanner) cutOff(reply Reply) (Reply, error) {
	parts := slices.Clone(reply.Parts)
	said := slices.ContainsFunc(parts, func(part llm.Part) bool {
		return part.Kind != llm.PartReasoning
	})
	if !said {
		limit := "the model's output limit"
		if p.maxOutputTokens > 0 {
			limit = fmt.Sprintf("the limit of %d output tokens", p.maxOutputTokens)
		}
		return Reply{}, &llm.Error{Class: llm.ClassInvalid, Message: "the reply reached " + limit + " before it said anything: raise MaxOutputTokens"}
	}
	last := &parts[len(parts)-1]
	switch last.Kind {
	case llm.PartToolCall:
		call := *last.ToolCall
		var text string // what is not JSON is kept as a JSON string
		if json.Unmarshal(call.Arguments, &text) != nil {
			text = string(call.Arguments)
		}
		written, err := json.Marshal(cutOff + " " + text)
		if err != nil {
			return Reply{}, fmt.Errorf("arguments of %s: %w", call.Name, err)
		}
		call.Arguments = written
		last.ToolCall = &call
	case llm.PartText:
		last.Text += "\n\n" + cutOff
	case llm.PartReasoning, llm.PartToolResult, llm.PartImage, llm.PartFile:
		parts = append(parts, llm.Text(cutOff))
	}
	reply.Parts = parts
	return reply, nil
}
