package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// NoticeAbandoned is how long a notice must have been due for a program without channels to give it up: whoever
// sends it would have moved its due time many times by then.
const NoticeAbandoned = 4 * 24 * time.Hour

// notice has a notice sent that is due. A program without channels leaves it to one that has some, and gives it
// up where there is none any more.
func (w *Sweep) notice(ctx context.Context, key session.Key, id string) error {
	if n, sends := w.cfg.Store.(store.Notifier); sends {
		return n.Notify(ctx, key, id)
	}
	item, err := w.cfg.Sessions.Item(ctx, key, store.KindNotice, id)
	if err != nil || item.Notice == nil || item.Notice.Due == nil || w.cfg.Now().Sub(*item.Notice.Due) < NoticeAbandoned {
		return err
	}
	given := *item.Notice
	given.Sends = slices.Clone(given.Sends)
	var up []string
	for i := range given.Sends {
		if s := &given.Sends[i]; s.State == journal.NoticePending {
			s.State, s.Next = journal.NoticeGivenUp, nil
			s.Error = fmt.Sprintf("no program that sends to %s has looked at it for %d days", s.Channel, NoticeAbandoned/(24*time.Hour))
			up = append(up, s.Channel)
		}
	}
	given.Settle(w.cfg.Now())
	if _, err := w.cfg.Store.Update(ctx, key, store.NoticeItem(given, item.Rev)); errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil // somebody has just sent it, or its session was deleted
	} else if err != nil {
		return err
	}
	w.cfg.Log.ErrorContext(ctx, "notice given up", "session", key.ID, "tenant", key.Tenant, "notice", id, "channels", up, "error", "no program has channels")
	return nil
}
