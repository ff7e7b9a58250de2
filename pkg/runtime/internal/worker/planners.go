package worker

import (
	"context"
	"strings"
	"sync"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/session"
)

// planners are the agents of this program as tasks need them, each made once.
type planners struct {
	registry *agent.Registry
	env      agent.Env

	mu sync.Mutex
	// digests of agents as they are in this program, by agent and model.
	digests map[[2]string]string
	// byRules are planners by agent, model, digest of the rules and tools.
	byRules map[[4]string]agent.Planner
}

func newPlanners(registry *agent.Registry, env agent.Env) *planners {
	return &planners{registry: registry, env: env, digests: map[[2]string]string{}, byRules: map[[4]string]agent.Planner{}}
}

// digest identifies the agent of a task as it is in this program, with the
// task's own model, so that only a change of the definition counts as one.
func (p *planners) digest(rules session.Rules) (string, error) {
	key := [2]string{rules.Agent, rules.Model}
	p.mu.Lock()
	digest, ok := p.digests[key]
	p.mu.Unlock()
	if ok {
		return digest, nil
	}
	now, err := p.registry.Rules(rules.Agent, func(name string) string {
		if name == agent.ModelVariable {
			return rules.Model
		}
		return p.env(name)
	})
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.digests[key] = now.Digest
	return now.Digest, nil
}

// planner returns what plans the replies of a task, made once for all tasks that
// are held to the same. One that cannot be made is tried anew the next time.
func (p *planners) planner(ctx context.Context, rules session.Rules) (agent.Planner, error) {
	key := [4]string{rules.Agent, rules.Model, rules.Digest, strings.Join(rules.Tools, " ")}
	p.mu.Lock()
	planner, ok := p.byRules[key]
	p.mu.Unlock()
	if ok {
		return planner, nil
	}
	planner, err := p.registry.Planner(ctx, rules, p.env)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byRules[key] = planner
	return planner, nil
}
