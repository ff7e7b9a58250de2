// Package remote does with the sessions of a server what the runtime does with those of a data file.
//
// It takes and returns the runtime's own words, refusals included, so that the
// commands of the CLI do not know which of the two they speak to.
package remote

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Config says which server, and who is told of progress.
type Config struct {
	// Client of the server; required.
	Client *client.Client
	// OnEntry is told each entry of a session that is driven.
	OnEntry func(session.Key, runtime.Progress)
}

// Engine is the engine of a server. It is for one command: it remembers up to
// which entry it has seen a session. It is not safe for concurrent use.
type Engine struct {
	client  *client.Client
	onEntry func(session.Key, runtime.Progress)
	seen    map[session.Key]int64
	// told holds the entry after which a session was told to go on, though until
	// its worker comes it looks as if it rested.
	told map[session.Key]int64
	// asked is when a session was driven last.
	asked map[session.Key]time.Time
}

// between is how long it takes at least from one drive of a session to the next. A
// server may say in one breath that it rests and that it goes on.
const between = 500 * time.Millisecond

// startWithin is how long a session may take to go on that was told to.
const startWithin = time.Minute

// New returns the engine behind a client.
func New(cfg Config) (*Engine, error) {
	if cfg.Client == nil {
		return nil, errors.New("remote: Client is required")
	}
	e := &Engine{client: cfg.Client, onEntry: cfg.OnEntry, seen: map[session.Key]int64{}, told: map[session.Key]int64{}, asked: map[session.Key]time.Time{}}
	if e.onEntry == nil {
		e.onEntry = func(session.Key, runtime.Progress) {}
	}
	return e, nil
}

// Start begins a session, or its next turn. Replayed is told only of a key the
// caller gave: the client's own repeats are nobody's business.
func (e *Engine) Start(ctx context.Context, p runtime.StartParams) (runtime.Started, error) {
	started, err := e.client.Start(ctx, client.StartParams{
		Request:        wire.StartRequest{SessionID: p.Key.ID, Agent: p.Agent, Input: p.Input, Tags: p.Tags},
		IdempotencyKey: p.IdempotencyKey,
	})
	if err != nil {
		return runtime.Started{}, e.refusal(p.Key, err)
	}
	if err := checkID(p.Key, "session", started.SessionID, false); err != nil {
		return runtime.Started{}, err
	}
	key := session.Key{Tenant: p.Key.Tenant, ID: started.SessionID}
	e.seen[key] = started.Entry.Seq - 1
	return runtime.Started{
		Key: key, Task: started.Task, Seq: started.Entry.Seq, Checkpoint: started.Entry.CheckpointID,
		Replayed: started.Replayed && p.IdempotencyKey != "",
	}, nil
}

// Submit answers one wait.
func (e *Engine) Submit(ctx context.Context, p runtime.SubmitParams) (runtime.Submitted, error) {
	a := p.Answer
	answer := wire.SubmitRequest{
		WaitID: a.Wait, Kind: a.Kind, ToolCallID: a.ToolCallID, ApprovalID: a.ApprovalID, QuestionID: a.QuestionID,
		Approved: a.Approved, Reason: a.Reason, EditedInput: a.EditedInput, Result: a.Result, Error: a.Error,
		Selected: a.Selected, Text: a.Text, Message: a.Message, Verdict: a.Verdict,
	}
	if p.HoldResume {
		resume := false
		answer.AutoResume = &resume
	}
	submitted, err := e.client.Submit(ctx, client.SubmitParams{SessionID: p.Key.ID, Answer: answer, IdempotencyKey: p.IdempotencyKey})
	if err != nil {
		return runtime.Submitted{}, e.refusal(p.Key, err)
	}
	if err := checkWaits(p.Key, submitted.Open); err != nil {
		return runtime.Submitted{}, err
	}
	e.stoodAt(p.Key, submitted.Session)
	return runtime.Submitted{
		Answer: submitted.Answer, Continuation: runtime.Continuation(submitted.Continuation), Open: waits(submitted.Open), Repeated: submitted.Repeated,
	}, nil
}

// Resume goes on with a session.
func (e *Engine) Resume(ctx context.Context, p runtime.ResumeParams) (runtime.Resumed, error) {
	r := wire.ResumeRequest{Mode: wire.ResumeMode(p.Mode), CheckpointID: p.Checkpoint}
	switch p.Mode {
	case runtime.ResumeContinue:
	case runtime.ResumeWithMessage:
		r.Message = p.Message
	case runtime.ResumeWithConfirmation:
		c := p.Confirmation
		r.Confirmation = &wire.Confirmation{WaitID: c.Wait, Approved: &c.Approved, Reason: c.Reason, EditedInput: c.EditedInput}
	}
	return e.resume(ctx, p.Key, r, p.IdempotencyKey)
}

// Decide decides approvals, several at once, and goes on.
func (e *Engine) Decide(ctx context.Context, p runtime.DecideParams) (runtime.Resumed, error) {
	return e.resume(ctx, p.Key, wire.ResumeRequest{
		Mode: wire.ResumeWithDecisions, CheckpointID: p.Checkpoint,
		Decisions: &wire.Decisions{
			Approve: p.Approve, Reject: p.Reject, ApproveAll: p.ApproveAll, RejectAll: p.RejectAll, Reason: p.Reason, EditedInput: p.EditedInput,
		},
	}, p.IdempotencyKey)
}

func (e *Engine) resume(ctx context.Context, key session.Key, r wire.ResumeRequest, idempotencyKey string) (runtime.Resumed, error) {
	resumed, err := e.client.Resume(ctx, client.ResumeParams{SessionID: key.ID, Request: r, IdempotencyKey: idempotencyKey})
	if err != nil {
		return runtime.Resumed{}, e.refusal(key, err)
	}
	if err := checkWaits(key, resumed.Open); err != nil {
		return runtime.Resumed{}, err
	}
	e.stoodAt(key, resumed.Session)
	if resumed.After > 0 {
		e.told[key] = resumed.After
	}
	return runtime.Resumed{Continuation: runtime.Continuation(resumed.Continuation), Open: waits(resumed.Open), Repeated: resumed.Repeated, After: resumed.After}, nil
}

// Drive stays with a session until it rests, or until ctx ends, and tells its
// progress. The server works on it either way.
func (e *Engine) Drive(ctx context.Context, key session.Key) error {
	if last, again := e.asked[key]; again {
		select {
		case <-time.After(between - time.Since(last)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.asked[key] = time.Now()
	if _, known := e.seen[key]; !known {
		s, err := e.client.Session(ctx, key.ID, 0)
		if err != nil {
			return e.refusal(key, err)
		}
		e.stoodAt(key, &s)
	}
	if after, told := e.told[key]; told {
		delete(e.told, key)
		if err := e.awaitStart(ctx, key, after); err != nil {
			return err
		}
	}
	for entry, err := range e.client.Follow(ctx, key.ID, e.seen[key]) {
		if err != nil {
			return e.refusal(key, err)
		}
		e.seen[key] = entry.Seq
		e.onEntry(key, runtime.NewProgress(&entry))
	}
	return nil
}

// awaitStart waits until a session that was told to go on has done so. One that
// does not in all that time rests after all: what told it may have been lost.
func (e *Engine) awaitStart(ctx context.Context, key session.Key, after int64) error {
	waiting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	err := e.client.AwaitEntry(waiting, key.ID, after)
	if err == nil || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return e.refusal(key, err)
}

// stoodAt remembers where a session stood when this command met it. What was
// written since it was last told of is told next.
func (e *Engine) stoodAt(key session.Key, s *wire.Session) {
	if _, known := e.seen[key]; s != nil && !known {
		e.seen[key] = s.Version
	}
}

// Agents returns nil: only the server knows its agents.
func (e *Engine) Agents() []string { return nil }

// Tool returns none: only the server knows its tools.
func (e *Engine) Tool(string, string) (tool.Tool, bool) { return tool.Tool{}, false }

// Close gives connections back.
func (e *Engine) Close() error {
	e.client.Close()
	return nil
}

// Told returns the entry after which a session was told to go on, once; 0 if it was not.
func (e *Engine) Told(key session.Key) int64 {
	after := e.told[key]
	delete(e.told, key)
	return after
}
