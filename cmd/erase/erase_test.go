package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// house has the sessions of ana and bob, in a store of the embedded engine.
type house struct {
	*testing.T
	store store.Store
	queue *sqlite.Queue
	run   *runtime.Runtime
}

// newHouse makes one on a store; nil is one of the embedded engine.
func newHouse(t *testing.T, in store.Store) *house {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	h := &house{T: t, store: in, queue: db.Queue()}
	if in == nil {
		h.store = db.Store()
	}
	registry, err := agents.Registry()
	require.NoError(t, err)
	h.run, err = runtime.New(runtime.Config{
		Registry: registry, Store: h.store, Queue: h.queue, DeadLetters: db.DeadLetters(), Owner: "worker", Now: time.Now, NewID: rand.Text,
	})
	require.NoError(t, err)
	return h
}

const approval = "[{call: deploy, with: {service: web}}, {say: done}]"

// start begins a session and, if driven, has it rest.
func (h *house) start(tenant, id, who, script string, driven bool) session.Key {
	h.Helper()
	key := session.Key{Tenant: tenant, ID: id}
	_, err := h.run.Start(h.Context(), runtime.StartParams{Key: key, Agent: "lab", Input: llm.TextParts(script), Caller: runtime.Caller{Who: who, From: "test"}})
	require.NoError(h, err)
	if driven {
		h.drive(key)
	}
	return key
}

func (h *house) drive(key session.Key) {
	h.Helper()
	require.NoError(h, h.run.Drive(h.Context(), key, h.queue.Only(key)))
}

// entries are those of a session that is there; nil of one that is gone.
func (h *house) entries(key session.Key) []journal.Entry {
	h.Helper()
	var all []journal.Entry
	for entry, err := range h.store.Entries(h.Context(), key, 0) {
		require.NoError(h, err)
		all = append(all, entry)
	}
	return all
}

// erase runs the program on the house's store, without a terminal.
func (h *house) erase(in store.Store, args ...string) (string, error) {
	h.Helper()
	var out bytes.Buffer
	err := run(h.Context(), append([]string{"-table", "t", "-bucket", "b", "-tenant", "acme", "-person", "ana"}, args...), strings.NewReader("y\n"), &out,
		func(_ context.Context, at where) (store.Store, error) {
			require.Equal(h, where{table: "t", bucket: "b"}, at)
			return in, nil
		})
	return out.String(), err
}

func TestErase(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	paused, done := h.start("acme", "paused", "ana", approval, true), h.start("acme", "done", "ana", "[{say: hello}]", true)
	other, elsewhere := h.start("acme", "other", "bob", approval, true), h.start("globex", "elsewhere", "ana", approval, true)
	answered := h.start("acme", "answered", "bob", approval, true)
	for item, err := range h.store.Items(t.Context(), answered, store.KindWait, "") {
		require.NoError(t, err)
		yes := true
		_, err = h.run.Submit(t.Context(), runtime.SubmitParams{Key: answered, Caller: runtime.Caller{Who: "ana"}, Answer: session.Answer{
			Wait: item.ID, Kind: session.AnswerApproval, ApprovalID: item.Wait.Wait.Nonce, Approved: &yes,
		}})
		require.NoError(t, err)
	}
	h.drive(answered)
	kept := [][]journal.Entry{h.entries(other), h.entries(elsewhere), h.entries(answered)}

	out, err := h.erase(h.store)
	require.ErrorIs(t, err, errRefused, "nobody was asked")
	require.Len(t, h.entries(done), 2)
	require.Contains(t, out, "ana of tenant acme started 2 sessions.")

	out, err = h.erase(h.store, "-yes", "-named")
	require.NoError(t, err)
	require.Contains(t, out, "done    lab  completed  started 20")
	require.Contains(t, out, "paused  lab  suspended  started 20")
	require.Contains(t, out, "  answered names ana: entry 3, ")
	require.NotContains(t, out, "  other names")
	require.Contains(t, out, "Looked at 2 other sessions")
	require.Contains(t, out, "Deleted: 2 sessions.\n\nWhat remains, and goes by itself:\n")
	require.Empty(t, h.entries(paused))
	require.Empty(t, h.entries(done))
	for i, key := range []session.Key{other, elsewhere, answered} {
		require.Equal(t, kept[i], h.entries(key))
	}

	out, err = h.erase(h.store)
	require.NoError(t, err, "nothing is left to ask about")
	require.Contains(t, out, "ana of tenant acme started 0 sessions.\n\nWhat remains")
}

// Who is away is in a record of the tenant, which no session is deleted with: a person who is forgotten is
// taken out of it, as who is away and as who stands in, and others stay.
func TestEraseAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	away := func(who, to string) {
		_, err := h.run.SetAway(t.Context(), runtime.AwayParams{Tenant: "acme", Who: who, To: to, Until: time.Now().Add(time.Hour), Reason: "in hospital", From: "192.0.2.7"})
		require.NoError(t, err)
	}
	away("ana", "carl")
	away("dora", "carl")
	away("bob", "ana")
	out, err := h.erase(h.store)
	require.ErrorIs(t, err, errRefused, "nobody was asked")
	require.Contains(t, out, "The tenant's record of who is away names ana in 4 lines.")
	is, err := h.run.Away(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, is.StandIns, 3)

	first := &conflicting{Store: h.store, before: func() { away("ana", "dora") }}
	out, err = h.erase(first, "-yes")
	require.NoError(t, err)
	require.Contains(t, out, "What remains")
	is, err = h.run.Away(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, is.StandIns, 1)
	require.Len(t, is.Changes, 1)
	require.Equal(t, []string{"dora", "carl", "dora"}, []string{is.StandIns[0].Person, is.StandIns[0].StandIn, is.Changes[0].Person})
	for item, err := range h.store.Items(t.Context(), session.Key{Tenant: "acme"}, store.KindTenantRecord, journal.AbsencesRecord) {
		require.NoError(t, err)
		require.NotContains(t, string(item.TenantRecord.Value), "ana")
	}
	away("eve", "carl") // it is still a record that runtime changes
	out, err = h.erase(h.store)
	require.NoError(t, err, "nothing is left to ask about")
	require.NotContains(t, out, "who is away")
}

// conflicting has somebody else write right before the first update.
type conflicting struct {
	store.Store
	before func()
}

func (c *conflicting) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	return c.Store.Update(ctx, key, items...)
}

// A session that runs is left unless it is said that it may go; then it is deleted
// again once its worker's lease is over.
func TestEraseRunning(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	resting, running := h.start("acme", "resting", "ana", approval, true), h.start("acme", "running", "ana", approval, false)
	out, err := h.erase(h.store, "-yes")
	require.ErrorContains(t, err, "1 session not deleted, a step of them runs: [running]; run this again later, or with -running")
	require.Contains(t, out, "Deleted: 1 session.\n")
	require.Empty(t, h.entries(resting))
	require.Len(t, h.entries(running), 1)

	now := time.Now()
	_, err = h.store.Claim(t.Context(), store.ClaimParams{Key: running, Mode: store.ClaimTake, Owner: "worker", Seq: 2, Now: now, Until: now.Add(time.Minute)})
	require.NoError(t, err)
	watched := &watched{Store: h.store}
	var text bytes.Buffer
	var slept []time.Duration
	e := &eraser{
		store: watched, tenant: "acme", person: "ana", running: true, out: &text, now: func() time.Time { return now },
		agree: func(question string) error {
			require.Equal(t, "Delete 1 session for good?", question)
			return nil
		},
		sleep: func(_ context.Context, d time.Duration) error {
			slept = append(slept, d)
			require.Equal(t, []string{"running"}, watched.deleted)
			return nil
		},
	}
	require.NoError(t, e.erase(t.Context()))
	require.Equal(t, []string{"running", "running"}, watched.deleted)
	require.Len(t, slept, 1)
	require.InDelta(t, time.Minute+afterLease, slept[0], float64(time.Millisecond))
	require.Contains(t, text.String(), "the step in flight cannot be called back")
	require.Empty(t, h.entries(running))
}

// watched remembers what was deleted, and fails at a request of its choice, before
// or after it was carried out.
type watched struct {
	store.Store
	deleted []string
	writes  int
	failAt  int
	after   bool
}

var errCut = errors.New("cut short")

func (w *watched) write(do func() error) error {
	w.writes++
	if w.writes == w.failAt && !w.after {
		return errCut
	}
	err := do()
	if w.writes == w.failAt {
		return errCut
	}
	return err
}

func (w *watched) Delete(ctx context.Context, key session.Key) error {
	return w.write(func() error {
		w.deleted = append(w.deleted, key.ID)
		return w.Store.Delete(ctx, key)
	})
}

func (w *watched) Update(ctx context.Context, key session.Key, items ...store.Item) (is []store.Item, err error) {
	err = w.write(func() error {
		is, err = w.Store.Update(ctx, key, items...)
		return err
	})
	return is, err
}

// Cut short at each of its writes, the next run finishes it.
func TestEraseCutShort(t *testing.T) {
	t.Parallel()
	for failAt := 1; ; failAt++ {
		for _, after := range []bool{false, true} {
			h := newHouse(t, nil)
			var keys []session.Key
			for _, id := range []string{"a", "b", "c"} {
				keys = append(keys, h.start("acme", id, "ana", "[{say: hello}]", true))
			}
			first := &watched{Store: h.store, failAt: failAt, after: after}
			_, err := h.erase(first, "-yes")
			if err == nil {
				require.Equal(t, 6, failAt, "two of the record, three deletions")
				return
			}
			require.ErrorIs(t, err, errCut)
			second := &watched{Store: h.store}
			out, err := h.erase(second, "-yes")
			require.NoError(t, err)
			for _, key := range keys {
				require.Empty(t, h.entries(key))
				require.True(t, slices.Contains(second.deleted, key.ID) || failAt == 5 && after, "%s at %d: it may have been deleted by half", key.ID, failAt)
			}
			if failAt > 2 && failAt < 5 {
				require.Contains(t, out, "An earlier run was cut short")
			}
			_, left, err := (&eraser{store: h.store, tenant: "acme"}).record(t.Context())
			require.NoError(t, err)
			require.Empty(t, left.Sessions)
		}
	}
}

func TestEraseAsks(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]error{"y\n": nil, "YES\n": nil, "\n": errRefused, "n\n": errRefused, "yesterday\n": errRefused, "\x04": errRefused} {
		person, terminal, err := pty.Open()
		require.NoError(t, err)
		_, err = person.WriteString(typed)
		require.NoError(t, err)
		var out bytes.Buffer
		require.ErrorIs(t, ask(terminal, &out, "Delete 3 sessions for good?"), want, "%q", typed)
		require.Equal(t, "Delete 3 sessions for good? [y/N] ", out.String())
		require.NoError(t, errors.Join(terminal.Close(), person.Close()))
	}
}

func TestEraseUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"-tenant", "a b", "-table", "t", "-bucket", "b", "-person", "ana"}, {"-what"}, {"-table", "t", "-bucket", "b", "-tenant", "acme", "-person", "ana", "bob"}} {
		var out bytes.Buffer
		require.ErrorIs(t, run(t.Context(), args, nil, &out, nil), errUsage, "%v", args)
	}
}
