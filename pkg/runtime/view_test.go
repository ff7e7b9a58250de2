package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/store"
)

// A worker of a program that has not the agent of a session takes a lease before it finds that: whoever
// looks meanwhile is not told that the session is being worked on. That of another program is.
func TestView_of_a_session_whose_agent_is_missing(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.start(w.process(), "go")
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, stopScript(), func(a *agent.Agent) { a.Name = "b" })}})
	require.NoError(t, err)
	p := w.process(func(cfg *runtime.Config) { cfg.Registry, cfg.Owner = registry, "here" })
	for owner, want := range map[string]runtime.Code{"here/1": runtime.CodeUnknownAgent, "here": runtime.CodeAlreadyRunning, "elsewhere/1": runtime.CodeAlreadyRunning} {
		now := w.clock.Now()
		_, err = w.store.Claim(context.Background(), store.ClaimParams{Key: w.key, Mode: store.ClaimTake, Owner: owner, Seq: 2, Now: now, Until: now.Add(time.Minute)})
		require.NoError(t, err)
		view, err := p.View(context.Background(), w.key)
		require.NoError(t, err)
		require.Equal(t, want, view.Resume.Code, owner)
		w.clock.advance(time.Minute)
	}
}
