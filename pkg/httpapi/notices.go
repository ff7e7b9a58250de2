package httpapi

import (
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/store"
)

// notices is GET /notices.
func (h *handler) notices(r *request) (*response, error) {
	values, err := r.parameters("limit", "cursor")
	if err != nil {
		return nil, err
	}
	p := runtime.NoticesParams{Tenant: r.caller.Tenant, Cursor: values.Get("cursor")}
	if p.Limit, err = limit(values); err != nil {
		return nil, err
	}
	for {
		page, err := h.cfg.Runtime.Notices(r.Context(), p)
		if err != nil {
			return nil, err
		}
		out := client.Notices{Items: make([]client.Notice, len(page.Found)), Cursor: page.Cursor}
		for i, found := range page.Found {
			out.Items[i] = newNotice(found)
		}
		n, err := fitting(out.Items, h.cfg.MaxPage)
		if err != nil {
			return nil, err
		}
		if n == len(out.Items) {
			return ok(out)
		}
		p.Limit = n // as many as fit: only the store knows the cursor behind them
	}
}

func newNotice(found store.Found) client.Notice {
	n := found.Item.Notice
	out := client.Notice{
		SessionID: found.Key.ID, ID: n.ID, Type: n.Type, At: n.At, Agent: n.Agent, Version: n.Seq, Failure: n.Failure, Waits: n.Waits,
		Sends: make([]client.NoticeSend, len(n.Sends)),
	}
	for i, s := range n.Sends {
		out.Sends[i] = client.NoticeSend{Channel: s.Channel, State: s.State, Tries: s.Tries, TriedAt: s.TriedAt, Next: s.Next, Error: s.Error}
	}
	return out
}
