package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// FindKind says what to look for.
type FindKind string

// What can be found.
const (
	// FindSessions: HEADs of a tenant, the last moved first.
	FindSessions FindKind = "sessions"
	// FindWaits: open waits of a tenant, the soonest deadline first, then those
	// without one, the oldest first.
	FindWaits FindKind = "waits"
	// FindNotices: notices of a tenant, the newest first, those of one time in any order.
	FindNotices FindKind = "notices"
	// FindDue: HEADs, waits and notices of every tenant whose Due is not after Before, the
	// earliest first.
	FindDue FindKind = "due"
	// FindAhead: HEADs and waits of every tenant whose Due is after After, the earliest first: what a
	// clock that was ahead has put off too far ([journal.Come]). What may be far away is left out: the
	// deadline of an open wait, the next try of a notice, and what [journal.Head.DueAtDeadline] says.
	FindAhead FindKind = "ahead"
)

// FindParams are the parameters of a search. All that keep only some must hold
// at once. One that does not fit the kind of search is refused.
type FindParams struct {
	Kind FindKind
	// Tenant of FindSessions, FindWaits and FindNotices.
	Tenant string
	// Status keeps only sessions of that status; empty means all, here and below.
	Status session.Status
	// Agent keeps only sessions of that agent, and waits of them.
	Agent string
	// Root keeps only sessions that stem from that one, and waits of them: itself,
	// its children, theirs.
	Root string
	// User keeps only sessions that user started, and waits that user may answer.
	User string
	// Tag keeps only sessions with that tag.
	Tag string
	// WaitKind keeps only waits of that kind, Tool those of calls of that tool.
	WaitKind session.WaitKind
	Tool     string
	// Before of FindDue.
	Before time.Time
	// After of FindAhead.
	After time.Time
	// Limit of a page, 1 to 1,000; 0 means 100.
	Limit int
	// Cursor of the page before; empty for the first. A cursor that is not ours is [ErrInvalidCursor].
	Cursor string
}

// Page is one page of what was found.
type Page struct {
	Found []Found
	// Cursor of the next page; empty when there is none.
	Cursor string
}

// Found is one item with the session it belongs to. An item whose record cannot be read, or is
// too large for a list, does not hide the others: it is returned with the fields that the index
// has. For an item that is due these are its kind and its id; for a HEAD of FindSessions its key,
// its status and when it moved; for a wait of FindWaits its id, its state and when it was opened; for a
// notice of FindNotices its id and when it was written.
// A search by anything but Status leaves damaged records out, because it is not known whether
// they match.
type Found struct {
	Key  session.Key
	Item Item
	// Unread is why the record was not read; nil if it was.
	Unread error
}

// The limits of a page.
const (
	findDefault = 100
	findMax     = 1000
)

// Prepare fills in the limit and returns an error unless a search can be.
func (p *FindParams) Prepare() error {
	if p.Limit == 0 {
		p.Limit = findDefault
	}
	if p.Limit < 1 || p.Limit > findMax {
		return fmt.Errorf("limit %d: use 1 to %d", p.Limit, findMax)
	}
	ofSessions, ofWaits := p.Status != "" || p.Tag != "", p.WaitKind != "" || p.Tool != ""
	both := p.Agent != "" || p.Root != "" || p.User != ""
	var misfit bool
	switch p.Kind {
	case FindSessions:
		misfit = ofWaits
	case FindWaits:
		misfit = ofSessions
	case FindDue, FindAhead, FindNotices:
		misfit = ofSessions || ofWaits || both
	default:
		return fmt.Errorf("unknown kind of search %q", p.Kind)
	}
	if misfit {
		return fmt.Errorf("a search for %s cannot be kept to what it has not: %s", p.Kind, p.selection())
	}
	if p.Kind == FindSessions || p.Kind == FindWaits || p.Kind == FindNotices {
		return ValidateTenant(p.Tenant)
	}
	return nil
}

// Filtered reports whether anything but the status keeps only some.
func (p *FindParams) Filtered() bool {
	return p.Kind == FindAhead || p.Agent != "" || p.Root != "" || p.User != "" || p.Tag != "" || p.WaitKind != "" || p.Tool != ""
}

// Selection returns what is looked for as text, without the page: a cursor
// belongs to one selection.
func (p *FindParams) Selection() string {
	return strings.Join([]string{string(p.Kind), p.Tenant, p.selection()}, "|")
}

func (p *FindParams) selection() string {
	return fmt.Sprintf("status=%q agent=%q root=%q user=%q tag=%q wait=%q tool=%q", p.Status, p.Agent, p.Root, p.User, p.Tag, p.WaitKind, p.Tool)
}

// Keeps reports whether a HEAD or an open wait of the session of key, as its
// record is, is among what the parameters keep.
func (p *FindParams) Keeps(key session.Key, item *Item) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	switch {
	case p.Kind == FindAhead:
		return item.Notice == nil && (item.Head == nil || !item.Head.DueAtDeadline())
	case item.Head != nil:
		h := item.Head
		return is(string(p.Status), string(h.Status)) && is(p.Agent, h.Agent) && is(p.Root, h.Root()) && is(p.User, h.StartedBy) &&
			(p.Tag == "" || slices.Contains(h.Tags, p.Tag))
	case item.Wait != nil:
		w := item.Wait
		return is(p.Agent, w.Agent) && is(p.Root, w.RootIn(key)) && is(string(p.WaitKind), string(w.Wait.Kind)) && is(p.Tool, w.Wait.Tool) &&
			(p.User == "" || w.Wait.IsFor(p.User))
	}
	return false
}
