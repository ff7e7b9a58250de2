// Package control carries out the verbs that stop a task, begin one from a checkpoint or bring a message.
package control

import (
	"context"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/away"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/runtime/internal/worker"
	"github.com/adjourn/adjourn/pkg/session"
)

// Config is what the verbs stand on; all of it is required.
type Config struct {
	Sessions *stored.Sessions
	Worker   *worker.Worker
	Away     *away.Away
	Now      func() time.Time
	// NewID returns 96 random bits in base64url.
	NewID func() string
	// StepBytes bounds what one entry keeps.
	StepBytes int
	// Rules returns what a task of an agent is held to that begins now, or refuses to.
	Rules func(ctx context.Context, agent string, asked session.TaskRules) (session.Rules, error)
	// HasEffects reports whether a tool of an agent may change something when it runs.
	HasEffects func(agent, tool string) bool
}

// Control carries out verbs. Its methods are safe for concurrent use.
type Control struct {
	cfg Config
}

// New returns a control.
func New(cfg Config) *Control { return &Control{cfg: cfg} }
