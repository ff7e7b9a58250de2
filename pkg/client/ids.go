package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/pkg/session"
)

// What a server calls its sessions and waits is shown and used in requests and in
// commands, so an id is one or the answer is refused.

const (
	// maxID is how long an id may be: that of a checkpoint holds that of its session.
	maxID = 1024
	// maxCursor is how long the cursor of a page may be.
	maxCursor = 8 << 10
)

// isID reports whether text is 1 to maxID letters, digits, _ or -.
func isID(text string) bool {
	return text != "" && len(text) <= maxID && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

// checkID refuses what is no id; optional ones may be empty.
func checkID(what, id string, optional bool) error {
	if isID(id) || optional && id == "" {
		return nil
	}
	return fmt.Errorf("%w: it calls a %s %.80q", ErrNotAdjourn, what, id)
}

// errUnchecked says that checkAnswer does not know what there is to check in an answer.
var errUnchecked = errors.New("client: checkAnswer does not list the type of this answer")

// checkAnswer refuses an answer that names things as no server does, or is about another
// session than the one that was asked for, if one was. Every answer is listed, one
// without ids as well, so that none is forgotten.
func checkAnswer(out any, id string) error {
	switch o := out.(type) {
	case *Session:
		return checkSession(o, id)
	case *Started:
		return checkID("session", o.SessionID, false)
	case *Submitted:
		return checkWaits(o.Open, true)
	case *SubmittedAll:
		for _, result := range o.Results {
			if err := checkID("wait", result.WaitID, true); err != nil {
				return err
			}
		}
		return checkWaits(o.Open, true)
	case *Resumed:
		return checkWaits(o.Open, true)
	case *Forked:
		if err := checkID("session", o.SessionID, false); err != nil {
			return err
		}
		return checkWaits(o.Open, true)
	case *CheckpointView:
		if err := checkID("checkpoint", o.ID, false); err != nil {
			return err
		}
		if err := checkCursor(o.Cursor); err != nil {
			return err
		}
		return checkWaits(o.Waits, true)
	case *Sent:
		if err := checkID("mail", o.MailID, true); err != nil {
			return err
		}
		if err := checkWaits(o.Open, true); err != nil {
			return err
		}
		return checkID("session", o.SessionID, false)
	case *WaitView:
		return checkWaits([]Wait{o.Wait}, true)
	case *Acted:
		return checkWaits(append([]Wait{o.Wait}, o.Open...), true)
	case *Stopped:
		return checkID("session", o.SessionID, false)
	case *Link:
		return checkLink(o)
	case *Deleted:
		return checkID("session", o.SessionID, false)
	case *Waits:
		if err := checkCursor(o.Cursor); err != nil {
			return err
		}
		return checkWaits(o.Items, id != "") // those of the inbox have to name their session
	case *Sessions:
		for i := range o.Items {
			if err := checkID("session", o.Items[i].ID, false); err != nil {
				return err
			}
		}
		return checkCursor(o.Cursor)
	case *Notices:
		for i := range o.Items {
			if err := checkID("session", o.Items[i].SessionID, false); err != nil {
				return err
			}
		}
		return checkCursor(o.Cursor)
	case *Messages:
		return checkCursor(o.Cursor)
	case *Runs:
		return checkCursor(o.Cursor)
	case *Audit:
		for i := range o.Items {
			if err := checkID("wait", o.Items[i].Wait, true); err != nil {
				return err
			}
		}
		return checkCursor(o.Cursor)
	case *Permissions:
		for i := range o.Items {
			if err := checkID("permission", o.Items[i].ID, false); err != nil {
				return err
			}
		}
		return nil
	case *Revoked:
		return checkID("permission", o.Permission.ID, false)
	case *Checkpoints:
		for i := range o.Items {
			if err := checkID("checkpoint", o.Items[i].ID, true); err != nil {
				return err
			}
		}
		return checkCursor(o.Cursor)
	case *Entries, *session.PermissionPreview, *Halted, *Lifted, *Halts, *Away, *AwayChanged, *json.RawMessage:
		return nil // the journal as it is stored; what names no session; a document
	}
	return fmt.Errorf("%w: %T", errUnchecked, out)
}

func checkSession(s *Session, id string) error {
	if s.ID != id {
		return fmt.Errorf("%w: asked for session %s it tells of %.80q", ErrNotAdjourn, id, s.ID)
	}
	if err := checkID("checkpoint", s.CheckpointID, true); err != nil || s.Pause == nil {
		return err
	}
	return checkWaits(s.Pause.Pending, true)
}

func checkWaits(waits []Wait, ofSession bool) error {
	for i := range waits {
		w := &waits[i]
		if err := checkID("wait", w.WaitID, false); err != nil {
			return err
		}
		if err := checkID("session", w.SessionID, ofSession); err != nil {
			return err
		}
		if err := checkID("session", w.ChildSessionID, true); err != nil {
			return err
		}
	}
	return nil
}

func checkCursor(cursor string) error {
	unseen := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(cursor) > maxCursor || strings.ContainsFunc(cursor, unseen) {
		return fmt.Errorf("%w: the page goes on at %.80q", ErrNotAdjourn, cursor)
	}
	return nil
}
