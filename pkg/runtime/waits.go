package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// suspension is what a session asks for: HEAD, with the waits of the suspension the
// session is in, or was in last. What an answer costs does not depend on how many
// waits there were before.
type suspension struct {
	head  journal.Head
	items []store.Item
}

// loadSuspension reads HEAD before the waits: they are those of the suspension HEAD tells of,
// so nothing is among them that was opened while they were read.
func (r *Runtime) loadSuspension(ctx context.Context, key session.Key) (suspension, error) {
	a, _, err := r.loadSuspensionAt(ctx, key, "")
	return a, err
}

// loadSuspensionAt is loadSuspension, and reads what a checkpoint refers to between HEAD and the
// waits. A writer that moves a session on has settled its waits before; so the waits of a session
// that has left the checkpoint are read as settled, and not as still open.
func (r *Runtime) loadSuspensionAt(ctx context.Context, key session.Key, checkpoint string) (suspension, checkpointState, error) {
	if err := key.Validate(); err != nil {
		return suspension{}, checkpointState{}, err
	}
	item, err := r.sessions.Item(ctx, key, store.KindHead, "")
	if err != nil {
		return suspension{}, checkpointState{}, err
	}
	if item.Head == nil || item.Head.Deleted {
		return suspension{}, checkpointState{}, noSession(key)
	}
	at, err := r.loadCheckpoint(ctx, *item.Head, checkpoint)
	if err != nil {
		return suspension{}, checkpointState{}, err
	}
	items, err := r.sessions.WaitsAt(ctx, key, item.Head.WaitsAt)
	return suspension{head: *item.Head, items: items}, at, err
}

// waitsOf returns the waits of the suspension s is in.
func (r *Runtime) waitsOf(ctx context.Context, s *session.Session) ([]journal.WaitRecord, error) {
	items, err := r.sessions.WaitsAt(ctx, s.Key, stored.WaitsAtOf(s))
	return stored.WaitRecords(items), err
}

// wait returns a wait by its id, with Rev 0 if there is none.
func (r *Runtime) wait(ctx context.Context, a suspension, id string) (store.Item, error) {
	if seq, _ := stored.WaitNumbers(id); seq == a.head.WaitsAt {
		i := slices.IndexFunc(a.items, func(item store.Item) bool { return item.ID == id })
		if i < 0 {
			return store.Item{Kind: store.KindWait, ID: id}, nil
		}
		return a.items[i], nil
	}
	if !stored.IsWait(id) {
		return store.Item{Kind: store.KindWait, ID: id}, nil
	}
	return r.sessions.Item(ctx, a.head.Key, store.KindWait, id)
}

// allWaits returns every wait a session ever had, in the order they were opened.
func (r *Runtime) allWaits(ctx context.Context, key session.Key) ([]journal.WaitRecord, error) {
	items, err := r.sessions.Items(ctx, key, store.KindWait, "")
	if err != nil {
		return nil, err
	}
	records := stored.WaitRecords(items)
	slices.SortFunc(records, func(a, b journal.WaitRecord) int { return stored.CompareWaits(a.Wait, b.Wait) })
	return records, nil
}

// label names a wait for people: its id, which is what they answer, and what it is.
func label(w session.Wait) string { return w.ID + " (" + describeWait(w) + ")" }

func describeWait(w session.Wait) string {
	switch w.Kind {
	case session.WaitApproval:
		return "approval of " + w.Tool
	case session.WaitQuestion:
		return "question of " + w.Tool
	case session.WaitClientTool:
		return "result of " + w.Tool
	case session.WaitUnknown:
		return "verdict on " + w.Tool
	case session.WaitInput:
		return "message"
	case session.WaitChild:
		return "end of session " + w.Child
	}
	return string(w.Kind)
}

// suggestWaits says what to name, of what is open now and takes such an answer.
func (a suspension) suggestWaits(kind session.AnswerKind, call string) string {
	var names []string
	if a.head.Status == session.StatusSuspended || a.head.Status == session.StatusInterrupted {
		for _, w := range stored.OpenWaits(stored.WaitRecords(a.items)) {
			if answerKind(w.Kind) == kind && (call == "" || w.Call == call) {
				names = append(names, label(w))
			}
		}
	}
	const most = 5
	switch {
	case len(names) == 0 && call != "":
		return fmt.Sprintf("Nothing of call %q waits for an answer of kind %q now", call, kind)
	case len(names) == 0:
		return fmt.Sprintf("Nothing waits for an answer of kind %q now", kind)
	case len(names) > most:
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return "Name the wait: " + strings.Join(names, "; ")
}
