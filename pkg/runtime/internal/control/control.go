// Package control carries out the verbs that stop a task.
package control

import (
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/runtime/internal/worker"
)

// Config is what the verbs stand on; all of it is required.
type Config struct {
	Sessions *stored.Sessions
	Worker   *worker.Worker
	Now      func() time.Time
	// NewID returns 96 random bits in base64url.
	NewID func() string
	// StepBytes bounds what one entry keeps.
	StepBytes int
}

// Control carries out verbs. Its methods are safe for concurrent use.
type Control struct {
	cfg Config
}

// New returns a control.
func New(cfg Config) *Control { return &Control{cfg: cfg} }
