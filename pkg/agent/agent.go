package agent

import (
	"math"
	"time"

	"github.com/adjourn/adjourn/pkg/tool"
)

// Agent is the definition of an agent. Name is required, and one of Model,
// Planner and Offline.
type Agent struct {
	// Name: 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells people, and agents that may delegate, what it is for.
	Description string
	// Model as prefix:name, with a prefix of [Config] Models. The variable
	// ADJOURN_MODEL overrides it.
	Model string
	// System is the system prompt.
	System string
	Tools  []tool.Tool
	// Trial marks an agent that is there to try things out: whoever starts it can do
	// what its tools do. A server and a deployed bundle offer it only when asked to
	// ([TrialVariable]); a person's own terminal always does.
	Trial bool
	// Planner plans always; no model is ever asked.
	Planner Planner
	// Offline plans when no model is named: Model is empty and ADJOURN_MODEL is not set.
	Offline Planner
	// Limits of one task; zero fields mean those of session.DefaultLimits.
	Limits Limits
	// SessionLimits bound all tasks of a session together; zero fields mean no limit.
	SessionLimits Limits
	Policy        Policy
	// Callers says what callers may ask of a task beyond lower limits and fewer tools.
	Callers Callers
	// Output is set by agents whose tasks end with structured output.
	Output *Output
	// InputExpiry is the deadline when the agent waits for a user message; nil
	// waits for ever.
	InputExpiry *tool.Expiry
	Retry       Retry
	// Retention is how long a session is kept after the end of its last task, by the definition that
	// the task began with. Then it is gone, as if it had been deleted. Zero keeps it for ever.
	Retention time.Duration
	// MaxOutputTokens of one reply; zero means the provider's default.
	MaxOutputTokens int64
}

// Callers is what callers may ask of a task. The zero value lets them lower limits and leave out
// tools, and nothing else.
type Callers struct {
	// RaiseLimits is how high callers may raise the limits of a task; zero fields may not be raised.
	RaiseLimits Limits
	// Models that callers may choose, as prefix:name, beside the agent's own.
	Models []string
}

// Defaults of [Retry].
const (
	DefaultAttempts  = 5
	DefaultRetryBase = time.Second
	DefaultRetryMax  = 5 * time.Minute
)

// Retry says how often and how patiently a reply is tried again whose model call
// failed in a way that may pass. Zero fields mean the defaults.
type Retry struct {
	// Attempts is how many tries one reply gets, the first included.
	Attempts int
	// Base is the delay after the first failure; it doubles with each further one up to Max.
	Base, Max time.Duration
}

func (r Retry) withDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = DefaultAttempts
	}
	if r.Base == 0 {
		r.Base = DefaultRetryBase
	}
	if r.Max == 0 {
		r.Max = max(DefaultRetryMax, r.Base)
	}
	return r
}

// GivesUp reports whether a reply that failed so many times is not tried again.
func (r Retry) GivesUp(failures int) bool { return failures >= r.withDefaults().Attempts }

// Delay returns how long to wait after so many failures of a reply: at least
// hint, which is what the provider asked for, even where that is more than Max.
// It is the same for the same arguments.
func (r Retry) Delay(failures int, hint time.Duration) time.Duration {
	r = r.withDefaults()
	delay := r.Base
	for i := 1; i < failures && delay < r.Max; i++ {
		if delay > math.MaxInt64/2 {
			delay = r.Max
			break
		}
		delay *= 2
	}
	return max(min(delay, r.Max), hint)
}
