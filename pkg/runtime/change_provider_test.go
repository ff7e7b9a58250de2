package runtime_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/anthropic"
	"github.com/adjourn/adjourn/pkg/llm/openai"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// provider is a server of a model that thinks, asks for one deployment, and then says a word.
type provider struct {
	media, asks, says string
	heard             []string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.heard = append(p.heard, string(body))
	w.Header().Set("Content-Type", p.media)
	if strings.Count(string(body), "bye") == 0 && (strings.Contains(string(body), `"tool_result"`) || strings.Contains(string(body), `"role":"tool"`)) {
		_, _ = io.WriteString(w, p.says)
		return
	}
	_, _ = io.WriteString(w, p.asks)
}

func openAIs() *provider {
	reply := func(message, reason string) string {
		return fmt.Sprintf(`{"id":"chatcmpl-1","model":"gpt-test","choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":"%s"}]}`, message, reason)
	}
	return &provider{
		media: "application/json",
		asks:  reply(`"content":null,"reasoning":"openai thinks","tool_calls":[{"id":"call.1","type":"function","function":{"name":"deploy","arguments":"{\"text\":\"1\"}"}}]`, "tool_calls"),
		says:  reply(`"content":"bye"`, "stop"),
	}
}

func anthropics() *provider {
	stream := func(reason string, blocks ...string) string {
		events := []string{`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`}
		events = append(events, blocks...)
		events = append(events, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`)
		var out strings.Builder
		for _, e := range events {
			kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
			fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", kind, e)
		}
		return out.String()
	}
	return &provider{
		media: "text/event-stream",
		asks: stream("tool_use",
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"anthropic thinks","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"deploy","input":{"text":"1"}}}`,
			`{"type":"content_block_stop","index":1}`),
		says: stream("end_turn",
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"bye"}}`,
			`{"type":"content_block_stop","index":0}`),
	}
}

// A session goes on at another provider in the middle of a call, with an image and reasoning in its history:
// the call and the image are told there, and what the first one thought is not. The first one gets what it
// thought back in the next turn.
func TestChangeRules_of_the_provider(t *testing.T) {
	t.Parallel()
	for first, second := range map[string]string{"openai": "anthropic", "anthropic": "openai"} {
		t.Run("from_"+first, func(t *testing.T) {
			t.Parallel()
			providers := map[string]*provider{"openai": openAIs(), "anthropic": anthropics()}
			env := map[string]string{"OPENAI_STREAM": "false", "ANTHROPIC_THINKING": "1024"}
			for name, setting := range map[string]string{"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"} {
				server := httptest.NewServer(providers[name])
				t.Cleanup(server.Close)
				env[setting] = server.URL + map[string]string{"openai": "/v1"}[name]
			}
			with := func(open agent.Open) agent.Open {
				return func(ctx context.Context, name string, _ func(string) string) (llm.Model, error) {
					return open(ctx, name, func(name string) string { return env[name] })
				}
			}
			made := newEffects()
			registry, err := agent.NewRegistry(agent.Config{
				Models: agent.Models{"openai": with(openai.Open), "anthropic": with(anthropic.Open)},
				Agents: []agent.Agent{helper(made, nil, func(a *agent.Agent) {
					a.Planner, a.Model, a.Callers.Models = nil, first+":m", []string{second + ":m"}
				})},
			})
			require.NoError(t, err)
			w := newWorldOf(t, made, registry)
			p := w.process()
			_, err = p.Start(t.Context(), runtime.StartParams{Key: w.key, Agent: "a", Caller: person, Input: []llm.Part{
				llm.Text("deploy what this shows"), {Kind: llm.PartImage, File: &llm.FileRef{MediaType: "image/png", Data: []byte("\x89PNG")}},
			}})
			require.NoError(t, err)
			require.NoError(t, p.work())
			require.Equal(t, session.StatusSuspended, w.session().Status)

			_, err = w.stop(w.process(), runtime.SignalInterrupt)
			require.NoError(t, err)
			_, err = w.withRules(w.process(), session.TaskRules{Model: second + ":m"})
			require.NoError(t, err)
			for range 2 { // of another model the approval is asked for anew
				_, err = w.submit(w.process(), session.WaitApproval, yes())
				require.NoError(t, err)
				require.NoError(t, w.process().settle())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Equal(t, map[string]int{"deploy 1": 1}, made.all())
			require.Len(t, providers[second].heard, 1)
			heard := providers[second].heard[0]
			require.Contains(t, heard, "iVBORw==", "the image")
			require.Contains(t, heard, "deploy")
			require.NotContains(t, heard, first+" thinks")
			require.NotContains(t, heard, "c2lnbmVk")

			w.run(w.process(), "once more")
			require.Len(t, providers[first].heard, 2)
			require.Contains(t, providers[first].heard[1], "bye", "what the other one said")
			require.NotContains(t, providers[first].heard[1], second+" thinks")
			require.Equal(t, first == "anthropic", strings.Contains(providers[first].heard[1], `"signature":"c2lnbmVk"`))
		})
	}
}
