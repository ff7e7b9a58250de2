package llm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/llm"
)

// opaque is bytes no text encoding survives, as providers' signatures may be.
var opaque = []byte{0x00, 0xff, 0x1f, 'a', 'd', 'j', 0xc3, 0x28}

func golden() map[string]any {
	call := func(id, providerID, name, arguments string) llm.Part {
		return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
			ID: id, ProviderID: providerID, Name: name, Arguments: llm.Arguments([]byte(arguments)),
		}}
	}
	result := func(status llm.ResultStatus, output string) llm.Part {
		return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
			CallID: "c7-0", ProviderID: "call_abc", Name: "refund", Status: status, Output: json.RawMessage(output),
		}}
	}
	thought := func(provider, text string, opaque []byte) llm.Part {
		return llm.Part{Kind: llm.PartReasoning, Text: text, Provider: provider, Opaque: opaque}
	}
	return map[string]any{
		"part_text":                  llm.Text("Grüße, <b>\"世界\"</b> & co.\n"),
		"part_text_opaque":           llm.Part{Kind: llm.PartText, Text: "signed", Provider: "gemini", Opaque: opaque},
		"part_reasoning":             thought("", "The user wants a refund.", nil),
		"part_reasoning_anthropic":   thought("anthropic", "The user wants a refund.", []byte(`{"signature":"EqQBCgIYAhIM"}`)),
		"part_reasoning_redacted":    thought("anthropic", "", []byte(`{"type":"redacted_thinking","data":"EmwKAhgB"}`)),
		"part_reasoning_bedrock":     thought("bedrock", "", opaque),
		"part_reasoning_openai":      thought("openai", "", []byte(`{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA"}`)),
		"part_tool_call":             call("c7-0", "call_abc", "refund", `{"order":"A-1","amount":120.50,"note":"<late>"}`),
		"part_tool_call_uncommitted": call("", "call_abc", "echo", ""),
		"part_tool_call_invalid":     call("c7-1", "", "echo", `{"text": "brok`),
		"part_tool_call_signed": llm.Part{
			Kind: llm.PartToolCall, Provider: "gemini", Opaque: opaque,
			ToolCall: &llm.ToolCall{ID: "c7-0", Name: "echo", Arguments: json.RawMessage(`{}`)},
		},
		"part_tool_result_success":   result(llm.ResultSuccess, `{"id":"r-1"}`),
		"part_tool_result_null":      result(llm.ResultSuccess, `null`),
		"part_tool_result_error":     result(llm.ResultError, `"order A-1 does not exist"`),
		"part_tool_result_denied":    result(llm.ResultDenied, `"Tool call was not approved by the user"`),
		"part_tool_result_cancelled": result(llm.ResultCancelled, `"Tool execution cancelled"`),
		"part_tool_result_timed_out": result(llm.ResultTimedOut, `"timed out after 30s"`),
		"part_tool_result_unknown":   result(llm.ResultUnknown, `"it is not known whether this happened"`),
		"part_image_url": llm.Part{Kind: llm.PartImage, File: &llm.FileRef{
			MediaType: "image/png", URL: "https://example.org/a.png?x=1&y=2",
		}},
		"part_image_data": llm.Part{Kind: llm.PartImage, File: &llm.FileRef{MediaType: "image/png", Data: []byte("\x89PNG\r\n")}},
		"part_file_url": llm.Part{Kind: llm.PartFile, File: &llm.FileRef{
			MediaType: "application/pdf", Name: "bill.pdf", URL: "s3://bucket/bill.pdf",
		}},
		"part_file_data": llm.Part{Kind: llm.PartFile, File: &llm.FileRef{
			MediaType: "application/pdf", Name: "bill.pdf", Data: []byte("%PDF-1.7\n"),
		}},
		"message_user": llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Text("what is on this picture?"),
			{Kind: llm.PartImage, File: &llm.FileRef{MediaType: "image/png", URL: "https://example.org/a.png"}},
		}},
		"message_assistant": llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
			thought("anthropic", "Two orders, so two calls.", []byte(`{"signature":"EqQBCgIYAhIM"}`)),
			llm.Text("I refund both."),
			call("c7-0", "toolu_1", "refund", `{"order":"A-1"}`),
			call("c7-1", "toolu_2", "refund", `{"order":"A-2"}`),
		}},
		"message_tool": llm.Message{Role: llm.RoleTool, Parts: []llm.Part{
			result(llm.ResultSuccess, `{"id":"r-1"}`), result(llm.ResultDenied, `"Tool call was not approved by the user"`),
		}},
		"message_empty": llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{}},
		"usage":         llm.Usage{Input: 1200, CacheRead: 1000, CacheWrite: 100, Output: 300, Reasoning: 200},
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, value := range golden() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goldentest.JSON(t, filepath.Join("testdata", name+".json"), value)
		})
	}
}

func TestGolden_covers_every_kind_and_status(t *testing.T) {
	t.Parallel()
	goldentest.Complete(t, "testdata", ".json", golden())
	var all strings.Builder
	files, err := filepath.Glob("testdata/part_*.json")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(data)
	}
	for _, kind := range []llm.PartKind{
		llm.PartText, llm.PartReasoning, llm.PartToolCall, llm.PartToolResult, llm.PartImage, llm.PartFile,
	} {
		require.Contains(t, all.String(), `"kind": "`+string(kind)+`"`)
	}
	for _, status := range []llm.ResultStatus{
		llm.ResultSuccess, llm.ResultError, llm.ResultDenied, llm.ResultCancelled, llm.ResultTimedOut, llm.ResultUnknown,
	} {
		require.Contains(t, all.String(), `"status": "`+string(status)+`"`)
	}
}

// What a later version adds must not stop this one from reading.
func TestMessage_unknown_fields_are_ignored(t *testing.T) {
	t.Parallel()
	var m llm.Message
	err := json.Unmarshal([]byte(`{"role":"user","tags":["x"],"parts":[{"kind":"text","text":"hi","cache":{"ttl":"1h"}}]}`), &m)
	require.NoError(t, err)
	require.Equal(t, llm.User("hi"), m)
}

func TestMessage_text_and_calls(t *testing.T) {
	t.Parallel()
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
		{Kind: llm.PartReasoning, Text: "hidden"},
		llm.Text("one "),
		{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "a"}},
		{Kind: llm.PartToolCall}, // broken, and not to be followed
		llm.Text("two"),
		{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "b"}},
	}}
	require.Equal(t, "one two", m.Text())
	require.Equal(t, []llm.ToolCall{{Name: "a"}, {Name: "b"}}, m.ToolCalls())
	require.Empty(t, llm.User("x").ToolCalls())
	require.Equal(t, "x", llm.Assistant("x").Text())
}
