package client_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// TestAnswers_ids: an answer that names something as no server does is refused.
func TestAnswers_ids(t *testing.T) {
	t.Parallel()
	const odd = "a b\x1b[2J"
	odds := []client.Wait{{WaitID: "w2-1", SessionID: "s", ChildSessionID: odd}}
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
		"checkpoints": func(ctx context.Context, c *client.Client) error {
			_, err := c.Checkpoints(ctx, "s", client.Page{})
			return err
		},
		"messages": func(ctx context.Context, c *client.Client) error {
			_, err := c.Messages(ctx, "s", client.Page{})
			return err
		},
		"runs": func(ctx context.Context, c *client.Client) error {
			_, err := c.Runs(ctx, "s", client.Page{})
			return err
		},
	}
	for verb, answers := range map[string][]any{
		"session":     {client.Session{}, client.Session{ID: "t"}, client.Session{ID: "s", CheckpointID: odd}, client.Session{ID: "s", Pause: &client.Pause{Pending: odds}}},
		"start":       {client.Started{}, client.Started{SessionID: odd}},
		"submit":      {client.Submitted{Open: odds}},
		"resume":      {client.Resumed{Open: []client.Wait{{WaitID: odd}}}},
		"waits":       {client.Waits{Items: odds}, client.Waits{Cursor: odd}, client.Waits{Items: []client.Wait{{}}}},
		"inbox":       {client.Waits{Items: []client.Wait{{WaitID: "w2-1"}}}},
		"sessions":    {client.Sessions{Items: []client.Summary{{ID: odd}}}, client.Sessions{Cursor: odd}},
		"checkpoints": {client.Checkpoints{Items: []client.Checkpoint{{ID: odd}}}, client.Checkpoints{Cursor: odd}},
		"messages":    {client.Messages{Cursor: odd}},
		"runs":        {client.Runs{Cursor: odd}},
	} {
		for _, out := range answers {
			raw, err := json.Marshal(out)
			require.NoError(t, err)
			require.ErrorIs(t, use[verb](t.Context(), over(t, &script{answers: []answer{says(200, string(raw))}})), client.ErrNotAdjourn, "%s: %s", verb, raw)
		}
	}
}

// TestAnswers_are_checked: there is no answer of a method whose ids nobody looks at.
func TestAnswers_are_checked(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[*client.Client]()
	answers := 0
	for i := range of.NumMethod() {
		method := of.Method(i)
		if method.Type.NumOut() != 2 || method.Type.Out(1) != reflect.TypeFor[error]() {
			continue // it makes no request of its own
		}
		answers++
		out := reflect.New(method.Type.Out(0)).Interface()
		require.NotErrorIs(t, client.CheckAnswer(out, ""), client.ErrUnchecked, "the answer to %s needs its line in checkAnswer (pkg/client/ids.go)", method.Name)
	}
	require.Greater(t, answers, 10)
	require.ErrorIs(t, client.CheckAnswer(new(string), ""), client.ErrUnchecked)
}
