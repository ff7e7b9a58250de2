// Command expiring is every function at once, with an agent whose approvals expire.
//
// The tests deploy it in the place of the real ones where nobody answers: no agent
// of this program has a deadline.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// expireAfter is the time somebody has to approve a release.
const expireAfter = 1500 * time.Millisecond

// registry is the lab with a tool release, which is deploy with a deadline.
func registry() (*agent.Registry, error) {
	definition := lab.Agent()
	for _, original := range definition.Tools {
		if original.Name() != "deploy" {
			continue
		}
		definition.Tools = append(definition.Tools, tool.Define(tool.Spec[lab.DeployIn]{
			Name: "release", Description: original.Description(), Effect: original.Effect(), Approve: tool.Always[lab.DeployIn],
			Expiry: &tool.Expiry{After: expireAfter, Outcome: session.ExpireDefault, Value: true},
		}, func(ctx context.Context, c *tool.Call, in lab.DeployIn) (json.RawMessage, error) {
			args, err := json.Marshal(in)
			if err != nil {
				return nil, err
			}
			return original.Run(ctx, c, args)
		}))
		break
	}
	return agent.NewRegistry(agent.Config{Models: agent.Models{"scripted": lab.Open}, Agents: []agent.Agent{definition}})
}

func main() {
	map[string]func(func() (*agent.Registry, error)){
		"start": lambdafn.Start, "step": lambdafn.Step, "resume": lambdafn.Resume,
		"submit": lambdafn.Submit, "query": lambdafn.Query, "event": lambdafn.Event, "sweep": lambdafn.Sweep,
	}[os.Getenv("AWS_LAMBDA_FUNCTION_NAME")](registry)
}
