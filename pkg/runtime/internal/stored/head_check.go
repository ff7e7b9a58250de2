package stored

import (
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// ErrHeadMoved says that a signal or mail came which an entry would ignore: look again before
// ending the step.
var ErrHeadMoved = errors.New("a signal or mail came")

// headUnseen reports whether an entry would ignore something in HEAD: a signal to the task that
// the entry does not carry out, or mail of which its writer has read less than HEAD counts. It is
// checked for every revision of HEAD that an entry is conditioned on, wherever the writer has it
// from: a revision from a renewal, a claim or a refused write does not show that the work for the
// entry has taken it into account.
//
// An entry after which the task runs on ignores nothing, since the next step begins with a read
// of HEAD. [engine.Move.MovesHead] distinguishes the entries that put the step off or are not
// conditioned on HEAD.
func headUnseen(s *session.Session, head *journal.Head, m engine.Move, mail int64) bool {
	e := &m.Entry
	if head == nil || !m.MovesHead || e.Status == session.StatusRunning && e.Kind != session.KindDelayed {
		return false
	}
	if there := head.SignalFor(s.Task); there != nil {
		if e.Signal == nil || there.ID != e.Signal.ID && there.Kind.Strength() >= e.Signal.Kind.Strength() {
			return true
		}
	}
	// Where the step is put off, mail waits for the next try.
	return e.Kind != session.KindDelayed && head.MailCount > mail
}

// CheckHead refuses an entry that would ignore a signal in HEAD, or mail of which its writer has
// read less than HEAD counts, with [ErrHeadMoved]; nothing was written.
func CheckHead(s *session.Session, head *store.Item, m engine.Move, mail int64) error {
	if !headUnseen(s, head.Head, m, mail) {
		return nil
	}
	return fmt.Errorf("session %s: entry %d (%s): %w", s.Key, m.Entry.Seq, m.Entry.Kind, ErrHeadMoved)
}
