package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/outbox"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// told has an outbox around the store of the world's processes, and keeps which notices were to be sent.
type told struct {
	mu    sync.Mutex
	wakes []string
	fails bool
}

func (o *told) notify(_ context.Context, _ session.Key, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wakes = append(o.wakes, id)
	if o.fails {
		return errors.New("no queue")
	}
	return nil
}

// taken returns them, each once.
func (o *told) taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.wakes = nil }()
	return o.wakes
}

func (w *world) withOutbox() *told {
	o := &told{}
	w.cfg.Store = outbox.New(outbox.Config{Store: w.cfg.Store, Channels: []string{"webhook", "slack"}, Notify: o.notify})
	return o
}

// notices are what was written, each as a line.
func (w *world) notices() (lines []string) {
	for _, item := range w.items(store.KindNotice) {
		n := item.Notice
		require.Equal(w.t, item.ID, n.ID)
		require.Equal(w.t, "a", n.Agent)
		require.Len(w.t, n.Sends, 2)
		require.NotNil(w.t, n.Due)
		line := fmt.Sprintf("%s %s", n.ID, n.Type)
		for _, wait := range n.Waits {
			line += fmt.Sprintf(" %s %s", wait.ID, wait.Kind)
			if wait.Decision != "" {
				line += fmt.Sprintf(" %s by %s", wait.Decision, wait.By)
			}
			if wait.To != "" {
				line += fmt.Sprintf(" to %s by %s", wait.To, wait.By)
			}
		}
		lines = append(lines, strings.TrimSpace(line+" "+n.Failure))
	}
	return lines
}

// asks is asker with an outbox.
func asks(t *testing.T, input string) (*world, *process, *told) {
	t.Helper()
	w := asker(t)
	o := w.withOutbox()
	p := w.process()
	w.run(p, input)
	return w, p, o
}

// A wait is told when it opens and when it is answered, an end when it comes, whatever the door; each
// with the write that makes it so.
func TestNotices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input string
		then  func(t *testing.T, w *world, p *process)
		want  []string
	}{
		"approved": {"approve", func(t *testing.T, w *world, p *process) {
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
		}, []string{"dw2-1 wait.answered w2-1 approval approved by ann", "e0000000002 session.suspended w2-1 approval", "e0000000005 session.completed"}},
		"rejected": {"approve", func(t *testing.T, w *world, p *process) {
			_, err := w.submit(p, session.WaitApproval, no())
			require.NoError(t, err)
		}, []string{"rejected by ann"}},
		"two at once": {"two", func(t *testing.T, w *world, p *process) {
			_, err := p.Decide(t.Context(), runtime.DecideParams{Key: w.key, Caller: people, Approve: []string{"w2-1", "w2-2"}})
			require.NoError(t, err)
		}, []string{"wait.answered w2-1 approval approved by bob w2-2 approval approved by bob", "session.suspended w2-1 approval w2-2 approval", "session.completed"}},
		"a message": {"input", func(t *testing.T, w *world, p *process) {
			_, err := w.send(p)
			require.NoError(t, err)
		}, []string{"wait.answered w2-1 input answered by bob", "session.suspended w2-1 input", "session.completed"}},
		"reply": {"input", func(t *testing.T, w *world, p *process) {
			_, err := w.submit(p, session.WaitInput, session.Answer{Message: llm.TextParts("here")})
			require.NoError(t, err)
		}, []string{"wait.answered w2-1 input answered by ann", "session.completed"}},
		"dismissed": {"approve", func(t *testing.T, w *world, p *process) {
			_, err := actOn(w, p, session.ActDismissed, "bob", func(a *runtime.ActParams) { a.Reason = "no longer" })
			require.NoError(t, err)
		}, []string{"dw2-1 wait.answered w2-1 approval dismissed by bob", "session.completed"}},
		"delegated": {"approve", func(t *testing.T, w *world, p *process) {
			_, err := actOn(w, p, session.ActDelegated, "bob", func(a *runtime.ActParams) { a.Reason = "hers" })
			require.NoError(t, err)
			repeated, err := actOn(w, p, session.ActDelegated, "bob", func(a *runtime.ActParams) { a.Reason = "hers" })
			require.NoError(t, err)
			require.True(t, repeated.Repeated)
			p.Viewed(t.Context(), w.key, people, w.waits())
			require.Equal(t, 1, w.waits()[0].ActsNoticed)
			_, err = w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
		}, []string{"aw2-1-1 wait.delegated w2-1 approval to cem by bob\n", "dw2-1 wait.answered w2-1 approval approved by ann"}},
		"cancelled": {"both", func(t *testing.T, w *world, p *process) {
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
			_, err = w.stop(p, runtime.SignalCancel)
			require.NoError(t, err)
		}, []string{"dw2-2 wait.answered w2-2 approval approved by ann", "session.suspended w2-1 client_tool w2-2 approval", "session.cancelled w2-1 client_tool closed by bob"}},
		"aborted": {"approve", func(t *testing.T, w *world, p *process) {
			_, err := w.stop(p, runtime.SignalAbort)
			require.NoError(t, err)
		}, []string{"session.failed w2-1 approval closed by bob aborted"}},
		"gone back": {"approve", func(t *testing.T, w *world, p *process) {
			_, err := w.stop(p, runtime.SignalInterrupt)
			require.NoError(t, err)
			_, err = w.back(p, 1, "")
			require.NoError(t, err)
		}, []string{"wait.closed w2-1 approval closed by", "session.suspended w5-1 approval"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, o := asks(t, c.input)
			require.Len(t, w.notices(), 1)
			c.then(t, w, p)
			require.NoError(t, p.settle())
			lines := w.notices()
			for _, want := range c.want {
				require.Contains(t, strings.Join(lines, "\n"), want)
			}
			var ids []string
			for _, line := range lines {
				ids = append(ids, strings.Fields(line)[0])
			}
			require.ElementsMatch(t, ids, o.taken()[:len(ids)], "each is sent once, after its write, and then again by the sweep")
		})
	}
}

// What expires is told as that, and not again when the sweep or another writer writes the wait again.
func TestNotices_expired(t *testing.T) {
	t.Parallel()
	w, _ := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	o := w.withOutbox()
	p := w.process()
	w.clock.advance(2 * time.Hour)
	swept, err := p.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, swept.Expired)
	require.Equal(t, []string{"dw2-1"}, o.taken())
	_, err = w.submit(p, session.WaitApproval, yes()) // refused, which the wait's record keeps
	require.Error(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, "e0000000005", o.taken()[0])
	require.Equal(t, []string{"dw2-1 wait.expired w2-1 approval expired by deadline", "e0000000005 session.completed"}, w.notices())
}

// Each reminder and the escalation is told once, in the write that makes it so, with who may answer then; a
// later write of the wait tells it no more.
func TestNotices_of_a_deadline(t *testing.T) {
	t.Parallel()
	w, _ := expiringBy(t, session.WaitApproval, twoSeconds(session.WaitApproval, session.ExpireDeny, nil), "ann")
	o := w.withOutbox()
	for _, want := range []string{"aw2-1-1", "aw2-1-2", "aw2-1-4", "dw2-1"} {
		w.clock.advance(time.Second)
		_, err := w.process().Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{want}, o.taken())
		if want == "aw2-1-2" { // it is told of itself alone
			_, err = actOn(w, w.process(), session.ActDelegated, "eve", func(a *runtime.ActParams) { a.To = "mia" })
			require.NoError(t, err)
			require.Equal(t, []string{"aw2-1-3"}, o.taken())
		}
	}
	lines := w.notices()
	require.Equal(t, []string{"aw2-1-1 wait.reminded w2-1 approval", "aw2-1-2 wait.escalated w2-1 approval"}, lines[:2])
	i := slices.IndexFunc(w.items(store.KindNotice), func(item store.Item) bool { return item.Notice.Type == journal.NoticeEscalated })
	told := w.items(store.KindNotice)[i].Notice
	require.Equal(t, []string{"ann", "eve"}, told.Waits[0].Who)
	require.Equal(t, w.waits()[0].Wait.Deadline.At, told.Waits[0].Deadline.At)
	require.Empty(t, told.Waits[0].Decision)
}

// A queue that fails keeps nobody from anything: the sweep finds the notice, and leaves it to whoever
// sends them.
func TestNotices_left_to_the_sweep(t *testing.T) {
	t.Parallel()
	w := asker(t)
	o := w.withOutbox()
	o.fails = true
	p := w.process()
	w.run(p, "approve")
	require.Equal(t, []string{"e0000000002"}, o.taken())
	o.fails = false
	_, err := p.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, o.taken(), "the message has a moment")
	w.clock.advance(outbox.Grace)
	_, err = p.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"e0000000002"}, o.taken())
	_, err = w.reader.Sweep(t.Context()) // of a program without channels: it is another's
	require.NoError(t, err)
	require.Empty(t, o.taken())
}

// What no program sends any more, since all channels were taken away, is given up, and the list says why.
func TestNotices_without_channels(t *testing.T) {
	t.Parallel()
	w := asker(t)
	plain := w.cfg.Store
	w.withOutbox()
	w.run(w.process(), "approve")
	var log bytes.Buffer
	p := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.Log = plain, slog.New(slog.NewTextHandler(&log, nil)) })
	sends := func() []journal.NoticeSend {
		page, err := w.reader.Notices(t.Context(), runtime.NoticesParams{Tenant: w.key.Tenant})
		require.NoError(t, err)
		require.Len(t, page.Found, 1)
		return page.Found[0].Item.Notice.Sends
	}
	w.clock.advance(4 * 24 * time.Hour)
	_, err := p.Sweep(t.Context())
	require.NoError(t, err)
	require.NotContains(t, log.String(), "notice given up")
	require.Equal(t, journal.NoticePending, sends()[0].State, "somebody may still come")
	w.clock.advance(outbox.Grace)
	_, err = p.Sweep(t.Context())
	require.NoError(t, err)
	require.Contains(t, log.String(), `msg="notice given up"`, "an alarm counts it")
	for _, send := range sends() {
		require.Equal(t, journal.NoticeGivenUp, send.State)
		require.Contains(t, send.Error, "no program that sends to "+send.Channel)
	}
	require.Nil(t, w.items(store.KindNotice)[0].Notice.Due, "nobody looks at it any more")
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
}

// However many notices are due, and however slow what sends them is, sessions do not wait for it.
func TestNotices_after_the_sessions(t *testing.T) {
	t.Parallel()
	w, _ := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	var open []session.WaitState
	to := w.cfg.Store
	for i := range 3 {
		n := journal.Notice{ID: journal.EntryNotice(int64(90 + i)), At: epoch, Due: new(epoch)}
		_, err := to.Update(t.Context(), w.key, store.NoticeItem(n, 0))
		require.NoError(t, err)
	}
	w.cfg.Store = outbox.New(outbox.Config{Store: to, Channels: []string{"webhook"}, Notify: func(_ context.Context, _ session.Key, id string) error {
		if id != journal.DecisionNotice("w2-1") { // of the expiry itself
			open = append(open, w.waits()[0].State)
		}
		return nil
	}})
	w.clock.advance(240 * time.Hour)
	_, err := w.process().Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]session.WaitState{session.WaitExpired}, 3), open)
}

// Of racing answers one is told.
func TestNotices_of_racing_answers(t *testing.T) {
	t.Parallel()
	w, p, o := asks(t, "approve")
	o.taken()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			answer := yes()
			if i%2 == 0 {
				answer = no()
			}
			_, _ = w.submit(p, session.WaitApproval, answer)
		})
	}
	wg.Wait()
	require.Equal(t, []string{"dw2-1"}, o.taken())
	require.Equal(t, journal.NoticeAnswered, w.items(store.KindNotice)[0].Notice.Type)
}

// written keeps what a store is asked to write.
type written struct {
	store.Store
	mu  sync.Mutex
	all []string
}

func (s *written) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	s.mu.Lock()
	s.all = append(s.all, fmt.Sprintf("commit %s with %d", p.Entry.Kind, len(p.Items)))
	s.mu.Unlock()
	return s.Store.Commit(ctx, p)
}

func (s *written) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	s.mu.Lock()
	s.all = append(s.all, updating(items))
	s.mu.Unlock()
	return s.Store.Update(ctx, key, items...)
}

// A plain step writes what it did without notices. What tells something has one item more, and no
// request more.
func TestNotices_cost(t *testing.T) {
	t.Parallel()
	made := newEffects()
	of := func(with bool) []string {
		w := newWorld(t, made, helper(made, script{"go": {calls("look", `{"text":"1"}`), calls("look", `{"text":"2"}`), calls("deploy", `{"text":"1"}`), says("bye")}}))
		s := &written{Store: w.cfg.Store}
		w.cfg.Store = s
		if with {
			w.withOutbox()
		}
		p := w.process()
		w.run(p, "go")
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		if !with {
			require.Empty(t, w.items(store.KindNotice))
		}
		return s.all
	}
	without, with := of(false), of(true)
	require.Len(t, with, len(without))
	for i := range without {
		switch {
		case strings.HasPrefix(without[i], "commit suspended"):
			require.Equal(t, "commit suspended with 3", without[i])
			require.Equal(t, "commit suspended with 4", with[i])
		case strings.HasPrefix(without[i], "commit completed"):
			require.Equal(t, "commit completed with 2", without[i])
			require.Equal(t, "commit completed with 3", with[i])
		case without[i] == "update wait":
			require.Equal(t, "update 2 of wait", with[i])
		default:
			require.Equal(t, without[i], with[i])
		}
	}
	require.Contains(t, without, "commit stepped with 0")
}
