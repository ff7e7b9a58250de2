package stored

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// CheckpointState is what a checkpoint refers to: the waits its page displayed.
type CheckpointState struct {
	// Newest: nothing has been committed since. Without a checkpoint it is true.
	Newest bool
	// WaitsAt is the entry that opened the waits that were open there; 0 for none.
	WaitsAt int64
}

// loadCheckpoint reads what a checkpoint of a session refers to; without a checkpoint, that is
// what the session asked for last. It reads the checkpoint's entry and the newest one.
func (st *Sessions) loadCheckpoint(ctx context.Context, head journal.Head, id string) (CheckpointState, error) {
	if id == "" {
		return CheckpointState{Newest: true, WaitsAt: head.WaitsAt}, nil
	}
	cp, err := session.ParseCheckpoint(id)
	if err != nil {
		return CheckpointState{}, err
	}
	e, err := st.Entry(ctx, head.Key, cp.Seq)
	if err != nil {
		return CheckpointState{}, err
	}
	switch {
	case cp.Session != head.Key.ID, e.Seq == 0, e.Token != cp.Token:
		return CheckpointState{}, refusal.New(codes.InvalidCheckpoint, head.Key, "it has no such checkpoint")
	case !e.IsCheckpoint():
		return CheckpointState{}, NoCheckpoint(head.Key, e.Seq)
	}
	newest, err := st.Newest(ctx, head)
	if err != nil {
		return CheckpointState{}, err
	}
	out := CheckpointState{Newest: newest.Seq == cp.Seq}
	out.WaitsAt, err = st.waitedAt(ctx, head, e)
	return out, err
}

// maxBack bounds how many entries waitedAt reads before the entry it is asked about. Each
// interruption that is continued puts two entries between that entry and the one that opened its
// waits.
const maxBack = 32

// waitedAt returns the number of the entry that opened the waits which were open at entry e, or 0
// if no wait was open. That entry is e itself, or an earlier one if the session was interrupted in
// its suspension. For the newest suspension, the first of its waits says whether the suspension
// lasted until e: one read, however often the session was interrupted. For an older suspension,
// waitedAt reads back entry by entry. If it finds nothing in maxBack entries, it returns 0.
func (st *Sessions) waitedAt(ctx context.Context, head journal.Head, e journal.Entry) (int64, error) {
	waiting := func() bool { return e.Status == session.StatusSuspended || e.Status == session.StatusInterrupted }
	switch {
	case len(e.Waits) > 0:
		return e.Seq, nil
	case !waiting():
		return 0, nil
	case head.WaitsAt > 0 && head.WaitsAt < e.Seq:
		// Whatever leaves a suspension takes or closes all of its waits.
		item, err := st.Item(ctx, head.Key, store.KindWait, fmt.Sprintf("w%d-1", head.WaitsAt))
		if err != nil || item.Wait == nil || item.Wait.TakenBy != 0 && item.Wait.TakenBy <= e.Seq {
			return 0, err
		}
		return head.WaitsAt, nil
	}
	for range maxBack {
		if e.Seq <= 1 || !waiting() {
			return 0, nil
		}
		var err error
		if e, err = st.Entry(ctx, head.Key, e.Seq-1); err != nil {
			return 0, err
		}
		if len(e.Waits) > 0 {
			return e.Seq, nil
		}
	}
	return 0, nil
}

// CheckpointWaits returns what a session asks for, what a checkpoint of it refers to, and the
// waits that were open there.
func (st *Sessions) CheckpointWaits(ctx context.Context, key session.Key, checkpoint string) (Suspension, CheckpointState, []store.Item, error) {
	a, at, err := st.LoadSuspensionAt(ctx, key, checkpoint)
	if err != nil {
		return a, at, nil, err
	}
	items, err := st.ItemsAt(ctx, a, at.WaitsAt)
	return a, at, items, err
}

// ItemsAt returns the waits that an entry opened, read anew unless a holds them.
func (st *Sessions) ItemsAt(ctx context.Context, a Suspension, seq int64) ([]store.Item, error) {
	if seq == a.Head.WaitsAt {
		return a.Items, nil
	}
	return st.WaitsAt(ctx, a.Head.Key, seq)
}

// NoCheckpoint refuses the id of an entry that one cannot come back to.
func NoCheckpoint(key session.Key, seq int64) *refusal.Error {
	return refusal.New(codes.InvalidCheckpoint, key, "entry %d holds a reply whose calls had not run: it is no checkpoint. Use that of an entry before or after it", seq)
}
