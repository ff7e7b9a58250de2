package runtime

import (
	"context"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// continueInterrupted leaves an interruption, which nothing but this verb does.
// Where a wait is still open it commits suspended over the same waits and then
// looks at them as an answerer does: the last answer may have come just before, when
// it was only stored. Otherwise it commits resumed, which takes the answers in.
// HEAD is due in the same write, in case it does not live to look or to send.
func (r *Runtime) continueInterrupted(ctx context.Context, s *session.Session, p *resumeRequest) (Resumed, error) {
	head, err := r.sessions.Head(ctx, s.Key)
	if err != nil {
		return Resumed{}, err
	}
	if err := stored.CheckNewest(s, head.Head); err != nil {
		return Resumed{}, err
	}
	items, open, err := r.sessions.ExpireOverdue(ctx, s)
	if err != nil {
		return Resumed{}, err
	}
	waiting := len(open) > 0
	m, did := engine.Waiting(s, r.stamp(p.Caller)), idempotency.Done{}
	var records []store.Item
	if !waiting { // else they stay as they are
		var answers []session.Answer
		answers, records = stored.TakeWaits(s, items, s.Next(), r.cfg.StepBytes)
		m, did = engine.Resumed(s, answers, nil, nil, r.stamp(p.Caller)), idempotency.Done{Entry: s.Next()}
	}
	change, err := r.control.ChangeRules(ctx, s, p.Rules)
	if err != nil {
		return Resumed{}, err
	}
	change(&m)
	record, err := p.q.Record(r.cfg.Now(), s.Key, s.Next(), did)
	if err != nil {
		return Resumed{}, err
	}
	if err := r.sessions.Commit(ctx, s, &head, m, append(records, record...)); err != nil {
		return Resumed{}, err
	}
	out := Resumed{Continuation: ContinuationResumed}
	if waiting {
		out.Continuation, out.Open, err = r.continuation(ctx, s.Key, false)
	}
	return out, err
}
