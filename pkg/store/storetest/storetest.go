// Package storetest holds the contract of the store port as tests.
//
// Every sentence of store's comments is a subtest. An adapter runs all of them:
//
//	storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Saboteur is what the store of a fixture may do as well, so that damage can be tested.
type Saboteur interface {
	// RemoveEntry takes an entry out of a journal, as no method of the port can.
	RemoveEntry(ctx context.Context, key session.Key, seq int64) error
	// SpoilEntry makes an entry unreadable.
	SpoilEntry(ctx context.Context, key session.Key, seq int64) error
	// SpoilItem makes the record of a HEAD or a wait unreadable.
	SpoilItem(ctx context.Context, key session.Key, kind store.ItemKind, id string) error
}

// Queued is what the store of a fixture has if it enqueues wakes with a commit.
type Queued interface {
	// Queued returns the wakes that are in the queue, in any order.
	Queued(ctx context.Context) ([]journal.Wake, error)
}

// Run runs the contract against stores made by open: a fresh one per subtest,
// all of them in parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	groups := []struct {
		name  string
		tests []test
	}{
		{"commit", commitTests},
		{"entries", entryTests},
		{"claim", claimTests},
		{"commit with a claim", commitClaimTests},
		{"commit for the owner of the lease", leaseOwnerTests},
		{"commit with marks", commitMarkTests},
		{"update", updateTests},
		{"items of other sessions", acrossTests},
		{"items of the tenant", tenantTests},
		{"of a newer program", newerTests},
		{"items", itemTests},
		{"find", findTests},
		{"find only some", keepTests},
		{"delete", deleteTests},
		{"context", contextTests},
	}
	for _, g := range groups {
		for _, tt := range g.tests {
			t.Run(g.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				tt.run(&fixture{T: t, store: open(t), key: session.Key{Tenant: "acme", ID: "s-1"}})
			})
		}
	}
}

// test is one sentence of the contract.
type test struct {
	name string
	run  func(f *fixture)
}

// fixture is one subtest's store, with a session to use.
type fixture struct {
	*testing.T
	store store.Store
	key   session.Key
}

// at is the kit's clock: n seconds after its epoch, with nanoseconds, for
// stores must keep them.
func at(n int) time.Time {
	return time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.UTC).Add(time.Duration(n) * time.Second)
}

func ptr[T any](v T) *T { return &v }

// entry returns a small entry.
func entry(seq int64) journal.Entry {
	e := journal.Entry{
		V: journal.Format, Seq: seq, Kind: session.KindStepped, At: at(int(seq)), By: "storetest",
		Attempt: session.Attempt{ID: fmt.Sprintf("attempt-%d", seq), N: 1, For: seq},
		Token:   "token", Task: 1, Run: 1, Step: seq, RulesAt: 1, Status: session.StatusRunning,
		Messages: []llm.Message{{Role: llm.RoleAssistant}},
	}
	if seq == 1 {
		e.Kind = session.KindStarted
	}
	return e
}

func head(key session.Key) journal.Head {
	return journal.Head{
		Key: key, Status: session.StatusRunning, Agent: "lab", Title: "a title", Task: 1, StatusSeq: 1,
		CreatedAt: at(0), UpdatedAt: at(0),
	}
}

func wait(id string) journal.WaitRecord {
	return journal.WaitRecord{
		Wait:  session.Wait{ID: id, Kind: session.WaitApproval, Call: "c1-0", Tool: "rm", Nonce: "n", OpenedAt: at(0)},
		State: session.WaitOpen, Agent: "lab",
	}
}

func notice(n int) journal.Notice {
	return journal.Notice{
		ID: journal.EntryNotice(int64(n)), Type: journal.NoticeSuspended, At: at(n), Agent: "lab", Seq: int64(n), Due: ptr(at(n + 100)),
		Sends: []journal.NoticeSend{{Channel: "webhook", State: journal.NoticePending}},
	}
}

func tool(call string) journal.ToolRecord {
	return journal.ToolRecord{Call: call, State: journal.ToolStarted, Attempt: "a", At: at(1)}
}

// commit writes entry seq with items and requires success.
func (f *fixture) commit(seq int64, items ...store.Item) store.Committed {
	f.Helper()
	c, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(seq), Items: items})
	require.NoError(f, err)
	return c
}

// start writes entry 1 with HEAD.
func (f *fixture) start() {
	f.Helper()
	f.commit(1, store.HeadItem(head(f.key), 0))
}

func (f *fixture) entries(after int64) []journal.Entry {
	f.Helper()
	return collect(f, f.store.Entries(f.Context(), f.key, after))
}

func (f *fixture) items(kind store.ItemKind, id string) []store.Item {
	f.Helper()
	return collect(f, f.store.Items(f.Context(), f.key, kind, id))
}

func (f *fixture) head() store.Item {
	f.Helper()
	items := f.items(store.KindHead, "")
	require.Len(f, items, 1)
	return items[0]
}

func (f *fixture) update(item store.Item) store.Item {
	f.Helper()
	got, err := f.store.Update(f.Context(), f.key, item)
	require.NoError(f, err)
	require.Len(f, got, 1)
	return got[0]
}

func collect[T any](f *fixture, seq iter.Seq2[T, error]) []T {
	f.Helper()
	var all []T
	for v, err := range seq {
		require.NoError(f, err)
		all = append(all, v)
	}
	return all
}

// conflict requires a refusal and returns it.
func conflict(f *fixture, err error) *store.ConflictError {
	f.Helper()
	require.ErrorIs(f, err, store.ErrConflict)
	var c *store.ConflictError
	require.ErrorAs(f, err, &c)
	require.Equal(f, f.key, c.Key)
	require.NotEqual(f, c.Entry == nil, c.Item == nil, "exactly one of entry and item is set")
	return c
}

// race runs n functions at once and returns their errors.
func race(n int, do func(i int) error) []error {
	start := make(chan struct{})
	errs := make(chan error, n)
	for i := range n {
		go func() {
			<-start
			errs <- do(i)
		}()
	}
	close(start)
	all := make([]error, n)
	for i := range all {
		all[i] = <-errs
	}
	return all
}

func successes(errs []error) int {
	n := 0
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n
}

var contextTests = []test{
	{"an ended context's cause is in the error of every method", func(f *fixture) {
		f.start()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(f.Context())
		cancel(cause)
		_, err := f.store.Commit(ctx, store.CommitParams{Key: f.key, Entry: entry(2)})
		require.ErrorIs(f, err, cause)
		_, err = f.store.Update(ctx, f.key, store.ToolItem(tool("c1-0"), 0))
		require.ErrorIs(f, err, cause)
		_, err = f.store.Claim(ctx, take("w", 2, 0, 20))
		require.ErrorIs(f, err, cause)
		_, err = f.store.Find(ctx, store.FindParams{Kind: store.FindSessions, Tenant: f.key.Tenant})
		require.ErrorIs(f, err, cause)
		require.ErrorIs(f, f.store.Delete(ctx, f.key), cause)
		for _, err := range f.store.Entries(ctx, f.key, 0) {
			require.ErrorIs(f, err, cause)
		}
		for _, err := range f.store.Items(ctx, f.key, store.KindHead, "") {
			require.ErrorIs(f, err, cause)
		}
	}},
	{"a write whose context has ended before leaves nothing", func(f *fixture) {
		f.start()
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		_, err := f.store.Commit(ctx, store.CommitParams{Key: f.key, Entry: entry(2)})
		require.ErrorIs(f, err, context.Canceled)
		require.Len(f, f.entries(0), 1)
	}},
	{"an iterator ends when its consumer stops and may call the store meanwhile", func(f *fixture) {
		f.start()
		for i := int64(2); i <= 20; i++ {
			f.commit(i)
		}
		seen := 0
		for e, err := range f.store.Entries(f.Context(), f.key, 0) {
			require.NoError(f, err)
			f.update(store.ToolItem(tool(fmt.Sprintf("c%d-0", e.Seq)), 0))
			f.head()
			if seen++; seen == 5 {
				break
			}
		}
		require.Len(f, f.items(store.KindTool, ""), 5)
	}},
	{"keys that are not valid are refused", func(f *fixture) {
		for _, key := range []session.Key{{Tenant: "acme"}, {ID: "s"}, {Tenant: "a/b", ID: "s"}, {Tenant: "acme", ID: "a#b"}} {
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: key, Entry: entry(1)})
			require.ErrorIs(f, err, session.ErrInvalidID)
		}
	}},
}
