package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// defaultMaxTokens is sent where a request has no limit, since the API needs one. Every
// model that is still served writes at least as much.
const defaultMaxTokens = 32_000

// noParameters is the schema of a tool without one.
const noParameters = `{"type":"object","properties":{}}`

func (m *model) params(req llm.Request) (sdk.MessageNewParams, error) {
	params := sdk.MessageNewParams{Model: m.name, MaxTokens: req.MaxOutputTokens}
	if req.MaxOutputTokens <= 0 {
		params.MaxTokens = defaultMaxTokens + m.budget
	} else if req.MaxOutputTokens <= m.budget {
		return params, remote.Refuse(llm.ClassInvalid, "the model may think %d tokens (ANTHROPIC_THINKING), so the reply needs a limit (MaxOutputTokens) above that, not %d", m.budget, req.MaxOutputTokens)
	}
	if !blank(req.System) {
		params.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	c := conversation{ids: map[string]string{}, taken: map[string]bool{}, open: map[string]bool{}, called: map[string]bool{}}
	for i, message := range req.Messages {
		if err := c.add(message); err != nil {
			return params, &llm.Error{Class: llm.ClassInvalid, Message: fmt.Sprintf("message %d: %s", i, err), Cause: err}
		}
	}
	c.mark()
	params.Messages = c.messages
	params.Tools, params.ToolChoice = tools(req, c.called)
	if m.thinking.OfDisabled != nil || params.ToolChoice.OfAny == nil && m.mayThink(c.messages) {
		params.Thinking = m.thinking
	}
	return params, nil
}

// mayThink reports whether the conversation can be sent with the setting of thinking. With
// a budget, the API refuses the results of calls where nothing was thought since the user
// spoke: another model made them, or the setting was changed. The turn after them thinks
// again.
func (m *model) mayThink(messages []sdk.MessageParam) bool {
	n := len(messages)
	if m.budget == 0 || n < 2 || messages[n-1].Content[0].OfToolResult == nil {
		return true
	}
	for ; n >= 2 && messages[n-1].Content[0].OfToolResult != nil; n -= 2 {
		first := messages[n-2].Content[0]
		if first.OfThinking != nil || first.OfRedactedThinking != nil {
			return true
		}
	}
	return false
}

// tools writes the tools in the order of the request. A history with calls needs them
// defined even where none may be called any more.
func tools(req llm.Request, called map[string]bool) (list []sdk.ToolUnionParam, choice sdk.ToolChoiceUnionParam) {
	specs, wish := req.Tools, req.Choice
	if len(specs) == 0 {
		for _, name := range slices.Sorted(maps.Keys(called)) {
			specs = append(specs, llm.ToolSpec{Name: name})
		}
		wish = llm.ChoiceNone
	}
	if len(specs) == 0 {
		return nil, choice
	}
	for _, spec := range specs {
		// The schema goes out as it is: the order of its properties is what the model
		// sees, and a map would lose it.
		schema := json.RawMessage(cmp.Or(string(spec.Schema), noParameters))
		one := sdk.ToolParam{Name: spec.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if spec.Description != "" {
			one.Description = sdk.String(spec.Description)
		}
		list = append(list, sdk.ToolUnionParam{OfTool: &one})
	}
	list[len(list)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	switch wish {
	case llm.ChoiceRequired:
		choice.OfAny = &sdk.ToolChoiceAnyParam{}
	case llm.ChoiceNone:
		none := sdk.NewToolChoiceNoneParam()
		choice.OfNone = &none
	case llm.ChoiceAuto:
		choice.OfAuto = &sdk.ToolChoiceAutoParam{}
	}
	return list, choice
}

// mark sets cache points at the end of this turn of the user and of the one before, up
// to which the request before this one was stored.
func (c *conversation) mark() {
	left := 2
	for _, message := range slices.Backward(c.messages) {
		if message.Role != sdk.MessageParamRoleUser {
			continue
		}
		if point := message.Content[len(message.Content)-1].GetCacheControl(); point != nil {
			*point = sdk.NewCacheControlEphemeralParam()
		}
		if left--; left == 0 {
			return
		}
	}
}
