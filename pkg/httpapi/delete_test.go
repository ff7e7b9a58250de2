package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// When a session expires stands in its JSON, once it has ended.
func TestSession_expires(t *testing.T) {
	t.Parallel()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "desk", Planner: script{}, Tools: tools(), Retention: time.Hour}}})
	require.NoError(t, err)
	w := newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Registry = registry }})
	w.start("over", "echo")
	w.start("waits", "deploy")
	over := answer[client.Session](w, http.StatusOK, w.send(ann, http.MethodGet, "/sessions/over", ""))
	require.Equal(t, over.UpdatedAt.Add(time.Hour), *over.ExpiresAt)
	require.Nil(t, answer[client.Session](w, http.StatusOK, w.send(ann, http.MethodGet, "/sessions/waits", "")).ExpiresAt)
}
