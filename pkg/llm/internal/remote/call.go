package remote

import (
	"bytes"
	"encoding/json"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Object returns arguments as an object. Servers parse them before the model sees them
// and fail on anything else, so what the model wrote wrongly goes back wrapped.
func Object(arguments json.RawMessage) string {
	trimmed := bytes.TrimSpace(arguments)
	if len(trimmed) == 0 {
		return "{}"
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return string(trimmed)
	}
	var written any = string(trimmed)
	if text, ok := asText(trimmed); ok {
		written = text
	}
	wrapped, err := json.Marshal(map[string]any{"invalid_arguments": written})
	if err != nil {
		return "{}" // a string always has a JSON form
	}
	return string(wrapped)
}

// Output is what the model reads of a result: a text as it is, anything else as JSON.
func Output(r llm.ToolResult) string {
	if text, ok := asText(r.Output); ok {
		if text == "" && r.Status != llm.ResultSuccess {
			return string(r.Status)
		}
		return text
	}
	if len(r.Output) == 0 {
		return string(r.Status)
	}
	return string(r.Output)
}

func asText(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
