//go:build aws && linux

package functions_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestEvents_start_sessions_that_run_to_their_end(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{env: map[string]string{
		"ADJOURN_EVENT_TENANT":   "events",
		"ADJOURN_EVENT_TEMPLATE": `{"agent":"lab","input":"- {repeat: 3, call: echo, with: {size: 10}}\n- say: {{index .detail.words 1}} from {{index . \"detail-type\"}}"}`,
	}})
	c := w.client(t, "events")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	invoke := func(event string) (id string, repeated bool) {
		t.Helper()
		raw, err := w.functions["event"].Invoke(ctx, []byte(event))
		require.NoError(t, err, w.output())
		var answer struct {
			Sessions []struct {
				SessionID string `json:"sessionId"`
				Replayed  bool   `json:"replayed"`
			} `json:"sessions"`
		}
		require.NoError(t, json.Unmarshal(raw, &answer))
		require.Len(t, answer.Sessions, 1)
		return answer.Sessions[0].SessionID, answer.Sessions[0].Replayed
	}

	event := `{"version":"0","id":"e-1","detail-type":"greeting","source":"test","detail":{"words":["no","hello"]}}`
	id, repeated := invoke(event)
	require.False(t, repeated)
	s := rested(ctx, t, c, id)
	require.Equal(t, session.StatusCompleted, s.Status)
	require.Equal(t, "hello from greeting", s.Text)
	again, repeated := invoke(event)
	require.True(t, repeated, "an event that comes twice starts one session")
	require.Equal(t, id, again)

	plain, _ := invoke(`{"agent":"lab","input":"- say: plain","session":"mine"}`)
	require.Equal(t, "mine", plain)
	require.Equal(t, "plain", rested(ctx, t, c, plain).Text)

	_, err := w.functions["event"].Invoke(ctx, []byte(`{"version":"0","id":"e-2","detail-type":"x","source":"test","detail":{}}`))
	var failed *lambdatest.InvokeError
	require.ErrorAs(t, err, &failed, "Lambda repeats it, then hands it to the failure destination")
	require.Contains(t, failed.Message, "index .detail.words 1", "what the event lacks is named")
	_, err = w.client(t, "other").Session(ctx, id, 0)
	require.Error(t, err, "it is the events' tenant's")
}
