// Package tooltest is a kit for tests of tools: it runs a tool as the runtime does, without a runtime.
//
// [Run] checks the arguments against the tool's schema, asks for the approval, runs the
// tool and answers what it asks from the [Call]; after each answer the tool runs again
// from its top, as it does in a session. The [Result] says what the tool returned, what
// it asked, what it changed in the state and what it sent.
package tooltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// ErrNotApproved is the error of a call that needs an approval and has none. The tool has not run.
var ErrNotApproved = errors.New("a person must approve this call: set Approved")

// ErrClient is the error of a call of a tool that runs in the client.
var ErrClient = errors.New("the tool runs in the client")

// Call is the call a tool is run with. The zero value is a first run in an empty session
// with nobody who answers.
type Call struct {
	// ID of the call; c2-1 if empty.
	ID string
	// Session is the id of the session; s1 if empty.
	Session string
	// IdempotencyKey is made of session and call if empty.
	IdempotencyKey string
	// Approved says that a person has agreed, for a tool with an approval rule.
	Approved bool
	// Answers holds the answers to the tool's questions, by the id of the question. A
	// question without an answer leaves the call waiting.
	Answers map[string]tool.Reply
	// Expired lists the ids of questions whose deadline has passed without an answer.
	Expired []string
	// State is the session's state before the call, by key. Values are made JSON.
	State map[string]any
	// Once holds what tool.Once remembered on earlier runs, such as the Once of a
	// [Result]: a run with it is the run after a crash.
	Once map[string]json.RawMessage
	// Files says where the tool may have files; zero: nowhere.
	Files tool.Files
	// Log takes the tool's own lines; nil drops them.
	Log *slog.Logger
}

// Result is what became of a call.
type Result struct {
	// Output is what the tool returned, as JSON.
	Output json.RawMessage
	// Err is the tool's error; [*tool.ArgumentError], [ErrNotApproved] and [ErrClient]
	// say that it has not run. It wraps [tool.ErrWaiting] where a question is open.
	Err error
	// NeedsApproval reports what the tool's approval rule said about the arguments.
	NeedsApproval bool
	// Asked are the questions that the tool asked, in order, each once.
	Asked []tool.Question
	// Open are those of them that have no answer.
	Open []tool.Question
	// Runs counts how often the tool's function ran: once, and once more after answers.
	Runs int
	// State is the session's state after the call. A call that waits has not changed it.
	State map[string]json.RawMessage
	// Events are what the tool sent with Emit.
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
	raw, state, result := prepare(t, args, c)
	if result.Err != nil {
		return result
	}
	if t.Client() {
		result.Err = ErrClient
		return result
	}
	if result.NeedsApproval = t.NeedsApproval(raw); result.NeedsApproval && !c.Approved {
		result.Err = ErrNotApproved
		return result
	}
	cfg := c.config(t, state, result.Once)
	for {
		call := toolcall.New[tool.Call](cfg)
		result.Output, result.Err = run(ctx, t, call, raw)
		result.Runs++
		taken := toolcall.Take[tool.Question](call)
		result.Open, result.Events = taken.Questions, nil
		if len(taken.Questions) == 0 {
			for _, e := range taken.Events {
				result.Events = append(result.Events, Event{Name: e.Name, Data: e.Data})
			}
			after, err := state.With(taken.StateOps)
			if err != nil {
				result.Err = errors.Join(result.Err, err)
				return result
			}
			result.State = after.Snapshot()
			return result
		}
		if result.Err == nil || !errors.Is(result.Err, tool.ErrWaiting) {
			result.Err = errors.Join(tool.ErrWaiting, result.Err) // a question suspends whatever the tool returned
		}
		result.Output = nil
		result.Asked = append(result.Asked, unseen(result.Asked, taken.Questions)...)
		answered, err := c.answer(&cfg, taken.Questions)
		if err != nil {
			result.Err = err
			return result
		}
		if !answered {
			return result
		}
	}
}

// Probe asks a tool whether an earlier run of the call had its effect, and what its result was.
func Probe(ctx context.Context, t tool.Tool, args any, c Call) (output json.RawMessage, happened bool, err error) {
	raw, state, result := prepare(t, args, c)
	if result.Err != nil {
		return nil, false, result.Err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout())
	defer cancel()
	return t.Probe(ctx, toolcall.New[tool.Call](c.config(t, state, result.Once)), raw)
}

// prepare checks what a run begins with.
func prepare(t tool.Tool, args any, c Call) (json.RawMessage, *session.State, Result) {
	result := Result{Once: map[string]json.RawMessage{}}
	for key, value := range c.Once {
		result.Once[key] = value
	}
	if result.Err = t.Err(); result.Err != nil {
		return nil, nil, result
	}
	raw, ok := args.(json.RawMessage)
	if !ok && args != nil {
		if raw, result.Err = json.Marshal(args); result.Err != nil {
			return nil, nil, result
		}
	}
	state := new(session.State)
	for key, value := range c.State {
		text, err := json.Marshal(value)
		if err == nil {
			err = state.Apply(session.StateOp{Op: session.StateReplace, Key: key, Value: text})
		}
		if err != nil {
			result.Err = fmt.Errorf("state %q of the call: %w", key, err)
			return nil, nil, result
		}
	}
	result.State = state.Snapshot()
	result.Err = t.Validate(raw)
	return raw, state, result
}

func (c Call) config(t tool.Tool, state *session.State, memo map[string]json.RawMessage) toolcall.Config[tool.Files] {
	id, in := cmp.Or(c.ID, "c2-1"), cmp.Or(c.Session, "s1")
	cfg := toolcall.Config[tool.Files]{
		Session: session.Key{Tenant: session.DefaultTenant, ID: in}, Task: 1, ID: id, Name: t.Name(),
		IdempotencyKey: cmp.Or(c.IdempotencyKey, session.DefaultTenant+"."+in+"."+id),
		State:          state, Who: t.Who(), Files: c.Files, Log: c.Log, Memo: memo,
	}
	if t.Effect() != tool.ReadOnly {
		cfg.Remember = func(_ context.Context, key string, value json.RawMessage) error {
			memo[key] = value
			return nil
		}
	}
	return cfg
}

func run(ctx context.Context, t tool.Tool, call *tool.Call, args json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout())
	defer cancel()
	return t.Run(ctx, call, args)
}

// unseen returns the questions that are not among those known.
func unseen(known, questions []tool.Question) []tool.Question {
	return slices.DeleteFunc(slices.Clone(questions), func(q tool.Question) bool {
		return slices.ContainsFunc(known, func(k tool.Question) bool { return k.ID == q.ID && k.Text == q.Text })
	})
}

// answer adds the answers that the call has to the questions; false if it has none.
func (c Call) answer(cfg *toolcall.Config[tool.Files], questions []tool.Question) (answered bool, err error) {
	for _, q := range questions {
		wait := session.Wait{ID: fmt.Sprintf("w%d-1", len(cfg.Asked)+3), Kind: session.WaitQuestion, Question: q.Session(), Who: q.Who}
		a := session.Answer{Wait: wait.ID, Kind: session.AnswerReply, ToolCallID: cfg.ID, QuestionID: q.ID}
		reply, has := c.Answers[q.ID]
		switch {
		case has:
			if len(q.Choices) > 0 {
				a.Selected = append([]string{}, reply.Selected...)
			} else {
				a.Text = &reply.Text
			}
			if !q.Fits(a) {
				return false, fmt.Errorf("the answer to question %q does not fit it: %+v", q.ID, reply)
			}
		case slices.Contains(c.Expired, q.ID):
			if a, err = expired(a, q); err != nil {
				return false, err
			}
		default:
			continue
		}
		if slices.ContainsFunc(cfg.Replies, func(r session.Answer) bool { return r.QuestionID == q.ID }) {
			continue // it was asked in other words after the answer: it waits again
		}
		cfg.Asked, cfg.Replies, answered = append(cfg.Asked, wait), append(cfg.Replies, a), true
	}
	return answered, nil
}

// expired returns what the deadline of a question answers.
func expired(a session.Answer, q tool.Question) (session.Answer, error) {
	if q.Expiry == nil {
		return a, fmt.Errorf("question %q has no deadline that could pass: set Expiry", q.ID)
	}
	a.Kind, a.Outcome = session.AnswerExpiry, q.Expiry.Outcome
	switch a.Outcome {
	case tool.ExpireFail:
		return a, fmt.Errorf("question %q: %w: the task fails", q.ID, tool.ErrExpired)
	case tool.ExpireDefault:
		raw, err := json.Marshal(q.Expiry.Value)
		if err != nil {
			return a, err
		}
		a.Result = raw
	case tool.ExpireDeny, tool.ExpireReask:
	}
	return a, nil
}
