package remote

import (
	"cmp"
	"context"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Manifest says where a session stands: everything but the resume hint.
func (e *Engine) Manifest(ctx context.Context, key session.Key) (session.Manifest, error) {
	s, err := e.client.Session(ctx, key.ID, 0)
	if err != nil {
		return session.Manifest{}, e.refusal(key, err)
	}
	if err := checkSession(key, &s); err != nil {
		return session.Manifest{}, err
	}
	return s.Manifest(), nil
}

// Waits returns every wait a session opened, in order, with what became of it.
func (e *Engine) Waits(ctx context.Context, key session.Key) ([]journal.WaitRecord, error) {
	var records []journal.WaitRecord
	for wait, err := range e.client.AllWaits(ctx, key.ID) {
		if err != nil {
			return nil, e.refusal(key, err)
		}
		if err := checkWait(key, &wait); err != nil {
			return nil, err
		}
		if len(records) == maxWaits {
			return nil, unexpected(key, "it names more than %d waits of one session", maxWaits)
		}
		records = append(records, wait.Record())
	}
	return records, nil
}

// Journal returns every entry of a session, oldest first.
func (e *Engine) Journal(ctx context.Context, key session.Key) ([]journal.Entry, error) {
	var entries []journal.Entry
	for entry, err := range e.client.Journal(ctx, key.ID, 0) {
		if err != nil {
			return nil, e.refusal(key, err)
		}
		if len(entries) == maxEntries {
			return nil, unexpected(key, "it has more than %d entries of one session", maxEntries)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Sessions lists sessions. The tenant is the caller's, whatever p says.
func (e *Engine) Sessions(ctx context.Context, p runtime.SessionsParams) (runtime.SessionsPage, error) {
	page, err := e.client.Sessions(ctx, client.SessionsParams{
		Page: client.Page{Limit: p.Limit, Cursor: p.Cursor}, Status: p.Status, Agent: p.Agent, Root: p.Root, User: p.User, Tag: p.Tag,
	})
	if err != nil {
		return runtime.SessionsPage{}, e.refusal(session.Key{}, err)
	}
	if err := checkCursor(page.Cursor); err != nil {
		return runtime.SessionsPage{}, err
	}
	out := runtime.SessionsPage{Cursor: page.Cursor}
	for _, s := range page.Items {
		if err := checkID(session.Key{}, "session", s.ID, false); err != nil {
			return runtime.SessionsPage{}, err
		}
		out.Heads = append(out.Heads, journal.Head{
			Key: session.Key{Tenant: p.Tenant, ID: s.ID}, Status: s.Status, Agent: s.Agent, Title: s.Title, Task: s.Task, StatusSeq: s.Version,
			Parent: s.Parent, StartedBy: s.StartedBy, Tags: s.Tags, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
		})
	}
	return out, nil
}

// Inbox lists every open wait of every session of the caller's tenant.
func (e *Engine) Inbox(ctx context.Context, p runtime.InboxParams) (runtime.InboxPage, error) {
	page, err := e.client.Inbox(ctx, client.InboxParams{
		Page: client.Page{Limit: p.Limit, Cursor: p.Cursor}, Kind: p.Kind, Agent: p.Agent, Root: p.Root, Tool: p.Tool, User: p.User,
	})
	if err != nil {
		return runtime.InboxPage{}, e.refusal(session.Key{}, err)
	}
	if err := checkCursor(page.Cursor); err != nil {
		return runtime.InboxPage{}, err
	}
	out := runtime.InboxPage{Cursor: page.Cursor}
	for _, w := range page.Items {
		if err := cmp.Or(checkWait(session.Key{}, &w), checkID(session.Key{}, "session", w.SessionID, false)); err != nil {
			return runtime.InboxPage{}, err
		}
		out.Items = append(out.Items, runtime.InboxItem{Key: session.Key{Tenant: p.Tenant, ID: w.SessionID}, Record: w.Record()})
	}
	return out, nil
}

func waits(open []wire.Wait) []session.Wait {
	var out []session.Wait
	for _, w := range open {
		out = append(out, w.Wait())
	}
	return out
}
