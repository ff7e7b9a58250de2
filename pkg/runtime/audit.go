package runtime

import (
	"context"

	"github.com/adjourn/adjourn/pkg/runtime/internal/audit"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Audit returns what is recorded of all waits of a session, one wait after the other: what was asked, who
// read it, who answered or was refused, and what became of it; then the calls that a task's policy denied.
func (r *Runtime) Audit(ctx context.Context, key session.Key) ([]session.AuditLine, error) {
	return asResult(audit.Read(ctx, r.sessions, key))
}

// VerifyAudit is [Runtime.Audit], and compares all records of the session with each other. What cannot be read
// is a fault that it returns.
func (r *Runtime) VerifyAudit(ctx context.Context, key session.Key) ([]session.AuditLine, session.AuditCheck, error) {
	lines, check, err := audit.Verify(ctx, r.sessions, key)
	if err != nil {
		return nil, session.AuditCheck{}, AsError(err)
	}
	return lines, check, nil
}

// Viewed records that a caller reads what open waits show, once for each caller and origin. It never fails:
// what cannot be recorded is logged.
func (r *Runtime) Viewed(ctx context.Context, key session.Key, by Caller, waits []journal.WaitRecord) {
	audit.Viewer{Sessions: r.sessions, Now: r.cfg.Now, Log: r.cfg.Log}.Viewed(ctx, key, by.Who, by.From, waits)
}

// Refused records that a caller's answer to a wait was refused by a door, before a verb was asked: what it says
// cannot be read, though it names the wait. It is bounded as every refusal is, and never fails.
func (r *Runtime) Refused(ctx context.Context, key session.Key, by Caller, wait string, code Code) {
	if stored.IsWait(wait) {
		r.answers.Audit(ctx, by, key, refusal.About(wait, refusal.New(code, key, "refused by the door")))
	}
}
