// Package worker is the agent of the programs that do the work with Adjourn.
package worker

import (
	"context"
	"encoding/json"

	"github.com/adjourn/adjourn/bench/work"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Agent is its name.
const Agent = "worker"

// input is the message that begins a session.
type input struct {
	work.Plan
	Session string
}

// Input is the text that tells the agent which session it works in, and what to do.
func Input(session string, p work.Plan) string {
	text, err := json.Marshal(input{p, session})
	if err != nil {
		panic(err) // numbers and a name
	}
	return string(text)
}

type in struct {
	Session string `json:"session"`
	Step    int    `json:"step"`
}

// Registry offers the agent.
func Registry(m *work.Meter) func() (*agent.Registry, error) {
	define := func(name string, effect session.Effect) tool.Tool {
		return tool.Define(tool.Spec[in]{Name: name, Effect: effect}, func(_ context.Context, _ *tool.Call, in in) (string, error) {
			return m.Step(in.Session, in.Step, effect == tool.SideEffect), nil
		})
	}
	planner := agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
		var p input
		if err := json.Unmarshal([]byte(v.Messages[0].Text()), &p); err != nil {
			return agent.Reply{}, err
		}
		done := (len(v.Messages) - 1) / 2
		if p.Wait {
			if done == 0 {
				return agent.Reply{Text: "Shall I?", NeedsInput: true}, nil
			}
			done--
		}
		if done >= p.Steps {
			return agent.Reply{Text: "Done."}, nil
		}
		name := "look"
		if p.Effect {
			name = "act"
		}
		return agent.Reply{Text: work.Reply, Calls: []agent.Call{{Name: name, Arguments: in{Session: p.Session, Step: done}}}}, nil
	})
	return func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
			Name: Agent, Planner: planner, Limits: agent.Limits{Steps: agent.Unlimited},
			Tools: []tool.Tool{define("look", tool.ReadOnly), define("act", tool.SideEffect)},
		}}})
	}
}
