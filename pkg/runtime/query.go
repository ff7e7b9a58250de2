package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Session returns a session folded up to its newest entry. It is the caller's own.
func (r *Runtime) Session(ctx context.Context, key session.Key) (*session.Session, error) {
	entries, err := r.Journal(ctx, key)
	if err != nil {
		return nil, err
	}
	s, err := engine.Fold(key, entries)
	if err != nil {
		return nil, &Error{Code: CodeCorrupt, Session: key.ID, Message: err.Error(), Cause: err}
	}
	return s, nil
}

// Journal returns every entry of a session, oldest first.
func (r *Runtime) Journal(ctx context.Context, key session.Key) ([]journal.Entry, error) {
	var entries []journal.Entry
	for e, err := range r.EachEntry(ctx, key) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// EachEntry yields every entry of a session as it is read, oldest first: a caller that keeps none
// of them needs memory for one only. An error ends it.
func (r *Runtime) EachEntry(ctx context.Context, key session.Key) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range r.sessions.EachEntry(ctx, key) {
			if err != nil {
				yield(journal.Entry{}, AsError(err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Waits returns every wait a session opened, in order, with what became of it.
func (r *Runtime) Waits(ctx context.Context, key session.Key) ([]journal.WaitRecord, error) {
	return asResult(r.sessions.AllWaits(ctx, key))
}

// LinkedWait is one wait as it stands, for somebody who holds a link to it.
type LinkedWait = answers.Linked

// LinkedWait returns one wait of a session, and what a link may do about it that is made for a caller, or
// that the caller came by ([Caller].ByLink).
// It reads the wait and HEAD.
func (r *Runtime) LinkedWait(ctx context.Context, key session.Key, wait string, by Caller) (LinkedWait, error) {
	return asResult(r.answers.Linked(ctx, key, wait, by))
}

// SessionsParams select sessions of a tenant.
type SessionsParams struct {
	Tenant string
	// Status keeps only sessions of that status; empty means all, here and below.
	Status session.Status
	// Agent, Root (the session they stem from), User (who started them) and Tag keep
	// only such sessions.
	Agent, Root, User, Tag string

	Limit  int
	Cursor string
}

// SessionsPage is one page of sessions, the last moved first.
type SessionsPage struct {
	Heads  []journal.Head
	Cursor string
}

// Sessions lists sessions. Of one that cannot be read there is the key, the status
// and when it moved.
func (r *Runtime) Sessions(ctx context.Context, p SessionsParams) (SessionsPage, error) {
	page, err := r.cfg.Store.Find(ctx, store.FindParams{
		Kind: store.FindSessions, Tenant: p.Tenant, Status: p.Status, Limit: p.Limit, Cursor: p.Cursor,
		Agent: p.Agent, Root: p.Root, User: p.User, Tag: p.Tag,
	})
	if err != nil {
		return SessionsPage{}, AsError(err)
	}
	out := SessionsPage{Cursor: page.Cursor}
	r.logUnreadable(ctx, page)
	for _, found := range page.Found {
		if !found.Item.Head.Gone(r.cfg.Now()) {
			out.Heads = append(out.Heads, *found.Item.Head)
		}
	}
	return out, nil
}

// InboxParams select open waits of a tenant.
type InboxParams struct {
	Tenant string
	// Kind keeps only waits of that kind; empty means all, here and below.
	Kind session.WaitKind
	// Agent, Root (the session theirs stem from), Tool and User (who may answer)
	// keep only such waits.
	Agent, Root, Tool, User string
	// OpenedBefore keeps only waits that were opened before, Text those with it in their tool,
	// arguments, question or words, Risk those whose tool says so of the call. For these a bounded number is looked at for each page.
	OpenedBefore time.Time
	Text         string
	Risk         session.Risk

	Limit  int
	Cursor string
}

// InboxItem is one open wait with its session.
type InboxItem struct {
	Key    session.Key
	Record journal.WaitRecord
	// LeftOut says that the wait could not be read, or is too large for a list: the
	// record has its id and when it was opened, and words for people as arguments.
	LeftOut bool
}

// InboxPage is one page of the inbox, the soonest deadline first.
type InboxPage struct {
	Items  []InboxItem
	Cursor string
}

// notRead replaces the arguments of a wait that are not known.
var notRead = json.RawMessage(`"[left out: too large for a list, or it cannot be read]"`)

// newerNeeded replaces the arguments of a wait that this program must not answer.
var newerNeeded = json.RawMessage(`"[left out: a newer program wrote it: use a newer adjourn to see and answer it]"`)

// Inbox lists every open wait of every session of a tenant.
func (r *Runtime) Inbox(ctx context.Context, p InboxParams) (InboxPage, error) {
	people, err := r.away.People(ctx, p.Tenant, p.User)
	if err != nil {
		return InboxPage{}, AsError(err)
	}
	if people != nil {
		p.User = ""
	}
	page, err := r.sessions.FindWaits(ctx, store.FindParams{
		Kind: store.FindWaits, Tenant: p.Tenant, Limit: p.Limit, Cursor: p.Cursor,
		Agent: p.Agent, Root: p.Root, Tool: p.Tool, User: p.User, WaitKind: p.Kind,
	}, stored.WaitFilter{OpenedBefore: p.OpenedBefore, Text: p.Text, Risk: p.Risk, People: people})
	if err != nil {
		return InboxPage{}, AsError(err)
	}
	out := InboxPage{Cursor: page.Cursor}
	r.logUnreadable(ctx, page)
	for _, found := range page.Found {
		item := InboxItem{Key: found.Key, Record: *found.Item.Wait, LeftOut: found.Unread != nil}
		if item.LeftOut {
			item.Record.Wait.Arguments = notRead
			if errors.Is(found.Unread, journal.ErrNeeds) {
				item.Record.Wait.Arguments = newerNeeded
			}
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// logUnreadable logs the items of a list whose record could not be read; the list does not show
// it.
func (r *Runtime) logUnreadable(ctx context.Context, page store.Page) {
	for _, found := range page.Found {
		if found.Unread != nil {
			r.cfg.Log.WarnContext(ctx, "not read for a list", "session", found.Key.String(), "kind", found.Item.Kind, "id", found.Item.ID, "error", found.Unread)
		}
	}
}
