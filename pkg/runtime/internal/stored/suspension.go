package stored

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Suspension is what a session asks for: HEAD, with the waits of the suspension the
// session is in, or was in last. What an answer costs does not depend on how many
// waits there were before.
type Suspension struct {
	Head journal.Head
	// Items are the waits, in their order.
	Items []store.Item
}

// LoadSuspension reads HEAD before the waits: they are those of the suspension HEAD tells of,
// so nothing is among them that was opened while they were read.
func (st *Sessions) LoadSuspension(ctx context.Context, key session.Key) (Suspension, error) {
	a, _, err := st.LoadSuspensionAt(ctx, key, "")
	return a, err
}

// LoadSuspensionAt is [Sessions.LoadSuspension], and reads what a checkpoint refers to between HEAD and the
// waits. A writer that moves a session on has settled its waits before; so the waits of a session
// that has left the checkpoint are read as settled, and not as still open.
func (st *Sessions) LoadSuspensionAt(ctx context.Context, key session.Key, checkpoint string) (Suspension, CheckpointState, error) {
	if err := key.Validate(); err != nil {
		return Suspension{}, CheckpointState{}, err
	}
	item, err := st.ExistingHead(ctx, key)
	if err != nil {
		return Suspension{}, CheckpointState{}, err
	}
	at, err := st.loadCheckpoint(ctx, *item.Head, checkpoint)
	if err != nil {
		return Suspension{}, CheckpointState{}, err
	}
	items, err := st.WaitsAt(ctx, key, item.Head.WaitsAt)
	return Suspension{Head: *item.Head, Items: items}, at, err
}

// Wait returns a wait by its id, with Rev 0 if there is none.
func (st *Sessions) Wait(ctx context.Context, a Suspension, id string) (store.Item, error) {
	if seq, _ := WaitNumbers(id); seq == a.Head.WaitsAt {
		i := slices.IndexFunc(a.Items, func(item store.Item) bool { return item.ID == id })
		if i < 0 {
			return store.Item{Kind: store.KindWait, ID: id}, nil
		}
		return a.Items[i], nil
	}
	if !IsWait(id) {
		return store.Item{Kind: store.KindWait, ID: id}, nil
	}
	return st.Item(ctx, a.Head.Key, store.KindWait, id)
}
