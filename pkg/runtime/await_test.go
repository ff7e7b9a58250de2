package runtime_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// looking counts the reads that reach the store.
func looking(s store.Store, reads *atomic.Int64) store.Store {
	return &hook{
		Store: s,
		entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
			reads.Add(1)
			return s.Entries(ctx, key, after)
		},
		items: func(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
			reads.Add(1)
			return s.Items(ctx, key, kind, id)
		},
	}
}

// tenSeconds is an agent whose first reply takes ten seconds and whose second step waits for an approval.
func tenSeconds(t *testing.T) (b *bundle, reads *atomic.Int64) {
	t.Helper()
	reads = &atomic.Int64{}
	b = setup(t, withAgents(t, helper(newEffects(), script{"go": {
		func(context.Context, agent.View) (agent.Reply, error) {
			time.Sleep(10 * time.Second)
			return calls("echo", `{"text":"1"}`)(context.Background(), agent.View{})
		},
		calls("deploy", `{"text":"2"}`), says("bye"),
	}})))
	return setupOn(t, b, func(cfg *runtime.Config) {
		cfg.Registry, cfg.Store = b.cfg.Registry, looking(b.store, reads)
	}), reads
}

func (b *bundle) begin(t *testing.T, input string) {
	t.Helper()
	_, err := b.Start(context.Background(), runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts(input), Caller: person})
	require.NoError(t, err)
}

func TestAwaitRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, reads := tenSeconds(t)
		ctx := context.Background()
		b.begin(t, "go")

		began := time.Now()
		rests, err := b.AwaitRest(ctx, b.key, 0, 0)
		require.NoError(t, err)
		require.False(t, rests)
		require.Zero(t, time.Since(began), "no wait, no time")

		reads.Store(0)
		rests, err = b.AwaitRest(ctx, b.key, 0, 20*time.Second)
		require.NoError(t, err)
		require.False(t, rests, "nobody works on it")
		require.Equal(t, 20*time.Second, time.Since(began))
		require.Less(t, reads.Load(), int64(40), "it looks ever less often")

		go func() { _ = b.Drive(ctx, b.key, b.queue.Only(b.key)) }()
		began = time.Now()
		rests, err = b.AwaitRest(ctx, b.key, 0, time.Minute)
		require.NoError(t, err)
		require.True(t, rests)
		require.Less(t, time.Since(began), 12*time.Second, "it is told within a second or so")
		synctest.Wait()

		began = time.Now()
		rests, err = b.AwaitRest(ctx, b.key, 0, time.Minute)
		require.NoError(t, err)
		require.True(t, rests, "suspended, with an approval open")
		require.Zero(t, time.Since(began))

		_, err = b.Decide(ctx, runtime.DecideParams{Key: b.key, ApproveAll: true, Checkpoint: b.session(t).Checkpoint().String(), Caller: person})
		require.NoError(t, err)
		rests, err = b.AwaitRest(ctx, b.key, 0, time.Second)
		require.NoError(t, err)
		require.False(t, rests, "suspended still, but everything is answered: it is about to go on")
		b.drive(t)
		rests, err = b.AwaitRest(ctx, b.key, 0, time.Second)
		require.NoError(t, err)
		require.True(t, rests)
	})
}

// TestAwaitRest_past: a session that was just told to go on does not rest, and is
// waited for until it has moved.
func TestAwaitRest_past(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {calls("locate", `{"text":"1"}`), says("bye")}})))
		ctx := context.Background()
		b.begin(t, "go")
		b.drive(t)
		_, err := b.Submit(ctx, runtime.SubmitParams{
			Key: b.key, Caller: person, HoldResume: true, Answer: session.Answer{Kind: session.AnswerClientTool, ToolCallID: "c2-1", Result: []byte(`1`)},
		})
		require.NoError(t, err)
		resumed, err := b.Resume(ctx, runtime.ResumeParams{Key: b.key, Caller: person})
		require.NoError(t, err)
		require.EqualValues(t, 2, resumed.After)
		rests, err := b.AwaitRest(ctx, b.key, 0, time.Second)
		require.NoError(t, err)
		require.False(t, rests, "the answer is held no more: it was told to go on")
		rests, err = b.AwaitRest(ctx, b.key, resumed.After, time.Second)
		require.NoError(t, err)
		require.False(t, rests, "but it is about to go on")
		time.AfterFunc(time.Second, func() { _ = b.Drive(ctx, b.key, b.queue.Only(b.key)) })
		rests, err = b.AwaitRest(ctx, b.key, resumed.After, time.Minute)
		require.NoError(t, err)
		require.True(t, rests)
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
	})
}

func TestEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, reads := tenSeconds(t)
		ctx := context.Background()
		b.begin(t, "go")

		page, err := b.Entries(ctx, runtime.EntriesParams{Key: b.key})
		require.NoError(t, err)
		require.Len(t, page.Entries, 1)
		require.Equal(t, session.StatusRunning, page.Status)
		require.False(t, page.Resting)

		began := time.Now()
		reads.Store(0)
		page, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: 1, Wait: 20 * time.Second})
		require.NoError(t, err)
		require.Empty(t, page.Entries)
		require.Equal(t, session.StatusRunning, page.Status)
		require.Equal(t, 20*time.Second, time.Since(began))
		require.Less(t, reads.Load(), int64(40))

		go func() { _ = b.Drive(ctx, b.key, b.queue.Only(b.key)) }()
		began = time.Now()
		page, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: 1, Wait: time.Minute})
		require.NoError(t, err)
		require.NotEmpty(t, page.Entries)
		require.EqualValues(t, 2, page.Entries[0].Seq)
		require.Less(t, time.Since(began), 12*time.Second)
		synctest.Wait()

		page, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key})
		require.NoError(t, err)
		last := page.Entries[len(page.Entries)-1]
		require.Equal(t, session.KindSuspended, last.Kind)
		require.True(t, page.Resting)
		require.False(t, page.More)

		began = time.Now()
		page, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: last.Seq, Wait: time.Minute})
		require.NoError(t, err)
		require.Empty(t, page.Entries)
		require.True(t, page.Resting)
		require.Equal(t, session.StatusSuspended, page.Status)
		require.Zero(t, time.Since(began), "nothing follows until somebody comes, so there is nothing to wait for")

		// Who watches others, or has told it to go on, waits all the same.
		_, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: last.Seq, Wait: 5 * time.Second, Stay: true})
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))

		page, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, Limit: 2})
		require.NoError(t, err)
		require.Len(t, page.Entries, 2)
		require.True(t, page.More)
		require.False(t, page.Resting)
		page, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: 2, Limit: int(last.Seq) - 2})
		require.NoError(t, err)
		require.False(t, page.More, "exactly the rest")
		require.True(t, page.Resting)
	})
}

// readCounter counts the entries that are read.
func readCounter(s store.Store, read *int) store.Store {
	return &hook{Store: s, entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
		return func(yield func(journal.Entry, error) bool) {
			for e, err := range s.Entries(ctx, key, after) {
				*read++
				if !yield(e, err) {
					return
				}
			}
		}
	}}
}

// TestEntries_are_bounded_in_bytes: a page reads no more of a journal than it holds,
// and one entry behind it; however large it is, one always comes.
func TestEntries_are_bounded_in_bytes(t *testing.T) {
	t.Parallel()
	w, _ := in(t, "running")
	w = w.another()
	first := w.process()
	w.run(first, "line")
	all, err := first.Journal(t.Context(), w.key)
	require.NoError(t, err)
	require.Len(t, all, 4)
	entries := 0
	p := w.process(func(cfg *runtime.Config) { cfg.Store = readCounter(w.store, &entries) })
	read := func(after, most int64) runtime.EntriesPage {
		entries = 0
		page, err := p.Entries(t.Context(), runtime.EntriesParams{Key: w.key, After: after, MaxBytes: most})
		require.NoError(t, err)
		return page
	}
	size := func(e journal.Entry) int64 { return int64(len(asJSON(t, &e))) }
	page := read(0, size(all[0])+size(all[1]))
	require.Equal(t, all[:2], page.Entries)
	require.True(t, page.More)
	require.False(t, page.Resting)
	require.Equal(t, all[1].Status, page.Status)
	require.Equal(t, 3, entries)
	page = read(2, 1)
	require.Equal(t, all[2:3], page.Entries)
	require.Equal(t, 2, entries)
	page = read(int64(len(all)-1), 1)
	require.False(t, page.More)
	require.True(t, page.Resting)
	require.Len(t, read(0, 0).Entries, len(all))
}

func TestAwait_ends_with_its_context(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := tenSeconds(t)
		b.begin(t, "go")
		gone := errors.New("the caller hung up")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(3*time.Second, func() { cancel(gone) })
		began := time.Now()
		_, err := b.AwaitRest(ctx, b.key, 0, time.Minute)
		require.ErrorIs(t, err, gone)
		_, err = b.Entries(ctx, runtime.EntriesParams{Key: b.key, After: 1, Wait: time.Minute})
		require.Error(t, err)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestAwait_refuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "running")
	none := session.Key{Tenant: w.key.Tenant, ID: "none"}
	odd := session.Key{Tenant: w.key.Tenant, ID: "a/b"}
	for key, want := range map[session.Key]runtime.Code{none: runtime.CodeSessionNotFound, odd: runtime.CodeInvalidID, {Tenant: "other", ID: w.key.ID}: runtime.CodeSessionNotFound} {
		_, err := p.AwaitRest(ctx, key, 0, time.Minute)
		require.Equal(t, want, codeOf(err))
		_, err = p.Entries(ctx, runtime.EntriesParams{Key: key, After: 7, Wait: time.Minute})
		require.Equal(t, want, codeOf(err))
		_, err = p.Head(ctx, key)
		require.Equal(t, want, codeOf(err))
		_, err = p.View(ctx, key)
		require.Equal(t, want, codeOf(err))
		_, err = p.Messages(ctx, key)
		require.Equal(t, want, codeOf(err))
		_, err = p.Runs(ctx, key)
		require.Equal(t, want, codeOf(err))
	}
	_, err := p.Entries(ctx, runtime.EntriesParams{Key: w.key, After: -1})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	_, err = p.Sessions(ctx, runtime.SessionsParams{Tenant: w.key.Tenant, Cursor: "not ours"})
	require.Equal(t, runtime.CodeInvalidCursor, codeOf(err))
}

// TestAwait_store_fails_once: whichever read fails, the failure is told, and nothing hangs.
func TestAwait_store_fails_once(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"running", "approve", "answered", "completed"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			w, _ := in(t, status)
			ask := map[string]func(p *process) error{
				"rest":    func(p *process) error { _, err := p.AwaitRest(ctx, w.key, 0, 0); return err },
				"entries": func(p *process) error { _, err := p.Entries(ctx, runtime.EntriesParams{Key: w.key}); return err },
				"tail": func(p *process) error {
					_, err := p.Entries(ctx, runtime.EntriesParams{Key: w.key, After: 9})
					return err
				},
				"stand":    func(p *process) error { _, err := p.View(ctx, w.key); return err },
				"messages": func(p *process) error { _, err := p.Messages(ctx, w.key); return err },
				"runs":     func(p *process) error { _, err := p.Runs(ctx, w.key); return err },
			}
			for name, f := range ask {
				for at := 1; ; at++ {
					s := &flaky{Store: w.store, Queue: w.queue, at: at}
					err := f(w.process(func(cfg *runtime.Config) { cfg.Store, cfg.Queue = s, s }))
					if s.op == "" {
						require.NoError(t, err)
						require.Greater(t, at, 1, name)
						break
					}
					require.ErrorIs(t, err, errMoment, "%s at %d", name, at)
					require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
				}
			}
		})
	}
}

func TestStand(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"running", "approve", "two", "client", "input", "answered", "interrupted", "completed", "failed", "cancelled"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			w, p := in(t, status)
			want, err := w.process().View(ctx, w.key)
			require.NoError(t, err)
			for range 2 { // from the journal, then from what is kept
				got, err := p.View(ctx, w.key)
				require.NoError(t, err)
				require.Equal(t, want, got)
				s := w.session()
				require.Equal(t, s.Status, got.Status)
				require.Equal(t, s.Version, got.Version)
				require.Equal(t, s.Step, got.Step)
				require.Equal(t, s.Run, got.Run)
				require.Equal(t, w.key, got.Head.Key)
				require.NotZero(t, got.Head.CreatedAt)
				messages, err := p.Messages(ctx, w.key)
				require.NoError(t, err)
				require.Equal(t, s.Messages, messages)
				runs, err := p.Runs(ctx, w.key)
				require.NoError(t, err)
				require.Len(t, runs, int(s.Run))
				for i, run := range runs {
					require.EqualValues(t, i+1, run.ID)
				}
				require.Equal(t, want.Pause != nil, len(got.Open) > 0)
				// What it says about a resume is what a resume then says.
				before := got.Resume
				if status == "running" {
					require.Nil(t, before)
					continue // its worker may come any moment; a resume would send for it again
				}
				_, err = w.process().Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
				if before == nil {
					require.NoError(t, err)
					if status == "interrupted" {
						break // it is running now
					}
				} else {
					require.Equal(t, before, runtime.AsError(err))
				}
			}
		})
	}
	w, p := in(t, "running")
	w.claimAs("elsewhere", w.session().Next())
	got, err := p.View(context.Background(), w.key)
	require.NoError(t, err)
	require.Equal(t, runtime.CodeAlreadyRunning, got.Resume.Code)
}

// TestStand_never_shows_waits_under_another_checkpoint: the session is answered and
// waits for the next thing while it is read.
func TestStand_never_shows_waits_under_another_checkpoint(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	deploy := func(text string) turn { return calls("deploy", `{"text":"`+text+`"}`) }
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {deploy("1"), deploy("2")}}))
	p := w.process()
	w.run(p, "go")
	m := &moving{Store: w.store}
	m.beforeWaits = func() {
		_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes())})
		require.NoError(t, err)
		require.NoError(t, p.settle())
	}
	got, err := w.process(func(cfg *runtime.Config) { cfg.Store = m }).View(ctx, w.key)
	require.NoError(t, err)
	require.Len(t, got.Open, 1)
	require.JSONEq(t, `{"text":"2"}`, string(got.Open[0].Wait.Arguments))
	require.Equal(t, w.session().Checkpoint().String(), got.Checkpoint)
	require.Equal(t, w.session().Version, got.Version)
}

// TestStand_gives_up: HEAD is ahead of the journal for ever.
func TestStand_gives_up(t *testing.T) {
	t.Parallel()
	w, p := in(t, "approve")
	head := w.head()
	ahead := *head.Head
	ahead.StatusSeq++
	_, err := w.store.Update(context.Background(), w.key, store.HeadItem(ahead, head.Rev))
	require.NoError(t, err)
	_, err = p.View(context.Background(), w.key)
	require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
}
