package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// countedFinds counts searches, and what they found.
type countedFinds struct {
	store.Store
	asked, found int
}

func (c *countedFinds) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	page, err := c.Store.Find(ctx, p)
	c.asked++
	c.found += len(page.Found)
	return page, err
}

// crowdedInbox writes n open waits, of sessions of their own, straight into the store: every hundredth
// has the word refund, and the older half was opened an hour before the rest.
func crowdedInbox(t *testing.T, n int) (*world, *process, *countedFinds) {
	t.Helper()
	w := newWorld(t, newEffects(), helper(newEffects(), script{}))
	for i := range n {
		key := session.Key{Tenant: w.key.Tenant, ID: fmt.Sprintf("s%05d", i)}
		opened, tool := epoch, "deploy"
		if i >= n/2 {
			opened = opened.Add(time.Hour)
		}
		arguments := `{"service":"web"}`
		if i%100 == 0 {
			arguments = `{"service":"Refund desk"}`
		}
		record := journal.WaitRecord{State: session.WaitOpen, Agent: "a", Wait: session.Wait{
			ID: "w2-1", Kind: session.WaitApproval, Tool: tool, Arguments: json.RawMessage(arguments), OpenedAt: opened.Add(time.Duration(i) * time.Millisecond),
		}}
		if i%50 == 0 {
			record.Wait.Preview = &session.Preview{Title: "Deploy", Risk: session.RiskHigh}
		}
		_, err := w.store.Update(context.Background(), key, store.HeadItem(journal.Head{Key: key, Agent: "a", Status: session.StatusSuspended, WaitsAt: 2, UpdatedAt: opened}, 0), store.WaitItem(record, 0))
		require.NoError(t, err)
	}
	counted := &countedFinds{}
	p := w.process(func(cfg *runtime.Config) { counted.Store = cfg.Store; cfg.Store = counted })
	return w, p, counted
}

// TestInbox_filters: what no index has is looked for among so many waits for each page, however many
// there are; all of it is found, page by page, once.
func TestInbox_filters(t *testing.T) {
	t.Parallel()
	const n, limit = 2000, 20
	w, p, counted := crowdedInbox(t, n)
	for name, c := range map[string]struct {
		params runtime.InboxParams
		want   int
	}{
		"all":              {runtime.InboxParams{}, n},
		"text of a few":    {runtime.InboxParams{Text: "refund DESK"}, n / 100},
		"text of none":     {runtime.InboxParams{Text: "payroll"}, 0},
		"text of the tool": {runtime.InboxParams{Text: "deploy"}, n},
		"older":            {runtime.InboxParams{OpenedBefore: epoch.Add(time.Hour)}, n / 2},
		"older with text":  {runtime.InboxParams{OpenedBefore: epoch.Add(time.Hour), Text: "refund"}, n / 200},
		"risk":             {runtime.InboxParams{Risk: session.RiskHigh}, n / 50},
		"risk of none":     {runtime.InboxParams{Risk: session.RiskLow}, 0},
		"older than all":   {runtime.InboxParams{OpenedBefore: epoch}, 0},
	} {
		found := map[string]bool{}
		c.params.Tenant, c.params.Limit = w.key.Tenant, limit
		for pages := 0; ; pages++ {
			counted.asked, counted.found = 0, 0
			page, err := p.Inbox(context.Background(), c.params)
			require.NoError(t, err)
			require.LessOrEqual(t, counted.asked, 10, name)
			require.LessOrEqual(t, counted.found, 10*limit, "%s: a page looks at so many, however many there are", name)
			require.LessOrEqual(t, len(page.Items), limit)
			for _, item := range page.Items {
				require.False(t, found[item.Key.ID], "%s: %s twice", name, item.Key.ID)
				found[item.Key.ID] = true
			}
			require.Less(t, pages, n)
			if c.params.Cursor = page.Cursor; page.Cursor == "" {
				break
			}
		}
		require.Len(t, found, c.want, name)
	}
}
