package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Decide decides the approvals of one suspension and goes on. It is about all of
// them: those that are not named are rejected; other kinds of wait stay open. The
// same decisions taken again change nothing. A decision that contradicts what was
// decided before, on an approval that is named or on one that is not, is refused.
//
// All approvals are answered by one write or none is: a suspension opens at most
// [session.MaxWaits], and one write takes more. So of two decisions that cross, or
// a decision and an answer, the first counts and the other changes nothing.
func (r *Runtime) Decide(ctx context.Context, p DecideParams) (Resumed, error) {
	return asResult(r.decide(ctx, p))
}

const _ = uint(store.MaxItems - session.MaxWaits - 1) // does not compile where one write is too small

// decision is one approval with what is decided on it.
type decision struct {
	item     store.Item
	approved bool
	// by is who decides, as they come to this one.
	by answers.Caller
	// named: by its id, and not with all or with the rest.
	named bool
}

func (r *Runtime) decide(ctx context.Context, p DecideParams) (Resumed, error) {
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Resume, p.IdempotencyKey, "decide",
		p.Key.ID, p.Checkpoint, p.Approve, p.Reject, p.ApproveAll, p.RejectAll, p.Reason, p.EditedInput)
	if err != nil {
		return Resumed{}, err
	}
	var at int64 // the suspension it is about, so that looking again is about nothing that has come since
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Resumed, error) {
		return r.resumedBefore(ctx, p.Key, did)
	}, func() (Resumed, error) {
		return r.decideOnce(ctx, p, &q, &at)
	})
}

// decideOnce reads and writes once. A conflict means that another writer was first.
func (r *Runtime) decideOnce(ctx context.Context, p DecideParams, q *idempotency.Request, at *int64) (Resumed, error) {
	if err := p.check(); err != nil {
		return Resumed{}, err
	}
	a, shown, err := r.sessions.LoadSuspensionAt(ctx, p.Key, p.Checkpoint)
	if err != nil {
		return Resumed{}, err
	}
	if *at == 0 {
		if *at, err = r.decidedSuspension(ctx, a, p, shown); err != nil {
			return Resumed{}, err
		}
	}
	items, err := r.sessions.ItemsAt(ctx, a, *at)
	if err == nil {
		err = r.sessions.EscalateDue(ctx, p.Key, items)
	}
	if err != nil {
		return Resumed{}, err
	}
	decided, err := p.decisions(a.Head, items)
	if err != nil {
		return Resumed{}, err
	}
	records := make([]journal.WaitRecord, len(decided))
	for i, d := range decided {
		records[i] = *d.item.Wait
	}
	callers, err := r.answers.StandingInAt(ctx, p.Key, records, p.Caller)
	if err != nil {
		return Resumed{}, err
	}
	for i := range decided {
		decided[i].by = callers[i]
	}
	writes, err := r.decisionWrites(ctx, a.Head, p, items, decided)
	if err != nil {
		return Resumed{}, err
	}
	if len(writes) > 0 && !shown.Newest {
		return Resumed{}, staleCheckpoint(a.Head.Key, a.Head.Status)
	}
	out := Resumed{Repeated: len(writes) == 0}
	record, err := q.Record(r.cfg.Now(), p.Key, a.Head.StatusSeq, idempotency.Done{Repeated: out.Repeated})
	if err != nil {
		return Resumed{}, err
	}
	if err := r.sessions.Update(ctx, p.Key, append(writes, record...)); err != nil {
		return Resumed{}, err
	}
	out.Continuation, out.Open, err = r.continuation(ctx, p.Key, false)
	return out, err
}

// check refuses decisions that contradict themselves, or that would approve a call the caller has
// not seen.
func (p DecideParams) check() error {
	switch {
	case p.ApproveAll && p.RejectAll:
		return refusal.New(CodeInvalidInput, p.Key, "approve all and reject all contradict each other")
	case p.ApproveAll && p.Checkpoint == "" && len(p.Approve)+len(p.Reject) == 0:
		return refusal.New(CodeInvalidInput, p.Key, "approve all needs the checkpoint that was shown, or the waits by their ids: without, it would approve what was asked since")
	}
	for _, id := range p.Approve {
		if slices.Contains(p.Reject, id) {
			return refusal.New(CodeInvalidInput, p.Key, "%s is both approved and rejected", id)
		}
	}
	return nil
}

// decidedSuspension returns the entry whose approvals a decision is about: that of the waits
// it names, of the checkpoint it is bound to, or the one the session asked with last.
func (r *Runtime) decidedSuspension(ctx context.Context, a stored.Suspension, p DecideParams, shown stored.CheckpointState) (int64, error) {
	var at int64
	for _, id := range slices.Concat(p.Approve, p.Reject) {
		seq, _ := stored.WaitNumbers(id)
		item, err := r.sessions.Wait(ctx, a, id)
		switch {
		case err != nil:
			return 0, err
		case item.Wait == nil:
			return 0, answers.NoWait(a, session.Answer{Kind: session.AnswerApproval, Wait: id})
		case item.Wait.Wait.Kind != session.WaitApproval:
			return 0, refusal.About(id, refusal.New(CodeWrongKind, p.Key, "%s is no approval: answer it by itself", answers.Label(item.Wait.Wait)))
		case p.Checkpoint != "" && seq != shown.WaitsAt:
			return 0, refusal.About(id, refusal.New(CodeStaleCheckpoint, p.Key, "%s was not asked at that checkpoint. Decide what was asked together", id))
		case at != 0 && seq != at:
			return 0, refusal.New(CodeInvalidInput, p.Key, "%s and %s were not asked together: decide them one after the other", p.first(), id)
		}
		at = seq
	}
	switch {
	case at != 0:
		return at, nil
	case p.Checkpoint != "":
		return shown.WaitsAt, nil
	}
	return a.Head.WaitsAt, nil
}

func (p DecideParams) first() string { return slices.Concat(p.Approve, p.Reject)[0] }

// decisions says what is decided on each approval of a suspension.
func (p DecideParams) decisions(head journal.Head, items []store.Item) ([]decision, error) {
	var out []decision
	open := false
	for _, item := range items {
		if item.Wait.Wait.Kind != session.WaitApproval {
			continue
		}
		approve, reject := slices.Contains(p.Approve, item.ID), slices.Contains(p.Reject, item.ID)
		out = append(out, decision{item: item, approved: approve || p.ApproveAll && !reject, named: approve || reject})
		open = open || item.Wait.State == session.WaitOpen
	}
	if len(p.Approve)+len(p.Reject) == 0 && !p.ApproveAll && !p.RejectAll {
		return nil, refusal.At(CodeNothingToDecide, p.Key, head.Status, "no approval is named: name those to approve and to reject, or say all")
	}
	if len(out) == 0 {
		return nil, refusal.At(CodeNothingToDecide, p.Key, head.Status, "no approval waits there")
	}
	for id := range p.EditedInput {
		if !slices.ContainsFunc(out, func(d decision) bool { return d.approved && d.item.ID == id }) {
			return nil, refusal.New(CodeInvalidInput, p.Key, "edited input for %s, which is not the id of a wait that is approved", id)
		}
	}
	return out, nil
}

// decisionWrites returns the approvals that are still open with their answers, all of
// which may be given; they are given at one moment. What is settled must be settled so.
func (r *Runtime) decisionWrites(ctx context.Context, head journal.Head, p DecideParams, items []store.Item, decided []decision) ([]store.Item, error) {
	for _, d := range decided {
		if answers.TakesFrom(*d.item.Wait, d.by) {
			continue
		}
		if err := r.checkDecidedBefore(p, d, decided); err != nil {
			return nil, refusal.About(d.item.ID, err)
		}
	}
	var open, writes []store.Item
	now := r.cfg.Now().UTC()
	for _, d := range decided {
		if !answers.TakesFrom(*d.item.Wait, d.by) {
			continue
		}
		answer, err := r.answers.Check(p.Key, *d.item.Wait, p.answer(d, decided), d.by)
		if err == nil {
			err = r.answers.CheckSize(p.Key, *d.item.Wait, answer, len(items))
		}
		if err != nil {
			return nil, refusal.About(d.item.ID, err)
		}
		answer.When = now
		with := answers.StoodIn(d.item, session.WaitAct{At: now, From: answer.From}, d.by)
		open, writes = append(open, d.item), append(writes, answers.WithAnswer(with, answer, false, false))
	}
	for _, item := range open {
		if err := r.checkInTime(ctx, head, item); err != nil {
			return nil, refusal.About(item.ID, err)
		}
	}
	return writes, nil
}

// checkDecidedBefore refuses a decision on an approval that is settled, unless the decision
// agrees with the outcome. The call of an approval that expired, was dismissed or closed has not run, so a
// rejection that does not name it does not contradict that.
func (r *Runtime) checkDecidedBefore(p DecideParams, d decision, all []decision) error {
	record := *d.item.Wait
	if d.named || d.approved { // else it is not said that this one was decided on
		if err := answers.CheckWho(p.Key, record.Wait, d.by); err != nil {
			return err
		}
	}
	if a := record.Answer; a != nil && a.Kind == session.AnswerDismissal && !d.named && !d.approved {
		return nil
	}
	given := answers.Given(record, d.by)
	if given == nil {
		var ran bool // by an expiry that counted as a yes
		if a := record.Answer; a != nil && a.Outcome == session.ExpireDefault {
			ran = json.Unmarshal(a.Result, &ran) == nil && ran
		}
		if !d.named && !d.approved && !ran {
			return nil
		}
		return answers.TooLate(p.Key, record)
	}
	answer := p.answer(d, all)
	if !d.named && answer.Reason == "" {
		answer.Reason = given.Reason // nothing is said about why
	}
	if !answers.Same(*given, answer) {
		return answers.AnsweredDifferently(p.Key, record.Wait, given, answer)
	}
	return nil
}

// answer is the answer that a decision gives to one approval. The reason is for what
// is rejected, if anything is.
func (p DecideParams) answer(d decision, all []decision) session.Answer {
	w, approved := d.item.Wait.Wait, d.approved
	a := session.Answer{Wait: w.ID, Kind: session.AnswerApproval, ToolCallID: w.Call, ApprovalID: w.Nonce, Approved: &approved}
	if approved {
		a.EditedInput = p.EditedInput[w.ID]
	}
	if !approved || !slices.ContainsFunc(all, func(d decision) bool { return !d.approved }) {
		a.Reason = strings.TrimSpace(p.Reason)
	}
	return a
}
