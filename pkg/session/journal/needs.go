package journal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
)

// ErrNeeds says that a record needs a feature that this program does not have, so that to act on
// the record would be wrong. See [NeedsError].
var ErrNeeds = errors.New("written by a newer program")

// words are what this program understands of all that needs may name. A feature
// that an older program must not ignore has its word here and writes it.
var words = [...]string{session.NeedsToolCalls, session.NeedsRepeatedCalls, session.NeedsStateBytes, session.NeedsSessionLimits, session.NeedsCancelAt, session.NeedsToolPolicy, session.NeedsPolicyPause, session.NeedsProgramPolicy, session.NeedsDismissal, session.NeedsAnswerRule, session.NeedsEscalation, session.NeedsStanding}

// NeedsError names the record and the feature that this program does not have. It wraps
// [ErrNeeds].
type NeedsError struct {
	// What names the record: entry 7, wait w7-1, the rules at entry 1.
	What string
	// Word that is not known.
	Word string
}

// Error says what to do.
func (e *NeedsError) Error() string {
	return fmt.Sprintf("%s needs %q, which this program does not know: use a newer adjourn", e.What, e.Word)
}

// Unwrap returns [ErrNeeds].
func (e *NeedsError) Unwrap() error { return ErrNeeds }

// unmet returns an error for the first word that is not among those known.
func unmet(needs, known []string, what string, of any) error {
	for _, word := range needs {
		if !slices.Contains(known, word) {
			return &NeedsError{What: fmt.Sprintf(what, of), Word: word}
		}
	}
	return nil
}

// checkNeeds refuses an entry that needs a feature this program does not have: for itself, the
// waits it opens or the rules it holds.
func (e *Entry) checkNeeds() error {
	if err := unmet(e.Needs, words[:], "entry %d", e.Seq); err != nil {
		return err
	}
	if e.Rules != nil {
		if err := unmet(e.Rules.Needs, words[:], "the task of entry %d", e.Seq); err != nil {
			return err
		}
	}
	for i := range e.Waits {
		if err := checkWait(&e.Waits[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkWait(w *session.Wait) error { return unmet(w.Needs, words[:], "wait %s", w.ID) }
