package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// turn is one reply of a scripted planner.
type turn func(ctx context.Context, v agent.View) (agent.Reply, error)

// script plans by the newest user message that has lines here: the k-th reply
// after it is its k-th line, where failed tries count as replies.
type script map[string][]turn

func (lines script) Plan(ctx context.Context, v agent.View) (agent.Reply, error) {
	for i, m := range slices.Backward(v.Messages) {
		turns, ok := lines[m.Text()]
		if m.Role != llm.RoleUser || !ok {
			continue
		}
		k := 0
		for _, later := range v.Messages[i:] {
			if later.Role == llm.RoleAssistant {
				k++
			}
		}
		for _, messages := range v.Delays {
			if messages > i {
				k++
			}
		}
		if k < len(turns) {
			return turns[k](ctx, v)
		}
		break
	}
	return agent.Reply{Text: "done"}, nil
}

func says(text string) turn {
	return func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: text}, nil }
}

func needs(text string) turn {
	return func(context.Context, agent.View) (agent.Reply, error) {
		return agent.Reply{Text: text, NeedsInput: true}, nil
	}
}

func fails(err error) turn {
	return func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{}, err }
}

// calls asks for calls, each written as its name and its arguments.
func calls(list ...string) turn {
	var reply agent.Reply
	for pair := range slices.Chunk(list, 2) {
		reply.Calls = append(reply.Calls, agent.Call{Name: pair[0], Arguments: json.RawMessage(pair[1])})
	}
	return func(context.Context, agent.View) (agent.Reply, error) { return reply, nil }
}

type textIn struct {
	Text string `json:"text"`
}

// toolbox is one tool of each sort, all of which count what they do.
func toolbox(made *effects) []tool.Tool {
	effect := func(_ context.Context, c *tool.Call, in textIn) (string, error) {
		made.add(c.Name() + " " + in.Text)
		return "did " + in.Text, nil
	}
	again := map[string]string{"choose": "put "} // what may happen again is put
	pick := func(ctx context.Context, c *tool.Call, in textIn) (string, error) {
		prepared, err := tool.Once(ctx, c, "prepare", func(context.Context) (string, error) {
			made.add(again[c.Name()] + "prepare " + in.Text)
			return "prepared", nil
		})
		if err != nil {
			return "", err
		}
		reply, err := c.Ask(ctx, tool.Question{ID: "colour", Text: "Which?", Choices: []session.Choice{{ID: "red"}, {ID: "blue"}}})
		if err != nil {
			return "", err
		}
		made.add(again[c.Name()] + "paint " + in.Text)
		return prepared + " " + reply.Selected[0], nil
	}
	return []tool.Tool{
		tool.Define(tool.Spec[textIn]{Name: "line"}, effect),
		tool.Define(tool.Spec[textIn]{Name: "retry", OnUnknown: session.UnknownRetry}, effect),
		tool.Define(tool.Spec[textIn]{Name: "ask", OnUnknown: session.UnknownAsk}, effect),
		tool.Define(tool.Spec[textIn]{
			Name: "probe", OnUnknown: session.UnknownProbe,
			Probe: func(_ context.Context, c *tool.Call, in textIn) (any, bool, error) {
				return "found " + in.Text, made.count(c.Name()+" "+in.Text) > 0, nil
			},
		}, effect),
		tool.Define(tool.Spec[textIn]{Name: "deploy", Approve: tool.Always[textIn]}, effect),
		tool.Define(tool.Spec[textIn]{Name: "put", Effect: session.Idempotent}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
			key := c.IdempotencyKey()
			made.add("put " + in.Text + " " + key[strings.LastIndex(key, ".")+1:])
			return "put " + in.Text, nil
		}),
		tool.Define(tool.Spec[textIn]{Name: "echo", Effect: session.ReadOnly}, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
			return in.Text, nil
		}),
		tool.Define(tool.Spec[textIn]{Name: "note", Effect: session.ReadOnly}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
			return "noted", c.Append("notes", in.Text)
		}),
		tool.DefineClient(tool.Spec[textIn]{Name: "locate"}),
		tool.Define(tool.Spec[textIn]{Name: "pick"}, pick),
		tool.Define(tool.Spec[textIn]{Name: "choose", Effect: session.Idempotent}, pick),
		tool.Define(tool.Spec[textIn]{Name: "end", Effect: session.ReadOnly, Finish: true}, func(_ context.Context, c *tool.Call, in textIn) (any, error) {
			notes, _, err := tool.State[[]string](c, "notes")
			return map[string]any{"text": in.Text, "notes": notes}, err
		}),
	}
}

// helper is the agent of most tests.
func helper(made *effects, lines script, change ...func(*agent.Agent)) agent.Agent {
	a := agent.Agent{Name: "a", Planner: lines, Tools: toolbox(made)}
	for _, c := range change {
		c(&a)
	}
	return a
}

// results returns the results in a session's history by call.
func results(s *session.Session) map[string]llm.ToolResult {
	out := map[string]llm.ToolResult{}
	for _, m := range s.Messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				out[p.ToolResult.CallID] = *p.ToolResult
			}
		}
	}
	return out
}
