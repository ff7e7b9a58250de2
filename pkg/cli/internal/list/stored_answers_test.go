package list

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// crowd is a tenant with many suspended sessions; all but the first wait for somebody.
type crowd struct {
	sessions, requests int
}

func (c *crowd) page(limit int, cursor string, each func(id string)) (next string) {
	c.requests++
	from := 0
	_, _ = fmt.Sscan(cursor, &from)
	for i := from; i < min(from+limit, c.sessions); i++ {
		each(fmt.Sprint(i))
	}
	if from+limit < c.sessions {
		next = fmt.Sprint(from + limit)
	}
	return next
}

func (c *crowd) Sessions(_ context.Context, p client.SessionsParams) (out client.Sessions, err error) {
	out.Cursor = c.page(p.Limit, p.Cursor, func(id string) { out.Items = append(out.Items, client.Summary{ID: id}) })
	return out, nil
}

func (c *crowd) Inbox(_ context.Context, p client.InboxParams) (out client.Waits, err error) {
	out.Cursor = c.page(p.Limit, p.Cursor, func(id string) {
		if id != "0" {
			out.Items = append(out.Items, client.Wait{SessionID: id})
		}
	})
	return out, nil
}

// TestWaitForNobody: what has stored answers is found among many that wait, by a few
// requests; where there are more than those list, that is told.
func TestWaitForNobody(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]struct {
		requests int
		more     bool
	}{1: {2, false}, 230: {2, false}, 2500: {6, false}, 5000: {10, false}, 5001: {10, true}} {
		c := &crowd{sessions: n}
		heads, more, err := waitForNobody(t.Context(), c, client.InboxParams{}, nil, false)
		require.NoError(t, err)
		require.Equal(t, []client.Summary{{ID: "0"}}, heads, n)
		require.Equal(t, want.more, more, n)
		require.Equal(t, want.requests, c.requests, n)
	}
	c := &crowd{sessions: 3}
	heads, _, err := waitForNobody(t.Context(), c, client.InboxParams{}, []inboxRow{{Session: "1"}, {Session: "2"}}, true)
	require.NoError(t, err)
	require.Len(t, heads, 1)
	require.Equal(t, 1, c.requests, "all that waits is known")
}
