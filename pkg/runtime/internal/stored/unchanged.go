package stored

import (
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// vouch writes the hash of an entry to the HEAD that goes with it, where the entry may stay the
// newest for long, or has taken answers in that the next step acts on. Nothing else is written for it, and
// HEAD is without it while a session works.
func vouch(head *journal.Head, e *journal.Entry) error {
	if head.Newest = (journal.EntryHash{}); !e.Status.Resting() && len(e.Answers) == 0 {
		return nil
	}
	hash, err := journal.HashOf(e)
	if err != nil {
		return err
	}
	head.Newest = journal.EntryHash{Seq: e.Seq, Hash: hash}
	return nil
}

// CheckNewest refuses to go on with a session whose newest entry is not the one that was written with HEAD.
func CheckNewest(s *session.Session, head *journal.Head) error {
	if head == nil || head.Newest.Seq != s.Version || head.Newest.Hash == s.Newest.Hash {
		return nil
	}
	return changed(s.Key, "entry %d is not the one that was written", s.Version)
}

// CheckWaits refuses to go on with the waits of a suspension that are not as they were written: what was
// answered may not be what was asked, or not what a person said. Whoever ends the session instead does
// not take such answers in ([TakeWaits]).
func CheckWaits(s *session.Session, items []store.Item) error {
	for i := range items {
		record := items[i].Wait
		for _, w := range s.Waits {
			if w.ID == items[i].ID && (journal.SealOf(record) == journal.SealBroken || journal.LostSeal(record) || !AsOpened(w, record)) {
				return changed(s.Key, "the record of wait %s is not as it was written", w.ID)
			}
		}
	}
	return nil
}

func changed(key session.Key, what string, args ...any) error {
	return fmt.Errorf("session %s: %w: %s: it was changed in the store, and nothing goes on with it. `adjourn audit %s --verify` says more", key, store.ErrCorrupt, fmt.Sprintf(what, args...), key.ID)
}

// counts reports whether the answer of a record is one to a wait as its entry opened it, and as it was
// written. An approval also needs the seal of a program that knows seals: missing is never yes.
func counts(w session.Wait, record *journal.WaitRecord) bool {
	switch journal.SealOf(record) {
	case journal.SealBroken:
		return false
	case journal.SealNone:
		if w.Kind == session.WaitApproval || w.Rule != nil {
			return false
		}
	case journal.SealWhole:
	}
	return AsOpened(w, record)
}

// AsOpened reports whether a record is of the wait that an entry opened. Its deadline and who may answer
// may be others, where the record says that it was extended, delegated or escalated. One wait may have been made here and the other
// read: what is no text then is not the same bytes, and its digest is the same.
func AsOpened(a session.Wait, r *journal.WaitRecord) bool {
	b := r.Wait
	if r.Answer != nil && (r.Answer.Kind == session.AnswerDismissal || r.Answer.Standing != nil) {
		b.Needs = a.Needs // it adds a word of its own
	}
	for _, act := range r.Acts {
		switch act.Kind {
		case session.ActExtended:
			b.Deadline = a.Deadline
		case session.ActDelegated:
			b.Who = a.Who
		case session.ActEscalated:
			if !a.Escalates() || !sameJSON(act.Escalation, a.Deadline.Escalate) {
				return false
			}
			b.Deadline, b.Who, b.Rule = a.Deadline, a.Who, a.Rule
		case session.ActReminded, session.ActDismissed, session.ActStoodIn: // nothing of the wait; it is the answer, or goes with one
		}
	}
	return sameJSON(a, b)
}

func sameJSON(a, b any) bool {
	left, err := json.Marshal(a)
	right, other := json.Marshal(b)
	return err == nil && other == nil && journal.Digest(left) == journal.Digest(right)
}
