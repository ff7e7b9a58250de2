package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// maxID is the length of the longest call id that OpenAI takes back.
const maxID = 40

func (m *model) params(req llm.Request) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{Model: m.name}
	if req.System != "" {
		params.Messages = append(params.Messages, sdk.SystemMessage(req.System))
	}
	ids := map[string]string{}
	for i, message := range req.Messages {
		var wire []sdk.ChatCompletionMessageParamUnion
		var err error
		switch message.Role {
		case llm.RoleUser:
			wire, err = user(message.Parts)
		case llm.RoleAssistant:
			wire = assistant(message, ids)
		case llm.RoleTool:
			wire, err = results(message.Parts, ids)
		default:
			err = remote.Refuse(llm.ClassInvalid, "no role is called %q", message.Role)
		}
		if err != nil {
			return params, &llm.Error{Class: llm.ClassInvalid, Message: fmt.Sprintf("message %d: %s", i, err), Cause: err}
		}
		params.Messages = append(params.Messages, wire...)
	}
	for _, spec := range req.Tools {
		params.Tools = append(params.Tools, tool(spec))
	}
	if req.Choice != "" && len(req.Tools) > 0 {
		params.ToolChoice.OfAuto = sdk.String(string(req.Choice))
	}
	switch {
	case req.MaxOutputTokens <= 0:
	case m.modern:
		params.MaxCompletionTokens = sdk.Int(req.MaxOutputTokens)
	default:
		params.MaxTokens = sdk.Int(req.MaxOutputTokens)
	}
	return params, nil
}

// tool writes the schema as it is: the order of its properties is what the
// model sees, and a map would lose it.
func tool(spec llm.ToolSpec) sdk.ChatCompletionToolUnionParam {
	schema := spec.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}{spec.Name, spec.Description, schema}))
}

// user writes text alone as a string, which every server reads, and as parts
// only what needs them.
func user(parts []llm.Part) ([]sdk.ChatCompletionMessageParamUnion, error) {
	var content []sdk.ChatCompletionContentPartUnionParam
	plain := true
	for _, p := range parts {
		part, err := piece(p)
		if err != nil {
			return nil, err
		}
		plain = plain && p.Kind == llm.PartText
		content = append(content, part)
	}
	if plain && len(content) <= 1 {
		return []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage(llm.Message{Parts: parts}.Text())}, nil
	}
	return []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage(content)}, nil
}

func piece(p llm.Part) (sdk.ChatCompletionContentPartUnionParam, error) {
	switch p.Kind {
	case llm.PartText:
		return sdk.TextContentPart(p.Text), nil
	case llm.PartImage:
		if p.File == nil || p.File.URL == "" && len(p.File.Data) == 0 {
			return sdk.ChatCompletionContentPartUnionParam{}, remote.Refuse(llm.ClassInvalid, "an image has neither URL nor data")
		}
		address := p.File.URL
		if len(p.File.Data) > 0 {
			address = dataURL(p.File)
		}
		return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: address}), nil
	case llm.PartFile:
		if p.File == nil || len(p.File.Data) == 0 {
			return sdk.ChatCompletionContentPartUnionParam{}, remote.Refuse(llm.ClassInvalid, "a file has no data; Chat Completions takes none by URL")
		}
		name := p.File.Name
		if name == "" {
			name = "file"
		}
		return sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
			FileData: sdk.String(dataURL(p.File)), Filename: sdk.String(name),
		}), nil
	case llm.PartReasoning, llm.PartToolCall, llm.PartToolResult:
	}
	return sdk.ChatCompletionContentPartUnionParam{}, remote.Refuse(llm.ClassInvalid, "a %s part cannot stand here", p.Kind)
}

func dataURL(file *llm.FileRef) string {
	kind := file.MediaType
	if kind == "" {
		kind = "application/octet-stream"
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(file.Data)
}

// assistant notes under which id each call went out, for the results to come.
func assistant(message llm.Message, ids map[string]string) []sdk.ChatCompletionMessageParamUnion {
	var out sdk.ChatCompletionAssistantMessageParam
	taken := map[string]bool{}
	for _, call := range message.ToolCalls() {
		id := wireID(call.ProviderID, call.ID)
		if taken[id] {
			id = call.ID // some servers call every call the same
		}
		taken[id] = true
		ids[call.ID] = id
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: id,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: call.Name, Arguments: remote.Object(call.Arguments),
				},
			},
		})
	}
	if text := message.Text(); text != "" || len(out.ToolCalls) == 0 {
		out.Content.OfString = sdk.String(text)
	}
	return []sdk.ChatCompletionMessageParamUnion{{OfAssistant: &out}}
}

func wireID(providerID, ours string) string {
	if providerID == "" || len(providerID) > maxID && ours != "" {
		return ours
	}
	return providerID
}

// results writes one message for each result, in order, and after them what
// else the turn brought (images, say) as a user's: tools can answer text only.
func results(parts []llm.Part, ids map[string]string) ([]sdk.ChatCompletionMessageParamUnion, error) {
	var out []sdk.ChatCompletionMessageParamUnion
	var rest []llm.Part
	for _, p := range parts {
		if p.Kind != llm.PartToolResult {
			rest = append(rest, p)
			continue
		}
		if p.ToolResult == nil {
			return nil, remote.Refuse(llm.ClassInvalid, "a tool result is empty")
		}
		r := *p.ToolResult
		id, sent := ids[r.CallID]
		if !sent {
			id = wireID(r.ProviderID, r.CallID)
		}
		out = append(out, sdk.ToolMessage(remote.Output(r), id))
	}
	if len(rest) == 0 {
		return out, nil
	}
	more, err := user(rest)
	return append(out, more...), err
}
