package httpapi

import (
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// halt is POST /halt.
func (h *handler) halt(r *request) (*response, error) {
	var body client.HaltRequest
	if _, err := h.asked(r, &body, true); err != nil {
		return nil, err
	}
	p, err := r.scope(body.Tenant, body.Agent)
	if err != nil {
		return nil, err
	}
	p.Reason = body.Reason
	halted, err := h.cfg.Runtime.Halt(r.Context(), p)
	if err != nil {
		return nil, err
	}
	return ok(client.Halted{Halt: shownHalt(halted.Halt, r.caller.Operator), Already: halted.Already})
}

// letGo is POST /go.
func (h *handler) letGo(r *request) (*response, error) {
	var body client.GoRequest
	if _, err := h.asked(r, &body, true); err != nil {
		return nil, err
	}
	p, err := r.scope(body.Tenant, body.Agent)
	if err != nil {
		return nil, err
	}
	lifted, err := h.cfg.Runtime.Go(r.Context(), p)
	if err != nil {
		return nil, err
	}
	return ok(client.Lifted{Lifted: shownHalts(lifted.Halts, r.caller.Operator), Left: shownHalts(lifted.Left, r.caller.Operator)})
}

// halts is GET /halts.
func (h *handler) halts(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	tenant := r.caller.Tenant
	if r.caller.Operator {
		tenant = ""
	}
	halts, err := h.cfg.Runtime.Halts(r.Context(), tenant)
	if err != nil {
		return nil, err
	}
	return ok(client.Halts{Items: shownHalts(halts, r.caller.Operator)})
}

// scope says what a caller's halt is about: his own tenant, unless he is the operator, who names any
// or none.
func (r *request) scope(tenant, agent string) (runtime.HaltParams, error) {
	p := runtime.HaltParams{Tenant: tenant, Agent: agent, Operator: r.caller.Operator, Who: r.caller.Who, From: r.caller.From}
	if p.Operator {
		return p, nil
	}
	if tenant != "" && tenant != r.caller.Tenant {
		return p, &runtime.Error{Code: runtime.CodeNotAllowed, Message: "only whoever runs the server stops another tenant, or lets it go on. Leave the tenant out"}
	}
	p.Tenant = r.caller.Tenant
	return p, nil
}

// shownHalt leaves out of an operator's halt who that is: callers are told why and since when.
func shownHalt(halt session.Halt, operator bool) session.Halt {
	if halt.ByOperator && !operator {
		halt.Who, halt.From = "", ""
	}
	return halt
}

func shownHalts(halts []session.Halt, operator bool) []session.Halt {
	shown := make([]session.Halt, len(halts))
	for i, halt := range halts {
		shown[i] = shownHalt(halt, operator)
	}
	return shown
}
