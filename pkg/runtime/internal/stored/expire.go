package stored

import (
	"context"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Overdue reports whether the deadline of an open wait has passed that ends it. One that escalates it does not.
func (st *Sessions) Overdue(w journal.WaitRecord) bool {
	return w.Wait.Deadline != nil && !w.Wait.Escalates() && !st.cfg.Now().Before(w.Wait.Deadline.At)
}

// Expire ends a wait at its deadline. It is recorded as an expiry, never as a
// person's answer; what it means was declared when the wait was opened. A
// conflict is an answer that came first, and counts.
func (st *Sessions) Expire(ctx context.Context, key session.Key, item store.Item) error {
	record := *item.Wait
	if record.State != session.WaitOpen || record.Wait.Deadline == nil {
		return nil
	}
	w, now := record.Wait, st.cfg.Now().UTC()
	answer := session.Answer{
		Wait: w.ID, Kind: session.AnswerExpiry, ToolCallID: w.Call, Outcome: w.Deadline.Outcome,
		Who: byDeadline, From: fromSweep, When: now, Votes: record.Votes, Escalated: session.Escalated(record.Acts),
	}
	if w.Deadline.Outcome == session.ExpireDefault {
		answer.Result, answer.Digest, answer.ShownDigest = w.Deadline.Value, Decided(w, answer), w.ShownDigest
	}
	if w.Question != nil {
		answer.QuestionID = w.Question.ID
	}
	record.State, record.Answer = session.WaitExpired, &answer
	if journal.SealOf(&record) == journal.SealNone { // the wait is compared with its entry when it is taken in
		journal.SetSeal(&record, journal.SealWhole)
	}
	record.Due = new(now.Add(engine.AnsweredGrace))
	if _, err := st.cfg.Store.Update(ctx, key, store.WaitItem(record, item.Rev)); err != nil {
		return err
	}
	return st.ResumeIfReady(ctx, key)
}

// ExpireOverdue returns the waits of a suspension, and those of them that are open. Waits whose
// deadline has passed expire first, as when an answer comes too late, and those whose time has come are reminded
// of and escalated, so that the caller need not wait for the sweep. A conflict means that an answer came first, and the answer counts.
func (st *Sessions) ExpireOverdue(ctx context.Context, s *session.Session) (items []store.Item, open []session.Wait, err error) {
	if items, err = st.WaitsAt(ctx, s.Key, WaitsAtOf(s)); err != nil {
		return nil, nil, err
	}
	if err := CheckWaits(s, items); err != nil {
		return nil, nil, err
	}
	passed := false
	for _, item := range items {
		did, _, err := st.Pass(ctx, s.Key, item)
		if err != nil {
			return nil, nil, err
		}
		passed = passed || did != ""
	}
	if passed {
		if items, err = st.WaitsAt(ctx, s.Key, WaitsAtOf(s)); err != nil {
			return nil, nil, err
		}
	}
	return items, OpenWaits(WaitRecords(items)), nil
}

// Decided returns the digest of the arguments that an answer is about: those that were shown, or the
// edited ones that replace them. A reply to a question, or a message, has none.
func Decided(w session.Wait, a session.Answer) string {
	switch {
	case w.Kind != session.WaitApproval && a.Kind != session.AnswerClientTool && a.Kind != session.AnswerVerdict:
		return ""
	case a.EditedInput != nil:
		return journal.Digest(a.EditedInput)
	}
	return w.Digest
}
