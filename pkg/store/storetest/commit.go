package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var commitTests = []test{
	{"an entry is written if its seq is free", func(f *fixture) {
		f.commit(1)
		f.commit(2)
		got := f.entries(0)
		require.Len(f, got, 2)
		want := entry(2)
		want.Hash = got[1].Hash
		require.Equal(f, want, got[1])
	}},
	{"the result holds the hash and size of the entry as stored", func(f *fixture) {
		e := entry(1)
		payload, err := journal.Encode(&e)
		require.NoError(f, err)
		c := f.commit(1)
		require.Equal(f, e.Hash, c.Hash)
		require.Len(f, payload, c.Bytes)
		require.Equal(f, c.Hash, f.entries(0)[0].Hash)
	}},
	{"a seq that is taken is a conflict with the entry that is there", func(f *fixture) {
		f.commit(1)
		f.commit(2)
		late := entry(2)
		late.Attempt.ID = "late"
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: late})
		there := conflict(f, err).Entry
		require.NotNil(f, there)
		require.Equal(f, "attempt-2", there.Attempt.ID)
		require.Equal(f, f.entries(1)[0], *there)
	}},
	{"a writer finds its own attempt in the conflict of a repeated commit", func(f *fixture) {
		f.commit(1)
		p := store.CommitParams{Key: f.key, Entry: entry(1)}
		_, err := f.store.Commit(f.Context(), p)
		require.Equal(f, p.Entry.Attempt, conflict(f, err).Entry.Attempt)
	}},
	{"of 64 writers of one version one wins and 63 get the winner's entry", func(f *fixture) {
		f.start()
		winners := make([]string, 64)
		errs := race(64, func(i int) error {
			e := entry(2)
			e.Attempt.ID = fmt.Sprintf("writer-%d", i)
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e})
			if err != nil {
				winners[i] = conflict(f, err).Entry.Attempt.ID
			} else {
				winners[i] = e.Attempt.ID
			}
			return err
		})
		require.Equal(f, 1, successes(errs))
		won := f.entries(1)
		require.Len(f, won, 1)
		for _, w := range winners {
			require.Equal(f, won[0].Attempt.ID, w)
		}
	}},
	{"of 64 writers of one version with items one wins and one set of items is there", func(f *fixture) {
		f.start()
		errs := race(64, func(i int) error {
			h := head(f.key)
			h.Title = fmt.Sprintf("by %d", i)
			e := entry(2)
			e.Attempt.ID = h.Title
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e, Items: []store.Item{
				store.HeadItem(h, 1), store.ToolItem(tool(fmt.Sprintf("c%d-0", i)), 0),
			}})
			return err
		})
		require.Equal(f, 1, successes(errs))
		require.Equal(f, f.entries(1)[0].Attempt.ID, f.head().Head.Title)
		require.Len(f, f.items(store.KindTool, ""), 1)
	}},
	{"items are stored at rev 1 when they are new and at rev plus 1 after", func(f *fixture) {
		f.commit(1, store.HeadItem(head(f.key), 0), store.WaitItem(wait("w1-0"), 0))
		require.EqualValues(f, 1, f.head().Rev)
		w := wait("w1-0")
		w.State = session.WaitTaken
		f.commit(2, store.HeadItem(head(f.key), 1), store.WaitItem(w, 1))
		require.EqualValues(f, 2, f.head().Rev)
		require.Equal(f, store.WaitItem(w, 2), f.items(store.KindWait, "w1-0")[0])
	}},
	{"an item with rev 0 must not exist", func(f *fixture) {
		f.start()
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Items: []store.Item{store.HeadItem(head(f.key), 0)}})
		require.Equal(f, f.head(), *conflict(f, err).Item)
		require.Len(f, f.entries(0), 1)
	}},
	{"an item with a rev must still have that rev", func(f *fixture) {
		f.start()
		f.update(store.ToolItem(tool("c1-0"), 0))
		f.update(store.ToolItem(tool("c1-0"), 1))
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Items: []store.Item{store.ToolItem(tool("c1-0"), 1)}})
		require.Equal(f, store.ToolItem(tool("c1-0"), 2), *conflict(f, err).Item)
	}},
	{"an item with a rev that is absent is a conflict with rev 0", func(f *fixture) {
		f.start()
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Items: []store.Item{store.WaitItem(wait("w1-0"), 3)}})
		require.Equal(f, store.Item{Kind: store.KindWait, ID: "w1-0"}, *conflict(f, err).Item)
	}},
	{"nothing is written when the second of three items refuses", func(f *fixture) {
		f.start()
		f.update(store.ToolItem(tool("c1-0"), 0))
		before := f.head()
		h := head(f.key)
		h.Title = "changed"
		_, err := f.store.Commit(f.Context(), store.CommitParams{
			Key: f.key, Entry: entry(2),
			Items: []store.Item{store.HeadItem(h, 1), store.ToolItem(tool("c1-0"), 0), store.WaitItem(wait("w2-0"), 0)},
			Wakes: []journal.Wake{journal.NewWake(f.key, 3, journal.WakeStep)},
		})
		require.Equal(f, store.KindTool, conflict(f, err).Item.Kind)
		require.Len(f, f.entries(0), 1)
		require.Equal(f, before, f.head())
		require.Empty(f, f.items(store.KindWait, ""))
	}},
	{"no item is written when the entry's seq is taken", func(f *fixture) {
		f.start()
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: []store.Item{store.ToolItem(tool("c1-0"), 0)}})
		require.NotNil(f, conflict(f, err).Entry)
		require.Empty(f, f.items(store.KindTool, ""))
	}},
	{"a taken seq is reported before a failed condition", func(f *fixture) {
		f.start()
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: []store.Item{store.HeadItem(head(f.key), 0)}})
		require.NotNil(f, conflict(f, err).Entry)
	}},
	{"an item may be in a commit once", func(f *fixture) {
		twice := store.ToolItem(tool("c1-0"), 0)
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: []store.Item{twice, twice}})
		require.Error(f, err)
		require.Empty(f, f.entries(0))
	}},
	{"HEAD keeps the lease it has", func(f *fixture) {
		f.start()
		claimed := f.claim(take("w", 2, 0, 20))
		h := head(f.key)
		h.Lease = journal.Lease{Owner: "thief", Seq: 9, N: 9, Until: at(99)}
		f.commit(2, store.HeadItem(h, 1))
		require.Equal(f, claimed.Head.Lease, f.head().Head.Lease)
	}},
	{"a new HEAD has no lease", func(f *fixture) {
		h := head(f.key)
		h.Lease = journal.Lease{Owner: "w", Seq: 1, N: 1, Until: at(20)}
		f.commit(1, store.HeadItem(h, 0))
		require.Zero(f, f.head().Head.Lease)
	}},
	{"every kind of item comes back as it was given", func(f *fixture) {
		items := everyKind(f)
		f.commit(1, items...)
		for _, want := range items {
			want.Rev++
			got := f.items(want.Kind, want.ID)
			require.Len(f, got, 1)
			require.Equal(f, want, got[0])
		}
	}},
	{"idempotency records belong to the tenant", func(f *fixture) {
		f.commit(1, store.IdempotencyItem(journal.Idempotency{Key: "k", Digest: "d", Session: f.key.ID, Seq: 1, ExpiresAt: at(9)}, 0))
		f.key.ID = ""
		got := f.items(store.KindIdempotency, "k")
		require.Len(f, got, 1)
		require.Equal(f, "s-1", got[0].Idempotency.Session)
		f.key.ID = "s-2"
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: []store.Item{
			store.IdempotencyItem(journal.Idempotency{Key: "k", Digest: "other"}, 0),
		}})
		require.Equal(f, "d", conflict(f, err).Item.Idempotency.Digest)
		require.Empty(f, f.entries(0))
	}},
	{"100 items with the entry are written and 101 are too many", func(f *fixture) {
		var items []store.Item
		for i := range store.MaxItems {
			items = append(items, store.ToolItem(tool(fmt.Sprintf("c1-%d", i)), 0))
		}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: items})
		require.ErrorIs(f, err, store.ErrTooManyItems)
		require.Empty(f, f.entries(0))
		f.commit(1, items[1:]...)
		require.Len(f, f.items(store.KindTool, ""), store.MaxItems-1)
	}},
	{"values handed in are not shared", func(f *fixture) {
		e := entry(1)
		h := head(f.key)
		h.Due = ptr(at(5))
		item := store.HeadItem(h, 0)
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e, Items: []store.Item{item}})
		require.NoError(f, err)
		e.Messages[0].Role = "changed"
		item.Head.Title = "changed"
		*item.Head.Due = at(6)
		require.Equal(f, llm.RoleAssistant, f.entries(0)[0].Messages[0].Role)
		require.Equal(f, "a title", f.head().Head.Title)
		require.Equal(f, at(5), *f.head().Head.Due)
	}},
	{"a tool result of 10 MB is stored", func(f *fixture) {
		e := entry(1)
		e.Messages = []llm.Message{textMessage(noise(10 << 20))}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e})
		require.NoError(f, err)
		got := f.entries(0)
		require.Len(f, got, 1)
		require.Equal(f, e.Messages, got[0].Messages)
	}},
	{"a conflict with a large entry returns all of it", func(f *fixture) {
		e := entry(1)
		e.Messages = []llm.Message{textMessage(noise(1 << 20))}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e})
		require.NoError(f, err)
		_, err = f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1)})
		require.Equal(f, e.Messages, conflict(f, err).Entry.Messages)
	}},
	{"all wakes of a commit are in the queue if it says so and none if not", func(f *fixture) {
		f.start()
		other := session.Key{Tenant: f.key.Tenant, ID: "other"}
		wakes := []journal.Wake{
			journal.NewWake(f.key, 3, journal.WakeStep), journal.NewWake(other, 7, journal.WakeResume), journal.NewWake(f.key, 9, journal.WakeResume),
		}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Wakes: wakes})
		require.NotNil(f, conflict(f, err).Entry)
		f.queued(false, nil) // a refused commit enqueues nothing
		c, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Wakes: wakes})
		require.NoError(f, err)
		f.queued(c.Enqueued, wakes)
	}},
	{"a wake for another tenant is refused", func(f *fixture) {
		wakes := []journal.Wake{journal.NewWake(f.key, 2, journal.WakeStep), journal.NewWake(session.Key{Tenant: "globex", ID: f.key.ID}, 2, journal.WakeStep)}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Wakes: wakes})
		require.Error(f, err)
		require.Empty(f, f.entries(0))
	}},
	{"sessions and tenants are apart", func(f *fixture) {
		f.commit(1, store.HeadItem(head(f.key), 0), store.ToolItem(tool("c1-0"), 0))
		for _, key := range []session.Key{{Tenant: "acme", ID: "s-2"}, {Tenant: "globex", ID: "s-1"}, {Tenant: "acme", ID: "s-10"}} {
			f.key = key
			require.Empty(f, f.entries(0))
			require.Empty(f, f.items(store.KindTool, ""))
			require.Empty(f, f.items(store.KindHead, ""))
			f.commit(1, store.HeadItem(head(key), 0), store.ToolItem(tool("c1-0"), 0))
		}
	}},
}

// queued requires that these wakes are in the queue, if any were enqueued.
func (f *fixture) queued(enqueued bool, want []journal.Wake) {
	f.Helper()
	q, ok := f.store.(Queued)
	require.Equal(f, enqueued, enqueued && ok, "an adapter that enqueues must provide its queue")
	if !ok {
		return
	}
	got, err := q.Queued(f.Context())
	require.NoError(f, err)
	if !enqueued {
		want = nil
	}
	require.ElementsMatch(f, want, got)
}

func textMessage(text string) llm.Message {
	return llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Kind: llm.PartText, Text: text}}}
}

// noise is text that does not compress well.
func noise(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteByte(letters[r.IntN(len(letters))])
	}
	return b.String()
}

// everyKind returns a new item of every kind, with as many fields set as matter.
func everyKind(f *fixture) []store.Item {
	h := head(f.key)
	h.Parent = &session.Parent{Session: "p", Wait: "w1-0", Root: "r", Depth: 1}
	h.Signal = &journal.Signal{ID: "sig", Task: 1, Kind: journal.SignalCancel, Who: "me", At: at(3), From: "test"}
	h.MailCount, h.Resent, h.ResentAfter, h.Due = 3, 2, 1, ptr(at(60))
	w := wait("w1-0")
	w.Wait.Deadline, w.Wait.Rule = &session.Deadline{At: at(100), Outcome: session.ExpireDeny}, &session.AnswerRule{Roles: []string{"r"}, Need: 2}
	w.Due, w.Votes = ptr(at(100)), []session.Vote{{Who: "you", When: at(3), From: "test", Approved: true, Digest: "d"}}
	w.Answer = &session.Answer{Wait: "w1-0", Kind: session.AnswerApproval, Approved: ptr(false), Who: "me", When: at(4), Votes: []session.Vote{{Who: "me", When: at(4), From: "test", Digest: "d"}}}
	t := tool("c1-0")
	t.Memo = map[string]jsonText{"k": jsonText(`{"a":[1,2]}`)}
	audit, _ := (&journal.WaitRecord{Wait: w.Wait}).AddAudit(h.Key, journal.Audit{Kind: journal.AuditRefused, Who: "me", At: at(5), From: "test", Data: jsonText(`"x"`)})
	return []store.Item{
		store.HeadItem(h, 0),
		store.WaitItem(w, 0),
		store.RunItem(session.Run{ID: 1, Task: 1, Trigger: session.TriggerStart, Status: session.StatusRunning, StartedAt: at(0), FirstEntry: 1}, 0),
		store.ToolItem(t, 0),
		store.MailItem(journal.Mail{ID: "01J" + strings.Repeat("0", 23), Message: textMessage("hello"), Who: "me", At: at(6)}, 0),
		store.AuditItem(audit),
		store.NoticeItem(notice(8), 0),
		store.IdempotencyItem(journal.Idempotency{Key: "key", Digest: "d", Session: f.key.ID, Seq: 1, Answer: jsonText(`{"ok":true}`), ExpiresAt: at(7)}, 0),
		store.TenantItem(journal.TenantRecord{Name: "spent/2026-02", Value: jsonText(`{"cents":[1,2]}`)}, 0),
	}
}
