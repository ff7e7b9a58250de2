package runtime

import (
	"fmt"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// headUnseen reports whether an entry would pass over what HEAD holds: a signal to
// the task that the entry does not obey, or mail of which its writer has read less
// than mail counts. It is asked of every revision of HEAD that an entry is
// conditioned on, however the writer came by it: a revision that was taken over
// from a renewal, from a claim or from a refused write says nothing about what the
// work behind the entry has seen.
//
// An entry after which the task runs on passes nothing over, since the next step
// begins with a look; one that puts the step off, or is not conditioned on HEAD,
// is told apart by [engine.Move.MovesHead].
func headUnseen(s *session.Session, head *journal.Head, m engine.Move, mail int64) bool {
	e := &m.Entry
	if head == nil || !m.MovesHead || e.Status == session.StatusRunning && e.Kind != session.KindDelayed {
		return false
	}
	if there := head.Signal; there != nil && there.Task == s.Task {
		if e.Signal == nil || there.ID != e.Signal.ID && there.Kind.Strength() >= e.Signal.Kind.Strength() {
			return true
		}
	}
	// Mail waits for the next task, or for the next try, where this one is stopped or put off.
	return e.Signal == nil && e.Kind != session.KindDelayed && head.MailCount > mail
}

// checkHead refuses an entry for which headUnseen is true; nothing was written.
func checkHead(s *session.Session, head *store.Item, m engine.Move, mail int64) error {
	if !headUnseen(s, head.Head, m, mail) {
		return nil
	}
	return fmt.Errorf("session %s: entry %d (%s): %w", s.Key, m.Entry.Seq, m.Entry.Kind, errHeadMoved)
}
