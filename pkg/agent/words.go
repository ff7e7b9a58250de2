package agent

import (
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// The words of an agent's definition and of its planner. Each is an alias of the type or
// constant of the same name in package session or llm, so that a program that defines
// agents imports agent and tool alone.
type (
	// Limits bound one task: Steps, Tokens, ActiveMillis, CostMicros. Zero means the
	// default, [Unlimited] no limit.
	Limits = session.Limits
	// Policy says how an agent treats people and changes of its definition:
	// TextNeedsInput, HoldBatch, AbandonOnMessage (true or false), OnChange.
	Policy = session.Policy
	// ChangePolicy says what happens when an agent was changed while a task waited:
	// [ChangeGoOn], [ChangeReask] or [ChangeFail].
	ChangePolicy = session.ChangePolicy
	// Rules are what a task is held to, written down when it starts.
	Rules = session.Rules
	// SessionKey names a session: its Tenant and its ID.
	SessionKey = session.Key

	// State is the custom state of a session: JSON values by key.
	State = session.State
	// StateOp is one change of the state: Op ([StateAppend] or [StateReplace]), Key, Value.
	StateOp = session.StateOp

	// Model answers a conversation with the next reply.
	Model = llm.Model
	// Message is one turn of a conversation: its Role and its Parts.
	Message = llm.Message
	// Part is one piece of a message; by its Kind one of Text, ToolCall, ToolResult, File
	// is set.
	Part = llm.Part
	// ToolResult is what became of one call of a tool: CallID, Name, Status and Output, the
	// tool's JSON (where Status is not [ResultSuccess] a JSON string that says what happened).
	ToolResult = llm.ToolResult
	// ResultStatus says how a call of a tool ended.
	ResultStatus = llm.ResultStatus
	// Usage counts the tokens of a reply: Input, CacheRead, CacheWrite, Output, Reasoning.
	Usage = llm.Usage
)

// Unlimited lifts one of the [Limits].
const Unlimited = session.Unlimited

// The change policies. A [Policy] that names none means ChangeReask.
const (
	// ChangeGoOn goes on with the answers as they were given.
	ChangeGoOn = session.ChangeGoOn
	// ChangeReask asks for approvals and replies anew that were given before the change.
	ChangeReask = session.ChangeReask
	// ChangeFail fails the task.
	ChangeFail = session.ChangeFail
)

// The kinds of [StateOp].
const (
	StateAppend  = session.StateAppend
	StateReplace = session.StateReplace
)

// Who speaks in a [Message].
const (
	RoleUser      = llm.RoleUser
	RoleAssistant = llm.RoleAssistant
	RoleTool      = llm.RoleTool
)

// The ways in which a call of a tool can end.
const (
	ResultSuccess   = llm.ResultSuccess
	ResultError     = llm.ResultError
	ResultDenied    = llm.ResultDenied
	ResultCancelled = llm.ResultCancelled
	ResultTimedOut  = llm.ResultTimedOut
	ResultUnknown   = llm.ResultUnknown
)
