package store

import (
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Sentinels to branch on.
var (
	// ErrNotFound: no such session, or it was deleted.
	ErrNotFound = errors.New("not found")
	// ErrConflict: another writer was first. See [ConflictError].
	ErrConflict = errors.New("conflict")
	// ErrLeaseHeld: another worker holds the lease. See [LeaseError].
	ErrLeaseHeld = errors.New("lease held")
	// ErrCorrupt: what is stored is not a journal.
	ErrCorrupt = errors.New("corrupt")
	// ErrTooManyItems: a commit or an update of more than MaxItems items.
	ErrTooManyItems = errors.New("too many items in one write")
	// ErrInvalidCursor: the cursor is not one of ours.
	ErrInvalidCursor = errors.New("invalid cursor")
	// ErrUnavailable: the store cannot be reached or written: a disk that is full
	// or read-only, a service that does not answer. Nothing was half-written.
	ErrUnavailable = errors.New("store unavailable")
	// ErrLocked: another process holds the store for writing and does not go on. It is
	// [ErrUnavailable] too.
	ErrLocked = fmt.Errorf("%w: another process holds it", ErrUnavailable)
	// ErrGone: the data is no longer where it was opened: what was written since is
	// lost with it, and nothing more may be done for it. It is [ErrUnavailable] too.
	ErrGone = fmt.Errorf("%w: the data is gone", ErrUnavailable)
	// ErrNotOurs: the data is not ours, or was written by a newer version.
	ErrNotOurs = errors.New("not an adjourn store")
)

// ConflictError names the entry or item that made a commit or an update fail. It wraps
// [ErrConflict]. Exactly one of Entry and Item is set.
type ConflictError struct {
	// Key of the commit or update.
	Key session.Key
	// Entry that has the seq already.
	Entry *journal.Entry
	// Item as it is, with Rev 0 if it is absent; its Key says which session's it
	// is, if not the commit's or update's own.
	Item *Item
}

// Error names the session and what was there.
func (e *ConflictError) Error() string {
	if e.Entry != nil {
		return fmt.Sprintf("session %s: %v: entry %d is already there", e.Key, ErrConflict, e.Entry.Seq)
	}
	return fmt.Sprintf("session %s: %v: %s %s is at revision %d", e.Item.KeyIn(e.Key), ErrConflict, e.Item.Kind, e.Item.ID, e.Item.Rev)
}

// Unwrap returns [ErrConflict].
func (e *ConflictError) Unwrap() error { return ErrConflict }

// LeaseError is a refused claim, with HEAD as it is. It wraps [ErrLeaseHeld].
type LeaseError struct {
	Head Item
}

// Error names the session and the lease.
func (e *LeaseError) Error() string {
	lease := e.Head.Head.Lease
	return fmt.Sprintf("session %s: %v by %s for entry %d until %s", e.Head.Head.Key, ErrLeaseHeld, lease.Owner, lease.Seq, lease.Until.Format("15:04:05.000"))
}

// Unwrap returns [ErrLeaseHeld].
func (e *LeaseError) Unwrap() error { return ErrLeaseHeld }
