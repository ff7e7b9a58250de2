// Package tooltest is a kit for tests of tools: it runs a tool as the runtime does, without a runtime.
//
// [Run] checks the arguments against the tool's schema, asks for the approval, runs the
// tool and answers what it asks from the [Call]; after each answer the tool runs again
// from its top, as it does in a session. With CutOff it does what the runtime does after a
// crash. The [Result] says what the tool returned and the model is told, what the tool
// asked, what it changed in the state and what it sent.
package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/tool"
)

// ErrNotApproved is the error of a call that waits for an approval. The tool has not run.
var ErrNotApproved = errors.New("a person must approve this call: set Approved, Rejected or DecisionExpired")

// ErrClient is the error of a call of a tool that runs in the client.
var ErrClient = errors.New("the tool runs in the client")

// Call is the call a tool is run with. The zero value is a first run in an empty session
// with nobody who answers.
type Call struct {
	// ID of the call; c2-1 if empty.
	ID string
	// Session is the id of the session; s1 if empty.
	Session string
	// IdempotencyKey is default.SESSION.ID if empty, as on a data file: default.s1.c2-1.
	IdempotencyKey string
	// Approved says that a person has agreed, for a call that needs it: of another it is
	// an error, as Rejected is.
	Approved bool
	// Edited are the arguments that the person who approved put in the place of those
	// shown: all of them, made JSON as those of [Run] are. The schema must allow them.
	Edited any
	// Rejected says that a person did not agree, for the Reason if there is one.
	Rejected bool
	Reason   string
	// DecisionExpired says that the deadline of the tool's Spec has passed before
	// anybody decided on the approval, or gave the Verdict.
	DecisionExpired bool
	// CutOff says that an earlier run of a side effect started and that its end is not
	// known, as after a crash. What follows is what the tool's OnUnknown says.
	CutOff bool
	// Verdict is what a person answers who is asked what became of the run, for a tool
	// with [tool.UnknownAsk]; nil leaves the call waiting.
	Verdict *Verdict
	// Answers holds the answers to the tool's questions, by the id of the question. A
	// question without an answer leaves the call waiting. One that is not asked is an error.
	Answers map[string]tool.Reply
	// Expired lists the ids of questions whose deadline has passed without an answer.
	Expired []string
	// State is the session's state before the call, by key. Values are made JSON.
	State map[string]any
	// Once holds what tool.Once remembered on earlier runs, such as the Once of a
	// [Result].
	Once map[string]json.RawMessage
	// Files says where the tool may have files; zero: nowhere.
	Files tool.Files
	// Log takes the tool's own lines; nil drops them.
	Log *slog.Logger
}

// Verdict is what a person found out about a run whose outcome is not known.
type Verdict struct {
	// Happened says that the run took effect. Result is then its result, made JSON, if
	// the person knows it.
	Happened bool
	Result   any
	// Reason says more where it did not happen.
	Reason string
}

// Result is what became of a call.
type Result struct {
	// Status is that of the result which the model is told: agent.ResultSuccess
	// ("success"), "error", "denied", "timed_out", "unknown" or "cancelled". It is empty
	// while the call has no result: it waits, its task fails, or the test is wrong and
	// nothing ran.
	Status llm.ResultStatus
	// Text is what the model is told: the output as JSON, or what is said in its place.
	Text string
	// Output is what the tool returned, as JSON, or what a probe or a person said that it
	// returned.
	Output json.RawMessage
	// Err is nil for a success, else the tool's error or why there is no success. It also
	// says what is wrong with the test, beside a success too: what the Call holds and
	// nothing asked for.
	// [*tool.ArgumentError], [ErrNotApproved] and [ErrClient] say that the tool has not
	// run. It wraps [tool.ErrWaiting] where a question is open or a verdict missing, and
	// [tool.ErrExpired] where a deadline decided.
	Err error
	// NeedsApproval reports what the tool's approval rule said about the arguments. The
	// rule is not asked about arguments that the schema refuses: the model is told what is
	// wrong with them, and no person is asked.
	NeedsApproval bool
	// Preview is what a person who is asked is shown by the tool's Show, as the runtime keeps it.
	Preview *tool.Preview
	// Asked are the questions that the tool asked, in order, each once.
	Asked []tool.Question
	// Open are those of them that have no answer.
	Open []tool.Question
	// Runs counts how often the tool's function ran: once, once more after answers, and
	// once more for each run of which the outcome is not known and that may be repeated.
	Runs int
	// State is the session's state after the call. Only a success has changed it.
	State map[string]json.RawMessage
	// Events are what the tool sent with Emit, of a success.
	Events []Event
	// Once holds what tool.Once remembered, by key.
	Once map[string]json.RawMessage
}

// Event is one event that a tool sent.
type Event struct {
	Name string
	Data json.RawMessage
}

// Decode reads the output into a value, given as a pointer. It returns the tool's error if
// there is one.
func (r Result) Decode(into any) error {
	if r.Err != nil {
		return r.Err
	}
	return json.Unmarshal(r.Output, into)
}

// Run runs a tool with arguments, which are made JSON; a json.RawMessage is taken as it is.
// The context ends when the tool's timeout has passed, as in a session: in a test of
// timeouts use [testing/synctest].
func Run(ctx context.Context, t tool.Tool, args any, c Call) Result {
	r, err := prepare(t, args, c)
	if err != nil {
		return Result{Err: err}
	}
	r.cutOff = c.CutOff && t.Effect() == tool.SideEffect && !t.Client()
	r.drive(ctx)
	if err := r.unused(); err != nil {
		r.result.Err = errors.Join(r.result.Err, err)
	}
	return r.result
}

// Probe asks a tool whether an earlier run of the call had its effect, and what its result was.
func Probe(ctx context.Context, t tool.Tool, args any, c Call) (output json.RawMessage, happened bool, err error) {
	r, err := prepare(t, args, c)
	if err == nil {
		err = t.Validate(r.call.Arguments)
	}
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout())
	defer cancel()
	return t.Probe(ctx, r.newCall(nil), r.call.Arguments)
}
