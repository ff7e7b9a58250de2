package anthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
)

// sent returns the body that a request becomes.
func sent(t *testing.T, req llm.Request, env ...string) string {
	t.Helper()
	var got []byte
	m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != secret {
			http.Error(w, "wrong path or key", http.StatusTeapot)
			return
		}
		streams(streamed(llm.Reply{Stop: llm.StopEnd}))(w, r)
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

func declared(id, providerID, arguments string) llm.Part {
	return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
		ID: id, ProviderID: providerID, Name: "f", Arguments: json.RawMessage(arguments),
	}}
}

func result(id, providerID string, status llm.ResultStatus, output string) llm.Part {
	return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
		CallID: id, ProviderID: providerID, Name: "f", Status: status, Output: json.RawMessage(output),
	}}
}

func say(role llm.Role, parts ...llm.Part) llm.Message { return llm.Message{Role: role, Parts: parts} }

func file(kind llm.PartKind, ref llm.FileRef) llm.Part { return llm.Part{Kind: kind, File: &ref} }

// committed gives the calls of a reply their ids, as the runtime does.
func committed(reply llm.Reply) llm.Message {
	m := llm.Message{Role: reply.Message.Role}
	for i, p := range reply.Message.Parts {
		if p.ToolCall != nil {
			c := *p.ToolCall
			c.ID = "c2-" + string(rune('0'+i))
			p.ToolCall = &c
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// resultsOf answers every call of a message.
func resultsOf(m llm.Message) llm.Message {
	out := llm.Message{Role: llm.RoleTool}
	for _, c := range m.ToolCalls() {
		out.Parts = append(out.Parts, llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
			CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: json.RawMessage(`"done"`),
		}})
	}
	return out
}

var refund = []llm.ToolSpec{
	{Name: "now", Description: "Tells the time."},
	{Name: "refund", Description: "Refunds an order.", Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}`)},
}

// requests are those whose whole form on the wire stands in testdata.
func requests() map[string]struct {
	req llm.Request
	env []string
} {
	type one = struct {
		req llm.Request
		env []string
	}
	calls, thinking := committed(samples()["stream_parallel_calls"]), committed(samples()["stream_thinking"])
	ask := func(tools []llm.ToolSpec, choice llm.ToolChoice, list ...llm.Message) llm.Request {
		return llm.Request{System: "You refund orders.", Messages: list, Tools: tools, Choice: choice}
	}
	return map[string]one{
		"request_kit":   {req: llmtest.Request()},
		"request_least": {req: llm.Request{Messages: []llm.Message{llm.User("hi")}, Choice: llm.ChoiceRequired}},
		"request_calls": {req: ask(refund, llm.ChoiceAuto, llm.User("refund both"), calls, resultsOf(calls))},
		"request_thinking": {
			req: ask(refund, llm.ChoiceAuto, llm.User("refund A-1"), thinking, resultsOf(thinking)),
			env: []string{"ANTHROPIC_THINKING", "2048"},
		},
		"request_begun_elsewhere": {
			req: ask(refund, llm.ChoiceAuto,
				say(llm.RoleUser, llm.Text("refund what this shows"), file(llm.PartImage, llm.FileRef{MediaType: "image/png", Data: []byte("\x89PNG")})),
				say(llm.RoleAssistant,
					llm.Part{Kind: llm.PartReasoning, Text: "It shows A-1.", Provider: "openai", Opaque: []byte(`{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA"}`)},
					declared("c2-0", "call_1|fc_1", `{"order":"A-1"}`)),
				say(llm.RoleTool, result("c2-0", "call_1|fc_1", llm.ResultSuccess, `"done"`))),
			env: []string{"ANTHROPIC_THINKING", "2048"},
		},
		"request_adaptive": {req: ask(nil, "", llm.User("think")), env: []string{"ANTHROPIC_THINKING", "adaptive"}},
		"request_disabled": {req: ask(refund, llm.ChoiceRequired, llm.User("do not think")), env: []string{"ANTHROPIC_THINKING", "disabled"}},
		"request_files": {req: ask(nil, "", say(llm.RoleUser,
			llm.Text("what is it?"),
			file(llm.PartImage, llm.FileRef{MediaType: "image/png", Data: []byte("\x89PNG")}),
			file(llm.PartImage, llm.FileRef{MediaType: "image/jpeg", URL: "https://example.org/a.jpg"}),
			file(llm.PartFile, llm.FileRef{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")}),
			file(llm.PartFile, llm.FileRef{MediaType: "application/pdf", URL: "https://example.org/b.pdf"}),
			file(llm.PartFile, llm.FileRef{MediaType: "text/markdown; charset=utf-8", Name: "c.md", Data: []byte("# ü")}),
		))},
		"request_output": {req: ask(append([]llm.ToolSpec{{
			Name: "__finish__", Description: "Ends the task.", Schema: json.RawMessage(`{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]}`),
		}}, refund...), llm.ChoiceRequired, llm.User("sum up")), env: []string{"ANTHROPIC_THINKING", "adaptive"}},
	}
}

func TestRequest_goldens(t *testing.T) {
	t.Parallel()
	for name, c := range requests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now bytes.Buffer
			require.NoError(t, json.Indent(&now, []byte(sent(t, c.req, c.env...)), "", "  "))
			now.WriteByte('\n')
			goldentest.File(t, filepath.Join("testdata", name+".json"), now.Bytes())
		})
	}
}

func TestRequest_goldens_are_complete(t *testing.T) {
	t.Parallel()
	goldentest.Complete(t, "testdata", ".json", requests())
}

func TestRequest_keeps_schemas_as_they_are(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"const":12345678901234567890}}}`)
	got := sent(t, llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: []llm.ToolSpec{{Name: "b", Schema: schema}, {Name: "a"}}})
	require.Contains(t, got, `"input_schema":`+string(schema), "properties keep their order, numbers their digits")
	require.Less(t, strings.Index(got, `"name":"b"`), strings.Index(got, `"name":"a"`), "tools keep the order of the request")
}

func TestRequest_tool_choice(t *testing.T) {
	t.Parallel()
	for choice, want := range map[llm.ToolChoice]string{
		llm.ChoiceAuto: `"tool_choice":{"type":"auto"}`, llm.ChoiceRequired: `"tool_choice":{"type":"any"}`, llm.ChoiceNone: `"tool_choice":{"type":"none"}`,
	} {
		got := sent(t, llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: refund, Choice: choice})
		require.Contains(t, got, want)
		require.NotContains(t, sent(t, llm.Request{Messages: []llm.Message{llm.User("hi")}, Choice: choice}), "tool_choice", "no choice without tools")
	}
	require.NotContains(t, sent(t, llm.Request{Messages: []llm.Message{llm.User("hi")}, Tools: refund}), "tool_choice")

	calls := committed(samples()["stream_parallel_calls"])
	got := sent(t, llm.Request{Messages: []llm.Message{llm.User("hi"), calls, resultsOf(calls)}, Choice: llm.ChoiceRequired})
	require.Contains(t, got, `"tool_choice":{"type":"none"}`, "tools that may not be called any more are defined for the history")
	require.Contains(t, got, `"name":"now"`)
	require.Contains(t, got, `"name":"refund"`)
}

func TestRequest_limits(t *testing.T) {
	t.Parallel()
	hi := []llm.Message{llm.User("hi")}
	require.Contains(t, sent(t, llm.Request{Messages: hi}), `"max_tokens":32000`)
	require.Contains(t, sent(t, llm.Request{Messages: hi, MaxOutputTokens: 9}), `"max_tokens":9`)
	budget := []string{"ANTHROPIC_THINKING", "2048"}
	require.Contains(t, sent(t, llm.Request{Messages: hi}, budget...), `"max_tokens":34048`)
	require.Contains(t, sent(t, llm.Request{Messages: hi, MaxOutputTokens: 2049}, budget...), `"budget_tokens":2048`)
	m := open(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }), budget...)
	_, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: hi, MaxOutputTokens: 2048}), nil)
	require.ErrorContains(t, err, "MaxOutputTokens")
}

// With a budget the API refuses results of calls that were made without thinking, and a
// tool that has to be called.
func TestRequest_thinking_where_it_is_taken(t *testing.T) {
	t.Parallel()
	foreign := say(llm.RoleAssistant, llm.Part{Kind: llm.PartReasoning, Provider: "openai", Opaque: []byte(`{"type":"reasoning"}`)}, declared("c2-0", "call_a", `{}`))
	results := say(llm.RoleTool, result("c2-0", "call_a", llm.ResultSuccess, `1`))
	thinking := committed(samples()["stream_thinking"])
	second := say(llm.RoleAssistant, declared("c4-0", "toolu_2", `{}`))
	for name, c := range map[string]struct {
		setting  string
		choice   llm.ToolChoice
		messages []llm.Message
		want     bool
	}{
		"budget":                        {"1024", "", []llm.Message{llm.User("hi")}, true},
		"budget_thought":                {"1024", "", []llm.Message{llm.User("hi"), thinking, resultsOf(thinking)}, true},
		"budget_thought_before":         {"1024", "", []llm.Message{llm.User("hi"), thinking, resultsOf(thinking), second, resultsOf(second)}, true},
		"budget_thought_of_another":     {"1024", "", []llm.Message{llm.User("hi"), foreign, results, second, resultsOf(second)}, false},
		"budget_thought_long_ago":       {"1024", "", []llm.Message{llm.User("hi"), thinking, resultsOf(thinking), llm.Assistant("done"), llm.User("more"), second, resultsOf(second)}, false},
		"budget_after_another_provider": {"1024", "", []llm.Message{llm.User("hi"), foreign, results}, false},
		"budget_in_the_next_turn":       {"1024", "", []llm.Message{llm.User("hi"), foreign, results, llm.Assistant("done"), llm.User("more")}, true},
		"budget_required":               {"1024", llm.ChoiceRequired, []llm.Message{llm.User("hi")}, false},
		"adaptive_after_another":        {"adaptive", "", []llm.Message{llm.User("hi"), foreign, results}, true},
		"adaptive_required":             {"adaptive", llm.ChoiceRequired, []llm.Message{llm.User("hi")}, false},
		"disabled_required":             {"disabled", llm.ChoiceRequired, []llm.Message{llm.User("hi")}, true},
		"unset":                         {"", "", []llm.Message{llm.User("hi")}, false},
	} {
		got := sent(t, llm.Request{Messages: c.messages, Tools: refund, Choice: c.choice}, "ANTHROPIC_THINKING", c.setting)
		require.Equal(t, c.want, strings.Contains(got, `"thinking":{`), name)
		require.NotContains(t, got, "openai")
	}
}

// What a journal holds of Anthropic's reasoning goes back as it came.
func TestRequest_stored_reasoning(t *testing.T) {
	t.Parallel()
	var parts []llm.Part
	for _, name := range []string{"part_reasoning_anthropic", "part_reasoning_redacted", "part_reasoning_bedrock", "part_reasoning_openai", "part_reasoning"} {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", name+".json"))
		require.NoError(t, err)
		var p llm.Part
		require.NoError(t, json.Unmarshal(raw, &p))
		parts = append(parts, p)
	}
	require.JSONEq(t, `[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[
		{"type":"thinking","thinking":"The user wants a refund.","signature":"EqQBCgIYAhIM"},
		{"type":"redacted_thinking","data":"EmwKAhgB"},
		{"type":"text","text":"yes"}]}]`, uncached(t, messages(t, llm.User("hi"), say(llm.RoleAssistant, append(parts, llm.Text("yes"))...))))
}

// A request stores the conversation up to its last turn, and the next one finds it there.
func TestRequest_cache_points(t *testing.T) {
	t.Parallel()
	const point = `"cache_control":{"type":"ephemeral"}`
	calls := committed(samples()["stream_parallel_calls"])
	req := llm.Request{System: "s", Tools: refund}
	for i, turn := range [][]llm.Message{{llm.User("refund both")}, {calls, resultsOf(calls)}, {llm.Assistant("done"), llm.User("more")}} {
		req.Messages = append(req.Messages, turn...)
		got := sent(t, req)
		require.Equal(t, min(4, 3+i), strings.Count(got, point), "the API takes at most four")
		var wire struct {
			Messages []struct {
				Role    string
				Content []map[string]any
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got), &wire))
		for n, m := range wire.Messages {
			for b, content := range m.Content {
				marked := m.Role == "user" && b == len(m.Content)-1 && n >= len(wire.Messages)-3
				_, has := content["cache_control"]
				require.Equal(t, marked, has, "message %d, block %d", n, b)
			}
		}
	}
}

func TestRequest_messages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"several_texts_and_empty_ones": {
			[]llm.Message{say(llm.RoleUser, llm.Text("a"), llm.Text(""), llm.Text(" \n"), llm.Text("b"))},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
		},
		"nothing": {
			[]llm.Message{say(llm.RoleUser), say(llm.RoleAssistant, llm.Text(" ")), say(llm.RoleUser, llm.Text("\n"))},
			`[{"role":"user","content":[{"type":"text","text":"(no text)"},{"type":"text","text":"(no text)"}]}]`,
		},
		"roles_take_turns": {
			[]llm.Message{llm.User("a"), llm.User("b"), llm.Assistant("c"), llm.Assistant("d"), llm.User("e")},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
				{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},
				{"role":"user","content":[{"type":"text","text":"e"}]}]`,
		},
		"the_assistant_does_not_begin": {
			[]llm.Message{llm.Assistant("a"), llm.User("b")},
			`[{"role":"user","content":[{"type":"text","text":"(no text)"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},
				{"role":"user","content":[{"type":"text","text":"b"}]}]`,
		},
		"only_reasoning_of_another": {
			[]llm.Message{llm.User("a"), say(llm.RoleAssistant, llm.Part{Kind: llm.PartReasoning, Text: "hm", Provider: "bedrock", Opaque: []byte("x")}), llm.User("b")},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
		},
		"results_and_the_next_message_are_one_turn": {
			[]llm.Message{say(llm.RoleAssistant, declared("c2-0", "toolu_1", `{"a":1}`)), say(llm.RoleTool, result("c2-0", "toolu_1", llm.ResultSuccess, `1`)), llm.User("go on")},
			`[{"role":"user","content":[{"type":"text","text":"(no text)"}]},{"role":"assistant","content":[{"id":"toolu_1","input":{"a":1},"name":"f","type":"tool_use"}]},
				{"role":"user","content":[{"tool_use_id":"toolu_1","content":[{"text":"1","type":"text"}],"type":"tool_result"},{"type":"text","text":"go on"}]}]`,
		},
		"results_come_first": {
			[]llm.Message{
				llm.User("hi"), say(llm.RoleAssistant, declared("1", "", `{}`), declared("2", "", `{}`)),
				say(llm.RoleTool, result("1", "", llm.ResultSuccess, `"shot"`), file(llm.PartImage, llm.FileRef{URL: "https://example.org/a.png"})),
				say(llm.RoleTool, result("2", "", llm.ResultSuccess, `2`)),
			},
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},
				{"role":"assistant","content":[{"id":"1","input":{},"name":"f","type":"tool_use"},{"id":"2","input":{},"name":"f","type":"tool_use"}]},
				{"role":"user","content":[{"tool_use_id":"1","content":[{"text":"shot","type":"text"}],"type":"tool_result"},
					{"tool_use_id":"2","content":[{"text":"2","type":"text"}],"type":"tool_result"},
					{"source":{"url":"https://example.org/a.png","type":"url"},"type":"image"}]}]`,
		},
		"ids_that_the_api_does_not_take": {
			[]llm.Message{
				llm.User("hi"),
				say(llm.RoleAssistant, declared("c2-0", "functions.f:0", `{}`), declared("c2-1", "call", `{}`), declared("c2-2", "call", `{}`), declared("c2-3", strings.Repeat("x", 65), `{}`)),
				say(llm.RoleTool, result("c2-0", "functions.f:0", llm.ResultSuccess, `0`), result("c2-1", "call", llm.ResultSuccess, `1`),
					result("c2-2", "call", llm.ResultSuccess, `2`), result("c2-3", strings.Repeat("x", 65), llm.ResultSuccess, `3`)),
				say(llm.RoleAssistant, declared("c4-0", "call", `{}`)), say(llm.RoleTool, result("c4-0", "call", llm.ResultSuccess, `4`)),
			},
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},
				{"role":"assistant","content":[{"id":"c2-0","input":{},"name":"f","type":"tool_use"},{"id":"call","input":{},"name":"f","type":"tool_use"},
					{"id":"c2-2","input":{},"name":"f","type":"tool_use"},{"id":"c2-3","input":{},"name":"f","type":"tool_use"}]},
				{"role":"user","content":[{"tool_use_id":"c2-0","content":[{"text":"0","type":"text"}],"type":"tool_result"},
					{"tool_use_id":"call","content":[{"text":"1","type":"text"}],"type":"tool_result"},
					{"tool_use_id":"c2-2","content":[{"text":"2","type":"text"}],"type":"tool_result"},
					{"tool_use_id":"c2-3","content":[{"text":"3","type":"text"}],"type":"tool_result"}]},
				{"role":"assistant","content":[{"id":"c4-0","input":{},"name":"f","type":"tool_use"}]},
				{"role":"user","content":[{"tool_use_id":"c4-0","content":[{"text":"4","type":"text"}],"type":"tool_result"}]}]`,
		},
		"results_of_calls_that_were_compacted_away": {
			[]llm.Message{say(llm.RoleTool, result("c2-0", "call_a", llm.ResultDenied, `"no"`))},
			`[{"role":"user","content":[{"type":"text","text":"Result (denied) of an earlier call of f: no"}]}]`,
		},
		"a_result_twice": {
			[]llm.Message{llm.User("hi"), say(llm.RoleAssistant, declared("1", "", `{}`)), say(llm.RoleTool, result("1", "", llm.ResultSuccess, `1`), result("1", "", llm.ResultSuccess, `1`))},
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"id":"1","input":{},"name":"f","type":"tool_use"}]},
				{"role":"user","content":[{"tool_use_id":"1","content":[{"text":"1","type":"text"}],"type":"tool_result"},{"type":"text","text":"Result (success) of an earlier call of f: 1"}]}]`,
		},
		"arguments_that_are_no_object": {
			[]llm.Message{llm.User("hi"), say(llm.RoleAssistant, declared("1", "", `"{\"a\": brok"`), declared("2", "", `[1]`), declared("3", "", ``))},
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[
				{"id":"1","input":{"invalid_arguments":"{\"a\": brok"},"name":"f","type":"tool_use"},
				{"id":"2","input":{"invalid_arguments":"[1]"},"name":"f","type":"tool_use"},
				{"id":"3","input":{},"name":"f","type":"tool_use"}]}]`,
		},
		"results_of_all_kinds": {
			[]llm.Message{
				llm.User("hi"), say(llm.RoleAssistant, declared("1", "", `{}`), declared("2", "", `{}`), declared("3", "", `{}`), declared("4", "", `{}`), declared("5", "", `{}`)),
				say(llm.RoleTool,
					result("1", "", llm.ResultSuccess, `{"a":[1]}`), result("2", "", llm.ResultSuccess, `""`),
					result("3", "", llm.ResultDenied, `"Tool call was not approved by the user"`), result("4", "", llm.ResultCancelled, `""`),
					result("5", "", llm.ResultUnknown, `{"why":"crash"}`)),
			},
			`[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[
				{"id":"1","input":{},"name":"f","type":"tool_use"},{"id":"2","input":{},"name":"f","type":"tool_use"},{"id":"3","input":{},"name":"f","type":"tool_use"},
				{"id":"4","input":{},"name":"f","type":"tool_use"},{"id":"5","input":{},"name":"f","type":"tool_use"}]},
			{"role":"user","content":[
				{"tool_use_id":"1","content":[{"text":"{\"a\":[1]}","type":"text"}],"type":"tool_result"},
				{"tool_use_id":"2","type":"tool_result"},
				{"tool_use_id":"3","is_error":true,"content":[{"text":"Tool call was not approved by the user","type":"text"}],"type":"tool_result"},
				{"tool_use_id":"4","is_error":true,"content":[{"text":"cancelled","type":"text"}],"type":"tool_result"},
				{"tool_use_id":"5","is_error":true,"content":[{"text":"{\"why\":\"crash\"}","type":"text"}],"type":"tool_result"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, c.want, uncached(t, messages(t, c.messages...)))
		})
	}
}

// uncached takes the cache points out, which another test has.
func uncached(t *testing.T, text string) string {
	t.Helper()
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	for _, m := range list {
		for _, b := range m["content"].([]any) {
			delete(b.(map[string]any), "cache_control")
		}
	}
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	return string(raw)
}

func TestRequest_what_cannot_be_sent_is_refused(t *testing.T) {
	t.Parallel()
	signed := func(opaque string) llm.Message {
		return say(llm.RoleAssistant, llm.Part{Kind: llm.PartReasoning, Provider: "anthropic", Opaque: []byte(opaque)})
	}
	for name, c := range map[string]struct {
		message llm.Message
		says    string
	}{
		"image_of_nothing":    {say(llm.RoleUser, llm.Part{Kind: llm.PartImage}), "an image has neither URL nor data"},
		"image_of_another":    {say(llm.RoleUser, file(llm.PartImage, llm.FileRef{MediaType: "image/svg+xml", Data: []byte("<svg/>")})), `an image is "image/svg+xml"`},
		"image_of_s3":         {say(llm.RoleUser, file(llm.PartImage, llm.FileRef{MediaType: "image/png", URL: "s3://b/a.png"})), "begins with s3://"},
		"file_of_nothing":     {say(llm.RoleUser, llm.Part{Kind: llm.PartFile}), "a file has neither URL nor data"},
		"file_of_s3":          {say(llm.RoleUser, file(llm.PartFile, llm.FileRef{MediaType: "application/pdf", URL: "s3://b/a.pdf"})), "begins with s3://"},
		"file_of_another":     {say(llm.RoleUser, file(llm.PartFile, llm.FileRef{MediaType: "application/zip", Data: []byte("PK")})), `a file is "application/zip"`},
		"text_by_url":         {say(llm.RoleUser, file(llm.PartFile, llm.FileRef{MediaType: "text/plain", URL: "https://example.org/a.txt"})), "the data of texts"},
		"text_that_is_none":   {say(llm.RoleUser, file(llm.PartFile, llm.FileRef{MediaType: "text/plain", Data: []byte("\xff")})), "in UTF-8"},
		"call_of_a_user":      {say(llm.RoleUser, llm.Part{Kind: llm.PartToolCall}), "a tool_call part cannot stand here"},
		"image_of_the_model":  {say(llm.RoleAssistant, llm.Part{Kind: llm.PartImage}), "a image part cannot stand here"},
		"empty_call":          {say(llm.RoleAssistant, llm.Part{Kind: llm.PartToolCall}), "a tool call is empty"},
		"empty_result":        {say(llm.RoleTool, llm.Part{Kind: llm.PartToolResult}), "a tool result is empty"},
		"thought_beside":      {say(llm.RoleTool, llm.Part{Kind: llm.PartReasoning}), "a reasoning part cannot stand here"},
		"thought_unreadable":  {signed(`{`), "reasoning of anthropic cannot be read"},
		"thought_of_nothing":  {signed(`{}`), "has neither a signature nor data"},
		"thought_of_a_future": {signed(`{"type":"dream","data":"x"}`), "has neither a signature nor data"},
		"role":                {llm.Message{Role: "god"}, `no role is called "god"`},
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
