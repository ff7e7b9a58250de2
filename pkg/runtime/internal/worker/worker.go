// Package worker does what a delivered message asks for.
//
// Deliver (deliver.go) decides by the table in docs/design/chain.md, and does the step (step.go).
// An [*invocation] is the work on one message. DeadLetter decides about messages that were received
// too often. The order is always commit, send, acknowledge.
package worker

import (
	"log/slog"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Config wires a worker. All of it is required but Files and OnDelta: package runtime has the
// defaults and says what each field means.
type Config struct {
	Sessions *stored.Sessions
	// Halts say which sessions do no step.
	Halts *halts.Halts
	// Store grants leases, and keeps the ledgers of calls.
	Store    store.Store
	Registry *agent.Registry
	Env      agent.Env
	Files    tool.Files
	Owner    string
	Now      func() time.Time
	NewID    func() string

	Lease, RenewEvery, WatchEvery, Grace, ToolGrace time.Duration

	StepsPerInvocation int
	MaxClaims          int64
	StepBytes          int
	ToolsAtOnce        int

	Log     *slog.Logger
	OnDelta func(session.Key, llm.Event)
}

// Worker works on delivered messages. Its methods are safe for concurrent use.
type Worker struct {
	cfg      Config
	sessions *stored.Sessions
	ledgers  *ledger.Ledgers
	planners *planners
}

// Digest identifies the agent of a task as it is in this program.
func (w *Worker) Digest(rules session.Rules) (string, error) { return w.planners.digest(rules) }

// New returns a worker.
func New(cfg Config) *Worker {
	return &Worker{cfg: cfg, sessions: cfg.Sessions, ledgers: ledger.New(cfg.Sessions, cfg.Store, cfg.Now), planners: newPlanners(cfg.Registry, cfg.Env)}
}
