package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// idempotencyTTL is how long a request key is remembered.
const idempotencyTTL = 24 * time.Hour

// Start begins a new session, or the next turn of one that completed or was
// cancelled. It is refused with already_running or not_resumable otherwise. The
// same IdempotencyKey with the same request gets the first answer again, and the
// wake is sent once more; with another request it is refused.
func (r *Runtime) Start(ctx context.Context, p StartParams) (Started, error) {
	digest := p.digest()
	if p.Key.ID != "" {
		return r.startNamed(ctx, p, digest)
	}
	p.Key.ID = "ses_" + r.cfg.NewID()
	started, err := r.startNamed(ctx, p, digest)
	if e := AsError(err); e != nil && e.Session == p.Key.ID && e.Code.Class() == ClassInvalid {
		e.Session = "" // there is none, and nobody has heard of this id
	}
	return started, err
}

func (r *Runtime) startNamed(ctx context.Context, p StartParams, digest string) (Started, error) {
	if err := p.Key.Validate(); err != nil {
		return Started{}, AsError(err)
	}
	if err := checkInput(p.Key, p.Input); err != nil {
		return Started{}, err
	}
	if err := session.ValidateTags(p.Tags); err != nil {
		return Started{}, refuse(CodeInvalidInput, p.Key, "%s", err)
	}
	for try := 1; ; try++ {
		started, rev, err := r.startedBefore(ctx, p, digest)
		if started != nil {
			return *started, nil
		}
		var fresh Started
		if err == nil {
			fresh, err = r.start(ctx, p, digest, rev)
		}
		if err == nil {
			return fresh, nil
		}
		if code := AsError(err).Code; p.IdempotencyKey != "" && (code == CodeAlreadyRunning || code == CodeNotResumable) {
			// What is in the way may be what a copy of this very request made meanwhile.
			if started, _, lookErr := r.startedBefore(ctx, p, digest); lookErr == nil && started != nil {
				return *started, nil
			}
		}
		// Another start was first: looking again says whether it was ours, or why we
		// lost. A refusal may mean that our own request was carried out just now.
		again := errors.Is(err, store.ErrConflict) || try == 1 && p.IdempotencyKey != "" && AsError(err).Code.Class() == ClassConflict
		if !again || try == maxTries {
			return Started{}, AsError(err)
		}
	}
}

// maxTries bounds how often a verb looks again after losing a race.
const maxTries = 8

func (r *Runtime) start(ctx context.Context, p StartParams, digest string, rev int64) (Started, error) {
	s, err := r.load(ctx, p.Key)
	if err != nil {
		return Started{}, err
	}
	defer func() { r.keep(s) }()
	head, err := r.item(ctx, p.Key, store.KindHead, "")
	if err != nil {
		return Started{}, err
	}
	if s == nil {
		if head.Head != nil && head.Head.Deleted {
			return Started{}, refuse(CodeNotResumable, p.Key, "it was deleted and its id is never used again. Start under another id")
		}
		s = &session.Session{Key: p.Key}
	}
	if err := r.startable(s, p); err != nil {
		return Started{}, err
	}
	name := p.Agent
	if name == "" {
		name = s.Rules.Agent
	}
	rules, err := r.cfg.Registry.Rules(name, r.cfg.Env)
	if err != nil {
		code := CodeInvalidModel
		if errors.Is(err, agent.ErrUnknownAgent) {
			code = CodeUnknownAgent
		}
		return Started{}, &Error{Code: code, Message: err.Error(), Cause: err}
	}
	m := engine.Start(s, rules, llm.UserParts(p.Input), r.stamp(p.Caller))
	m.Entry.Tags = slices.Clone(p.Tags)
	started := Started{Key: p.Key, Task: m.Entry.Task, Seq: m.Entry.Seq, Checkpoint: m.Entry.Checkpoint(p.Key.ID).String()}
	var extra []store.Item
	if p.IdempotencyKey != "" {
		answer, err := json.Marshal(started)
		if err != nil {
			return Started{}, fmt.Errorf("session %s: remember the request: %w", p.Key, err)
		}
		extra = append(extra, store.IdempotencyItem(session.Idempotency{
			Key: p.IdempotencyKey, Digest: digest, Session: p.Key.ID, Seq: m.Entry.Seq, Answer: answer,
			ExpiresAt: m.Entry.At.Add(idempotencyTTL),
		}, rev))
	}
	if err := r.commit(ctx, s, &head, m, extra); err != nil {
		return Started{}, err
	}
	return started, nil
}

// startable is the rows of start in design section 7.
func (r *Runtime) startable(s *session.Session, p StartParams) error {
	switch s.Status {
	case "":
		if p.Agent == "" {
			return refuse(CodeInvalidInput, p.Key, "a new session needs an agent: say which one; there are %s", strings.Join(r.cfg.Registry.Names(), ", "))
		}
	case session.StatusCompleted, session.StatusCancelled:
		if p.Agent != "" && p.Agent != s.Rules.Agent {
			return refuse(CodeAgentMismatch, p.Key, "it belongs to agent %q, not %q. Leave the agent out, or start another session", s.Rules.Agent, p.Agent)
		}
	case session.StatusRunning:
		e := refuse(CodeAlreadyRunning, p.Key, "it is already running. Wait for it to end, or start another session")
		e.Status = s.Status
		return e
	case session.StatusSuspended, session.StatusInterrupted, session.StatusFailed:
		e := refuse(CodeNotResumable, p.Key, "it is %s: a next turn needs a session that completed or was cancelled. %s", s.Status, whatInstead(s.Status))
		e.Status = s.Status
		return e
	}
	return nil
}

func whatInstead(status session.Status) string {
	switch status {
	case session.StatusSuspended:
		return "Answer what it waits for, then resume it"
	case session.StatusInterrupted:
		return "Resume it"
	case session.StatusFailed:
		return "Start another session"
	case session.StatusRunning, session.StatusCompleted, session.StatusCancelled:
	}
	return ""
}

// digest of what the request asks for; the id counts only when the caller chose
// it. The agent is not in it, because a repeated request may leave it out: the
// session has it.
func (p StartParams) digest() string {
	raw, err := json.Marshal([]any{"start", p.Key.ID, p.Input, p.Tags})
	if err != nil {
		return ""
	}
	return session.Digest(raw)
}

// startedBefore answers a repeated request and sends its wake again: the first
// one may have died before it could. Without one it returns nil and the revision
// at which the request may be remembered.
func (r *Runtime) startedBefore(ctx context.Context, p StartParams, digest string) (*Started, int64, error) {
	if p.IdempotencyKey == "" {
		return nil, 0, nil
	}
	item, err := r.item(ctx, session.Key{Tenant: p.Key.Tenant}, store.KindIdempotency, p.IdempotencyKey)
	if err != nil {
		return nil, 0, err
	}
	record := item.Idempotency
	if record == nil || !r.cfg.Now().Before(record.ExpiresAt) {
		return nil, item.Rev, nil
	}
	s, err := r.load(ctx, session.Key{Tenant: p.Key.Tenant, ID: record.Session})
	if err != nil {
		return nil, 0, err
	}
	defer r.keep(s)
	if record.Digest != digest || s != nil && p.Agent != "" && p.Agent != s.Rules.Agent {
		return nil, 0, refuse(CodeIdempotencyMismatch, session.Key{ID: record.Session}, "idempotency key %q was used for another request. Use a new key for a new request", p.IdempotencyKey)
	}
	var started Started
	if err := json.Unmarshal(record.Answer, &started); err != nil {
		return nil, 0, fmt.Errorf("idempotency key %q: %w", p.IdempotencyKey, err)
	}
	started.Repeated = true
	if s != nil && s.Version == started.Seq && s.Status == session.StatusRunning {
		if err := r.send(ctx, session.NewWake(started.Key, started.Seq+1, session.WakeStep)); err != nil {
			return nil, 0, err
		}
	}
	return &started, 0, nil
}
