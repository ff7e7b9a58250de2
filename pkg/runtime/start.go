package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Start begins a new session, or the next turn of one that completed or was
// cancelled. It is refused with already_running or not_resumable otherwise. The
// same IdempotencyKey with the same request gets the first answer again, and the
// wake is sent once more; with another request it is refused.
func (r *Runtime) Start(ctx context.Context, p StartParams) (Started, error) {
	return asResult(r.startWithKey(ctx, p))
}

func (r *Runtime) startWithKey(ctx context.Context, p StartParams) (Started, error) {
	verb := idempotency.Start
	if p.Event {
		verb = idempotency.Event
	}
	// The agent is not part of what is asked, because a repeated request may leave it
	// out: the session has it. The id counts only when the caller chose it.
	asked := []any{p.Key.ID, p.Input, p.Tags}
	if !p.Rules.IsZero() || p.State != nil || p.Metadata != nil { // else it is what it was before these were there
		asked = append(asked, p.Rules, p.State, p.Metadata)
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, verb, p.IdempotencyKey, asked...)
	if err != nil {
		return Started{}, err
	}
	chosen := p.Key.ID != ""
	if !chosen {
		p.Key.ID = r.newSessionID()
	}
	out, err := once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Started, error) {
		return r.startedBefore(ctx, p, &q, did)
	}, func() (Started, error) {
		return r.start(ctx, p, &q, 0)
	})
	if e := AsError(err); e != nil && !chosen && e.Session == p.Key.ID && e.Code.Class() == ClassInvalid {
		e.Session = "" // there is none, and no caller has received this id
		return Started{}, e
	}
	return out, err
}

// start begins a task with entry seq; 0 is any. Where that is another one it is [store.ErrConflict].
func (r *Runtime) start(ctx context.Context, p StartParams, q *idempotency.Request, seq int64) (Started, error) {
	if err := p.Key.Validate(); err != nil {
		return Started{}, err
	}
	if err := answers.CheckInput(p.Key, p.Input); err != nil {
		return Started{}, err
	}
	if err := session.ValidateTags(p.Tags); err != nil {
		return Started{}, refusal.New(CodeInvalidInput, p.Key, "%s", err)
	}
	if err := session.ValidateMetadata(p.Metadata); err != nil {
		return Started{}, refusal.New(CodeInvalidInput, p.Key, "%s", err)
	}
	state, err := initialState(p)
	if err != nil {
		return Started{}, err
	}
	s, err := r.sessions.Load(ctx, p.Key)
	if err != nil {
		return Started{}, err
	}
	defer func() { r.sessions.PutBack(s) }()
	head, err := r.sessions.Item(ctx, p.Key, store.KindHead, "")
	if err != nil {
		return Started{}, err
	}
	if head.Head != nil && head.Head.Gone(r.cfg.Now()) {
		return Started{}, refusal.New(CodeNotResumable, p.Key, "it was deleted and its id is never used again. Start under another id")
	}
	if s == nil {
		s = &session.Session{Key: p.Key}
	}
	if seq > 0 && s.Next() != seq {
		return Started{}, fmt.Errorf("session %s: start at entry %d: %w", p.Key, seq, store.ErrConflict)
	}
	if err := r.startable(s, p); err != nil {
		return Started{}, err
	}
	name := p.Agent
	if name == "" {
		name = s.Rules.Agent
	}
	rules, err := r.rules(ctx, name, p.Rules)
	if err != nil {
		return Started{}, err
	}
	m := engine.Start(s, rules, llm.UserParts(p.Input), r.stamp(p.Caller))
	m.Entry.Tags, m.Entry.StateOps, m.Entry.Metadata = slices.Clone(p.Tags), state, maps.Clone(p.Metadata)
	started := Started{Key: p.Key, Task: m.Entry.Task, Seq: m.Entry.Seq, Checkpoint: m.Entry.Checkpoint(p.Key.ID).String()}
	record, err := q.Record(m.Entry.At, p.Key, m.Entry.Seq, startRecord{Started: started, Agent: name})
	if err != nil {
		return Started{}, err
	}
	if err := r.sessions.Commit(ctx, s, &head, m, record); err != nil {
		return Started{}, err
	}
	return started, nil
}

// maxState is how large the state may be that a session begins with, in bytes.
const maxState = MaxInput

// initialState returns the operations that make the state which a session begins with.
func initialState(p StartParams) (ops []session.StateOp, err error) {
	size := 0
	var state session.State
	for _, key := range slices.Sorted(maps.Keys(p.State)) {
		op := session.StateOp{Op: session.StateReplace, Key: key, Value: p.State[key]}
		if err := state.Apply(op); err != nil {
			return nil, refusal.New(CodeInvalidInput, p.Key, "%s", err)
		}
		size += len(key) + len(op.Value)
		ops = append(ops, op)
	}
	if size > maxState {
		return nil, refusal.New(CodeInputTooLarge, p.Key, "the state has %d bytes, and %d is the most", size, maxState)
	}
	return ops, nil
}

// rules returns what a task of an agent is held to that begins now.
func (r *Runtime) rules(ctx context.Context, name string, asked session.TaskRules) (session.Rules, error) {
	rules, err := r.cfg.Registry.TaskRules(name, asked, r.cfg.Env)
	if err == nil && r.cfg.OpenAtStart {
		if _, err = r.cfg.Registry.Planner(ctx, rules, r.cfg.Env); ctx.Err() != nil {
			return session.Rules{}, context.Cause(ctx)
		}
	}
	if err != nil {
		code := CodeInvalidModel
		var not *agent.NotAskedError
		switch {
		case errors.As(err, &not) && !not.Forbidden:
			code = CodeInvalidInput
		case not != nil:
			code = CodeNotAllowed
		case errors.Is(err, agent.ErrUnknownAgent):
			code = CodeUnknownAgent
		case errors.Is(err, agent.ErrNotOffered):
			code = CodeAgentNotOffered
		}
		return session.Rules{}, &Error{Code: code, Message: err.Error(), Cause: err}
	}
	rules.HoldTo(r.cfg.ToolPolicy)
	return rules, nil
}

// hasEffects reports whether a tool may change something: one that this program does not have may.
func (r *Runtime) hasEffects(agentName, toolName string) bool {
	t, ok := r.cfg.Registry.Tool(agentName, toolName)
	return !ok || t.Effect() != session.ReadOnly
}

// startable is the rows of start in docs/design/README.md.
func (r *Runtime) startable(s *session.Session, p StartParams) error {
	if s.Status != "" && p.State != nil {
		return refusal.New(CodeInvalidInput, p.Key, "it has a state already: only a new session begins with one")
	}
	switch s.Status {
	case "":
		if p.Agent == "" {
			return refusal.New(CodeInvalidInput, p.Key, "a new session needs an agent: say which one; there are %s", strings.Join(r.cfg.Registry.Names(), ", "))
		}
	case session.StatusCompleted, session.StatusCancelled:
		if p.Agent != "" && p.Agent != s.Rules.Agent {
			return refusal.New(CodeAgentMismatch, p.Key, "it belongs to agent %q, not %q. Leave the agent out, or start another session", s.Rules.Agent, p.Agent)
		}
	case session.StatusRunning:
		return refusal.At(CodeAlreadyRunning, p.Key, s.Status, "it is already running. Send it the message, wait for it to end (if no worker works on it any more, resume it without a message), or start another session")
	case session.StatusSuspended, session.StatusInterrupted, session.StatusFailed:
		return refusal.At(CodeNotResumable, p.Key, s.Status, "%s: a next turn needs a session that completed or was cancelled. %s", refusal.Stands(s.Status), suggestVerb(s))
	}
	return nil
}

func suggestVerb(s *session.Session) string {
	switch s.Status {
	case session.StatusSuspended:
		return "Answer what it waits for, then resume it"
	case session.StatusInterrupted:
		return "Resume it"
	case session.StatusFailed:
		if s.Failure.Aborted() {
			return "It was aborted: go back to a checkpoint, or start another session"
		}
		return "Retry it, or start another session"
	case session.StatusRunning, session.StatusCompleted, session.StatusCancelled:
	}
	return ""
}

// startRecord is what the record of a start remembers.
type startRecord struct {
	Started
	Agent string
}

// startedBefore answers a repeated request and sends its wake again: the first
// one may have died before it could.
func (r *Runtime) startedBefore(ctx context.Context, p StartParams, q *idempotency.Request, did json.RawMessage) (Started, error) {
	var before startRecord
	if err := json.Unmarshal(did, &before); err != nil {
		return Started{}, fmt.Errorf("idempotency key %q: %w", p.IdempotencyKey, err)
	}
	started := before.Started
	if p.Agent != "" && p.Agent != before.Agent {
		return Started{}, q.Mismatch(started.Key.ID)
	}
	started.Replayed = true
	return started, r.sendAgain(ctx, started.Key, started.Seq)
}

// sendAgain sends for the step after an entry that began a task, if nothing has come since.
func (r *Runtime) sendAgain(ctx context.Context, key session.Key, began int64) error {
	head, err := r.sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil || head.Head.Gone(r.cfg.Now()) || head.Head.StatusSeq != began {
		return err
	}
	newest, err := r.sessions.Newest(ctx, *head.Head)
	if err != nil || newest.Seq != began || newest.Status != session.StatusRunning {
		return err
	}
	return r.sessions.Send(ctx, journal.NewWake(key, began+1, journal.WakeStep))
}

// newSessionID returns an id of our making.
func (r *Runtime) newSessionID() string { return "ses_" + r.cfg.NewID() }
