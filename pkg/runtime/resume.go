package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Resume goes on with a session (docs/design/README.md): continue when everything is
// answered, after an interruption, or when its worker died; with_message as the
// answer to an input wait, or as the next word after an interruption;
// with_confirmation as the answer to its one open approval.
func (r *Runtime) Resume(ctx context.Context, p ResumeParams) (Resumed, error) {
	return asResult(r.resume(ctx, p))
}

func (r *Runtime) resume(ctx context.Context, p ResumeParams) (Resumed, error) {
	asks := []any{p.Mode, p.Key.ID, p.Checkpoint, p.Message, p.Confirmation}
	if !p.Rules.IsZero() {
		asks = append(asks, p.Rules)
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Resume, p.IdempotencyKey, asks...)
	if err != nil {
		return Resumed{}, err
	}
	state := resumeRequest{ResumeParams: p, q: &q}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Resumed, error) {
		return r.resumedBefore(ctx, p.Key, did)
	}, func() (Resumed, error) {
		switch p.Mode {
		case ResumeContinue, "":
			return r.resumeContinue(ctx, &state)
		case ResumeWithMessage:
			return r.resumeWithMessage(ctx, &state)
		case ResumeWithConfirmation:
			if !p.Rules.IsZero() {
				return Resumed{}, refusal.New(CodeInvalidInput, p.Key, "rules and a decision cannot go together")
			}
			return r.resumeWithConfirmation(ctx, &state)
		case session.ResumeWithDecisions, session.ResumeFromCheckpoint: // go to Decide, to GoBack
		}
		return Resumed{}, refusal.New(CodeInvalidInput, p.Key, "there is no way to resume called %q", p.Mode)
	})
}

// resumeRequest is a resume in progress. When another writer was first it reads again, but only
// what the request was about, not what has come since.
type resumeRequest struct {
	ResumeParams
	q *idempotency.Request
	// wait that it answers, once it is known.
	wait string
	// seen is the version it goes on from, once it is known.
	seen int64
}

// resumedBefore is the answer to a resume, or decisions, carried out before. What the
// first time may not have sent is sent again.
func (r *Runtime) resumedBefore(ctx context.Context, key session.Key, did json.RawMessage) (Resumed, error) {
	d, err := idempotency.ReadDone(did)
	if err != nil {
		return Resumed{}, err
	}
	out := Resumed{Continuation: ContinuationResumed, Repeated: d.Repeated, Replayed: true}
	if d.Entry == 0 && d.After == 0 {
		out.Continuation, out.Open, err = r.continuation(ctx, key, d.Held)
		return out, err
	}
	head, err := r.sessions.Head(ctx, key)
	if err != nil {
		return Resumed{}, err
	}
	newest, err := r.sessions.Newest(ctx, *head.Head)
	if err != nil || newest.Seq != max(d.Entry, d.After) {
		return out, err // it has gone on
	}
	out.After = d.After
	switch {
	case newest.Status == session.StatusRunning:
		err = r.sessions.Send(ctx, r.sessions.StepAfter(key, newest.Seq, newest.At, newest.Until))
	case !newest.Status.Ended():
		err = r.sessions.Send(ctx, journal.NewWake(key, newest.Seq+1, journal.WakeResume))
	}
	return out, err
}

// loadNotEnded folds a session that has not ended and whose newest checkpoint is the given one.
func (r *Runtime) loadNotEnded(ctx context.Context, p ResumeParams) (*session.Session, error) {
	s, err := r.sessions.LoadExisting(ctx, p.Key)
	if err != nil {
		return nil, err
	}
	if err := checkNewest(s, p.Checkpoint); err != nil {
		r.sessions.PutBack(s)
		return nil, err
	}
	if s.Status.Ended() {
		r.sessions.PutBack(s)
		return nil, notResumable(s)
	}
	return s, nil
}

func stillWaiting(s *session.Session, open []session.Wait) *refusal.Error {
	e := refusal.New(CodeStillWaiting, s.Key, "it still waits for %s. Answer that first", answers.Label(open[0]))
	if len(open) > 1 {
		e.Message = fmt.Sprintf("it still waits for %d answers, the first is %s. Answer them first", len(open), answers.Label(open[0]))
	}
	e.Status = s.Status
	return e
}

func alreadyRunning(s *session.Session) *refusal.Error {
	return refusal.At(CodeAlreadyRunning, s.Key, s.Status, "a worker is working on it now")
}

func notResumable(s *session.Session) *refusal.Error {
	e := refusal.New(CodeNotResumable, s.Key, "%s, so there is nothing to go on with", refusal.Stands(s.Status))
	switch {
	case s.Status != session.StatusFailed:
	case s.Failure.Aborted():
		e.Message += ": go back to a checkpoint, or start another session, under another id"
	default:
		e.Message += ": retry it, go back to a checkpoint, or start another session, under another id"
	}
	if s.Status == session.StatusFailed && s.Failure != nil {
		e.Message += ". It failed with " + s.Failure.Type + ": " + s.Failure.Message
	}
	e.Status = s.Status
	return e
}

// checkNewest refuses a checkpoint that is not that of the newest entry.
func checkNewest(s *session.Session, id string) error {
	if id == "" {
		return nil
	}
	cp, err := session.ParseCheckpoint(id)
	if err != nil {
		return err
	}
	if cp.Session == s.Key.ID && cp.Seq == s.Version && cp.Token == s.Newest.Token && cp != s.Checkpoint() {
		return stored.NoCheckpoint(s.Key, cp.Seq)
	}
	if cp != s.Checkpoint() {
		return staleCheckpoint(s.Key, s.Status)
	}
	return nil
}

// staleCheckpoint refuses a checkpoint that is not that of the newest entry.
func staleCheckpoint(key session.Key, status session.Status) *refusal.Error {
	return refusal.At(CodeStaleCheckpoint, key, status, "the checkpoint is not its newest one: it has moved on since")
}

// checkNotMoved refuses to continue a session that another caller has moved on since it was read.
// The session may rest again by now: interrupted on purpose, or waiting for something the message
// is not about.
func (p *resumeRequest) checkNotMoved(s *session.Session) error {
	if p.seen == 0 || s.Version == p.seen {
		return nil
	}
	return refusal.At(CodeAlreadyRunning, s.Key, s.Status, "another caller resumed it first; %s now", refusal.Stands(s.Status))
}

func (r *Runtime) resumeContinue(ctx context.Context, p *resumeRequest) (Resumed, error) {
	s, err := r.loadNotEnded(ctx, p.ResumeParams)
	if err != nil {
		return Resumed{}, err
	}
	defer func() { r.sessions.PutBack(s) }()
	if err := p.checkNotMoved(s); err != nil {
		return Resumed{}, err
	}
	if err := r.control.StopOverdue(ctx, s, p.Rules); err != nil {
		return Resumed{}, err
	}
	if s.Status != session.StatusInterrupted && !p.Rules.IsZero() {
		return Resumed{}, control.KeepsRules(p.Key, s.Status)
	}
	wake := journal.NewWake(s.Key, s.Next(), journal.WakeResume)
	var writes []store.Item
	switch s.Status {
	case session.StatusSuspended:
		waits, open, err := r.sessions.ExpireOverdue(ctx, s)
		if err != nil {
			return Resumed{}, err
		}
		if len(open) > 0 {
			return Resumed{}, stillWaiting(s, open)
		}
		writes = r.releaseHeld(waits)
	case session.StatusInterrupted:
		p.seen = s.Version
		return r.continueInterrupted(ctx, s, p)
	case session.StatusRunning:
		head, err := r.sessions.Head(ctx, s.Key)
		if err != nil {
			return Resumed{}, err
		}
		if head.Head.Lease.Live(r.cfg.Now(), s.Version, s.Newest.KeepsLease) {
			return Resumed{}, alreadyRunning(s)
		}
		wake = r.sessions.WakeAfter(s)
	case session.StatusCompleted, session.StatusFailed, session.StatusCancelled:
	}
	record, err := p.q.Record(r.cfg.Now(), p.Key, s.Version, idempotency.Done{After: s.Version})
	if err == nil {
		err = r.sessions.Update(ctx, p.Key, append(writes, record...))
	}
	if err != nil {
		return Resumed{}, err
	}
	return Resumed{Continuation: ContinuationResumed, After: s.Version}, r.sessions.Send(ctx, wake)
}

// releaseHeld returns the answers that were only stored, marked so that the session continues on
// them: a caller has requested that, and the sweep sees it even if the message that follows is
// lost.
func (r *Runtime) releaseHeld(waits []store.Item) []store.Item {
	var items []store.Item
	for _, item := range waits {
		if item.Wait.Held {
			record := *item.Wait
			record.Held, record.HeldLast, record.Due = false, false, new(r.cfg.Now().UTC().Add(engine.AnsweredGrace))
			items = append(items, store.WaitItem(record, item.Rev))
		}
	}
	return items
}

// resumeWithMessage answers the input the session waits for; else it goes on with the
// message, after an interruption or where the policy lets it abandon what is open.
func (r *Runtime) resumeWithMessage(ctx context.Context, p *resumeRequest) (Resumed, error) {
	if err := answers.CheckInput(p.Key, p.Message); err != nil {
		return Resumed{}, err
	}
	if p.wait == "" && p.seen == 0 {
		wait, err := r.inputFor(ctx, p.ResumeParams)
		if err != nil {
			return Resumed{}, err
		}
		p.wait = wait
	}
	if p.wait != "" && !p.Rules.IsZero() {
		return Resumed{}, control.KeepsRules(p.Key, session.StatusSuspended)
	}
	if p.wait != "" {
		return r.answerWith(ctx, p, session.Answer{Wait: p.wait, Kind: session.AnswerMessage, Message: p.Message})
	}
	s, err := r.sessions.LoadExisting(ctx, p.Key)
	if err != nil {
		return Resumed{}, err
	}
	defer func() { r.sessions.PutBack(s) }()
	if err := p.checkNotMoved(s); err != nil {
		return Resumed{}, err
	}
	if err := checkNewest(s, p.Checkpoint); err != nil {
		return Resumed{}, err
	}
	p.seen = s.Version
	if err := checkTakesMessage(s); err != nil {
		return Resumed{}, err
	}
	return r.resumeWithNewMessage(ctx, s, p)
}

// inputFor returns the input wait a message is for: of the checkpoint it is bound
// to, else of the suspension the session is in; "" when it is for none.
func (r *Runtime) inputFor(ctx context.Context, p ResumeParams) (string, error) {
	a, shown, items, err := r.sessions.CheckpointWaits(ctx, p.Key, p.Checkpoint)
	if err != nil {
		return "", err
	}
	if shown.Newest && a.Head.Status != session.StatusSuspended {
		return "", nil
	}
	for _, item := range items {
		if item.Wait.Wait.Kind == session.WaitInput && (shown.Newest || item.Wait.State != session.WaitOpen) {
			return item.ID, nil
		}
	}
	if !shown.Newest {
		return "", staleCheckpoint(a.Head.Key, a.Head.Status)
	}
	return "", nil
}

// checkTakesMessage refuses a message to a session that neither waits nor was interrupted.
func checkTakesMessage(s *session.Session) error {
	switch s.Status {
	case session.StatusSuspended, session.StatusInterrupted:
		return nil
	case session.StatusRunning:
		return refusal.At(CodeAlreadyRunning, s.Key, s.Status, "it is running and does not wait for a message. If no worker works on it any more, resume it without a message")
	case session.StatusCompleted, session.StatusFailed, session.StatusCancelled:
	}
	return notResumable(s)
}

// answerWith answers one wait on behalf of a resume, whose record it writes.
func (r *Runtime) answerWith(ctx context.Context, p *resumeRequest, a session.Answer) (Resumed, error) {
	submitted, err := r.submitOnce(ctx, &SubmitParams{Key: p.Key, Caller: p.Caller, Answer: a}, p.q)
	return Resumed{Continuation: submitted.Continuation, Open: submitted.Open, Repeated: submitted.Repeated}, err
}

// resumeWithNewMessage commits one recorded move ([control.Control.Abandon]). A conflict means that
// another writer was first.
func (r *Runtime) resumeWithNewMessage(ctx context.Context, s *session.Session, p *resumeRequest) (Resumed, error) {
	change, err := r.control.ChangeRules(ctx, s, p.Rules)
	if err != nil {
		return Resumed{}, err
	}
	return Resumed{Continuation: ContinuationResumed}, r.control.Abandon(ctx, s, &control.Words{
		Message: p.Message, By: p.Caller, Change: change,
		Record: func(seq int64) ([]store.Item, error) {
			return p.q.Record(r.cfg.Now(), p.Key, seq, idempotency.Done{Entry: seq})
		},
	})
}

// resumeWithConfirmation answers the one open approval, or the one that is named.
func (r *Runtime) resumeWithConfirmation(ctx context.Context, p *resumeRequest) (Resumed, error) {
	if p.wait == "" {
		wait, err := r.confirmedApproval(ctx, p.ResumeParams)
		if err != nil {
			return Resumed{}, err
		}
		p.wait = wait
	}
	c := p.Confirmation
	return r.answerWith(ctx, p, session.Answer{
		Wait: p.wait, Kind: session.AnswerApproval, Approved: &c.Approved, Reason: c.Reason, EditedInput: c.EditedInput,
	})
}

// confirmedApproval returns the approval that a confirmation is about.
func (r *Runtime) confirmedApproval(ctx context.Context, p ResumeParams) (string, error) {
	c := p.Confirmation
	if c.Approved && c.Wait == "" && p.Checkpoint == "" {
		return "", refusal.New(CodeInvalidInput, p.Key, "a confirmation that approves needs the checkpoint that was shown, or the wait by its id: without, it would approve what was asked since")
	}
	a, shown, items, err := r.sessions.CheckpointWaits(ctx, p.Key, p.Checkpoint)
	if err != nil {
		return "", err
	}
	var all, open []string
	for _, item := range items {
		if item.Wait.Wait.Kind != session.WaitApproval {
			continue
		}
		all = append(all, item.ID)
		if item.Wait.State == session.WaitOpen {
			open = append(open, item.ID)
		}
	}
	switch {
	case c.Wait != "" && p.Checkpoint == "":
		return c.Wait, nil
	case c.Wait != "" && !slices.Contains(all, c.Wait):
		return "", refusal.New(CodeStaleCheckpoint, p.Key, "%s is no approval that was asked at that checkpoint", c.Wait)
	case len(open) > 0 && !shown.Newest:
		return "", staleCheckpoint(a.Head.Key, a.Head.Status)
	case c.Wait != "":
		return c.Wait, nil
	case len(open) == 1:
		return open[0], nil
	case len(open) == 0 && len(all) == 1:
		return all[0], nil // settled: is it the same?
	}
	return "", refusal.At(CodeNothingToDecide, p.Key, a.Head.Status, "with_confirmation needs exactly one open approval, and there are %d. %s", len(open), answers.SuggestWaits(a, session.AnswerApproval, ""))
}
