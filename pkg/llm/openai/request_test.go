package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
	"github.com/adjourn/adjourn/pkg/llm/openai"
)

// sent returns the body that a request becomes.
func sent(t *testing.T, req llm.Request, env ...string) string {
	t.Helper()
	var got []byte
	m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "wrong path or key", http.StatusTeapot)
			return
		}
		if strings.Contains(string(got), `"stream":true`) {
			sse(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`, "[DONE]")(w, r)
			return
		}
		body(200, `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`)(w, r)
	}), env...)
	_, err := llm.Collect(m.Stream(t.Context(), req), nil)
	require.NoError(t, err)
	return string(got)
}

// messages returns what the messages of a request become.
func messages(t *testing.T, list ...llm.Message) string {
	t.Helper()
	var got struct {
		Messages json.RawMessage `json:"messages"`
	}
	require.NoError(t, json.Unmarshal([]byte(sent(t, llm.Request{Messages: list})), &got))
	return string(got.Messages)
}

func TestRequest_whole(t *testing.T) {
	t.Parallel()
	const common = `
		"model": "gpt-test",
		"messages": [
			{"role": "system", "content": "You are terse."},
			{"role": "user", "content": "echo hi twice"},
			{"role": "assistant", "content": "as you wish", "tool_calls": [
				{"id": "call_0", "type": "function", "function": {"name": "echo", "arguments": "{\"text\":\"hi\"}"}},
				{"id": "call_1", "type": "function", "function": {"name": "echo", "arguments": "{\"text\":\"hi\"}"}}
			]},
			{"role": "tool", "tool_call_id": "call_0", "content": "{\"text\":\"hi\"}"},
			{"role": "tool", "tool_call_id": "call_1", "content": "no more"},
			{"role": "assistant", "content": "done"},
			{"role": "user", "content": "and again"}
		],
		"tools": [
			{"type": "function", "function": {"name": "echo", "description": "Says what it is told.",
				"parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}},
			{"type": "function", "function": {"name": "now", "description": "Tells the time.",
				"parameters": {"type": "object", "properties": {}}}}
		],
		"tool_choice": "auto",
		"max_tokens": 500`
	require.JSONEq(t, `{`+common+`, "stream": true, "stream_options": {"include_usage": true}}`, sent(t, llmtest.Request()))
	require.JSONEq(t, `{`+common+`}`, sent(t, llmtest.Request(), "OPENAI_STREAM", "false"))
}

func TestRequest_least(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"model": "gpt-test", "messages": [{"role": "user", "content": "hi"}]}`,
		sent(t, llm.Request{Messages: []llm.Message{llm.User("hi")}, Choice: llm.ChoiceRequired}, "OPENAI_STREAM", "false"),
		"no choice without tools")
}

func TestRequest_is_the_same_each_time(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"const":12345678901234567890}}}`)
	req := llm.Request{
		Messages: []llm.Message{llm.User("hi")}, Choice: llm.ChoiceRequired,
		Tools: []llm.ToolSpec{{Name: "a", Schema: schema}, {Name: "b"}},
	}
	first := sent(t, req)
	require.Contains(t, first, string(schema), "properties keep their order, numbers their digits")
	require.Contains(t, first, `"tool_choice":"required"`)
	require.Contains(t, first, `{"name":"b","parameters":{"type":"object","properties":{}}}`)
	require.Equal(t, first, sent(t, req), "equal requests share a cached prefix")
}

func TestRequest_messages(t *testing.T) {
	t.Parallel()
	file := func(kind llm.PartKind, ref llm.FileRef) llm.Part { return llm.Part{Kind: kind, File: &ref} }
	declared := func(id, providerID, arguments string) llm.Part {
		return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
			ID: id, ProviderID: providerID, Name: "f", Arguments: json.RawMessage(arguments),
		}}
	}
	result := func(id, providerID string, status llm.ResultStatus, output string) llm.Part {
		return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
			CallID: id, ProviderID: providerID, Name: "f", Status: status, Output: json.RawMessage(output),
		}}
	}
	say := func(role llm.Role, parts ...llm.Part) llm.Message { return llm.Message{Role: role, Parts: parts} }
	long := strings.Repeat("x", 41)

	for name, c := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"text_and_images": {
			[]llm.Message{say(llm.RoleUser, llm.Text("what is it?"),
				file(llm.PartImage, llm.FileRef{MediaType: "image/png", URL: "https://example.org/a.png"}),
				file(llm.PartImage, llm.FileRef{MediaType: "image/png", Data: []byte("\x89PNG")}))},
			`[{"role":"user","content":[{"type":"text","text":"what is it?"},
				{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},
				{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}]`,
		},
		"files": {
			[]llm.Message{say(llm.RoleUser, file(llm.PartFile, llm.FileRef{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")}),
				file(llm.PartFile, llm.FileRef{Data: []byte("x")}))},
			`[{"role":"user","content":[
				{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},
				{"type":"file","file":{"filename":"file","file_data":"data:application/octet-stream;base64,eA=="}}]}]`,
		},
		"several_texts": {
			[]llm.Message{say(llm.RoleUser, llm.Text("a"), llm.Text("b"))},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
		},
		"nothing": {
			[]llm.Message{say(llm.RoleUser), say(llm.RoleAssistant)},
			`[{"role":"user","content":""},{"role":"assistant","content":""}]`,
		},
		"reasoning_stays_here": {
			[]llm.Message{say(llm.RoleAssistant,
				llm.Part{Kind: llm.PartReasoning, Text: "hm", Provider: "anthropic", Opaque: []byte("sig")}, llm.Text("yes"))},
			`[{"role":"assistant","content":"yes"}]`,
		},
		"calls_without_text": {
			[]llm.Message{say(llm.RoleAssistant, declared("c2-0", "call_a", `{"a":1}`))},
			`[{"role":"assistant","tool_calls":[{"id":"call_a","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}]`,
		},
		"our_id_where_there_is_no_other": {
			[]llm.Message{say(llm.RoleAssistant, declared("c2-0", "", `{}`)), say(llm.RoleTool, result("c2-0", "", llm.ResultSuccess, `1`))},
			`[{"role":"assistant","tool_calls":[{"id":"c2-0","type":"function","function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"c2-0","content":"1"}]`,
		},
		"one_id_for_two_calls_and_one_too_long": {
			[]llm.Message{
				say(llm.RoleAssistant, declared("c2-0", "call", `{}`), declared("c2-1", "call", `{}`), declared("c2-2", long, `{}`)),
				say(llm.RoleTool, result("c2-0", "call", llm.ResultSuccess, `0`), result("c2-1", "call", llm.ResultSuccess, `1`),
					result("c2-2", long, llm.ResultSuccess, `2`)),
			},
			`[{"role":"assistant","tool_calls":[
				{"id":"call","type":"function","function":{"name":"f","arguments":"{}"}},
				{"id":"c2-1","type":"function","function":{"name":"f","arguments":"{}"}},
				{"id":"c2-2","type":"function","function":{"name":"f","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"call","content":"0"},
				{"role":"tool","tool_call_id":"c2-1","content":"1"},
				{"role":"tool","tool_call_id":"c2-2","content":"2"}]`,
		},
		"results_of_calls_that_were_compacted_away": {
			[]llm.Message{say(llm.RoleTool, result("c2-0", "call_a", llm.ResultSuccess, `null`))},
			`[{"role":"tool","tool_call_id":"call_a","content":"null"}]`,
		},
		"arguments_that_are_no_object": {
			[]llm.Message{say(llm.RoleAssistant, declared("1", "", `"{\"a\": brok"`), declared("2", "", `[1]`), declared("3", "", ``))},
			`[{"role":"assistant","tool_calls":[
				{"id":"1","type":"function","function":{"name":"f","arguments":"{\"invalid_arguments\":\"{\\\"a\\\": brok\"}"}},
				{"id":"2","type":"function","function":{"name":"f","arguments":"{\"invalid_arguments\":\"[1]\"}"}},
				{"id":"3","type":"function","function":{"name":"f","arguments":"{}"}}]}]`,
		},
		"results_of_all_kinds": {
			[]llm.Message{say(llm.RoleTool,
				result("1", "", llm.ResultSuccess, `"plain"`), result("2", "", llm.ResultSuccess, `{"a":[1]}`), result("3", "", llm.ResultSuccess, ``),
				result("4", "", llm.ResultDenied, `"Tool call was not approved by the user"`), result("5", "", llm.ResultCancelled, `""`),
				result("6", "", llm.ResultUnknown, `{"why":"crash"}`))},
			`[{"role":"tool","tool_call_id":"1","content":"plain"},{"role":"tool","tool_call_id":"2","content":"{\"a\":[1]}"},
				{"role":"tool","tool_call_id":"3","content":"success"},
				{"role":"tool","tool_call_id":"4","content":"Tool call was not approved by the user"},
				{"role":"tool","tool_call_id":"5","content":"cancelled"},{"role":"tool","tool_call_id":"6","content":"{\"why\":\"crash\"}"}]`,
		},
		"a_picture_beside_a_result": {
			[]llm.Message{say(llm.RoleTool, result("1", "", llm.ResultSuccess, `"shot"`),
				file(llm.PartImage, llm.FileRef{URL: "https://example.org/a.png"}), result("2", "", llm.ResultSuccess, `2`))},
			`[{"role":"tool","tool_call_id":"1","content":"shot"},{"role":"tool","tool_call_id":"2","content":"2"},
				{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, c.want, messages(t, c.messages...))
		})
	}
}

func TestRequest_what_cannot_be_sent_is_refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message llm.Message
		says    string
	}{
		"image_of_nothing": {llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Kind: llm.PartImage}}}, "an image has neither URL nor data"},
		"file_by_url": {llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
			{Kind: llm.PartFile, File: &llm.FileRef{URL: "s3://x"}},
		}}, "a file has no data"},
		"call_of_a_user": {llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Kind: llm.PartToolCall}}}, "a tool_call part cannot stand here"},
		"empty_result":   {llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Kind: llm.PartToolResult}}}, "a tool result is empty"},
		"role":           {llm.Message{Role: "god"}, `no role is called "god"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := open(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
			_, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi"), c.message}}), nil)
			var failure *llm.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, llm.ClassInvalid, failure.Class)
			require.ErrorContains(t, err, "message 1: ")
			require.ErrorContains(t, err, c.says)
		})
	}
}

// OpenAI itself refuses max_tokens for its newer models.
func TestRequest_limit_for_openai(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"api.openai.com": "max_completion_tokens", "eu.api.openai.com": "max_completion_tokens",
		"me.openai.azure.com": "max_completion_tokens", "notopenai.com": "max_tokens", "openai.com.example.org": "max_tokens",
	} {
		m, err := openai.Open(t.Context(), "m", environment("OPENAI_BASE_URL", "http://"+host+"/v1"))
		require.NoError(t, err)
		got, err := openai.Body(m, llm.Request{Messages: []llm.Message{llm.User("hi")}, MaxOutputTokens: 9})
		require.NoError(t, err)
		require.Contains(t, string(got), `"`+want+`":9`, host)
	}
}
