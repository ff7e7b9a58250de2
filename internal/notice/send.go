package notice

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// sendTime bounds one try at one channel.
	sendTime = 20 * time.Second
	// claimed is for how long a try keeps others away: longer than it takes, with its writes.
	claimed = time.Minute
	// maxError bounds the text of a failure that is kept.
	maxError = 300
	// recordTries is how often an outcome is written when others write the notice meanwhile.
	recordTries = 10
)

// Config says what a sender stands on. Store, Channels and Now are required.
type Config struct {
	Store    store.Store
	Channels []Channel
	Now      func() time.Time
	Log      *slog.Logger
	// Link leads to a session or to one of its waits; nil: there are no links.
	Link func(key session.Key, wait string) string
	// Grants sign the links that decide, for channels that send them; nil: there are none.
	Grants *Grants
}

// Sender sends notices. It is safe for concurrent use, by any number of processes: each send is
// claimed in its notice before it is made, so that as a rule it is made once; after a crash it is
// made again, with the same id.
type Sender struct{ cfg Config }

// NewSender returns a sender.
func NewSender(cfg Config) *Sender {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Sender{cfg: cfg}
}

// Send sends what is left to send of a notice, and whose time has come, to all channels side by side,
// and records what became of it. An error is one of the store's: the notice is still due.
func (s *Sender) Send(ctx context.Context, key session.Key, id string) error {
	item, err := s.read(ctx, key, id)
	if err != nil || item.Notice == nil {
		return err
	}
	now := s.cfg.Now().UTC()
	notice := *item.Notice
	notice.Sends = slices.Clone(notice.Sends)
	var mine []int
	for i := range notice.Sends {
		send := &notice.Sends[i]
		if send.State != journal.NoticePending || send.Next != nil && send.Next.After(now) {
			continue
		}
		if send.Tries > len(Schedule) { // the last try has no outcome: its process died
			send.State, send.Next = journal.NoticeGivenUp, nil
			if send.Error == "" {
				send.Error = "the last try has no outcome"
			}
			s.givenUp(ctx, key, id, *send)
			continue
		}
		send.Tries++
		send.TriedAt, send.Next = &now, new(now.Add(claimed))
		mine = append(mine, i)
	}
	if slices.EqualFunc(notice.Sends, item.Notice.Sends, func(a, b journal.NoticeSend) bool { return a.Tries == b.Tries && a.State == b.State }) {
		return nil // another has sent it, or is about to
	}
	notice.Settle(now)
	written, err := s.cfg.Store.Update(ctx, key, store.NoticeItem(notice, item.Rev))
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil // another was first
	}
	if err != nil {
		return err
	}
	return s.sendAll(ctx, key, written[0], mine)
}

// sendAll makes the sends that were claimed.
func (s *Sender) sendAll(ctx context.Context, key session.Key, item store.Item, mine []int) error {
	var wg sync.WaitGroup
	failed := make([]error, len(mine))
	for n, i := range mine {
		send := item.Notice.Sends[i]
		wg.Go(func() {
			reference, err := s.try(ctx, key, *item.Notice, send)
			// The outcome is kept also when who sends is about to end.
			failed[n] = s.keep(context.WithoutCancel(ctx), key, item.ID, send, reference, err)
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// try sends once.
func (s *Sender) try(ctx context.Context, key session.Key, n journal.Notice, send journal.NoticeSend) (json.RawMessage, error) {
	i := slices.IndexFunc(s.cfg.Channels, func(c Channel) bool { return c.Name() == send.Channel })
	if i < 0 {
		return send.Reference, fmt.Errorf("the program that sends notices has no channel %q", send.Channel)
	}
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return s.cfg.Channels[i].Send(limited, Message{ID: messageID(key, n.ID), Key: key, Notice: n, Reference: send.Reference, sender: s})
}

// keep writes what became of a try. Others may write other sends of the notice meanwhile.
func (s *Sender) keep(ctx context.Context, key session.Key, id string, tried journal.NoticeSend, reference json.RawMessage, failure error) error {
	for range recordTries {
		item, err := s.read(ctx, key, id)
		if err != nil || item.Notice == nil {
			return err
		}
		now := s.cfg.Now().UTC()
		notice := *item.Notice
		notice.Sends = slices.Clone(notice.Sends)
		i := slices.IndexFunc(notice.Sends, func(other journal.NoticeSend) bool { return other.Channel == tried.Channel })
		if i < 0 || notice.Sends[i].State != journal.NoticePending {
			return nil // it was sent twice, and the other has said so
		}
		send := &notice.Sends[i]
		send.Reference, send.Next, send.Error = reference, nil, ""
		switch later := (*LaterError)(nil); {
		case failure == nil:
			send.State = journal.NoticeSent
		case errors.Is(failure, ErrPermanent), tried.Tries > len(Schedule):
			send.State, send.Error = journal.NoticeGivenUp, shorten(failure.Error())
		default:
			send.Error = shorten(failure.Error())
			wait := Schedule[tried.Tries-1]
			if errors.As(failure, &later) {
				wait = min(max(wait, later.After), Schedule[len(Schedule)-1])
			}
			send.Next = new(now.Add(wait))
		}
		notice.Settle(now)
		_, err = s.cfg.Store.Update(ctx, key, store.NoticeItem(notice, item.Rev))
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err == nil && send.State == journal.NoticeGivenUp:
			s.givenUp(ctx, key, id, *send)
		}
		return err
	}
	return fmt.Errorf("session %s: notice %s: %w", key, id, store.ErrConflict)
}

func (s *Sender) givenUp(ctx context.Context, key session.Key, id string, send journal.NoticeSend) {
	s.cfg.Log.ErrorContext(ctx, "notice given up", "session", key.ID, "tenant", key.Tenant, "notice", id, "channel", send.Channel, "tries", send.Tries, "error", send.Error)
}

// Test sends a test to a channel, once.
func (s *Sender) Test(ctx context.Context, channel, id string) error {
	i := slices.IndexFunc(s.cfg.Channels, func(c Channel) bool { return c.Name() == channel })
	if i < 0 {
		return fmt.Errorf("there is no channel %q", channel)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	_, err := s.cfg.Channels[i].Send(ctx, Message{ID: "msg_test_" + id, Notice: journal.Notice{Type: journal.NoticeTest, At: s.cfg.Now().UTC()}})
	return err
}

// Names of the channels.
func (s *Sender) Names() []string {
	var names []string
	for _, c := range s.cfg.Channels {
		names = append(names, c.Name())
	}
	return names
}

func (s *Sender) read(ctx context.Context, key session.Key, id string) (store.Item, error) {
	for item, err := range s.cfg.Store.Items(ctx, key, store.KindNotice, id) {
		return item, err
	}
	return store.Item{}, nil
}

// opening is what became of the notice that told that a wait was opened.
func (s *Sender) opening(ctx context.Context, key session.Key, channel, wait string) (*journal.NoticeSend, error) {
	var seq, n int64
	if _, err := fmt.Sscanf(wait, "w%d-%d", &seq, &n); err != nil {
		return nil, fmt.Errorf("wait %q: %w", wait, err)
	}
	item, err := s.read(ctx, key, journal.EntryNotice(seq))
	if err != nil || item.Notice == nil {
		return nil, err
	}
	for i := range item.Notice.Sends {
		if item.Notice.Sends[i].Channel == channel {
			return &item.Notice.Sends[i], nil
		}
	}
	return nil, nil //nolint:nilnil // the channel is newer than that
}

// record is the record of a wait as it is now; nil where it is there no more.
func (s *Sender) record(ctx context.Context, key session.Key, id string) (*journal.WaitRecord, error) {
	for item, err := range s.cfg.Store.Items(ctx, key, store.KindWait, id) {
		if err != nil {
			return nil, err
		}
		return item.Wait, nil
	}
	return nil, nil //nolint:nilnil // the session was deleted meanwhile
}

// messageID is the id of a notice among all of all sessions.
func messageID(key session.Key, id string) string {
	sum := sha256.Sum256([]byte(key.Tenant + "/" + key.ID + "/" + id))
	return "msg_" + base64.RawURLEncoding.EncodeToString(sum[:18])
}

func shorten(text string) string {
	if r := []rune(text); len(r) > maxError {
		return string(r[:maxError]) + "…"
	}
	return text
}
