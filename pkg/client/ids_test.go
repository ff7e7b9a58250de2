package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/client"
)

// TestAnswers_ids: an answer that names something as no server does is refused.
func TestAnswers_ids(t *testing.T) {
	t.Parallel()
	const odd = "a b\x1b[2J"
	odds := []wire.Wait{{WaitID: "w2-1", SessionID: "s", ChildSessionID: odd}}
	use := map[string]func(context.Context, *client.Client) error{
		"session": func(ctx context.Context, c *client.Client) error { _, err := c.Session(ctx, "s", 0); return err },
		"start": func(ctx context.Context, c *client.Client) error {
			_, err := c.Start(ctx, client.StartParams{})
			return err
		},
		"submit": func(ctx context.Context, c *client.Client) error {
			_, err := c.Submit(ctx, client.SubmitParams{SessionID: "s"})
			return err
		},
		"resume": func(ctx context.Context, c *client.Client) error {
			_, err := c.Resume(ctx, client.ResumeParams{SessionID: "s"})
			return err
		},
		"waits": func(ctx context.Context, c *client.Client) error {
			_, err := c.Waits(ctx, "s", client.Page{})
			return err
		},
		"inbox": func(ctx context.Context, c *client.Client) error {
			_, err := c.Inbox(ctx, client.InboxParams{})
			return err
		},
		"sessions": func(ctx context.Context, c *client.Client) error {
			_, err := c.Sessions(ctx, client.SessionsParams{})
			return err
		},
	}
	for verb, answers := range map[string][]any{
		"session":  {wire.Session{}, wire.Session{ID: "t"}, wire.Session{ID: "s", CheckpointID: odd}, wire.Session{ID: "s", Pause: &wire.Pause{Pending: odds}}},
		"start":    {wire.Started{}, wire.Started{SessionID: odd}},
		"submit":   {wire.Submitted{Open: odds}},
		"resume":   {wire.Resumed{Open: []wire.Wait{{WaitID: odd}}}},
		"waits":    {wire.Waits{Items: odds}, wire.Waits{Cursor: odd}, wire.Waits{Items: []wire.Wait{{}}}},
		"inbox":    {wire.Waits{Items: []wire.Wait{{WaitID: "w2-1"}}}},
		"sessions": {wire.Sessions{Items: []wire.Summary{{ID: odd}}}, wire.Sessions{Cursor: odd}},
	} {
		for _, out := range answers {
			raw, err := json.Marshal(out)
			require.NoError(t, err)
			require.ErrorIs(t, use[verb](t.Context(), over(t, &script{answers: []answer{says(200, string(raw))}})), client.ErrNotAdjourn, "%s: %s", verb, raw)
		}
	}
}
