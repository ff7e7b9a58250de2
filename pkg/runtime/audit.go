package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// maxNotAllowedLines is how many lines a wait may have until one who may not answer it adds no
// more: the rest is for those who may, so that nobody else fills it.
const maxNotAllowedLines = journal.MaxAudit / 2

// aboutWait says of a refusal that it refuses an answer to a wait there is.
func aboutWait(wait string, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.wait == "" {
		e.wait = wait
	}
	return err
}

// auditRefusal writes down that an answer to a wait was refused (docs/design/README.md): a
// line of the wait's audit, in one write with the wait. So is a decision that one of
// its approvals refuses. What is refused before it is known which wait it is about,
// or because of several, leaves none: an answer that is malformed or names no wait, a
// checkpoint of before, approvals that were not asked together.
//
// A wait has a bounded number of lines, so that nobody fills the store by trying.
// What cannot be written is logged: the refusal stands either way. Faults and lost
// races are no refusals.
func (r *Runtime) auditRefusal(ctx context.Context, c Caller, key session.Key, err error) {
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.wait == "" || errors.Is(err, store.ErrConflict) {
		return
	}
	switch refusal.Code.Class() {
	case ClassUnavailable, ClassInternal:
		return
	case ClassInvalid, ClassNotFound, ClassForbidden, ClassConflict, ClassGone:
	}
	// Not even the caller's end makes it undone: who hangs up early would leave no trace.
	err = r.bounded(ctx, func(ctx context.Context) error { return r.addRefusalLine(ctx, c, key, refusal) })
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "audit of a refused answer", "session", key.String(), "wait", refusal.wait, "who", c.Who, "code", refusal.Code, "error", err)
	}
}

var errAuditFull = errors.New("it has as many lines as those who may not answer it may see written")

// addRefusalLine reads the wait anew: refusing may have changed it, as an answer does
// that comes to one which has just expired, and others may be refused beside.
func (r *Runtime) addRefusalLine(ctx context.Context, c Caller, key session.Key, refusal *Error) error {
	data, err := json.Marshal(map[string]string{"code": string(refusal.Code)})
	if err != nil {
		return err
	}
	for range maxTries {
		var item store.Item
		if item, err = r.item(ctx, key, store.KindWait, refusal.wait); err != nil || item.Wait == nil {
			return err
		}
		record := *item.Wait
		if !mayAnswer(record.Wait, c) && record.Audit.Count >= maxNotAllowedLines {
			return errAuditFull
		}
		line, ok := record.AddAudit(key, journal.Audit{Kind: journal.AuditRefused, Who: c.Who, From: c.From, At: r.cfg.Now(), Data: data})
		if !ok {
			return nil
		}
		if err = r.update(ctx, key, []store.Item{store.WaitItem(record, item.Rev), store.AuditItem(line)}); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

// mayAnswer reports whether a wait lets somebody answer it.
func mayAnswer(w session.Wait, c Caller) bool {
	return len(w.Who) == 0 || slices.Contains(w.Who, c.Who)
}
