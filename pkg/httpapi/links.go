package httpapi

import (
	"net/http"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/jsonbody"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/link"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Links make and serve links by which one person decides one approval.
type Links = link.Links

// LinksConfig says what links are made with.
type LinksConfig = link.Config

// LinkParams ask for a link.
type LinkParams = link.Params

// NewLinks returns links. Keys and URL are required.
func NewLinks(cfg LinksConfig) (*Links, error) { return link.New(cfg) }

// html is the body of an answer that is a page.
type html []byte

// makeLink is POST /sessions/{id}/waits/{wait}/links. A link is the caller's own: whoever could make
// one for somebody else could decide as somebody else.
func (h *handler) makeLink(r *request) (*response, error) {
	var body client.LinkRequest
	if _, err := h.asked(r, &body, true); err != nil {
		return nil, err
	}
	if h.cfg.Links == nil {
		return nil, refuse(codes.LinksOff, "this server makes no links: its operator has to set ADJOURN_GRANT_KEYS")
	}
	if body.Recipient != "" && body.Recipient != r.caller.Who {
		return nil, refuse(codes.Forbidden, "a link decides in the name of its recipient, so that you make links for yourself alone (%s)", jsonbody.Quoted(r.caller.Who))
	}
	lasts := time.Duration(0)
	if n := body.ExpiresInMillis; n != nil {
		if *n < link.LastsAtLeast.Milliseconds() || *n > link.LastsAtMost.Milliseconds() {
			return nil, refuse(codes.InvalidField, "expiresInMillis must be from %d to %d", link.LastsAtLeast.Milliseconds(), link.LastsAtMost.Milliseconds())
		}
		lasts = time.Duration(*n) * time.Millisecond
	}
	made, err := h.cfg.Links.Make(r.Context(), h.cfg.Runtime, link.Params{
		Key: r.key(), Wait: r.PathValue("wait"), Recipient: r.caller.Who, OneUser: r.caller.OneUser, Unverified: r.caller.Unverified, Roles: r.caller.Roles, Decisions: body.Decisions, Lasts: lasts, Now: h.cfg.Now(),
	})
	if err != nil {
		return nil, err
	}
	return ok(client.Link{URL: made.URL, ExpiresAt: made.ExpiresAt, Decides: made.Decides})
}

// showLink is GET /a/{token}. It needs no caller, and decides nothing. That an open wait was read is recorded
// as of whom the link was made for.
func (h *handler) showLink(r *request) (*response, error) {
	return h.page(r, func(l *Links) link.Page {
		return l.Show(r.Context(), h.cfg.Runtime, r.PathValue("token"), h.cfg.Now())
	})
}

// linkFrom is where a request by a link comes from, as it is recorded.
func linkFrom(r *request) string { return "link " + host(r.RemoteAddr) }

// decideByLink is POST /a/{token}. It needs no caller: whoever has the token may decide.
func (h *handler) decideByLink(r *request) (*response, error) {
	return h.page(r, func(l *Links) link.Page {
		return l.Decide(r.Context(), h.cfg.Runtime, r.PathValue("token"), r.Request, linkFrom(r), h.cfg.Now())
	})
}

func (h *handler) page(r *request, make func(*Links) link.Page) (*response, error) {
	if h.cfg.Links == nil {
		return nil, refuse(codes.RouteNotFound, "this server makes no links")
	}
	p := make(h.cfg.Links)
	if of := p.Of; of != nil {
		by := runtime.Caller{Who: of.Who, From: linkFrom(r), ByLink: true}
		switch {
		case of.Refused != "":
			h.cfg.Runtime.Refused(r.Context(), of.Key, by, of.Wait, of.Refused)
		case of.Read != nil && r.Method == http.MethodGet: // HEAD shows nothing
			h.viewed(r, of.Key, by, []journal.WaitRecord{*of.Read})
		}
	}
	if p.Err != nil {
		h.cfg.Log.ErrorContext(r.Context(), "page of a link", "request", r.id, "method", r.Method, "status", p.Status, "error", p.Err)
	}
	if p.HTML == nil {
		return nil, p.Err
	}
	return &response{status: p.Status, header: link.Headers(p.Status), body: html(p.HTML)}, nil
}
