//go:build aws && linux

package functions_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestCancelAfter: the sweep's function cancels a task at its deadline, whatever it waits for, with what
// its role allows; the world checks the roles in the end.
func TestCancelAfter(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := w.client(t, "acme")
	for id, script := range map[string]string{
		"waits":    `[{calls: [{call: append_line, with: {path: a, text: x}}, {call: deploy, with: {service: web}}, {call: pick_color}]}, {say: done}]`,
		"delayed":  `[{fail: rate_limited, after: 20m}, {say: done}]`,
		"answered": `[{calls: [{call: deploy, with: {service: web}}, {call: pick_color}]}, {say: done}]`,
	} {
		started, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{
			SessionID: id, Agent: "lab", Input: client.Text(script), Rules: session.TaskRules{CancelAfterMillis: 3000},
		}})
		require.NoError(t, err)
		require.NotNil(t, started.Session.CancelAt)
	}
	require.Eventually(t, func() bool {
		s, err := c.Session(ctx, "answered", 0)
		return err == nil && s.Status == session.StatusSuspended
	}, patience, 20*time.Millisecond)
	_, err := c.Submit(ctx, client.SubmitParams{SessionID: "answered", Answer: client.SubmitRequest{WaitID: "w2-1", Kind: session.AnswerApproval, Approved: new(true)}})
	require.NoError(t, err)
	for _, id := range []string{"waits", "delayed", "answered"} {
		require.Eventually(t, func() bool {
			s, err := c.Session(ctx, id, 0)
			return err == nil && s.Status == session.StatusCancelled
		}, patience, 20*time.Millisecond, id)
		page, err := c.Entries(ctx, id, client.EntriesParams{})
		require.NoError(t, err)
		require.Equal(t, journal.Deadline, page.Items[len(page.Items)-1].Signal.Who, id)
	}
}
