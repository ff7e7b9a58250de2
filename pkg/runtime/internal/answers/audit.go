package answers

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

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
// refuses is recorded too, and what a door could not read that names the wait. A refusal is not recorded
// if it is about no wait there is, or if several cause it: an answer that names no wait, an old
// checkpoint, approvals that were not requested together.
//
// The number of lines per wait is bounded, so that repeated attempts cannot fill the store; what has no line is
// counted on the wait's record. If
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

// maxCounted bounds of how many waits this process counts the refusals that have no line.
const maxCounted = 1000

// refusals counts refused answers that have no line, by wait.
type refusals struct {
	mu sync.Mutex
	// by has how many there were, and how many of them the wait's record has.
	by map[string][2]int64
}

// add counts one more, and returns how many the record of the wait does not have yet. It is zero but for
// each power of two, so that a flood of refusals is a handful of writes.
func (r *refusals) add(wait string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.by[wait]; !known && len(r.by) >= maxCounted || r.by == nil {
		r.by = map[string][2]int64{}
	}
	n := r.by[wait]
	n[0]++
	var due int64
	if n[0]&(n[0]-1) == 0 {
		due, n[1] = n[0]-n[1], n[0]
	}
	r.by[wait] = n
	return due
}

// countRefusal counts a refusal on the record of its wait. What is not written is lost: the number is how many
// there were at least.
func (c *Checker) countRefusal(ctx context.Context, key session.Key, item store.Item) error {
	due := c.refusals.add(key.String() + "/" + item.ID)
	if due == 0 {
		return nil
	}
	record := *item.Wait
	record.Unrecorded += due
	err := c.cfg.Sessions.Update(ctx, key, []store.Item{store.WaitItem(record, item.Rev)})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

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
		full := record.Audit.Count >= journal.MaxAudit || !MayAnswer(record.Wait, by) && record.Audit.Count >= maxNotAllowedLines
		if full {
			return c.countRefusal(ctx, key, item)
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
