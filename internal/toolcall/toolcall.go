// Package toolcall holds what package tool does for the engine and keeps from its users.
//
// Package tool hands over its functions with [Provide]. The runtime and tooltest make
// calls with [New] and end them with [Take]; [Shown] is what people see of a question.
// The type parameters stand for tool.Call, tool.Files, tool.Question and tool.Expiry,
// because package tool imports this one.
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

// Functions are those of package tool.
type Functions[Call, Files, Question, Expiry any] struct {
	New         func(Config[Files]) *Call
	Take        func(*Call) Taken[Question]
	Shown       func(Question) *session.Question
	CheckExpiry func(*Expiry, session.WaitKind) error
}

// provided are the functions of package tool.
var provided struct{ make, take, shown, checkExpiry any }

// Provide is called by package tool, once.
func Provide[Call, Files, Question, Expiry any](f Functions[Call, Files, Question, Expiry]) struct{} {
	provided.make, provided.take, provided.shown, provided.checkExpiry = f.New, f.Take, f.Shown, f.CheckExpiry
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

// Shown returns a question as the journal has it and people are shown it.
func Shown[Question any](q Question) *session.Question {
	shown, _ := provided.shown.(func(Question) *session.Question)
	return shown(q)
}

// CheckExpiry says everything that is wrong with the expiry of a wait of a kind. A nil
// expiry waits for ever and is never wrong.
func CheckExpiry[Expiry any](e *Expiry, kind session.WaitKind) error {
	check, _ := provided.checkExpiry.(func(*Expiry, session.WaitKind) error)
	return check(e, kind)
}
