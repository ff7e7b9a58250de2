package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Resume goes on with a session (design section 7): continue when everything is
// answered, after an interruption, or when its worker died; with_message as the
// answer to an input wait, or as the next word after an interruption;
// with_confirmation as the answer to its one open approval.
func (r *Runtime) Resume(ctx context.Context, p ResumeParams) (Resumed, error) {
	out, err := r.resume(ctx, p)
	if err != nil {
		return Resumed{}, AsError(err)
	}
	return out, nil
}

func (r *Runtime) resume(ctx context.Context, p ResumeParams) (Resumed, error) {
	s, err := r.need(ctx, p.Key)
	if err != nil {
		return Resumed{}, err
	}
	defer func() { r.keep(s) }()
	if err := isNewest(s, p.Checkpoint); err != nil {
		switch p.Mode {
		case ResumeWithMessage:
			return r.messageAgain(ctx, s, p, err)
		case ResumeWithConfirmation:
			return r.confirmationAgain(ctx, s, p, err)
		case ResumeContinue:
		}
		return Resumed{}, err
	}
	if s.Status.Ended() {
		return Resumed{}, notResumable(s)
	}
	switch p.Mode {
	case ResumeContinue, "":
		return r.resumeContinue(ctx, s, p)
	case ResumeWithMessage:
		return r.resumeWithMessage(ctx, s, p)
	case ResumeWithConfirmation:
		return r.resumeWithConfirmation(ctx, s, p)
	}
	return Resumed{}, refuse(CodeInvalidInput, p.Key, "there is no way to resume called %q", p.Mode)
}

func stillWaiting(s *session.Session, open []session.WaitRecord) *Error {
	e := refuse(CodeStillWaiting, s.Key, "it still waits for %d answer(s), the first is %s. Answer that first", len(open), label(open[0].Wait))
	e.Status = s.Status
	return e
}

func workedOn(s *session.Session) *Error {
	e := refuse(CodeAlreadyRunning, s.Key, "a worker is at it right now")
	e.Status = s.Status
	return e
}

func notResumable(s *session.Session) *Error {
	e := refuse(CodeNotResumable, s.Key, "it is %s, so there is nothing to go on with", s.Status)
	if s.Status == session.StatusFailed && s.Failure != nil {
		e.Message += ". It failed with " + s.Failure.Type + ": " + s.Failure.Message
	}
	e.Status = s.Status
	return e
}

// isNewest refuses a checkpoint that is not that of the newest entry.
func isNewest(s *session.Session, id string) error {
	if id == "" {
		return nil
	}
	cp, err := session.ParseCheckpoint(id)
	if err != nil {
		return err
	}
	if cp.Session == s.Key.ID && cp.Seq == s.Version && cp.Token == s.Newest.Token && cp != s.Checkpoint() {
		return noCheckpoint(s.Key, cp.Seq)
	}
	if cp != s.Checkpoint() {
		e := refuse(CodeStaleCheckpoint, s.Key, "the checkpoint is not its newest one: it has moved on since")
		e.Status = s.Status
		return e
	}
	return nil
}

// noCheckpoint refuses the id of an entry that one cannot come back to.
func noCheckpoint(key session.Key, seq int64) *Error {
	return refuse(CodeInvalidCheckpoint, key, "entry %d holds a reply whose calls had not run: it is no checkpoint. Use that of an entry before or after it", seq)
}

func (r *Runtime) resumeContinue(ctx context.Context, s *session.Session, p ResumeParams) (Resumed, error) {
	switch s.Status {
	case session.StatusSuspended:
		waits, err := r.waits(ctx, s.Key)
		if err != nil {
			return Resumed{}, err
		}
		if open := slices.DeleteFunc(waits, func(w session.WaitRecord) bool { return w.State != session.WaitOpen }); len(open) > 0 {
			return Resumed{}, stillWaiting(s, open)
		}
		return Resumed{Continuation: ContinuationResumed, After: s.Version}, r.send(ctx, session.NewWake(s.Key, s.Next(), session.WakeResume))
	case session.StatusInterrupted:
		return r.continueInterrupted(ctx, s, p.Caller)
	case session.StatusRunning:
		head, err := r.head(ctx, s.Key)
		if err != nil {
			return Resumed{}, err
		}
		if head.Head.Lease.Live(r.cfg.Now(), s.Version, s.Newest.GoesOn) {
			return Resumed{}, workedOn(s)
		}
		return Resumed{Continuation: ContinuationResumed, After: s.Version}, r.send(ctx, r.wakeAfter(s))
	case session.StatusCompleted, session.StatusFailed, session.StatusCancelled:
	}
	return Resumed{}, notResumable(s)
}

// wakeAfter is the wake for the entry after the newest one of a running session.
func (r *Runtime) wakeAfter(s *session.Session) session.Wake {
	return r.stepAfter(s.Key, s.Version, s.Newest.At, s.Newest.Until)
}

func (r *Runtime) resumeWithMessage(ctx context.Context, s *session.Session, p ResumeParams) (Resumed, error) {
	if err := checkInput(p.Key, p.Message); err != nil {
		return Resumed{}, err
	}
	switch s.Status {
	case session.StatusSuspended:
	case session.StatusInterrupted:
		return r.goOnWith(ctx, s, p)
	case session.StatusRunning:
		e := refuse(CodeAlreadyRunning, p.Key, "it is running and does not wait for a message")
		e.Status = s.Status
		return Resumed{}, e
	case session.StatusCompleted, session.StatusFailed, session.StatusCancelled:
		return Resumed{}, notResumable(s)
	}
	// The wait this session was seen in, and no other one that may have come since.
	for _, w := range s.Waits {
		if w.Kind == session.WaitInput {
			return r.answerInput(ctx, w.ID, p)
		}
	}
	waits, err := r.waits(ctx, s.Key)
	if err != nil {
		return Resumed{}, err
	}
	open := openWaits(waits)
	if len(open) > 0 && !s.Rules.Policy.AbandonOnMessage {
		e := refuse(CodeStillWaiting, p.Key, "it waits for %s, not for a message. Answer that first", label(open[0]))
		e.Status = s.Status
		return Resumed{}, e
	}
	if len(open) == 0 && !held(waits) && !s.Rules.Policy.AbandonOnMessage {
		// Going on with the message would give up what was just approved.
		e := refuse(CodeAlreadyRunning, p.Key, "everything it waited for is answered, and it goes on with that. Send the message when it rests again")
		e.Status = s.Status
		return Resumed{}, e
	}
	return r.goOnWith(ctx, s, p)
}

func (r *Runtime) answerInput(ctx context.Context, wait string, p ResumeParams) (Resumed, error) {
	submitted, err := r.submit(ctx, SubmitParams{
		Key: p.Key, Caller: p.Caller, Answer: session.Answer{Wait: wait, Kind: session.AnswerMessage, Message: p.Message},
	})
	return Resumed{Continuation: submitted.Continuation, Open: submitted.Open, Repeated: submitted.Repeated}, err
}

// messageAgain is about a message for a checkpoint that has passed: it is a repeat
// if the input wait opened there was answered with the same words.
func (r *Runtime) messageAgain(ctx context.Context, s *session.Session, p ResumeParams, stale error) (Resumed, error) {
	inputs, err := r.openedAt(ctx, s, p.Checkpoint, session.WaitInput)
	if err != nil {
		return Resumed{}, err
	}
	if len(inputs) == 0 {
		return Resumed{}, stale
	}
	return r.answerInput(ctx, inputs[0].Wait.ID, p)
}

// openedAt returns the waits of a kind that the entry of a checkpoint opened,
// with what has become of them.
func (r *Runtime) openedAt(ctx context.Context, s *session.Session, checkpoint string, kind session.WaitKind) ([]session.WaitRecord, error) {
	seq, err := r.checkpointSeq(ctx, s, checkpoint)
	if err != nil {
		return nil, err
	}
	waits, err := r.waits(ctx, s.Key)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(waits, func(record session.WaitRecord) bool {
		at, _ := waitNumbers(record.Wait.ID)
		return at != seq || record.Wait.Kind != kind
	}), nil
}

// goOnWith commits one recorded move: answers are taken in, open waits closed,
// calls that have not run closed, the message appended.
func (r *Runtime) goOnWith(ctx context.Context, s *session.Session, p ResumeParams) (Resumed, error) {
	inv := r.invoke(session.NewWake(s.Key, 0, session.WakeResume)) // a verb: written for no message
	inv.session = s
	seen := s.Version
	for try := 1; ; try++ {
		head, err := r.head(ctx, s.Key)
		if err != nil {
			return Resumed{}, err
		}
		items, err := r.items(ctx, s.Key, store.KindWait, "")
		if err != nil {
			return Resumed{}, err
		}
		taken, records := takeWaits(s, items, s.Next())
		var closed engine.StepOutcome
		if err := inv.giveUpAll(ctx, &closed); err != nil {
			return Resumed{}, err
		}
		message := llm.UserParts(p.Message)
		m := engine.Resumed(s, taken, &message, closed.Results, r.stamp(p.Caller))
		m.Entry.StateOps, m.Entry.Events = closed.StateOps, closed.Events
		err = r.commit(ctx, s, &head, m, records)
		if err == nil {
			return Resumed{Continuation: ContinuationResumed}, nil
		}
		if !errors.Is(err, store.ErrConflict) || try == maxTries {
			return Resumed{}, err
		}
		if s, err = r.refresh(ctx, s); err != nil {
			return Resumed{}, err
		}
		inv.session = s
		if s.Version != seen { // also if it waits again: for something the message is not about
			e := refuse(CodeAlreadyRunning, p.Key, "somebody else went on with it first; it is %s now", s.Status)
			e.Status = s.Status
			return Resumed{}, e
		}
	}
}

func (r *Runtime) resumeWithConfirmation(ctx context.Context, s *session.Session, p ResumeParams) (Resumed, error) {
	waits, err := r.waits(ctx, s.Key)
	if err != nil {
		return Resumed{}, err
	}
	var approvals []session.Wait
	for _, w := range openWaits(waits) {
		if w.Kind == session.WaitApproval && opened(s, w) {
			approvals = append(approvals, w)
		}
	}
	if len(approvals) != 1 {
		e := refuse(CodeNothingToDecide, p.Key, "with_confirmation needs exactly one open approval, and there are %d. Name the call with approve or reject", len(approvals))
		e.Status = s.Status
		if len(approvals) == 0 && p.Checkpoint != "" {
			return r.confirmationAgain(ctx, s, p, e)
		}
		return Resumed{}, e
	}
	if p.Checkpoint == "" {
		if err := MoreThanOnce(p.Key, waits, session.WaitRecord{Wait: approvals[0], State: session.WaitOpen}); err != nil {
			return Resumed{}, err
		}
	}
	return r.confirm(ctx, approvals[0], p)
}

func (r *Runtime) confirm(ctx context.Context, w session.Wait, p ResumeParams) (Resumed, error) {
	submitted, err := r.submit(ctx, SubmitParams{Key: p.Key, Caller: p.Caller, Answer: session.Answer{
		Wait: w.ID, Kind: session.AnswerApproval, ApprovalID: w.Nonce,
		Approved: &p.Confirmation.Approved, Reason: p.Confirmation.Reason, EditedInput: p.Confirmation.EditedInput,
	}})
	return Resumed{Continuation: submitted.Continuation, Open: submitted.Open, Repeated: submitted.Repeated}, err
}

// confirmationAgain is about a confirmation for a checkpoint at which nothing is
// open any more: it is a repeat if the one approval opened there was answered the same.
func (r *Runtime) confirmationAgain(ctx context.Context, s *session.Session, p ResumeParams, refusal error) (Resumed, error) {
	approvals, err := r.openedAt(ctx, s, p.Checkpoint, session.WaitApproval)
	if err != nil {
		return Resumed{}, err
	}
	if len(approvals) != 1 || approvals[0].State == session.WaitOpen {
		return Resumed{}, refusal
	}
	return r.confirm(ctx, approvals[0].Wait, p)
}
