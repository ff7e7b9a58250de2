package httpapi

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func ok(body any) (*response, error) {
	return &response{status: http.StatusOK, body: body}, nil
}

// sessions is GET /sessions.
func (h *handler) sessions(r *request) (*response, error) {
	values, err := r.parameters("status", "agent", "root", "user", "tag", "forkedFrom", "limit", "cursor")
	if err != nil {
		return nil, err
	}
	if values.Has("forkedFrom") {
		return h.forks(r, values)
	}
	p := runtime.SessionsParams{Tenant: r.caller.Tenant, Cursor: values.Get("cursor")}
	if p.Limit, err = limit(values); err != nil {
		return nil, err
	}
	if p.Status, err = status(values); err != nil {
		return nil, err
	}
	err = words(values, map[string]*string{"agent": &p.Agent, "root": &p.Root, "user": &p.User, "tag": &p.Tag})
	if err != nil {
		return nil, err
	}
	page, err := h.cfg.Runtime.Sessions(r.Context(), p)
	if err != nil {
		return nil, err
	}
	out := client.Sessions{Items: make([]client.Summary, len(page.Heads)), Cursor: page.Cursor}
	for i, head := range page.Heads {
		out.Items[i] = summary(head)
	}
	return ok(out)
}

func summary(head journal.Head) client.Summary {
	return client.Summary{
		ID: head.Key.ID, Agent: head.Agent, Status: head.Status, Title: head.Title, Task: head.Task, StatusSeq: head.StatusSeq,
		Parent: head.Parent, ForkedFrom: head.ForkedFrom, StartedBy: head.StartedBy, Tags: head.Tags, CreatedAt: head.CreatedAt, UpdatedAt: head.UpdatedAt,
	}
}

// session is GET /sessions/{id}. With a preference to wait it answers when the session rests.
func (h *handler) session(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	out := &response{status: http.StatusOK, header: map[string]string{}}
	if prefers := h.preferredWait(r); prefers.given {
		prefers.cancels = false // it has started nothing
		out.header[client.HeaderPreferenceApplied] = prefers.applied()
		if _, err := h.cfg.Runtime.AwaitRest(r.Context(), r.key(), 0, prefers.wait); err != nil {
			return nil, err
		}
	}
	view, err := h.cfg.Runtime.View(r.Context(), r.key())
	if err != nil {
		return nil, err
	}
	h.viewed(r, r.key(), r.by(), view.Open)
	out.body = newSession(r.key(), view)
	return out, nil
}

// messages is GET /sessions/{id}/messages.
func (h *handler) messages(r *request) (*response, error) {
	values, err := r.parameters("limit", "cursor")
	if err != nil {
		return nil, err
	}
	all, err := h.cfg.Runtime.Messages(r.Context(), r.key())
	if err != nil {
		return nil, err
	}
	var out client.Messages
	if out.Items, out.Cursor, err = cut("messages", all, values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	return ok(out)
}

// runs is GET /sessions/{id}/runs.
func (h *handler) runs(r *request) (*response, error) {
	values, err := r.parameters("limit", "cursor")
	if err != nil {
		return nil, err
	}
	all, err := h.cfg.Runtime.Runs(r.Context(), r.key())
	if err != nil {
		return nil, err
	}
	var out client.Runs
	if out.Items, out.Cursor, err = cut("runs", newRuns(all), values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	return ok(out)
}

// checkpoints is GET /sessions/{id}/checkpoints: as a rule every entry is one.
func (h *handler) checkpoints(r *request) (*response, error) {
	values, err := r.parameters("limit", "cursor")
	if err != nil {
		return nil, err
	}
	var all []client.Checkpoint
	for e, err := range h.cfg.Runtime.EachEntry(r.Context(), r.key()) {
		if err != nil {
			return nil, err
		}
		if !e.IsCheckpoint() {
			continue
		}
		all = append(all, newCheckpoint(r.key().ID, &e))
	}
	var out client.Checkpoints
	if out.Items, out.Cursor, err = cut("checkpoints", all, values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	return ok(out)
}

// waitsOf are all waits of the session of a request, which has to be there.
func (h *handler) waitsOf(r *request) ([]journal.WaitRecord, error) {
	records, err := h.cfg.Runtime.Waits(r.Context(), r.key())
	if err == nil && len(records) == 0 {
		_, err = h.cfg.Runtime.Head(r.Context(), r.key()) // no waits, or no session?
	}
	return records, err
}

// waits is GET /sessions/{id}/waits.
func (h *handler) waits(r *request) (*response, error) {
	values, err := r.parameters("limit", "cursor")
	if err != nil {
		return nil, err
	}
	records, err := h.waitsOf(r)
	if err != nil {
		return nil, err
	}
	var out client.Waits
	if out.Items, out.Cursor, err = cut("waits", newWaits(r.key().ID, records), values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	h.viewed(r, r.key(), r.by(), records)
	return ok(out)
}

// audit is GET /sessions/{id}/audit.
func (h *handler) audit(r *request) (*response, error) {
	values, err := r.parameters("verify", "limit", "cursor")
	if err != nil {
		return nil, err
	}
	verify, err := flag(values, "verify")
	if err != nil {
		return nil, err
	}
	var out client.Audit
	var all []session.AuditLine
	if verify {
		out.Check = new(session.AuditCheck)
		all, *out.Check, err = h.cfg.Runtime.VerifyAudit(r.Context(), r.key())
	} else {
		all, err = h.cfg.Runtime.Audit(r.Context(), r.key())
	}
	if err != nil {
		return nil, err
	}
	if out.Items, out.Cursor, err = cut("audit", all, values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	return ok(out)
}

// viewed records who reads what open waits show. A process that may write nothing has it in its log.
func (h *handler) viewed(r *request, key session.Key, by runtime.Caller, waits []journal.WaitRecord) {
	open := slices.DeleteFunc(slices.Clone(waits), func(w journal.WaitRecord) bool { return w.State != session.WaitOpen })
	switch {
	case len(open) == 0:
	case h.cfg.ReadOnly:
		h.cfg.Log.InfoContext(r.Context(), "waits were read", "session", key.String(), "first", open[0].Wait.ID, "count", len(open), "who", by.Who, "from", by.From)
	default:
		h.cfg.Runtime.Viewed(r.Context(), key, by, open)
	}
}

// entries is GET /sessions/{id}/entries, a long poll.
func (h *handler) entries(r *request) (*response, error) {
	values, err := r.parameters("after", "limit", "wait", "stay")
	if err != nil {
		return nil, err
	}
	p := runtime.EntriesParams{Key: r.key(), MaxBytes: h.cfg.MaxPage}
	if p.After, err = number(values, "after", 0, math.MaxInt64, 0); err != nil {
		return nil, err
	}
	if p.Limit, err = limit(values); err != nil {
		return nil, err
	}
	wait, err := number(values, "wait", 0, maxEntriesWait, 0)
	if err != nil {
		return nil, err
	}
	if p.Stay, err = flag(values, "stay"); err != nil {
		return nil, err
	}
	p.Wait = min(time.Duration(wait)*time.Second, max(h.cfg.MaxWait, 0))
	page, err := h.cfg.Runtime.Entries(r.Context(), p)
	if err != nil {
		return nil, err
	}
	out := client.Entries{Items: append([]journal.Entry{}, page.Entries...), After: p.After, More: page.More, Status: page.Status, Resting: page.Resting}
	if n := len(page.Entries); n > 0 {
		out.After = page.Entries[n-1].Seq
	}
	return ok(out)
}

// inbox is GET /waits.
func (h *handler) inbox(r *request) (*response, error) {
	values, err := r.parameters("kind", "agent", "root", "tool", "user", "mine", "openedBefore", "text", "risk", "limit", "cursor")
	if err != nil {
		return nil, err
	}
	p := runtime.InboxParams{Tenant: r.caller.Tenant, Cursor: values.Get("cursor"), Kind: session.WaitKind(values.Get("kind"))}
	if p.Limit, err = limit(values); err != nil {
		return nil, err
	}
	if values.Has("kind") && !slices.Contains(session.WaitKinds(), p.Kind) {
		return nil, refuse(codes.InvalidParameter, "kind must be one of %s", listed(session.WaitKinds()))
	}
	var before string
	err = words(values, map[string]*string{"agent": &p.Agent, "root": &p.Root, "tool": &p.Tool, "user": &p.User, "text": &p.Text, "openedBefore": &before})
	if err != nil {
		return nil, err
	}
	if values.Has("risk") {
		if p.Risk = session.Risk(values.Get("risk")); !slices.Contains([]session.Risk{session.RiskLow, session.RiskMedium, session.RiskHigh}, p.Risk) {
			return nil, refuse(codes.InvalidParameter, "risk must be %s, %s or %s", session.RiskLow, session.RiskMedium, session.RiskHigh)
		}
	}
	if before != "" {
		if p.OpenedBefore, err = time.Parse(time.RFC3339, before); err != nil {
			return nil, refuse(codes.InvalidParameter, "openedBefore must be a time, as 2026-03-01T12:00:00Z")
		}
	}
	mine, err := flag(values, "mine")
	switch {
	case err != nil:
		return nil, err
	case mine && p.User != "":
		return nil, refuse(codes.InvalidParameter, "mine and user do not go together: mine says that the user is you")
	case mine:
		p.User = r.by().Who
	}
	var out client.Waits
	out.Items, out.Cursor, err = fittingPage(p.Limit, h.cfg.MaxPage, func(limit int) ([]client.Wait, string, error) {
		p.Limit = limit
		page, err := h.cfg.Runtime.Inbox(r.Context(), p)
		items := make([]client.Wait, len(page.Items))
		for i, item := range page.Items {
			items[i] = newWait(item.Key.ID, item.Record)
			if item.LeftOut {
				items[i].LeftOut = []client.LeftOut{{}} // all of it, whatever that is
			}
		}
		return items, page.Cursor, err
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}
