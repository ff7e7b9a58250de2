package stored

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// WaitsAt returns the waits an entry opened, in their order: at most [session.MaxWaits].
func (st *Sessions) WaitsAt(ctx context.Context, key session.Key, seq int64) ([]store.Item, error) {
	if seq == 0 {
		return nil, nil
	}
	items, err := st.Items(ctx, key, store.KindWait, waitsOpenedAt(seq))
	slices.SortFunc(items, func(a, b store.Item) int { return CompareWaits(a.Wait.Wait, b.Wait.Wait) })
	return items, err
}

// AllWaits returns the records of all waits a session ever opened, in their order; of one that was
// deleted they are refused, though they may still be there.
func (st *Sessions) AllWaits(ctx context.Context, key session.Key) ([]journal.WaitRecord, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	items, err := st.Items(ctx, key, store.KindWait, "")
	if err == nil && len(items) > 0 {
		_, err = st.ExistingHead(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	records := WaitRecords(items)
	slices.SortFunc(records, func(a, b journal.WaitRecord) int { return CompareWaits(a.Wait, b.Wait) })
	return records, nil
}

// waitsOpenedAt matches the ids of the waits that an entry opened.
func waitsOpenedAt(seq int64) string { return fmt.Sprintf("w%d-*", seq) }

// WaitsAtOf returns the seq of the entry that opened the waits of the suspension s is in; 0 for none.
func WaitsAtOf(s *session.Session) int64 {
	if len(s.Waits) == 0 {
		return 0
	}
	seq, _ := WaitNumbers(s.Waits[0].ID)
	return seq
}

// IsWait reports whether an id is one that waits have.
func IsWait(id string) bool {
	seq, index := WaitNumbers(id)
	return id == fmt.Sprintf("w%d-%d", seq, index)
}

// WaitRecords returns the records of waits, in their order.
func WaitRecords(items []store.Item) []journal.WaitRecord {
	records := make([]journal.WaitRecord, len(items))
	for i, item := range items {
		records[i] = *item.Wait
	}
	return records
}

// OpenWaits returns the waits that are open, in their order.
func OpenWaits(records []journal.WaitRecord) []session.Wait {
	var open []session.Wait
	for _, record := range records {
		if record.State == session.WaitOpen {
			open = append(open, record.Wait)
		}
	}
	return open
}

// OpenRecords returns the waits that are open, with the votes on them and what was done to them.
func OpenRecords(records []journal.WaitRecord) []journal.WaitRecord {
	var open []journal.WaitRecord
	for _, record := range records {
		if record.State == session.WaitOpen {
			open = append(open, journal.WaitRecord{Wait: record.Wait, State: record.State, Votes: record.Votes, Acts: record.Acts})
		}
	}
	return open
}

// CountOpen returns how many are open.
func CountOpen(records []journal.WaitRecord) int { return len(OpenWaits(records)) }

// StaysSuspended reports whether a session that waits for nothing any more stays where it is:
// because its last answer was only to be stored, or all of them were. Which one was
// the last is known from what a held answer found open, never from times: clocks differ.
func StaysSuspended(records []journal.WaitRecord) bool {
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

// CompareWaits orders waits by the numbers in their ids, w<seq>-<i>.
func CompareWaits(a, b session.Wait) int {
	aSeq, aIndex := WaitNumbers(a.ID)
	bSeq, bIndex := WaitNumbers(b.ID)
	return cmp.Or(cmp.Compare(aSeq, bSeq), cmp.Compare(aIndex, bIndex), cmp.Compare(a.ID, b.ID))
}

// WaitNumbers returns the two numbers in the id of a wait, w<seq>-<i>: of the entry that opened
// it, and of the wait among those. Both are 0 for an id that is not ours.
func WaitNumbers(id string) (seq, index int64) {
	head, tail, _ := strings.Cut(strings.TrimPrefix(id, "w"), "-")
	seq, _ = strconv.ParseInt(head, 10, 64)   // 0 for an id that is not ours
	index, _ = strconv.ParseInt(tail, 10, 64) // likewise
	return seq, index
}

// TakeWaits returns the answers of a suspension in the order of its waits, and
// the records of its waits as they are after entry seq took them in or closed them.
// The answers fit into so many bytes; the records keep them as they were given. An answer whose record is
// not as it was written is not taken in: its wait is closed.
func TakeWaits(s *session.Session, items []store.Item, seq int64, most int) ([]session.Answer, []store.Item) {
	byID := map[string]store.Item{}
	for _, item := range items {
		byID[item.ID] = item
	}
	var answers []session.Answer
	var taken []store.Item
	for _, w := range s.Waits {
		item, ok := byID[w.ID]
		if !ok {
			continue
		}
		record := *item.Wait
		switch record.State {
		case session.WaitAnswered, session.WaitExpired:
			if record.State = session.WaitClosed; !counts(w, &record) {
				break // it is asked again
			}
			answer := *record.Answer
			answer.Audit = record.Audit.Hash
			answers = append(answers, answer)
			record.State = session.WaitTaken
		case session.WaitOpen:
			record.State = session.WaitClosed
		case session.WaitTaken, session.WaitClosed:
			continue
		}
		record.Due, record.TakenBy = nil, seq
		taken = append(taken, store.WaitItem(record, item.Rev))
	}
	return engine.FitAnswers(answers, most), taken
}
