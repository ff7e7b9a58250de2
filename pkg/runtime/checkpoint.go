package runtime

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// checkpointState is what a checkpoint refers to: the waits its page displayed.
type checkpointState struct {
	// newest: nothing has been committed since. Without a checkpoint it is true.
	newest bool
	// waitsAt is the entry that opened the waits that were open there; 0 for none.
	waitsAt int64
}

// loadCheckpoint reads what a checkpoint of a session refers to; without a checkpoint, that is
// what the session asked for last. It reads the checkpoint's entry and the newest one.
func (r *Runtime) loadCheckpoint(ctx context.Context, head journal.Head, id string) (checkpointState, error) {
	if id == "" {
		return checkpointState{newest: true, waitsAt: head.WaitsAt}, nil
	}
	cp, err := session.ParseCheckpoint(id)
	if err != nil {
		return checkpointState{}, err
	}
	e, err := r.sessions.Entry(ctx, head.Key, cp.Seq)
	if err != nil {
		return checkpointState{}, err
	}
	switch {
	case cp.Session != head.Key.ID, e.Seq == 0, e.Token != cp.Token:
		return checkpointState{}, refuse(CodeInvalidCheckpoint, head.Key, "it has no such checkpoint")
	case !e.IsCheckpoint():
		return checkpointState{}, noCheckpoint(head.Key, e.Seq)
	}
	newest, err := r.sessions.Newest(ctx, head)
	if err != nil {
		return checkpointState{}, err
	}
	out := checkpointState{newest: newest.Seq == cp.Seq}
	out.waitsAt, err = r.waitedAt(ctx, head, e)
	return out, err
}

// maxBack bounds how many entries are read to find what an entry of before waited
// for: each interruption that is continued puts two between.
const maxBack = 32

// waitedAt returns the entry that opened the waits that were open at an entry; 0 for
// none. A session that was interrupted and waits again waits for what an earlier entry
// opened. Of the suspension the session is in, or was in last, one wait tells, however
// often it was interrupted; of one before, what is further back than maxBack counts as
// none.
func (r *Runtime) waitedAt(ctx context.Context, head journal.Head, e journal.Entry) (int64, error) {
	waiting := func() bool { return e.Status == session.StatusSuspended || e.Status == session.StatusInterrupted }
	switch {
	case len(e.Waits) > 0:
		return e.Seq, nil
	case !waiting():
		return 0, nil
	case head.WaitsAt > 0 && head.WaitsAt < e.Seq:
		// Whatever leaves a suspension takes or closes all of its waits.
		item, err := r.sessions.Item(ctx, head.Key, store.KindWait, fmt.Sprintf("w%d-1", head.WaitsAt))
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
		if e, err = r.sessions.Entry(ctx, head.Key, e.Seq-1); err != nil {
			return 0, err
		}
		if len(e.Waits) > 0 {
			return e.Seq, nil
		}
	}
	return 0, nil
}

// checkpointWaits returns what a session asks for, what a checkpoint of it refers to, and the
// waits that were open there.
func (r *Runtime) checkpointWaits(ctx context.Context, key session.Key, checkpoint string) (suspension, checkpointState, []store.Item, error) {
	a, at, err := r.loadSuspensionAt(ctx, key, checkpoint)
	if err != nil {
		return a, at, nil, err
	}
	items, err := r.itemsAt(ctx, a, at.waitsAt)
	return a, at, items, err
}

// itemsAt returns the waits that an entry opened, read anew unless a holds them.
func (r *Runtime) itemsAt(ctx context.Context, a suspension, seq int64) ([]store.Item, error) {
	if seq == a.head.WaitsAt {
		return a.items, nil
	}
	return r.sessions.WaitsAt(ctx, a.head.Key, seq)
}

// staleCheckpoint refuses a checkpoint that is not that of the newest entry.
func staleCheckpoint(key session.Key, status session.Status) *Error {
	return refuseAt(CodeStaleCheckpoint, key, status, "the checkpoint is not its newest one: it has moved on since")
}
