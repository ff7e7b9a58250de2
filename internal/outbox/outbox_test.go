package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/outbox"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// written keeps the items of one update.
type written struct {
	store.Store
	items []store.Item
}

func (w *written) Update(_ context.Context, _ session.Key, items ...store.Item) ([]store.Item, error) {
	w.items = items
	return items, nil
}

// TestStore_Update_room: what was done to many waits before there were channels is told as far as one write has
// room, and is never the reason that a write of them is refused.
func TestStore_Update_room(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n, want := range map[int]int{1: 1, 49: 49, 50: 49, session.MaxWaits: 19, store.MaxItems: 0} {
		t.Run(fmt.Sprintf("%d waits", n), func(t *testing.T) {
			t.Parallel()
			to := &written{}
			s := outbox.New(outbox.Config{Store: to, Channels: []string{"webhook"}, Notify: func(context.Context, session.Key, string) error { return nil }})
			items := make([]store.Item, n)
			for i := range items {
				items[i] = store.WaitItem(journal.WaitRecord{
					Wait: session.Wait{ID: fmt.Sprintf("w1-%d", i+1), Kind: session.WaitApproval}, State: session.WaitOpen,
					Acts: []session.WaitAct{{Kind: session.ActReminded, Who: "deadline", At: at}},
				}, 1)
			}
			out, err := s.Update(t.Context(), session.Key{Tenant: "default", ID: "s1"}, items...)
			require.NoError(t, err)
			require.Len(t, out, n)
			require.Len(t, to.items, n+want)
			require.LessOrEqual(t, len(to.items), store.MaxItems)
			for _, item := range out {
				require.Equal(t, 1, item.Wait.ActsNoticed, "it is not told later either")
			}
		})
	}
}
