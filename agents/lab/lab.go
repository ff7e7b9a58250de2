// Package lab is an agent for trying everything without a model.
//
// Its model is a script ([Parse]): a YAML list in the user's message, one item for
// each reply. Its tools exercise every feature of a tool: each
// effect, approval, questions, state, a client tool, a result that ends the task,
// errors, panics. A real model can drive it too.
package lab

import (
	"context"

	"github.com/adjourn/adjourn/pkg/agent"
)

// ModelName is the lab's model; whoever lists the lab gives [Open] as its provider.
const ModelName = "scripted:lab"

// system is for a real model; a script does not read it.
const system = `You are the lab of Adjourn, a runtime for agents that stop and wait for people. The user tries out what the runtime does, by telling you which tools to call.

Do what you are asked with the tools you have, and nothing else: call no tool that was not asked for, and do not repeat a call whose result you have, not even one that failed. When several calls are asked for at once, make them in one reply. deploy and refund pretend: they change nothing outside this machine. When a person has denied a call, say so and go on without it. Call finish only if the user wants a structured result. At the end say in one or two sentences what happened.`

// Agent returns the lab.
func Agent() agent.Agent {
	return agent.Agent{
		Name:        "lab",
		Description: "Tries out every feature, driven by a script in YAML instead of a model.",
		Model:       ModelName,
		System:      system,
		Tools:       Tools(),
		// Whoever may start it can do what its tools do.
		Trial: true,
		// A script with repeat: 1000 or far more has to fit. Scripted tokens cost nothing:
		// each step counts one for every message so far, and more for large ones.
		Limits: agent.Limits{Steps: 10_000, Tokens: 120_000_000},
	}
}

// Open opens the model that follows the script of the newest user message. Its
// name is for people: there is one such model.
func Open(context.Context, string, func(string) string) (agent.Model, error) {
	return Model(), nil
}
