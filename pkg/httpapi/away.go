package httpapi

import (
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// setAway is PUT /away: everybody says it of themselves.
func (h *handler) setAway(r *request) (*response, error) {
	var body client.AwayRequest
	if _, err := h.asked(r, &body, false); err != nil {
		return nil, err
	}
	p := r.absent()
	p.To, p.Begins, p.Until, p.Reason = body.To, body.Begins, body.Until, body.Reason
	changed, err := h.cfg.Runtime.SetAway(r.Context(), p)
	if err != nil {
		return nil, err
	}
	return ok(client.AwayChanged(changed))
}

// endAway is DELETE /away.
func (h *handler) endAway(r *request) (*response, error) {
	if _, err := h.asked(r, new(struct{}), true); err != nil {
		return nil, err
	}
	changed, err := h.cfg.Runtime.EndAway(r.Context(), r.absent())
	if err != nil {
		return nil, err
	}
	return ok(client.AwayChanged(changed))
}

// away is GET /away.
func (h *handler) away(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	all, err := h.cfg.Runtime.Away(r.Context(), r.caller.Tenant)
	if err != nil {
		return nil, err
	}
	return ok(client.Away{Items: append([]session.StandIn{}, all.StandIns...), Changes: append([]session.StandInChange{}, all.Changes...)})
}

// absent says who the caller is, who may be away.
func (r *request) absent() runtime.AwayParams {
	return runtime.AwayParams{Tenant: r.caller.Tenant, Who: r.caller.Who, From: r.caller.From, OneUser: r.caller.OneUser, Unverified: r.caller.Unverified}
}
