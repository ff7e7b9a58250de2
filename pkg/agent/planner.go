package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Planner decides the next reply of an agent. Implementations are safe for
// concurrent use: one planner plans for all sessions. A plan may be thrown away
// and made again, so planning has no effects.
type Planner interface {
	// Plan returns the next reply. An [*llm.Error] that is retryable puts the
	// reply off; every other error fails the task.
	Plan(ctx context.Context, v View) (Reply, error)
}

// PlannerFunc is a function that is a [Planner].
type PlannerFunc func(ctx context.Context, v View) (Reply, error)

// Plan calls the function.
func (f PlannerFunc) Plan(ctx context.Context, v View) (Reply, error) { return f(ctx, v) }

// View is what a planner sees. It reads and changes nothing in it.
type View struct {
	Session  SessionKey
	Messages []Message
	State    *State
	Task     Task
	// Attempt counts the failed tries of this reply so far.
	Attempt int
	// Delays holds, for each failed try of the task that was put off, how many
	// messages there were then.
	Delays []int
	// Watch is handed the reply as it is made; it may be nil.
	Watch func(llm.Event)
}

// Task is what a planner sees of the task.
type Task struct {
	Number int64
	// Step is the number of the step that is planned.
	Step  int64
	Agent string
	Model string
	// Left of the task's limits.
	Left Limits
}

// Reply is what a planner decided: text, calls, changes of state. A reply
// without calls ends the turn.
type Reply struct {
	Text  string
	Calls []Call
	// StateOps change the session's state with this reply.
	StateOps []StateOp
	// Parts are used instead of Text and Calls where their order or what a
	// provider must see again matters.
	Parts []Part
	// NeedsInput: the text is for a person, without whom the agent cannot go on.
	NeedsInput bool
	Usage      Usage
	// CostMicros is what the reply cost, in millionths of the agent's currency.
	CostMicros int64
	// Model, ResponseID and Finish are kept in the journal beside the reply: the
	// model that answered (empty: the task's), the provider's id of its response,
	// why it stopped. A planner that asks no model leaves them out.
	Model      string
	ResponseID string
	Finish     llm.StopReason
}

// Call asks for one call of a tool.
type Call struct {
	Name string
	// Arguments are made JSON; a json.RawMessage is taken as it is; nil means {}.
	Arguments any
}

// Message returns the reply as the assistant's message of the history. It is an
// error if the reply contradicts itself or its arguments cannot be made JSON.
func (r Reply) Message() (Message, error) {
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{}}
	if r.Parts != nil {
		if r.Text != "" || r.Calls != nil {
			return llm.Message{}, errors.New("reply: Parts are used instead of Text and Calls: set one or the other")
		}
		for i, p := range r.Parts {
			p, err := checkPart(p)
			if err != nil {
				return llm.Message{}, fmt.Errorf("reply: part %d: %w", i+1, err)
			}
			m.Parts = append(m.Parts, p)
		}
	} else {
		if r.Text != "" {
			m.Parts = append(m.Parts, llm.Text(r.Text))
		}
		for i, c := range r.Calls {
			call, err := c.toolCall()
			if err != nil {
				return llm.Message{}, fmt.Errorf("reply: call %d: %w", i+1, err)
			}
			m.Parts = append(m.Parts, llm.Part{Kind: llm.PartToolCall, ToolCall: call})
		}
	}
	if r.NeedsInput && len(m.ToolCalls()) > 0 {
		return llm.Message{}, errors.New("reply: NeedsInput is for a reply without calls: let a tool ask, or make the calls first")
	}
	return m, nil
}

func (c Call) toolCall() (*llm.ToolCall, error) {
	if c.Name == "" {
		return nil, errors.New("it names no tool")
	}
	call := &llm.ToolCall{Name: c.Name, Arguments: json.RawMessage(`{}`)}
	if c.Arguments == nil {
		return call, nil
	}
	if raw, ok := c.Arguments.(json.RawMessage); ok && len(raw) == 0 {
		return call, nil
	}
	raw, err := json.Marshal(c.Arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s cannot be made JSON: %w", c.Name, err)
	}
	call.Arguments = raw
	return call, nil
}

// checkPart returns a part as it may stand in an assistant's message.
func checkPart(p llm.Part) (llm.Part, error) {
	switch p.Kind {
	case llm.PartText, llm.PartReasoning, llm.PartImage, llm.PartFile:
		return p, nil
	case llm.PartToolCall:
		if p.ToolCall == nil {
			return p, errors.New("a tool call without ToolCall")
		}
		call := *p.ToolCall
		call.ID = "" // given when the reply is committed
		switch {
		case len(call.Arguments) == 0:
			call.Arguments = json.RawMessage(`{}`)
		default:
			if err := journal.CheckValue(call.Arguments); err != nil {
				return p, fmt.Errorf("the arguments of %s: %w", call.Name, err)
			}
		}
		if call.Name == "" {
			return p, errors.New("a tool call that names no tool")
		}
		p.ToolCall = &call
		return p, nil
	case llm.PartToolResult:
		return p, errors.New("a tool result is no part of a reply")
	}
	return p, fmt.Errorf("unknown kind %q", p.Kind)
}

// PanicError is a planner that panicked.
type PanicError struct {
	Agent string
	// Value is what it panicked with.
	Value any
	// Stack of the goroutine, for logs; it is not part of the message.
	Stack []byte
}

// Error says which agent's planner panicked with what.
func (e *PanicError) Error() string {
	text := fmt.Sprint(e.Value)
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return fmt.Sprintf("the planner of agent %s panicked: %s", e.Agent, text)
}

// safely makes a panic of a planner an error: a panic is no reason to lose the process.
func safely(agent string, p Planner) Planner {
	return PlannerFunc(func(ctx context.Context, v View) (reply Reply, err error) {
		defer func() {
			if v := recover(); v != nil {
				reply, err = Reply{}, &PanicError{Agent: agent, Value: v, Stack: debug.Stack()}
			}
		}()
		return p.Plan(ctx, v)
	})
}
