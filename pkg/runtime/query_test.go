package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

func TestNew_names_all_that_is_missing(t *testing.T) {
	t.Parallel()
	_, err := runtime.New(runtime.Config{})
	for _, field := range []string{"Registry", "Store", "Queue", "Owner", "Now", "NewID"} {
		require.ErrorContains(t, err, field)
	}
}

func TestView_outcome(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]struct {
		outcome session.Outcome
		pause   session.PauseType
		text    string
	}{
		"running":     {session.OutcomeRunning, "", ""},
		"approve":     {session.OutcomePaused, session.PauseToolApproval, ""},
		"two":         {session.OutcomePaused, session.PauseToolApproval, ""},
		"client":      {session.OutcomePaused, session.PauseClientTool, ""},
		"input":       {session.OutcomePaused, session.PauseInput, "where?"},
		"answered":    {session.OutcomeRunning, "", ""},
		"interrupted": {session.OutcomeInterrupted, "", ""},
		"completed":   {session.OutcomeCompleted, "", "done"},
		"failed":      {session.OutcomeFailed, "", ""},
		"cancelled":   {session.OutcomeCancelled, "", "Cancelled by user"},
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			w, p := in(t, status)
			m, err := p.View(context.Background(), w.key)
			require.NoError(t, err)
			require.Equal(t, want.outcome, m.Outcome)
			require.Equal(t, w.session().Checkpoint().String(), m.Checkpoint)
			if want.pause == "" {
				require.Nil(t, m.Pause)
			} else {
				require.Equal(t, want.pause, m.Pause.Type)
				require.NotEmpty(t, m.Open)
			}
			switch status {
			case "failed":
				require.Equal(t, "planner_failed", m.Failure.Type)
			case "completed", "cancelled":
				require.NotEmpty(t, m.Text)
			default:
				require.Equal(t, want.text, m.Text)
			}
		})
	}
	w, p := in(t, "running")
	_, err := p.View(context.Background(), session.Key{Tenant: w.key.Tenant, ID: "none"})
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
}

func TestQueries(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "approve")
	second := w.another()
	second.run(second.process(), "say")
	page, err := p.Sessions(ctx, runtime.SessionsParams{Tenant: w.key.Tenant, Limit: 1})
	require.NoError(t, err)
	require.Len(t, page.Heads, 1)
	page, err = p.Sessions(ctx, runtime.SessionsParams{Tenant: w.key.Tenant, Limit: 5, Cursor: page.Cursor})
	require.NoError(t, err)
	require.Len(t, page.Heads, 1)
	page, err = p.Sessions(ctx, runtime.SessionsParams{Tenant: w.key.Tenant, Status: session.StatusSuspended})
	require.NoError(t, err)
	require.Len(t, page.Heads, 1)
	inbox, err := p.Inbox(ctx, runtime.InboxParams{Tenant: w.key.Tenant})
	require.NoError(t, err)
	require.Len(t, inbox.Items, 1)
	require.Equal(t, w.key, inbox.Items[0].Key)
	inbox, err = p.Inbox(ctx, runtime.InboxParams{Tenant: "other"})
	require.NoError(t, err)
	require.Empty(t, inbox.Items)

	bad := session.Key{Tenant: "no/tenant", ID: "x"}
	_, err = p.Session(ctx, bad)
	require.Equal(t, runtime.CodeInvalidID, codeOf(err))
	_, err = p.Waits(ctx, bad)
	require.Equal(t, runtime.CodeInvalidID, codeOf(err))
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: bad})
	require.Equal(t, runtime.CodeInvalidID, codeOf(err))

	broken := w.process(func(cfg *runtime.Config) { cfg.Store = brokenStore(w.store, w.key) })
	_, err = broken.Session(ctx, w.key)
	require.Equal(t, runtime.CodeCorrupt, codeOf(err))
	_, err = broken.Start(ctx, startParams(w, "go", ""))
	require.Equal(t, runtime.CodeCorrupt, codeOf(err))
	require.Error(t, broken.Drive(ctx, w.key, w.queue))
}

// halfRead finds one item of two without its record, as a store does that cannot read it.
type halfRead struct{ store.Store }

func (h halfRead) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	page, err := h.Store.Find(ctx, p)
	for i, f := range page.Found {
		if i%2 == 0 {
			continue
		}
		page.Found[i].Unread = errors.New("its object is gone")
		if f.Item.Wait != nil {
			page.Found[i].Item.Wait = &journal.WaitRecord{Wait: session.Wait{ID: f.Item.ID, OpenedAt: f.Item.Wait.Wait.OpenedAt}, State: session.WaitOpen}
		} else {
			page.Found[i].Item.Head = &journal.Head{Key: f.Key, Status: f.Item.Head.Status, UpdatedAt: f.Item.Head.UpdatedAt}
		}
	}
	return page, err
}

// TestLists_show_what_cannot_be_read: a list has all there is, and the log says what is missing.
func TestLists_show_what_cannot_be_read(t *testing.T) {
	t.Parallel()
	w, _ := in(t, "two")
	var log strings.Builder
	p := w.process(func(cfg *runtime.Config) {
		cfg.Store, cfg.Log = halfRead{w.store}, slog.New(slog.NewTextHandler(&log, nil))
	})
	inbox, err := p.Inbox(t.Context(), runtime.InboxParams{Tenant: w.key.Tenant})
	require.NoError(t, err)
	require.Len(t, inbox.Items, 2)
	require.False(t, inbox.Items[0].LeftOut)
	require.NotEmpty(t, inbox.Items[0].Record.Wait.Nonce)
	left := inbox.Items[1]
	require.True(t, left.LeftOut)
	require.Equal(t, w.key, left.Key)
	require.Equal(t, session.WaitOpen, left.Record.State)
	require.Empty(t, left.Record.Wait.Nonce, "nobody can approve it from there")
	require.True(t, strings.HasPrefix(string(left.Record.Wait.Arguments), `"[left out: `))
	for _, said := range []string{"level=WARN", w.key.ID, left.Record.Wait.ID, "its object is gone"} {
		require.Contains(t, log.String(), said)
	}
	second := w.another()
	second.run(second.process(), "say")
	page, err := p.Sessions(t.Context(), runtime.SessionsParams{Tenant: w.key.Tenant})
	require.NoError(t, err)
	require.Len(t, page.Heads, 2)
	require.NotEmpty(t, page.Heads[1].Key.ID)
	require.Empty(t, page.Heads[1].Agent)
}

func TestEachEntry(t *testing.T) {
	t.Parallel()
	w, p := in(t, "completed")
	all, err := p.Journal(t.Context(), w.key)
	require.NoError(t, err)
	var each []journal.Entry
	for e, err := range p.EachEntry(t.Context(), w.key) {
		require.NoError(t, err)
		each = append(each, e)
	}
	require.Equal(t, all, each)
	for _, err := range p.EachEntry(t.Context(), w.key) {
		require.NoError(t, err)
		break
	}
	broken := w.process(func(cfg *runtime.Config) { cfg.Store = brokenStore(w.store, w.key) })
	for _, c := range []struct {
		p    *process
		key  session.Key
		want runtime.Code
	}{
		{p, session.Key{Tenant: "no/tenant", ID: "x"}, runtime.CodeInvalidID},
		{p, session.Key{Tenant: w.key.Tenant, ID: "none"}, runtime.CodeSessionNotFound},
		{broken, w.key, runtime.CodeCorrupt},
	} {
		n := 0
		for _, err := range c.p.EachEntry(t.Context(), c.key) {
			require.Equal(t, c.want, codeOf(err))
			n++
		}
		require.Equal(t, 1, n)
	}
}

func TestUnresumed(t *testing.T) {
	t.Parallel()
	w, p := in(t, "answered")
	keys, err := p.Unresumed(context.Background())
	require.NoError(t, err)
	require.Equal(t, []session.Key{w.key}, keys)
	require.NoError(t, p.settle())
	keys, err = p.Unresumed(context.Background())
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestProgress_is_told(t *testing.T) {
	t.Parallel()
	w, _ := in(t, "running")
	w = w.another()
	var mu sync.Mutex
	var told []runtime.Progress
	p := w.process(func(cfg *runtime.Config) {
		cfg.OnEntry = func(key session.Key, progress runtime.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if key == w.key {
				told = append(told, progress)
			}
		}
	})
	w.run(p, "line")
	require.Len(t, told, 4)
	require.Equal(t, session.KindReplied, told[1].Kind)
	require.Equal(t, []string{"line"}, told[1].Calls)
	require.Equal(t, "bye", told[3].Text)
	require.Equal(t, session.StatusCompleted, told[3].Status)
}

func TestNewProgress_names_what_failed(t *testing.T) {
	t.Parallel()
	result := func(name string, status llm.ResultStatus) llm.Part {
		return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{Name: name, Status: status}}
	}
	p := runtime.NewProgress(&journal.Entry{Kind: session.KindStepped, Messages: []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{
		result("a", llm.ResultSuccess), result("b", llm.ResultError), result("c", llm.ResultDenied), result("d", llm.ResultTimedOut),
		result("e", llm.ResultUnknown), result("f", llm.ResultCancelled),
	}}}})
	require.Equal(t, []string{"b", "d", "e"}, p.Failed, "not what a person refused or stopped")
}

func TestError(t *testing.T) {
	t.Parallel()
	require.Nil(t, runtime.AsError(nil))
	for cause, code := range map[error]runtime.Code{
		store.ErrNotFound: runtime.CodeSessionNotFound, store.ErrNotOurs: runtime.CodeNotOurs, journal.ErrUnknownFormat: runtime.CodeNotOurs, journal.ErrNeeds: runtime.CodeNewerNeeded,
		store.ErrCorrupt: runtime.CodeCorrupt, store.ErrUnavailable: runtime.CodeStoreUnavailable, session.ErrInvalidID: runtime.CodeInvalidID,
		session.ErrInvalidCheckpoint: runtime.CodeInvalidCheckpoint, errors.New("other"): runtime.CodeInternal,
	} {
		e := runtime.AsError(fmt.Errorf("while testing: %w", cause))
		require.Equal(t, code, e.Code)
		require.ErrorIs(t, e, cause)
		require.Contains(t, e.Error(), "while testing")
		require.Same(t, e, runtime.AsError(fmt.Errorf("again: %w", e)))
	}
	for code, class := range map[runtime.Code]runtime.Class{
		runtime.CodeInputTooLarge: runtime.ClassInvalid, runtime.CodeUnknownAgent: runtime.ClassNotFound, runtime.CodeNotAllowed: runtime.ClassForbidden,
		runtime.CodeStillWaiting: runtime.ClassConflict, runtime.CodeExpired: runtime.ClassGone, runtime.CodeNotOurs: runtime.ClassUnavailable, runtime.CodeNewerNeeded: runtime.ClassUnavailable,
		runtime.CodeCorrupt: runtime.ClassInternal, "news": runtime.ClassInternal,
	} {
		require.Equal(t, class, code.Class(), code)
	}
	w, p := in(t, "completed")
	_, err := resume(w, p, runtime.ResumeContinue)
	require.Equal(t, session.StatusCompleted, runtime.AsError(err).Status)
	require.Contains(t, err.Error(), "session s1")
}

// rereading counts how often a journal is read from its beginning.
func rereading(s store.Store, times map[session.Key]int) store.Store {
	return &hook{Store: s, entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
		if after == 0 {
			times[key]++
		}
		return s.Entries(ctx, key, after)
	}}
}

// TestCache_is_bounded_by_what_it_holds: what large sessions take is given back for
// those used since, and one that would take all is not kept.
func TestCache_is_bounded_by_what_it_holds(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{}))
	times := map[session.Key]int{}
	p := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.CacheBytes = rereading(w.store, times), 100<<10 })
	sizes := map[string]int{"small": 1 << 10, "half": 50 << 10, "other": 50 << 10, "large": 200 << 10}
	reread := func(id string) int {
		k := session.Key{Tenant: session.DefaultTenant, ID: id}
		before := times[k]
		_, err := p.Messages(t.Context(), k)
		require.NoError(t, err)
		return times[k] - before
	}
	for id, size := range sizes {
		_, err := p.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant, ID: id}, Agent: "a", Input: llm.TextParts(strings.Repeat("x", size))})
		require.NoError(t, err)
	}
	reread("half")
	reread("small")
	require.Zero(t, reread("half"), "both fit")
	require.Zero(t, reread("small"))
	require.Equal(t, 1, reread("large"))
	require.Equal(t, 1, reread("large"), "it does not fit alone")
	require.Zero(t, reread("half"), "and drives nobody out")
	require.Zero(t, reread("small"))
	require.Equal(t, 1, reread("other"))
	require.Zero(t, reread("small"), "of the others the last used stay")
	require.Equal(t, 1, reread("half"))
}

func TestSuspension_opens_at_most_so_many_waits(t *testing.T) {
	t.Parallel()
	var many, asks []string
	for i := range session.MaxWaits + 5 {
		many = append(many, "locate", fmt.Sprintf(`{"text":"%d"}`, i))
		asks = append(asks, "pick", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	for name, calling := range map[string]turn{"client tools": calls(many...), "questions of side effects": calls(asks...)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calling}}))
			p := w.process()
			w.run(p, "go")
			require.Equal(t, session.StatusSuspended, w.session().Status)
			require.Len(t, w.waits(), session.MaxWaits)
			for w.session().Status == session.StatusSuspended {
				for _, record := range w.waits() {
					if record.State != session.WaitOpen {
						continue
					}
					a := session.Answer{Result: json.RawMessage(`1`)}
					if record.Wait.Kind == session.WaitQuestion {
						a = session.Answer{Selected: []string{"red"}}
					}
					_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, a)})
					require.NoError(t, err)
				}
				require.NoError(t, p.work())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			r := results(w.session())
			require.Len(t, r, session.MaxWaits+5)
			for id, result := range r {
				require.Equal(t, llm.ResultSuccess, result.Status, id)
			}
			w.clock.advance(time.Minute)
			w.checkAtRest()
		})
	}
}
