package httpapi

import (
	"net/http"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// sendMessage is POST /sessions/{id}/messages: 202 when the session goes on, or works already; 200
// when something else is open still, or when it came to rest while the caller waited.
func (h *handler) sendMessage(r *request) (*response, error) {
	var body client.SendRequest
	idempotencyKey, err := h.asked(r, &body, false)
	if err != nil {
		return nil, err
	}
	sent, err := h.cfg.Runtime.Send(r.Context(), runtime.SendParams{
		Key: r.key(), Message: body.Message, Task: body.Task, Start: body.Start, Caller: r.by(), IdempotencyKey: idempotencyKey,
	})
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusAccepted, header: map[string]string{"Location": location(r.key())}}
	out.replayed(sent.Replayed)
	drives := sent.Task
	if sent.Replayed || sent.Mail != "" {
		drives = 0 // others do
	}
	stands, rests := h.settle(r, r.key(), 0, drives, out)
	if rests || sent.Continuation == runtime.ContinuationWaiting || sent.Continuation == runtime.ContinuationStored {
		out.status = http.StatusOK
	}
	out.body = client.Sent{
		SessionID: r.key().ID, Outcome: sent.Outcome, Task: sent.Task, Seq: sent.Seq, MailID: sent.Mail,
		Continuation: sent.Continuation, Open: newWaits(r.key().ID, sent.Open), Replayed: sent.Replayed, Session: stands,
	}
	return out, nil
}
