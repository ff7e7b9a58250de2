package stored

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// ResumeIfReady sends the resume of a suspended session that waits for nothing any
// more, unless an answer was only to be stored.
func (st *Sessions) ResumeIfReady(ctx context.Context, key session.Key) error {
	next, ready, err := st.CheckResume(ctx, key)
	if err != nil || !ready {
		return err
	}
	return st.Send(ctx, journal.NewWake(key, next, journal.WakeResume))
}

// CheckResume returns the entry that leaves the suspension a session is in, 0 if it is in none,
// and whether the session is ready for it: nothing is open, and no answer was given only to be
// stored. It reads HEAD before the waits, and its result refers to HEAD's entry. A worker that
// is frozen meanwhile and sends later sends for this suspension; such a message is dropped if
// there has been another suspension since, whose answers may be only stored.
func (st *Sessions) CheckResume(ctx context.Context, key session.Key) (next int64, ready bool, err error) {
	item, err := st.Item(ctx, key, store.KindHead, "")
	if err != nil || item.Head == nil {
		return 0, false, err
	}
	next = LeavingSeq(*item.Head)
	waits, err := st.WaitStates(ctx, key, item.Head.WaitsAt)
	if err != nil {
		return 0, false, err
	}
	return next, next > 0 && MayResume(waits), nil
}

// LeavingSeq returns the seq of the entry that would leave the suspension HEAD refers to, 0 if it
// refers to none. A suspension changes HEAD and so does the entry that leaves it, so that entry
// is the one after HEAD's; a newer entry belongs to a state that was not read.
func LeavingSeq(head journal.Head) int64 {
	if head.Deleted || head.Removing || head.Status != session.StatusSuspended {
		return 0
	}
	return head.StatusSeq + 1
}

// ReadyToResume reports whether a session of that status is suspended, waits for nothing any more
// of what an entry opened, and may continue.
func (st *Sessions) ReadyToResume(ctx context.Context, key session.Key, status session.Status, waitsAt int64) (bool, error) {
	if status != session.StatusSuspended {
		return false, nil
	}
	waits, err := st.WaitStates(ctx, key, waitsAt)
	return err == nil && MayResume(waits), err
}

// MayResume reports whether no wait is open any more, and the answers may be used.
func MayResume(waits []journal.WaitRecord) bool {
	return CountOpen(waits) == 0 && !StaysSuspended(waits)
}

// WaitStates returns the waits that an entry opened with no more than what became of
// them: what they ask and what was answered may be large.
func (st *Sessions) WaitStates(ctx context.Context, key session.Key, waitsAt int64) ([]journal.WaitRecord, error) {
	if waitsAt == 0 {
		return nil, nil
	}
	var records []journal.WaitRecord
	for item, err := range st.cfg.Store.Items(ctx, key, store.KindWait, waitsOpenedAt(waitsAt)) {
		if err != nil {
			return nil, fmt.Errorf("session %s: read waits: %w", key, err)
		}
		w := item.Wait
		records = append(records, journal.WaitRecord{Wait: session.Wait{ID: w.Wait.ID}, State: w.State, Held: w.Held, HeldLast: w.HeldLast})
	}
	return records, nil
}
