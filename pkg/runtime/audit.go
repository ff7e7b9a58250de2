package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// refused writes down that an answer to a wait was refused: a line of the wait's
// audit, in one write with the wait. A wait has a bounded number of lines, so that
// nobody fills the store by trying. What cannot be written is logged: the refusal
// stands either way. Faults and lost races are no refusals.
func (r *Runtime) refused(ctx context.Context, item store.Item, c Caller, key session.Key, err error) {
	var refusal *Error
	if !errors.As(err, &refusal) || errors.Is(err, store.ErrConflict) {
		return
	}
	switch refusal.Code.Class() {
	case ClassUnavailable, ClassInternal:
		return
	case ClassInvalid, ClassNotFound, ClassForbidden, ClassConflict, ClassGone:
	}
	data, err := json.Marshal(map[string]string{"code": string(refusal.Code)})
	if err != nil {
		return
	}
	// Refusing may have changed the wait: an answer to one that has just expired.
	item, err = r.item(ctx, key, store.KindWait, item.ID)
	if err == nil && item.Wait != nil {
		record := *item.Wait
		line, ok := record.AddAudit(key, session.Audit{Kind: session.AuditRefused, Who: c.Who, From: c.From, At: r.cfg.Now(), Data: data})
		if !ok {
			return
		}
		err = r.update(ctx, key, []store.Item{store.WaitItem(record, item.Rev), store.AuditItem(line)})
	}
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "audit of a refused answer", "session", key.String(), "wait", item.ID, "error", err)
	}
}
