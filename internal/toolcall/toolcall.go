// Package toolcall makes the calls that tools are run with: what package tool keeps from its users.
//
// Package tool hands over its constructor with [Provide]; the runtime and tooltest make
// calls with [New] and end them with [Take]. The type parameters stand for tool.Call,
// tool.Files and tool.Question, because package tool imports this one.
package toolcall

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/adjourn/adjourn/pkg/session"
)

// Config is what a call is made of.
type Config[Files any] struct {
	Session session.Key
	Task    int64
	// ID is ours, c<seq of the reply>-<i>; Name is the tool's.
	ID   string
	Name string
	// IdempotencyKey is the same on every run of the call.
	IdempotencyKey string
	// State the step starts from; it must not change while the tool runs. Nil is empty.
	State *session.State
	// Asked are the waits this call has opened, oldest first, and Replies the answers
	// taken in for it. An answer to a question counts for the question that the wait
	// it names showed; others are ignored.
	Asked   []session.Wait
	Replies []session.Answer
	// Who may answer the questions that name nobody: those of the tool's definition.
	Who []string
	// Memo holds what Once remembered on earlier runs.
	Memo map[string]json.RawMessage
	// Remember makes a result of Once durable; it returns once it is. Nil refuses Once.
	Remember func(ctx context.Context, key string, value json.RawMessage) error
	// Files says where the tool may have files; zero: nowhere.
	Files Files
	// Log takes the tool's own lines, with session, call and tool added; nil drops them.
	Log *slog.Logger
}

// Taken is what a call leaves behind.
type Taken[Question any] struct {
	// StateOps and Events in the order they were made.
	StateOps []session.StateOp
	Events   []session.CustomEvent
	// Questions that were asked and have no answer. Any of them suspends the call,
	// whatever the tool returned.
	Questions []Question
}

// provided are the two functions of package tool.
var provided struct{ make, take any }

// Provide is called by package tool, once.
func Provide[Call, Files, Question any](makes func(Config[Files]) *Call, takes func(*Call) Taken[Question]) struct{} {
	provided.make, provided.take = makes, takes
	return struct{}{}
}

// New returns a call: New[tool.Call](cfg).
func New[Call, Files any](cfg Config[Files]) *Call {
	makes, _ := provided.make.(func(Config[Files]) *Call)
	return makes(cfg)
}

// Take ends a call and returns what it leaves behind: Take[tool.Question](c). From then
// on a goroutine the tool left running changes nothing.
func Take[Question, Call any](c *Call) Taken[Question] {
	takes, _ := provided.take.(func(*Call) Taken[Question])
	return takes(c)
}
