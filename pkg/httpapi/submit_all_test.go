package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestSubmitAll: each answer counts for itself; sent again with its key, nothing is done twice.
func TestSubmitAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("pair", "two")
	const target = "/sessions/pair/answers"
	body := `{"answers":[{"kind":"approval-response","waitId":"w2-1","approved":true},{"kind":"approval-response","waitId":"w2-2","approved":"yes"}]}`
	require.Equal(t, http.StatusBadRequest, w.send(ann, http.MethodPost, target, body).Code, "what cannot be read answers nothing")
	require.Len(t, get[client.Session](w, ann, "/sessions/pair").Pause.Pending, 2)

	body = `{"answers":[{"kind":"verdict","waitId":"w2-2","verdict":"happened"},{"kind":"approval-response","waitId":"w2-1","approved":true}]}`
	for range 2 {
		out := w.send(ann, http.MethodPost, target, body, client.HeaderIdempotencyKey, "key")
		require.Equal(t, http.StatusBadRequest, out.Code, out.Body.String())
		var problem client.Problem
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &problem))
		require.Equal(t, "wrong_kind", problem.Code)
		require.Len(t, problem.Results, 2)
		require.Equal(t, "wrong_kind", problem.Results[0].Code)
		require.Equal(t, http.StatusOK, problem.Results[1].Status)
		require.True(t, *problem.Results[1].Answer.Approved)
		require.Len(t, get[client.Session](w, ann, "/sessions/pair").Pause.Pending, 1)
	}
	body = `{"answers":[{"kind":"approval-response","waitId":"w2-1","approved":false},{"kind":"approval-response","waitId":"w2-2","approved":false}]}`
	out := w.send(ann, http.MethodPost, target, body)
	require.Equal(t, http.StatusConflict, out.Code, "the first answer to w2-1 counts")
	var problem client.Problem
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &problem))
	require.True(t, *problem.Results[0].Answer.Approved, "the answer that came first")
	w.drive(session.Key{Tenant: "acme", ID: "pair"})
	require.Equal(t, session.StatusCompleted, get[client.Session](w, ann, "/sessions/pair").Status)
	statuses := map[string]llm.ResultStatus{}
	for _, m := range get[client.Messages](w, ann, "/sessions/pair/messages").Items {
		for _, part := range m.Parts {
			if part.ToolResult != nil {
				statuses[part.ToolResult.CallID] = part.ToolResult.Status
			}
		}
	}
	require.Equal(t, map[string]llm.ResultStatus{"c2-1": llm.ResultSuccess, "c2-2": llm.ResultDenied}, statuses)
}
