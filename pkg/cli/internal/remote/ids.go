package remote

import (
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// What a server calls its sessions and waits stands in commands that people paste, so
// an id is one or the answer is refused.

const (
	// maxID is how long an id may be: that of a checkpoint holds that of its session.
	maxID = 1024
	// maxCursor is how long the cursor of a page may be.
	maxCursor = 8 << 10
	// maxWaits and maxEntries are how many of a session are taken in: a server could
	// name more and more without end.
	maxWaits, maxEntries = 100_000, 1_000_000
)

// isID reports whether text is 1 to maxID letters, digits, _ or -.
func isID(text string) bool {
	return text != "" && len(text) <= maxID && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

// unexpected is the refusal of an answer that no Adjourn server gives.
func unexpected(key session.Key, format string, args ...any) error {
	return &runtime.Error{Code: CodeUnexpected, Session: key.ID, Message: "this is no answer of an Adjourn server: " + fmt.Sprintf(format, args...)}
}

// checkID refuses what is no id; optional ones may be empty.
func checkID(key session.Key, what, id string, optional bool) error {
	if isID(id) || optional && id == "" {
		return nil
	}
	return unexpected(key, "it calls a %s %.80q", what, id)
}

// checkSession refuses the answer about a session that is not the one asked for, or
// names things as nobody does.
func checkSession(key session.Key, s *wire.Session) error {
	if s.ID != key.ID {
		return unexpected(key, "asked for this session it tells of %.80q", s.ID)
	}
	if err := checkID(key, "checkpoint", s.CheckpointID, true); err != nil {
		return err
	}
	if s.Pause == nil {
		return nil
	}
	return checkWaits(key, s.Pause.Pending)
}

func checkWaits(key session.Key, waits []wire.Wait) error {
	for i := range waits {
		if err := checkWait(key, &waits[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkWait(key session.Key, w *wire.Wait) error {
	if err := checkID(key, "wait", w.WaitID, false); err != nil {
		return err
	}
	if err := checkID(key, "session", w.SessionID, true); err != nil {
		return err
	}
	return checkID(key, "session", w.ChildSessionID, true)
}

func checkCursor(cursor string) error {
	unseen := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(cursor) > maxCursor || strings.ContainsFunc(cursor, unseen) {
		return unexpected(session.Key{}, "the page goes on at %.80q", cursor)
	}
	return nil
}
