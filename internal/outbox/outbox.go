// Package outbox writes notices into the store with what they tell.
package outbox

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Grace is how long the sweep leaves a new notice to the message that was sent with it.
const Grace = 30 * time.Second

// Config says what an outbox stands on; all but Tenants and Log is required.
type Config struct {
	Store store.Store
	// Channels are the names of those that get notices, at least one.
	Channels []string
	// Tenants are the channels that get the notices of one tenant alone, with that tenant.
	Tenants map[string]string
	// Notify has a notice sent, after its write. It waits for nobody outside. What it fails to do the
	// sweep finds.
	Notify func(ctx context.Context, key session.Key, id string) error
	Log    *slog.Logger
}

// Store is a store that adds a notice to a write that opens waits, decides one, does something to one without
// deciding it, closes some, or ends a task. Every other write goes through as it is, so that a plain step costs what it did.
type Store struct {
	store.Store
	cfg Config
}

var _ store.Notifier = (*Store)(nil)

// New returns the store around another one.
func New(cfg Config) store.Store {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{Store: cfg.Store, cfg: cfg}
	if watcher, can := cfg.Store.(store.Watcher); can {
		return &watched{Store: s, watcher: watcher}
	}
	return s
}

// watched is an outbox around a store that notices what other processes write.
type watched struct {
	*Store
	watcher store.Watcher
}

var _ store.Watcher = (*watched)(nil)

// Watch tells what other processes write; see [store.Watcher].
func (w *watched) Watch(changed func()) (stop func(), ok bool) { return w.watcher.Watch(changed) }

// Notify has a notice sent; see [store.Notifier].
func (s *Store) Notify(ctx context.Context, key session.Key, id string) error {
	return s.cfg.Notify(ctx, key, id)
}

// Commit writes an entry, and with it the notice of what it tells, if it tells anything; see
// [store.Store].
func (s *Store) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if !s.tells(p.Key) {
		return s.Store.Commit(ctx, p)
	}
	notice := s.ofEntry(&p)
	if notice != nil {
		p.Items = append(slices.Clip(p.Items), store.NoticeItem(*notice, 0))
	}
	committed, err := s.Store.Commit(ctx, p)
	if err == nil && notice != nil {
		s.notify(ctx, p.Key, notice.ID)
	}
	return committed, err
}

// Update writes items, and with them the notice of the waits that they decide, if they decide any, and of
// what was done to waits without deciding them; see [store.Store].
func (s *Store) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if !s.tells(key) {
		return s.Store.Update(ctx, key, items...)
	}
	changed, notices := s.ofWaits(key, items)
	for i := range notices {
		changed = append(changed, store.NoticeItem(notices[i], 0))
	}
	written, err := s.Store.Update(ctx, key, changed...)
	if err != nil || len(notices) == 0 {
		return written, err
	}
	for i := range notices {
		s.notify(ctx, key, notices[i].ID)
	}
	return written[:len(items)], nil
}

// tells reports whether any channel is told of a session.
func (s *Store) tells(key session.Key) bool {
	return slices.ContainsFunc(s.cfg.Channels, func(channel string) bool { return s.isTold(channel, key) })
}

// isTold reports whether a channel is told of a session.
func (s *Store) isTold(channel string, key session.Key) bool {
	tenant, only := s.cfg.Tenants[channel]
	return !only || tenant == key.Tenant
}

// notify has a notice sent. The writer has written what it wanted, whatever comes of that.
func (s *Store) notify(ctx context.Context, key session.Key, id string) {
	if err := s.cfg.Notify(ctx, key, id); err != nil {
		s.cfg.Log.WarnContext(ctx, "notice left to the sweep", "session", key.String(), "notice", id, "error", err)
	}
}

// ends are the notices of entries that end a task.
var ends = map[session.Kind]journal.NoticeType{
	session.KindCompleted: journal.NoticeCompleted, session.KindFailed: journal.NoticeFailed, session.KindCancelled: journal.NoticeCancelled,
}

// ofEntry returns the notice of a commit; nil if it tells nothing.
func (s *Store) ofEntry(p *store.CommitParams) *journal.Notice {
	e := &p.Entry
	n := &journal.Notice{ID: journal.EntryNotice(e.Seq), At: e.At.UTC(), Seq: e.Seq}
	for _, w := range e.Waits {
		if forPeople(w.Kind) {
			n.Type, n.Waits = journal.NoticeSuspended, append(n.Waits, tell(w))
		}
	}
	if end, ended := ends[e.Kind]; ended {
		if n.Type = end; e.Failure != nil {
			n.Failure = e.Failure.Type
		}
	}
	for i := range p.Items {
		item := &p.Items[i]
		if item.KeyIn(p.Key) != p.Key {
			continue
		}
		if item.Head != nil {
			n.Agent = item.Head.Agent
		}
		if item.Wait == nil || !forPeople(item.Wait.Wait.Kind) {
			continue
		}
		told, because := tell(item.Wait.Wait), journal.NoticeClosed
		switch w := item.Wait; {
		case w.State == session.WaitClosed:
			told.Decision, told.By, told.When = journal.DecisionClosed, e.By, new(e.At.UTC())
		case w.State == session.WaitTaken && w.Answer != nil && !w.Noticed: // answered in this very write
			told, because = Decided(w), journal.NoticeAnswered
		default:
			continue
		}
		n.Waits = append(n.Waits, told)
		if n.Type == "" {
			n.Type = because
		}
	}
	if n.Type == "" {
		return nil
	}
	s.address(n, p.Key, e.At)
	return n
}

// ofWaits returns the items with the mark of what their notices tell, and the notices: one of all waits that
// they decide, and one of each that something was done to; none where nothing was done that was not told. What one
// write has no room for beside its items is left out: acts that no program with channels has written.
func (s *Store) ofWaits(key session.Key, items []store.Item) ([]store.Item, []journal.Notice) {
	var decisions *journal.Notice
	var notices []journal.Notice
	items = slices.Clip(slices.Clone(items))
	room := store.MaxItems - len(items) - 1 // and one of what is decided
	for i := range items {
		w := items[i].Wait
		if w == nil || !forPeople(w.Wait.Kind) || items[i].KeyIn(key) != key {
			continue
		}
		record := *w
		switch {
		case w.State == session.WaitOpen && len(w.Acts) > w.ActsNoticed:
			record.ActsNoticed = len(w.Acts)
			if n := ofAct(w); n != nil && len(notices) < room {
				s.address(n, key, n.At)
				notices = append(notices, *n)
			}
		case !w.Noticed && w.Answer != nil && (w.State == session.WaitAnswered || w.State == session.WaitExpired):
			if decisions == nil {
				decisions = &journal.Notice{ID: journal.DecisionNotice(w.Wait.ID), Type: journal.NoticeAnswered, At: w.Answer.When.UTC(), Agent: w.Agent, Seq: openedBy(w.Wait.ID)}
			}
			if w.State == session.WaitExpired {
				decisions.Type = journal.NoticeExpired
			}
			decisions.Waits = append(decisions.Waits, Decided(w))
			record.Noticed = true
		default:
			continue
		}
		items[i].Wait = &record
	}
	if decisions != nil {
		s.address(decisions, key, decisions.At)
		notices = append(notices, *decisions)
	}
	return items, notices
}

// address gives a notice its sends.
func (s *Store) address(n *journal.Notice, key session.Key, at time.Time) {
	for _, channel := range s.cfg.Channels {
		if s.isTold(channel, key) {
			n.Sends = append(n.Sends, journal.NoticeSend{Channel: channel, State: journal.NoticePending})
		}
	}
	n.Settle(at.Add(Grace))
}
