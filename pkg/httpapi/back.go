package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// began carries out a verb that begins a task from a checkpoint.
func (h *handler) began(r *request, p runtime.BackParams, verb func(context.Context, runtime.BackParams) (runtime.Began, error)) (*response, error) {
	began, err := verb(r.Context(), p)
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusAccepted, header: map[string]string{"Location": location(r.key())}}
	out.replayed(began.Replayed)
	stands, rests := h.settle(r, r.key(), 0, began.Task, out)
	body := client.Resumed{
		SessionID: r.key().ID, Continuation: runtime.ContinuationResumed, Open: openWaits(r.key().ID, began.Open), Task: began.Task,
		Entry: &client.StartEntry{Seq: began.Seq, CheckpointID: began.Checkpoint}, Replayed: began.Replayed, Session: stands,
	}
	if began.Status == session.StatusSuspended {
		body.Continuation, rests = runtime.ContinuationWaiting, true
	}
	if began.Effects.Count > 0 {
		body.Effects = &began.Effects
	}
	if rests {
		out.status = http.StatusOK
	}
	out.body = body
	return out, nil
}

// retry is POST /sessions/{id}/retry: 202 when the session goes on, 200 when it asks anew or came to
// rest while the caller waited.
func (h *handler) retry(r *request) (*response, error) {
	var body client.RetryRequest
	idempotencyKey, err := h.asked(r, &body, true)
	if err != nil {
		return nil, err
	}
	p := runtime.BackParams{Key: r.key(), Message: body.Message, Acknowledge: body.Acknowledge, Rules: body.Rules, Caller: r.by(), IdempotencyKey: idempotencyKey}
	switch body.From {
	case "", client.RetryFromLast:
	case client.RetryFromStart:
		p.FromStart = true
	default:
		p.Checkpoint = body.From
	}
	return h.began(r, p, h.cfg.Runtime.Retry)
}

// fork is POST /sessions/{id}/fork: 202 when the new session works, 200 when it rests.
func (h *handler) fork(r *request) (*response, error) {
	var body client.ForkRequest
	idempotencyKey, err := h.asked(r, &body, true)
	if err != nil {
		return nil, err
	}
	forked, err := h.cfg.Runtime.Fork(r.Context(), runtime.ForkParams{
		Origin: r.key(), Checkpoint: body.CheckpointID, ID: body.SessionID, Message: body.Input, Rules: body.Rules, Tags: body.Tags, Caller: r.by(), IdempotencyKey: idempotencyKey,
	})
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusAccepted, header: map[string]string{"Location": location(forked.Key)}}
	out.replayed(forked.Replayed)
	stands, rests := h.settle(r, forked.Key, 0, forked.Task, out)
	if rests || forked.Status != session.StatusRunning {
		out.status = http.StatusOK
	}
	out.body = client.Forked{
		SessionID: forked.Key.ID, ForkedFrom: *forked.ForkedFrom, Task: forked.Task, Status: forked.Status,
		Entry: client.StartEntry{Seq: forked.Seq, CheckpointID: forked.Checkpoint}, Open: openWaits(forked.Key.ID, forked.Open),
		Replayed: forked.Replayed, Session: stands,
	}
	return out, nil
}

// forks is GET /sessions?forkedFrom=.
func (h *handler) forks(r *request, values url.Values) (*response, error) {
	origin := values.Get("forkedFrom")
	for name := range values {
		if name != "forkedFrom" && name != "limit" && name != "cursor" {
			return nil, refuse(codes.InvalidParameter, "forkedFrom and %s cannot go together", name)
		}
	}
	// Their ids have no order in time, so a fork that is made between two pages may be on neither.
	heads, err := h.cfg.Runtime.Forks(r.Context(), session.Key{Tenant: r.caller.Tenant, ID: origin})
	if err != nil {
		return nil, err
	}
	all := make([]client.Summary, len(heads))
	for i, head := range heads {
		all[i] = summary(head)
	}
	var out client.Sessions
	if out.Items, out.Cursor, err = cut("forks", all, values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	return ok(out)
}

func newCheckpoint(id string, e *journal.Entry) client.Checkpoint {
	return client.Checkpoint{
		ID: e.Checkpoint(id).String(), Seq: e.Seq, Kind: e.Kind, Status: e.Status, Task: e.Task, Run: e.Run, Step: e.Step, At: e.At,
	}
}

// checkpoint is GET /sessions/{id}/checkpoints/{checkpoint}.
func (h *handler) checkpoint(r *request) (*response, error) {
	values, err := r.parameters("compare", "limit", "cursor")
	if err != nil {
		return nil, err
	}
	var compare string
	if err := words(values, map[string]*string{"compare": &compare}); err != nil {
		return nil, err
	}
	was, err := h.cfg.Runtime.Checkpoint(r.Context(), r.key(), r.PathValue("checkpoint"), compare)
	if err != nil {
		return nil, err
	}
	messages := was.Session.Messages
	out := client.CheckpointView{
		Checkpoint: newCheckpoint(r.key().ID, &was.Entry), State: was.Session.State.Snapshot(), Waits: openWaits(r.key().ID, was.Session.Waits), Effects: was.Effects,
	}
	for i := range out.Waits {
		out.Waits[i].ApprovalID = "" // of what is shown here nothing can be answered
	}
	if c := was.Compared; c != nil {
		messages = c.Added
		out.Compared = &client.Comparison{CheckpointID: c.Checkpoint, Common: c.Common, Removed: len(c.Removed), Added: len(c.Added), State: c.State}
	}
	if out.Messages, out.Cursor, err = cut("checkpoint", messages, values, h.cfg.MaxPage); err != nil {
		return nil, err
	}
	return ok(out)
}
