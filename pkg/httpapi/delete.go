package httpapi

import (
	"net/http"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// remove is DELETE /sessions/{id}.
func (h *handler) remove(r *request) (*response, error) {
	var body struct{}
	idempotencyKey, err := h.asked(r, &body, true)
	if err != nil {
		return nil, err
	}
	deleted, err := h.cfg.Runtime.Delete(r.Context(), runtime.DeleteParams{Key: r.key(), Caller: r.by(), IdempotencyKey: idempotencyKey})
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusOK, header: map[string]string{}}
	out.replayed(deleted.Replayed)
	out.body = client.Deleted{SessionID: r.key().ID, Status: deleted.Status, Task: deleted.Task}
	return out, nil
}
