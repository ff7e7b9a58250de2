package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	item, err := r.item(ctx, key, store.KindHead, "")
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
	items, err := r.waitsAt(ctx, key, item.Head.WaitsAt)
	return suspension{head: *item.Head, items: items}, at, err
}

// waitsAt returns the waits an entry opened, in their order: at most [session.MaxWaits].
func (r *Runtime) waitsAt(ctx context.Context, key session.Key, seq int64) ([]store.Item, error) {
	if seq == 0 {
		return nil, nil
	}
	items, err := r.items(ctx, key, store.KindWait, waitsOpenedAt(seq))
	slices.SortFunc(items, func(a, b store.Item) int { return compareWaits(a.Wait.Wait, b.Wait.Wait) })
	return items, err
}

// waitsOpenedAt matches the ids of the waits that an entry opened.
func waitsOpenedAt(seq int64) string { return fmt.Sprintf("w%d-*", seq) }

// waitsAtOf returns the seq of the entry that opened the waits of the suspension s is in; 0 for none.
func waitsAtOf(s *session.Session) int64 {
	if len(s.Waits) == 0 {
		return 0
	}
	seq, _ := waitNumbers(s.Waits[0].ID)
	return seq
}

// waitsOf returns the waits of the suspension s is in.
func (r *Runtime) waitsOf(ctx context.Context, s *session.Session) ([]journal.WaitRecord, error) {
	items, err := r.waitsAt(ctx, s.Key, waitsAtOf(s))
	return waitRecords(items), err
}

// wait returns a wait by its id, with Rev 0 if there is none.
func (r *Runtime) wait(ctx context.Context, a suspension, id string) (store.Item, error) {
	if seq, _ := waitNumbers(id); seq == a.head.WaitsAt {
		i := slices.IndexFunc(a.items, func(item store.Item) bool { return item.ID == id })
		if i < 0 {
			return store.Item{Kind: store.KindWait, ID: id}, nil
		}
		return a.items[i], nil
	}
	if !isWait(id) {
		return store.Item{Kind: store.KindWait, ID: id}, nil
	}
	return r.item(ctx, a.head.Key, store.KindWait, id)
}

// isWait reports whether an id is one that waits have.
func isWait(id string) bool {
	seq, index := waitNumbers(id)
	return id == fmt.Sprintf("w%d-%d", seq, index)
}

// allWaits returns every wait a session ever had, in the order they were opened.
func (r *Runtime) allWaits(ctx context.Context, key session.Key) ([]journal.WaitRecord, error) {
	items, err := r.items(ctx, key, store.KindWait, "")
	if err != nil {
		return nil, err
	}
	records := waitRecords(items)
	slices.SortFunc(records, func(a, b journal.WaitRecord) int { return compareWaits(a.Wait, b.Wait) })
	return records, nil
}

// waitRecords returns the records of waits, in their order.
func waitRecords(items []store.Item) []journal.WaitRecord {
	records := make([]journal.WaitRecord, len(items))
	for i, item := range items {
		records[i] = *item.Wait
	}
	return records
}

func openWaits(records []journal.WaitRecord) []session.Wait {
	var open []session.Wait
	for _, record := range records {
		if record.State == session.WaitOpen {
			open = append(open, record.Wait)
		}
	}
	return open
}

func countOpen(records []journal.WaitRecord) int { return len(openWaits(records)) }

// staysSuspended reports whether a session that waits for nothing any more stays where it is:
// because its last answer was only to be stored, or all of them were. Which one was
// the last is known from what a held answer found open, never from times: clocks differ.
func staysSuspended(records []journal.WaitRecord) bool {
	answers, all := 0, true
	for _, w := range records {
		switch {
		case w.State != session.WaitAnswered && w.State != session.WaitExpired:
			continue
		case w.HeldLast:
			return true
		}
		answers++
		all = all && w.Held
	}
	return all && answers > 0
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
		for _, w := range openWaits(waitRecords(a.items)) {
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

// compareWaits orders waits by the numbers in their ids, w<seq>-<i>.
func compareWaits(a, b session.Wait) int {
	aSeq, aIndex := waitNumbers(a.ID)
	bSeq, bIndex := waitNumbers(b.ID)
	return cmp.Or(cmp.Compare(aSeq, bSeq), cmp.Compare(aIndex, bIndex), cmp.Compare(a.ID, b.ID))
}

func waitNumbers(id string) (seq, index int64) {
	head, tail, _ := strings.Cut(strings.TrimPrefix(id, "w"), "-")
	seq, _ = strconv.ParseInt(head, 10, 64)   // 0 for an id that is not ours
	index, _ = strconv.ParseInt(tail, 10, 64) // likewise
	return seq, index
}
