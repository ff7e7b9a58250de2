package runtime

import (
	"context"
	"errors"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// continueInterrupted leaves an interruption, which nothing but this verb does.
// Where a wait is still open it commits suspended over the same waits and then
// looks at them as an answerer does: the last answer may have come just before, when
// it was only stored. Otherwise it commits resumed, which takes the answers in.
// HEAD is due in the same write, in case it does not live to look or to send.
func (r *Runtime) continueInterrupted(ctx context.Context, s *session.Session, c Caller) (Resumed, error) {
	for try := 1; ; try++ {
		head, err := r.head(ctx, s.Key)
		if err != nil {
			return Resumed{}, err
		}
		items, err := r.items(ctx, s.Key, store.KindWait, "")
		if err != nil {
			return Resumed{}, err
		}
		answers, records := takeWaits(s, items, s.Next())
		waiting := countOpen(waitRecords(items)) > 0
		m := engine.Waiting(s, r.stamp(c))
		if !waiting {
			m = engine.Resumed(s, answers, nil, nil, r.stamp(c))
		} else {
			records = nil // they stay as they are
		}
		err = r.commit(ctx, s, &head, m, records)
		switch {
		case err == nil && waiting:
			return r.lookAgain(ctx, s)
		case err == nil:
			return Resumed{Continuation: ContinuationResumed}, nil
		case !errors.Is(err, store.ErrConflict) || try == maxTries:
			return Resumed{}, err
		}
		if s, err = r.refresh(ctx, s); err != nil {
			return Resumed{}, err
		}
		if s.Status != session.StatusInterrupted {
			e := refuse(CodeAlreadyRunning, s.Key, "somebody else went on with it first; it is %s now", s.Status)
			e.Status = s.Status
			return Resumed{}, e
		}
	}
}

// lookAgain reads the open waits of a session that has just gone back to waiting.
func (r *Runtime) lookAgain(ctx context.Context, s *session.Session) (Resumed, error) {
	continuation, open, err := r.goOn(ctx, s, false)
	return Resumed{Continuation: continuation, Open: open}, err
}

// wentBackTo returns the seq of the entry that opened the waits to which a session
// went back at an entry. Only who names such a checkpoint later pays for the search.
func (r *Runtime) wentBackTo(ctx context.Context, key session.Key, seq int64) (opened int64, err error) {
	for e, err := range r.cfg.Store.Entries(ctx, key, 0) {
		if err != nil {
			return 0, err
		}
		if e.Seq >= seq {
			break
		}
		if len(e.Waits) > 0 {
			opened = e.Seq
		}
	}
	return opened, nil
}
