package session

import (
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Trigger is what began a run.
type Trigger string

// The triggers.
const (
	TriggerStart   Trigger = "start"
	TriggerSubmit  Trigger = "submit"
	TriggerResume  Trigger = "resume"
	TriggerRetry   Trigger = "retry"
	TriggerFork    Trigger = "fork"
	TriggerChild   Trigger = "child"
	TriggerExpiry  Trigger = "expiry"
	TriggerMessage Trigger = "message"
)

// Run is the record of one stretch of work, from a trigger until it ends or
// waits. Runs are numbered 1, 2, 3… without gaps per session.
type Run struct {
	ID          int64      `json:"id"`
	Task        int64      `json:"task"`
	Trigger     Trigger    `json:"trigger"`
	Status      Status     `json:"status"`
	StartedAt   time.Time  `json:"startedAt"`
	EndedAt     *time.Time `json:"endedAt,omitempty"`
	FirstEntry  int64      `json:"firstEntry"`
	LastEntry   int64      `json:"lastEntry,omitempty"`
	PreviousRun int64      `json:"previousRun,omitempty"`
	Usage       llm.Usage  `json:"usage,omitzero"`
	// Used of the limits, by this run; like Usage it is known once the run has ended.
	Used Amounts `json:"used,omitzero"`

	// Unknown is what a newer program wrote into the record. Package journal reads it
	// and writes it again.
	Unknown any `json:"-"`
}
