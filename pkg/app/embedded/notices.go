package embedded

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/outbox"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// noticesAtOnce is how many notices are sent side by side.
	noticesAtOnce = 4
	// noticesKept is how many wait here to be sent; what is more is left to the sweep.
	noticesKept = 1024
	// lookEvery is how often it is looked at most for notices that other processes wrote, and lookAt
	// at how many of the newest.
	lookEvery, lookAt = 500 * time.Millisecond, 50
	// lastNotices bounds the sending of what is left when the file is given back.
	lastNotices = 3 * time.Second
)

// notices are those of a process.
type notices struct {
	sender *notice.Sender
	store  store.Store
	log    *slog.Logger
	wakes  chan journal.NoticeWake
}

// openNotices returns the store with an outbox around it, and what sends from it; both as they are,
// and nil, if there is no channel.
func openNotices(settings app.Notices, s store.Store, now func() time.Time, log *slog.Logger) (store.Store, *notices, error) {
	if len(settings.Channels) == 0 {
		return s, nil, nil
	}
	channels, err := settings.Open(now)
	if err != nil {
		return nil, nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n := &notices{
		sender: notice.NewSender(notice.Config{Store: s, Channels: channels, Now: now, Log: log, Link: settings.Link, Grants: settings.Grants()}),
		store:  s, log: log, wakes: make(chan journal.NoticeWake, noticesKept),
	}
	return outbox.New(outbox.Config{Store: s, Channels: settings.Channels, Tenants: settings.Tenants(), Notify: n.notify, Log: log}), n, nil
}

// notify leaves a notice to whoever sends here. It never waits: what has no room is found by the sweep.
func (n *notices) notify(_ context.Context, key session.Key, id string) error {
	select {
	case n.wakes <- journal.NewNoticeWake(key, id):
	default:
	}
	return nil
}

// SendNotices sends what this process and others write about sessions of the data file, until ctx
// ends. It returns at once where no channel is configured.
func (a *App) SendNotices(ctx context.Context) {
	n := a.notices
	if n == nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for range noticesAtOnce {
		wg.Go(func() {
			for {
				select {
				case wake := <-n.wakes:
					n.send(ctx, wake)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	watcher, can := n.store.(store.Watcher)
	if !can {
		return
	}
	changed := make(chan struct{}, 1)
	stop, can := watcher.Watch(func() {
		select {
		case changed <- struct{}{}:
		default: // it will be looked
		}
	})
	if !can {
		return
	}
	defer stop()
	for {
		select {
		case <-changed:
			n.ofOthers(ctx)
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// ofOthers takes up the newest notices that nobody has tried to send.
func (n *notices) ofOthers(ctx context.Context) {
	page, err := n.store.Find(ctx, store.FindParams{Kind: store.FindNotices, Tenant: session.DefaultTenant, Limit: lookAt})
	if err != nil && ctx.Err() == nil {
		n.log.WarnContext(ctx, "notices of other processes", "error", err)
	}
	for _, found := range page.Found {
		if found.Unread != nil {
			continue
		}
		for _, send := range found.Item.Notice.Sends {
			if send.State == journal.NoticePending && send.Tries == 0 {
				_ = n.notify(ctx, found.Key, found.Item.ID)
				break
			}
		}
	}
}

func (n *notices) send(ctx context.Context, wake journal.NoticeWake) {
	if err := n.sender.Send(ctx, wake.Key(), wake.Notice); err != nil {
		n.log.WarnContext(ctx, "notice left to the sweep", "session", wake.Key().String(), "notice", wake.Notice, "error", err)
	}
}

// flush sends once what this process has written and nobody has sent, in a short time: a command that
// ends has nobody else beside it, perhaps.
func (n *notices) flush() {
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastNotices)
	defer cancel()
	var wg sync.WaitGroup
	for range noticesAtOnce {
		wg.Go(func() {
			for {
				select {
				case wake := <-n.wakes:
					if ctx.Err() != nil {
						return
					}
					n.send(ctx, wake)
				default:
					return
				}
			}
		})
	}
	wg.Wait()
}
