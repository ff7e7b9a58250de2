package runtime

import (
	"context"

	"github.com/adjourn/adjourn/pkg/runtime/internal/audit"
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
