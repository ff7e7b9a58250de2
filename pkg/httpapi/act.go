package httpapi

import (
	"net/http"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// dismiss is POST /sessions/{id}/waits/{wait}/dismiss.
func (h *handler) dismiss(r *request) (*response, error) {
	var body client.DismissRequest
	return h.act(r, &body, func(p *runtime.ActParams) { p.Kind, p.Reason = session.ActDismissed, body.Reason })
}

// extend is POST /sessions/{id}/waits/{wait}/extend.
func (h *handler) extend(r *request) (*response, error) {
	var body client.ExtendRequest
	return h.act(r, &body, func(p *runtime.ActParams) {
		p.Kind, p.Reason, p.Deadline = session.ActExtended, body.Reason, &body.Deadline
	})
}

// delegate is POST /sessions/{id}/waits/{wait}/delegate.
func (h *handler) delegate(r *request) (*response, error) {
	var body client.DelegateRequest
	return h.act(r, &body, func(p *runtime.ActParams) {
		p.Kind, p.Reason, p.To = session.ActDelegated, body.Reason, body.To
	})
}

// act does to a wait what a body asks for.
func (h *handler) act(r *request, body any, fill func(*runtime.ActParams)) (*response, error) {
	idempotencyKey, err := h.asked(r, body, false)
	if err != nil {
		return nil, err
	}
	p := runtime.ActParams{Key: r.key(), Wait: r.PathValue("wait"), Caller: r.by(), IdempotencyKey: idempotencyKey}
	fill(&p)
	acted, err := h.cfg.Runtime.Act(r.Context(), p)
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusOK, header: map[string]string{}}
	out.replayed(acted.Replayed)
	stands, _ := h.settle(r, r.key(), 0, 0, out)
	out.body = client.Acted{
		Wait: newWait(r.key().ID, acted.Record), Continuation: acted.Continuation, Open: newWaits(r.key().ID, acted.Open),
		Repeated: acted.Repeated, Session: stands,
	}
	return out, nil
}

// wait is GET /sessions/{id}/waits/{wait}.
func (h *handler) wait(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	w, err := h.cfg.Runtime.Wait(r.Context(), r.key(), r.PathValue("wait"), r.by())
	if err != nil {
		return nil, err
	}
	out := client.WaitView{
		Wait: newWait(r.key().ID, w.Record), MayAnswer: w.MayAnswer, For: w.For, StandIns: w.StandIns, Status: w.Status, Task: w.Task, Open: w.Open,
		Messages: make([]client.SaidMessage, len(w.Messages)), Earlier: w.Earlier,
		Usage: newUsage(w.Usage), Used: w.Used, Limits: w.Limits, Effects: w.Effects,
	}
	for i, m := range w.Messages {
		out.Messages[i] = client.SaidMessage(m)
	}
	return ok(out)
}
