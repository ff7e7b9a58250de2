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
	var out client.Notices
	out.Items, out.Cursor, err = fittingPage(p.Limit, h.cfg.MaxPage, func(limit int) ([]client.Notice, string, error) {
		p.Limit = limit
		page, err := h.cfg.Runtime.Notices(r.Context(), p)
		items := make([]client.Notice, len(page.Found))
		for i, found := range page.Found {
			items[i] = newNotice(found)
		}
		return items, page.Cursor, err
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
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
