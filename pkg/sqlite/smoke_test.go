package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func TestSmoke(t *testing.T) {
	for _, path := range []string{":memory:", t.TempDir() + "/x/a.db"} {
		db, err := Open(t.Context(), Config{Path: path})
		require.NoError(t, err)
		key := session.Key{Tenant: "default", ID: "s1"}
		now := time.Now()
		head := session.Head{Key: key, Status: session.StatusRunning, Agent: "a", CreatedAt: now, UpdatedAt: now}
		c, err := db.Store().Commit(t.Context(), store.CommitParams{Key: key, Entry: session.Entry{V: 1, Seq: 1, Kind: session.KindStarted, At: now, Status: session.StatusRunning}, Items: []store.Item{store.HeadItem(head, 0)}, Wakes: []session.Wake{session.NewWake(key, 2, session.WakeStep)}})
		require.NoError(t, err)
		require.True(t, c.Enqueued)
		d, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute, Wait: time.Second})
		require.NoError(t, err)
		require.Len(t, d, 1)
		h, err := db.Store().Claim(t.Context(), store.ClaimParams{Key: key, Mode: store.ClaimTake, Owner: "x", Seq: 2, Now: now, Until: now.Add(time.Minute)})
		require.NoError(t, err)
		require.EqualValues(t, 1, h.Head.Lease.N)
		require.NoError(t, db.Queue().Acknowledge(t.Context(), d...))
		for e, err := range db.Store().Entries(t.Context(), key, 0) {
			require.NoError(t, err)
			require.EqualValues(t, 1, e.Seq)
		}
		go func() { _ = db.Queue().Send(t.Context(), session.NewWake(key, 3, session.WakeStep)) }()
		d, err = db.Queue().Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute, Wait: 10 * time.Second})
		require.NoError(t, err)
		require.Len(t, d, 1)
		for _, k := range []store.FindKind{store.FindSessions, store.FindWaits, store.FindDue} {
			_, err = db.Store().Find(t.Context(), store.FindParams{Kind: k, Tenant: "default", Before: now})
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
	}
}
