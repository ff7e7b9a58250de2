package answers

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// maxNotAllowedLines is the number of lines of a wait from which refusals of callers who may not
// answer it are no longer recorded. The rest is kept for the callers who may answer.
const maxNotAllowedLines = journal.MaxAudit / 2

// auditTries bounds how often a line is added to an audit that others add to as well.
const auditTries = 8

// Audit records that an answer to a wait was refused (docs/design/README.md): it adds a
// line to the wait's audit, in one write with the wait. A decision that one of its approvals
// refuses is recorded too. A refusal is not recorded if it comes before the wait is known, or if
// several waits cause it: a malformed answer, an answer that names no wait, an old checkpoint,
// approvals that were not requested together.
//
// The number of lines per wait is bounded, so that repeated attempts cannot fill the store. If
// the line cannot be written, that is logged, and the answer is still refused. Faults and lost
// races are not refusals.
func (c *Checker) Audit(ctx context.Context, by Caller, key session.Key, err error) {
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Wait == "" || errors.Is(err, store.ErrConflict) {
		return
	}
	switch refused.Code.Class() {
	case codes.ClassUnavailable, codes.ClassInternal:
		return
	case codes.ClassInvalid, codes.ClassNotFound, codes.ClassForbidden, codes.ClassConflict, codes.ClassGone:
	}
	// The write also happens when the caller has gone: a caller could avoid the audit by
	// disconnecting early.
	err = c.cfg.Sessions.Bounded(ctx, func(ctx context.Context) error { return c.addRefusalLine(ctx, by, key, refused) })
	if err != nil {
		c.cfg.Log.WarnContext(ctx, "audit of a refused answer", "session", key.String(), "wait", refused.Wait, "who", by.Who, "code", refused.Code, "error", err)
	}
}

var errAuditFull = errors.New("the wait has as many audit lines as callers who may not answer it may cause")

// addRefusalLine reads the wait anew: refusing may have changed it, as an answer does
// that comes to one which has just expired, and others may be refused beside.
func (c *Checker) addRefusalLine(ctx context.Context, by Caller, key session.Key, refused *refusal.Error) error {
	data, err := json.Marshal(map[string]string{"code": string(refused.Code)})
	if err != nil {
		return err
	}
	for range auditTries {
		var item store.Item
		if item, err = c.cfg.Sessions.Item(ctx, key, store.KindWait, refused.Wait); err != nil || item.Wait == nil {
			return err
		}
		record := *item.Wait
		if !MayAnswer(record.Wait, by.Who) && record.Audit.Count >= maxNotAllowedLines {
			return errAuditFull
		}
		line, ok := record.AddAudit(key, journal.Audit{Kind: journal.AuditRefused, Who: by.Who, From: by.From, At: c.cfg.Now(), Data: data})
		if !ok {
			return nil
		}
		if err = c.cfg.Sessions.Update(ctx, key, []store.Item{store.WaitItem(record, item.Rev), store.AuditItem(line)}); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}
