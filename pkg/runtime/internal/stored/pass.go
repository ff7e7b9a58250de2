package stored

import (
	"context"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// The author of what time does to a wait, and where it comes from.
const (
	byDeadline = "deadline"
	fromSweep  = "sweep"
)

// Pass does to an open wait what its time has come for, one thing: it reminds of it, escalates it or ends it.
// did says which, and is empty where nothing was due. Each is one conditional update of the wait, as an answer
// is, so of all of them and what people do at the same moment one comes first. A conflict is that
// another writer did.
func (st *Sessions) Pass(ctx context.Context, key session.Key, item store.Item) (did session.AuditKind, passed store.Item, err error) {
	record, now := *item.Wait, st.cfg.Now().UTC()
	w := &record.Wait
	due := w.Due(record.Acts)
	switch {
	case record.State != session.WaitOpen || due == nil || now.Before(*due):
		return "", item, nil
	case st.Overdue(record):
		return session.AuditExpired, item, st.Expire(ctx, key, item)
	}
	if did = session.AuditReminded; st.atEscalation(record) {
		did = session.AuditEscalated
		escalate(&record, now)
	} else {
		record.Acts = append(slices.Clone(record.Acts), session.WaitAct{Kind: session.ActReminded, Who: byDeadline, From: fromSweep, At: now})
	}
	record.Due = w.Due(record.Acts)
	written, err := st.cfg.Store.Update(ctx, key, store.WaitItem(record, item.Rev))
	if err != nil {
		return "", item, err
	}
	return did, written[0], nil
}

// escalate lets those of the wait's escalation answer as well, and adds the act that says so.
func escalate(record *journal.WaitRecord, now time.Time) {
	act := session.WaitAct{Kind: session.ActEscalated, Who: byDeadline, From: fromSweep, At: now, Escalation: record.Wait.Deadline.Escalate}
	record.Wait.Escalate(now)
	act.Deadline = &record.Wait.Deadline.At
	record.Acts = append(slices.Clone(record.Acts), act)
}

// atEscalation reports whether the deadline of a wait has passed that is then escalated.
func (st *Sessions) atEscalation(w journal.WaitRecord) bool {
	return w.Wait.Escalates() && !st.cfg.Now().Before(w.Wait.Deadline.At)
}

// AsOfNow returns a wait as an answer would find it, for who only looks: escalated where its time for that has
// come, and nobody has written so yet.
func (st *Sessions) AsOfNow(record journal.WaitRecord) journal.WaitRecord {
	if record.State == session.WaitOpen && st.atEscalation(record) {
		escalate(&record, st.cfg.Now().UTC())
	}
	return record
}

// LoadToAnswer is [Sessions.LoadSuspension] for who is about to answer: a wait whose deadline escalates it has
// been escalated, so that whoever may answer since then need not wait for the sweep.
func (st *Sessions) LoadToAnswer(ctx context.Context, key session.Key) (Suspension, error) {
	a, err := st.LoadSuspension(ctx, key)
	if err != nil {
		return a, err
	}
	return a, st.EscalateDue(ctx, key, a.Items)
}

// EscalateDue escalates those of a session's waits whose time for it has come, and puts them in their places.
func (st *Sessions) EscalateDue(ctx context.Context, key session.Key, items []store.Item) error {
	for i, item := range items {
		if item.Wait.State != session.WaitOpen || !st.atEscalation(*item.Wait) {
			continue
		}
		var err error
		if _, items[i], err = st.Pass(ctx, key, item); err != nil {
			return err
		}
	}
	return nil
}
