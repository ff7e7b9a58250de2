package journal

import (
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// ModelCall is one call of a model. It is recorded when it happens, because it cannot be found
// out later: which model answered, when, for how long, why it stopped, what it cost.
type ModelCall struct {
	// Model that answered, as the provider names it; empty: as the rules do.
	Model string `json:"model,omitempty"`
	// ID is the provider's, of its response.
	ID string `json:"id,omitempty"`
	// At is when it began, to the millisecond, Millis how long it took.
	At     time.Time `json:"at"`
	Millis int64     `json:"millis,omitempty"`
	// Finish is why the model stopped; empty when the call failed: then Error is its class.
	Finish llm.StopReason `json:"finish,omitempty"`
	Error  string         `json:"error,omitempty"`
	// Usage and CostMicros are left out of the only call of an entry: they are the entry's.
	Usage      llm.Usage `json:"usage,omitzero"`
	CostMicros int64     `json:"costMicros,omitempty"`
}

// ToolRun is one run of a tool's function. A call can have several: one that asks
// is run again with the reply.
type ToolRun struct {
	Call string `json:"call"`
	// At is when it began, to the millisecond, Millis how long it took.
	At     time.Time `json:"at"`
	Millis int64     `json:"millis,omitempty"`
	// Digest of the effective arguments, those it ran with.
	Digest string `json:"digest"`
	// Permission is the standing permission that let it run without asking; empty where none had to.
	Permission string `json:"permission,omitempty"`
	// ByPolicy says that it ran without the approval its tool asks for, because the policy of the program
	// allows it.
	ByPolicy bool `json:"byPolicy,omitempty"`
}
