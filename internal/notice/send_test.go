package notice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/outbox"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

var key = session.Key{Tenant: "acme", ID: "s1"}

// channel is one whose outcomes a test chooses.
type channel struct {
	name string
	send func(ctx context.Context, m notice.Message) (json.RawMessage, error)

	mu  sync.Mutex
	got []notice.Message
}

func (c *channel) Name() string { return c.name }

func (c *channel) Send(ctx context.Context, m notice.Message) (json.RawMessage, error) {
	c.mu.Lock()
	c.got = append(c.got, m)
	c.mu.Unlock()
	if c.send == nil {
		return nil, nil
	}
	return c.send(ctx, m)
}

// failing fails so many times.
func failing(name string, times int) *channel {
	return &channel{name: name, send: func(context.Context, notice.Message) (json.RawMessage, error) {
		if times--; times >= 0 {
			return nil, fmt.Errorf("failure, %d more", times)
		}
		return json.RawMessage(`{"ts":"1"}`), nil
	}}
}

// world is a store with an outbox, a clock and a sender that a test drives as the sweep does.
type world struct {
	*testing.T
	store  store.Store // below the outbox
	outbox store.Store
	now    time.Time
	wakes  []string
	sender *notice.Sender
	log    bytes.Buffer
}

func newWorld(t *testing.T, channels ...notice.Channel) *world {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	w := &world{T: t, store: db.Store(), now: time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)}
	w.sender = w.newSender(w.store, channels...)
	w.outbox = outbox.New(outbox.Config{Store: w.store, Channels: w.sender.Names(), Notify: func(_ context.Context, _ session.Key, id string) error {
		w.wakes = append(w.wakes, id)
		return nil
	}})
	return w
}

func (w *world) newSender(s store.Store, channels ...notice.Channel) *notice.Sender {
	return notice.NewSender(notice.Config{
		Store: s, Channels: channels, Now: func() time.Time { return w.now }, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Link: func(key session.Key, wait string) string { return "https://example.com/" + key.ID + "/" + wait },
	})
}

var approval = session.Wait{ID: "w1-1", Kind: session.WaitApproval, Tool: "refund", Arguments: json.RawMessage(`{"amount":500}`), Who: []string{"ana"}}

// suspend writes an entry that opens a wait, and so a notice.
func (w *world) suspend() {
	w.Helper()
	w.commit(session.KindSuspended, session.StatusSuspended, approval)
}

func (w *world) commit(kind session.Kind, status session.Status, waits ...session.Wait) {
	w.Helper()
	items := []store.Item{store.HeadItem(journal.Head{Key: key, Agent: "support", Status: status, StatusSeq: 1, CreatedAt: w.now, UpdatedAt: w.now}, 0)}
	for _, wait := range waits {
		items = append(items, store.WaitItem(journal.WaitRecord{Wait: wait, State: session.WaitOpen, Agent: "support"}, 0))
	}
	_, err := w.outbox.Commit(w.Context(), store.CommitParams{Key: key, Entry: journal.Entry{
		V: journal.Format, Seq: 1, Kind: kind, Status: status, At: w.now, Run: 1, Task: 1, RulesAt: 1, Token: "t", Waits: waits,
	}, Items: items})
	require.NoError(w, err)
}

// due are the notices a sweep would find.
func (w *world) due() []string {
	w.Helper()
	page, err := w.store.Find(w.Context(), store.FindParams{Kind: store.FindDue, Before: w.now})
	require.NoError(w, err)
	ids := []string{}
	for _, found := range page.Found {
		if found.Item.Kind == store.KindNotice {
			ids = append(ids, found.Item.ID)
		}
	}
	return ids
}

func (w *world) send(id string) {
	w.Helper()
	require.NoError(w, w.sender.Send(w.Context(), key, id))
}

func (w *world) notice(id string) journal.Notice {
	w.Helper()
	for item, err := range w.store.Items(w.Context(), key, store.KindNotice, id) {
		require.NoError(w, err)
		return *item.Notice
	}
	w.Fatalf("there is no notice %s", id)
	return journal.Notice{}
}

const first = "e0000000001"

// A server that fails n times is asked again on the schedule, always for the same message, and then
// no more.
func TestSend_on_the_schedule(t *testing.T) {
	t.Parallel()
	for fails := range len(notice.Schedule) + 1 {
		c := failing("webhook", fails)
		w := newWorld(t, c)
		w.suspend()
		require.Equal(t, []string{first}, w.wakes)
		w.send(first)
		for i, wait := range notice.Schedule[:fails] {
			send := w.notice(first).Sends[0]
			require.Equal(t, journal.NoticePending, send.State)
			require.Equal(t, i+1, send.Tries)
			require.Contains(t, send.Error, "failure")
			w.now = w.now.Add(wait - time.Second)
			require.Empty(t, w.due())
			w.send(first) // a message more than needed
			require.Len(t, c.got, i+1)
			w.now = w.now.Add(time.Second)
			require.Equal(t, []string{first}, w.due())
			w.send(first)
		}
		require.Len(t, c.got, fails+1)
		for _, m := range c.got {
			require.Equal(t, c.got[0].ID, m.ID)
		}
		n := w.notice(first)
		require.Nil(t, n.Due)
		require.Equal(t, []journal.NoticeSend{{Channel: "webhook", State: journal.NoticeSent, Tries: fails + 1, TriedAt: &w.now, Reference: json.RawMessage(`{"ts":"1"}`)}}, n.Sends)
		w.now = w.now.Add(1000 * time.Hour)
		require.Empty(t, w.due())
		require.NotContains(t, w.log.String(), "given up")
	}
}

// What never succeeds is given up after the last try, and says so.
func TestSend_given_up(t *testing.T) {
	t.Parallel()
	c := failing("webhook", 1000)
	w := newWorld(t, c)
	w.suspend()
	w.send(first)
	for _, wait := range notice.Schedule {
		w.now = w.now.Add(wait)
		w.send(first)
	}
	n := w.notice(first)
	require.Nil(t, n.Due)
	require.Equal(t, journal.NoticeGivenUp, n.Sends[0].State)
	require.Contains(t, n.Sends[0].Error, "failure")
	require.Contains(t, w.log.String(), "notice given up")
	require.Len(t, c.got, len(notice.Schedule)+1)
	w.send(first)
	require.Len(t, c.got, len(notice.Schedule)+1)
}

// What the other side does not want is given up at once; when it asks to wait, that counts.
func TestSend_as_the_other_side_asks(t *testing.T) {
	t.Parallel()
	gone := &channel{name: "gone", send: func(context.Context, notice.Message) (json.RawMessage, error) {
		return nil, fmt.Errorf("410: %w", notice.ErrPermanent)
	}}
	busy := &channel{name: "busy", send: func(context.Context, notice.Message) (json.RawMessage, error) {
		return nil, &notice.LaterError{Cause: errors.New("503"), After: time.Hour}
	}}
	w := newWorld(t, gone, busy)
	w.suspend()
	w.send(first)
	n := w.notice(first)
	require.Equal(t, journal.NoticeGivenUp, n.Sends[0].State)
	require.Equal(t, journal.NoticePending, n.Sends[1].State)
	require.Equal(t, w.now.Add(time.Hour), *n.Sends[1].Next)
	require.Equal(t, w.now.Add(time.Hour), *n.Due)
}

// The windows of a crash: before the message is sent, while it is sent, before that is recorded.
func TestSend_after_a_crash(t *testing.T) {
	t.Parallel()
	t.Run("committed and not sent", func(t *testing.T) {
		t.Parallel()
		c := &channel{name: "webhook"}
		w := newWorld(t, c)
		w.suspend()
		require.Empty(t, w.due(), "the message that was sent with it comes first")
		w.now = w.now.Add(outbox.Grace)
		require.Equal(t, []string{first}, w.due())
		w.send(first)
		require.Len(t, c.got, 1)
		require.Empty(t, w.due())
	})
	t.Run("sent and not recorded", func(t *testing.T) {
		t.Parallel()
		c := &channel{name: "webhook"}
		w := newWorld(t, c)
		w.suspend()
		dies := &fuse{Store: w.store, updates: 1}
		require.ErrorIs(t, w.newSender(dies, c).Send(t.Context(), key, first), errDead)
		require.Len(t, c.got, 1)
		require.Equal(t, journal.NoticePending, w.notice(first).Sends[0].State)
		w.send(first) // too soon: it may still be under way
		require.Len(t, c.got, 1)
		w.now = w.now.Add(time.Minute)
		require.Equal(t, []string{first}, w.due())
		w.send(first)
		require.Len(t, c.got, 2)
		require.Equal(t, c.got[0].ID, c.got[1].ID)
		require.Equal(t, journal.NoticeSent, w.notice(first).Sends[0].State)
		require.Empty(t, w.due())
	})
	t.Run("frozen, and failed after another has sent it", func(t *testing.T) {
		t.Parallel()
		var w *world
		c := &channel{name: "webhook"}
		tries := 0
		c.send = func(context.Context, notice.Message) (json.RawMessage, error) {
			if tries++; tries > 1 {
				return nil, nil
			}
			w.now = w.now.Add(time.Hour)
			w.send(first)
			return nil, errors.New("too late")
		}
		w = newWorld(t, c)
		w.suspend()
		w.send(first)
		require.Equal(t, 2, tries)
		require.Equal(t, journal.NoticeSent, w.notice(first).Sends[0].State, "what was sent stays so")
		require.Empty(t, w.notice(first).Sends[0].Error)
		require.Empty(t, w.due())
	})
	t.Run("every process dies at it", func(t *testing.T) {
		t.Parallel()
		c := &channel{name: "webhook"}
		w := newWorld(t, c)
		w.suspend()
		for range 20 {
			err := w.newSender(&fuse{Store: w.store, updates: 1}, c).Send(t.Context(), key, first)
			if err != nil {
				require.ErrorIs(t, err, errDead)
			}
			w.now = w.now.Add(time.Minute)
		}
		require.Len(t, c.got, len(notice.Schedule)+1)
		n := w.notice(first)
		require.Equal(t, journal.NoticeGivenUp, n.Sends[0].State)
		require.Equal(t, "the last try has no outcome", n.Sends[0].Error)
		require.Nil(t, n.Due)
	})
}

var errDead = errors.New("the process is dead")

// fuse is a store of a process that dies after so many updates.
type fuse struct {
	store.Store
	updates int
}

func (f *fuse) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if f.updates--; f.updates < 0 {
		return nil, errDead
	}
	return f.Store.Update(ctx, key, items...)
}

// Of several senders at once one sends, and a channel that is slow does not keep another from its
// outcome.
func TestSend_at_once(t *testing.T) {
	t.Parallel()
	held, release := make(chan struct{}), make(chan struct{})
	slow := &channel{name: "slow", send: func(context.Context, notice.Message) (json.RawMessage, error) {
		close(held)
		<-release
		return nil, nil
	}}
	fast := &channel{name: "fast"}
	w := newWorld(t, slow, fast)
	w.suspend()
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, w.sender.Send(t.Context(), key, first)) })
	<-held
	for range 5 {
		wg.Go(func() { require.NoError(t, w.sender.Send(t.Context(), key, first)) })
	}
	require.Eventually(t, func() bool { return w.notice(first).Sends[1].State == journal.NoticeSent }, 10*time.Second, time.Millisecond)
	close(release)
	wg.Wait()
	require.Len(t, slow.got, 1)
	require.Len(t, fast.got, 1)
	n := w.notice(first)
	require.Equal(t, journal.NoticeSent, n.Sends[0].State)
	require.Nil(t, n.Due)
}

// A channel that the sending program lacks is a failure that one can see.
func TestSend_without_the_channel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &channel{name: "webhook"})
	w.suspend()
	w.sender = w.newSender(w.store)
	w.send(first)
	require.Contains(t, w.notice(first).Sends[0].Error, `no channel "webhook"`)
}

// Arguments are sent only where that is said, and long ones not at all.
func TestPayload(t *testing.T) {
	t.Parallel()
	for _, arguments := range []bool{false, true} {
		var payload notice.Payload
		w := newWorld(t, &channel{name: "webhook", send: func(ctx context.Context, m notice.Message) (_ json.RawMessage, err error) {
			payload, err = m.Payload(ctx, notice.Shows{Arguments: arguments, Links: true})
			return nil, err
		}})
		long := approval
		long.ID, long.Arguments = "w1-2", json.RawMessage(`"`+string(bytes.Repeat([]byte("x"), 70_000))+`"`)
		w.commit(session.KindSuspended, session.StatusSuspended, approval, long)
		w.send(first)
		raw, err := json.Marshal(payload)
		require.NoError(t, err)
		with, size := "", ""
		if arguments {
			with, size = `,"arguments":{"amount":500}`, `,"argumentsBytes":70002`
		}
		require.JSONEq(t, `{"type":"session.suspended","timestamp":"2026-11-26T09:00:00Z","data":{"tenant":"acme","session":"s1","agent":"support","version":1,"link":"https://example.com/s1/","waits":[
			{"id":"w1-1","kind":"approval","tool":"refund","who":["ana"],"link":"https://example.com/s1/w1-1"`+with+`},
			{"id":"w1-2","kind":"approval","tool":"refund","who":["ana"],"link":"https://example.com/s1/w1-2"`+size+`}]}}`, string(raw))
	}
}

func TestTest(t *testing.T) {
	t.Parallel()
	c := failing("webhook", 1)
	w := newWorld(t, c)
	require.ErrorContains(t, w.sender.Test(t.Context(), "webhook", "1"), "failure")
	require.NoError(t, w.sender.Test(t.Context(), "webhook", "2"))
	require.ErrorContains(t, w.sender.Test(t.Context(), "slack", "3"), `no channel "slack"`)
	require.Equal(t, journal.NoticeTest, c.got[0].Notice.Type)
}
