package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// BackParams begin a task with the history of a checkpoint of the session.
type BackParams struct {
	Key session.Key
	// Checkpoint to go back to. A retry without one goes on from where the task failed, or, with
	// FromStart, begins the task anew.
	Checkpoint string
	FromStart  bool
	// Message to go on with, as Input of a start; nil for none.
	Message []llm.Part
	// Acknowledge is the digest of the effects done after the checkpoint, as they were listed.
	Acknowledge string
	// Rules are what the caller asks of the task; what is left out stays as it was asked of the task
	// before.
	Rules  session.TaskRules
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Began is a task that has begun from a checkpoint.
type Began struct {
	Task       int64
	Seq        int64
	Checkpoint string
	// Status of the session after it: running, suspended, or, of a fork that rests, interrupted.
	Status session.Status
	// Open waits, where what the checkpoint asked is asked anew.
	Open []session.Wait
	// Effects done after the checkpoint, which were not undone.
	Effects session.EffectsDone
	// ForkedFrom says what a fork is a copy of; nil for a task of the same session.
	ForkedFrom *session.Fork
	// Replayed as in [Submitted].
	Replayed bool
}

// GoBack begins a new task whose history is that of a checkpoint (docs/design/README.md). It is
// allowed from everything but running. Nothing is deleted; what waits is closed; what the checkpoint
// asked is asked anew, and answers given after it count for nothing. Effects done after it have to be
// acknowledged by the digest of their list, which the refusal effects_not_acknowledged holds.
func (r *Runtime) GoBack(ctx context.Context, p BackParams) (Began, error) {
	return asResult(r.back(ctx, p, idempotency.Resume, false))
}

// Retry begins a new task of a session that failed, and was not aborted: from where it failed, so
// that no call is made twice, from the start of the task, or from a checkpoint as [Runtime.GoBack].
func (r *Runtime) Retry(ctx context.Context, p BackParams) (Began, error) {
	return asResult(r.back(ctx, p, idempotency.Retry, true))
}

func (r *Runtime) back(ctx context.Context, p BackParams, verb idempotency.Verb, retry bool) (Began, error) {
	if p.Message != nil {
		if err := answers.CheckInput(p.Key, p.Message); err != nil {
			return Began{}, err
		}
	}
	switch {
	case !retry && p.Checkpoint == "":
		return Began{}, refusal.New(CodeInvalidInput, p.Key, "say which checkpoint to go back to")
	case p.FromStart && (!retry || p.Checkpoint != ""):
		return Began{}, refusal.New(CodeInvalidInput, p.Key, "say either a checkpoint or the start")
	}
	// What was acknowledged is no part of what is asked: a person may have done so at a prompt.
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, verb, p.IdempotencyKey, session.ResumeFromCheckpoint, p.Key.ID, p.Checkpoint, p.FromStart, p.Message, "", p.Rules)
	if err != nil {
		return Began{}, err
	}
	request := control.BackRequest{
		Key: p.Key, Checkpoint: p.Checkpoint, Retry: retry, Start: p.FromStart, Message: p.Message, Acknowledge: p.Acknowledge, Rules: p.Rules,
		Who: p.Caller.Who, From: p.Caller.From, Record: r.recorder(&q, p.Key),
	}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Began, error) {
		return r.beganBefore(ctx, p.Key, did)
	}, func() (Began, error) {
		out, err := r.control.Back(ctx, &request)
		return began(out), err
	})
}

func began(out control.Began) Began {
	return Began{Task: out.Task, Seq: out.Seq, Checkpoint: out.Checkpoint, Status: out.Status, Open: out.Open, Effects: out.Effects, ForkedFrom: out.ForkedFrom}
}

func (r *Runtime) recorder(q *idempotency.Request, key session.Key) func(int64, any) ([]store.Item, error) {
	return func(seq int64, did any) ([]store.Item, error) { return q.Record(r.cfg.Now(), key, seq, did) }
}

// beganBefore answers a repeated request, and sends again what the first one may not have sent.
func (r *Runtime) beganBefore(ctx context.Context, key session.Key, did json.RawMessage) (Began, error) {
	var before control.Began
	if err := json.Unmarshal(did, &before); err != nil {
		return Began{}, fmt.Errorf("session %s: record of an idempotency key: %w", key, err)
	}
	out := began(before)
	out.Replayed = true
	return out, r.sendAgain(ctx, key, out.Seq)
}

// ForkParams begin a session of its own from a checkpoint of another one.
type ForkParams struct {
	// Origin is copied; it stays as it is.
	Origin session.Key
	// Checkpoint of the origin; empty for its newest one.
	Checkpoint string
	// ID of the new session; empty for one of our making.
	ID string
	// Message to go on with, as Input of a start; nil for none.
	Message []llm.Part
	// Rules as in [BackParams].
	Rules session.TaskRules
	// Tags of the new session, as in [StartParams]; it has none of the origin's.
	Tags   []string
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Forked is the result of a fork.
type Forked struct {
	Key session.Key
	Began
}

// Fork begins a new session with what a checkpoint of another one holds. What is asked there is
// asked in the fork too, under its own ids and nonces; it has no answer that came after.
func (r *Runtime) Fork(ctx context.Context, p ForkParams) (Forked, error) {
	return asResult(r.fork(ctx, p))
}

func (r *Runtime) fork(ctx context.Context, p ForkParams) (Forked, error) {
	if p.Message != nil {
		if err := answers.CheckInput(p.Origin, p.Message); err != nil {
			return Forked{}, err
		}
	}
	if err := session.ValidateTags(p.Tags); err != nil {
		return Forked{}, refusal.New(CodeInvalidInput, p.Origin, "%s", err)
	}
	asks := []any{p.Origin.ID, p.Checkpoint, p.ID, p.Message, p.Rules}
	if len(p.Tags) > 0 { // else it is what it was before these were there
		asks = append(asks, p.Tags)
	}
	q, err := idempotency.New(p.Origin.Tenant, p.Caller.Who, idempotency.Fork, p.IdempotencyKey, asks...)
	if err != nil {
		return Forked{}, err
	}
	key := session.Key{Tenant: p.Origin.Tenant, ID: p.ID}
	if key.ID == "" {
		key.ID = r.newSessionID()
	}
	if err := key.Validate(); err != nil {
		return Forked{}, err
	}
	request := control.ForkRequest{
		Origin: p.Origin, Checkpoint: p.Checkpoint, Key: key, Message: p.Message, Rules: p.Rules, Tags: p.Tags, Who: p.Caller.Who, From: p.Caller.From,
		Record: func(seq int64, did any) ([]store.Item, error) {
			return q.Record(r.cfg.Now(), key, seq, forkRecord{Session: key.ID, Did: did})
		},
	}
	return once(ctx, r, p.Caller, p.Origin, &q, func(did json.RawMessage) (Forked, error) {
		var before struct {
			Session string
			Did     json.RawMessage
		}
		if err := json.Unmarshal(did, &before); err != nil {
			return Forked{}, fmt.Errorf("session %s: record of an idempotency key: %w", p.Origin, err)
		}
		there := session.Key{Tenant: p.Origin.Tenant, ID: before.Session}
		out, err := r.beganBefore(ctx, there, before.Did)
		return Forked{Key: there, Began: out}, err
	}, func() (Forked, error) {
		out, err := r.control.Fork(ctx, &request)
		return Forked{Key: key, Began: began(out)}, err
	})
}

// forkRecord is what the record of a fork remembers.
type forkRecord struct {
	Session string
	Did     any
}

// Forks returns HEAD of each fork of a session.
func (r *Runtime) Forks(ctx context.Context, key session.Key) ([]journal.Head, error) {
	return asResult(r.control.Forks(ctx, key))
}

// Checkpoint is a session as it was at a checkpoint.
type Checkpoint struct {
	Entry journal.Entry
	// Session as it was; it is the caller's own.
	Session *session.Session
	// Effects done after the checkpoint, as going back to it lists them now.
	Effects session.EffectsDone
	// Compared with the other checkpoint that was asked for; nil for none.
	Compared *Compared
}

// Compared is what a checkpoint has that another one of the session has not.
type Compared = control.Compared

// Checkpoint returns a session as it was at a checkpoint, compared with another one unless that is
// empty.
func (r *Runtime) Checkpoint(ctx context.Context, key session.Key, checkpoint, with string) (Checkpoint, error) {
	out, err := r.control.Look(ctx, key, checkpoint, with)
	return asResult(Checkpoint{Entry: out.Entry, Session: out.At, Effects: out.Effects, Compared: out.Compared}, err)
}
