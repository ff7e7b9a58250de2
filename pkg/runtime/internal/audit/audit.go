// Package audit reads what is recorded of a session's waits, and verifies its records.
//
// The lines of a wait are made of its record, of the audit lines beside it and of the entries that
// opened it and took it in (lines.go). Verifying compares all of that (verify.go). The only writes are
// the lines of who has read a wait (view.go).
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// records are all that a session has, as far as it could be read.
type records struct {
	key     session.Key
	head    journal.Head
	entries []journal.Entry
	waits   []journal.WaitRecord
	// lines of each wait, in the order of their ids.
	lines map[string][]journal.Audit
	tools []journal.ToolRecord
	runs  []session.Run
	mails []journal.Mail
	// unread says what could not be read, and why.
	unread []session.AuditFault
	// first is the first error of those.
	first error
}

// Read returns the lines of all waits of a session, one wait after the other in the order they were
// opened, then the calls that the policy of a task denied.
func Read(ctx context.Context, sessions *stored.Sessions, key session.Key) ([]session.AuditLine, error) {
	r := records{key: key, lines: map[string][]journal.Audit{}}
	if err := r.read(ctx, sessions, false); err != nil {
		return nil, err
	}
	return r.all(), r.first
}

// maxReads bounds how often the records are read to verify them.
const maxReads = 5

// Verify is [Read], and compares the records of the session with each other. What cannot be read is a fault,
// not an error. The records are not read at one moment: a fault counts when it is there twice in a row.
func Verify(ctx context.Context, sessions *stored.Sessions, key session.Key) (lines []session.AuditLine, check session.AuditCheck, err error) {
	for range maxReads {
		r := records{key: key, lines: map[string][]journal.Audit{}}
		if err := r.read(ctx, sessions, true); err != nil {
			return nil, check, err
		}
		before := check.Faults
		if check, lines = r.verify(), r.all(); check.Whole || slices.Equal(before, check.Faults) {
			break
		}
	}
	return lines, check, nil
}

// read reads the records. HEAD is read first and the entries after it, so that no entry is missing that HEAD
// tells of; the rest is written with an entry, or after it.
func (r *records) read(ctx context.Context, sessions *stored.Sessions, verify bool) error {
	if err := r.key.Validate(); err != nil {
		return err
	}
	head, err := sessions.ExistingHead(ctx, r.key)
	switch {
	case errors.Is(err, store.ErrCorrupt) && verify:
		r.missed("head", err)
	case err != nil:
		return err
	default:
		r.head = *head.Head
	}
	kinds := []store.ItemKind{store.KindWait, store.KindAudit}
	if verify {
		kinds = append(kinds, store.KindTool, store.KindRun, store.KindMail)
	}
	var items []store.Item
	for _, kind := range kinds {
		found, err := sessions.Items(ctx, r.key, kind, "")
		if err := r.tell(string(kind), err); err != nil {
			return err
		}
		items = append(items, found...)
	}
	for e, err := range sessions.EachEntry(ctx, r.key) {
		if err := r.tell(fmt.Sprintf("entry %d", len(r.entries)+1), err); err != nil {
			return err
		}
		if err == nil {
			r.entries = append(r.entries, e)
		}
	}
	for _, item := range items {
		r.sort(item)
	}
	slices.SortFunc(r.waits, func(a, b journal.WaitRecord) int { return stored.CompareWaits(a.Wait, b.Wait) })
	slices.SortFunc(r.runs, func(a, b session.Run) int { return int(a.ID - b.ID) })
	return nil
}

// tell notes that something could not be read because it is not what was written, and returns every other
// error.
func (r *records) tell(what string, err error) error {
	if err != nil && !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	if err != nil {
		r.missed(what, err)
	}
	return nil
}

func (r *records) missed(what string, err error) {
	r.unread = append(r.unread, session.AuditFault{Record: what, Fault: "it cannot be read: " + err.Error()})
	if r.first == nil {
		r.first = err
	}
}

func (r *records) sort(item store.Item) {
	switch item.Kind {
	case store.KindWait:
		r.waits = append(r.waits, *item.Wait)
	case store.KindAudit:
		r.lines[item.Audit.Wait] = append(r.lines[item.Audit.Wait], *item.Audit)
	case store.KindTool:
		r.tools = append(r.tools, *item.Tool)
	case store.KindRun:
		r.runs = append(r.runs, *item.Run)
	case store.KindMail:
		r.mails = append(r.mails, *item.Mail)
	case store.KindHead, store.KindNotice, store.KindIdempotency, store.KindTenantRecord: // read apart, or of no session
	}
}

// entry returns an entry by its seq, nil if there is none.
func (r *records) entry(seq int64) *journal.Entry {
	if seq < 1 || seq > int64(len(r.entries)) {
		return nil
	}
	return &r.entries[seq-1]
}

// answerIn returns the answer to a wait that an entry took in, nil if there is none.
func answerIn(e *journal.Entry, wait string) *session.Answer {
	if e == nil {
		return nil
	}
	i := slices.IndexFunc(e.Answers, func(a session.Answer) bool { return a.Wait == wait })
	if i < 0 {
		return nil
	}
	return &e.Answers[i]
}
