package client_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// withoutIDs are the routes whose answers have nothing that checkAnswer could refuse.
var withoutIDs = map[string]string{
	"listEntries":       "the journal as it is stored",
	"getOpenAPI":        "a document",
	"haltSteps":         "names no session",
	"letStepsGo":        "names no session",
	"listHalts":         "names no session",
	"previewPermission": "names calls of before, which no command uses",
	"setAway":           "names people only",
	"endAway":           "names people only",
	"listAway":          "names people only",
}

// TestAnswers_ids: an answer that names something as no server does is refused.
func TestAnswers_ids(t *testing.T) {
	t.Parallel()
	const odd = "a b\x1b[2J"
	odds := []client.Wait{{WaitID: "w2-1", SessionID: "s", ChildSessionID: odd}}
	answers := map[string][]any{
		"getSession":       {client.Session{}, client.Session{ID: "t"}, client.Session{ID: "s", CheckpointID: odd}, client.Session{ID: "s", Pause: &client.Pause{Pending: odds}}},
		"startSession":     {client.Started{}, client.Started{SessionID: odd}},
		"submitAnswer":     {client.Submitted{Open: odds}},
		"submitAnswers":    {client.SubmittedAll{Open: odds}, client.SubmittedAll{Results: []client.AnswerResult{{WaitID: odd}}}},
		"resumeSession":    {client.Resumed{Open: []client.Wait{{WaitID: odd}}}},
		"sendMessage":      {client.Sent{}, client.Sent{SessionID: odd}, client.Sent{SessionID: "s", MailID: odd}, client.Sent{SessionID: "s", Open: []client.Wait{{WaitID: odd}}}},
		"interruptSession": {client.Stopped{}, client.Stopped{SessionID: odd}},
		"getWait":          {client.WaitView{}, client.WaitView{Wait: odds[0]}},
		"dismissWait":      {client.Acted{}, client.Acted{Wait: client.Wait{WaitID: "w2-1", SessionID: "s"}, Open: odds}},
		"extendWait":       {client.Acted{Wait: odds[0]}},
		"delegateWait":     {client.Acted{Wait: odds[0]}},
		"cancelSession":    {client.Stopped{SessionID: odd}},
		"abortSession":     {client.Stopped{SessionID: odd}},
		"makeLink":         {client.Link{}, client.Link{URL: "https://a/" + odd}, client.Link{URL: "javascript:alert(1)"}, client.Link{URL: "https:///a/x"}},
		"deleteSession":    {client.Deleted{}, client.Deleted{SessionID: odd}},
		"retrySession":     {client.Resumed{Open: odds}},
		"forkSession":      {client.Forked{}, client.Forked{SessionID: odd}, client.Forked{SessionID: "s", Open: odds}},
		"getCheckpoint":    {client.CheckpointView{}, client.CheckpointView{Checkpoint: client.Checkpoint{ID: odd}}, client.CheckpointView{Checkpoint: client.Checkpoint{ID: "c"}, Cursor: odd}, client.CheckpointView{Checkpoint: client.Checkpoint{ID: "c"}, Waits: odds}},
		"listWaits":        {client.Waits{Items: odds}, client.Waits{Cursor: odd}, client.Waits{Items: []client.Wait{{}}}},
		"listOpenWaits":    {client.Waits{Items: []client.Wait{{WaitID: "w2-1"}}}},
		"listSessions":     {client.Sessions{Items: []client.Summary{{ID: odd}}}, client.Sessions{Cursor: odd}},
		"listCheckpoints":  {client.Checkpoints{Items: []client.Checkpoint{{ID: odd}}}, client.Checkpoints{Cursor: odd}},
		"listMessages":     {client.Messages{Cursor: odd}},
		"listNotices":      {client.Notices{Items: []client.Notice{{SessionID: odd}}}, client.Notices{Cursor: odd}},
		"listRuns":         {client.Runs{Cursor: odd}},
		"listPermissions":  {client.Permissions{Items: []session.ShownPermission{{ID: odd}}}},
		"revokePermission": {client.Revoked{}, client.Revoked{Permission: session.ShownPermission{ID: odd}}},
		"listAudit":        {client.Audit{Cursor: odd}, client.Audit{Items: []session.AuditLine{{Wait: odd}}}},
	}
	for _, r := range routes() {
		require.NotEqual(t, len(answers[r.OperationID]) > 0, withoutIDs[r.OperationID] != "",
			"%s needs answers in TestAnswers_ids with ids, of itself or of what it contains, that are none (checkAnswer in pkg/client/ids.go refuses them), or the reason why it has none in withoutIDs", r.OperationID)
	}
	for operation, odds := range answers {
		for _, out := range odds {
			raw, err := json.Marshal(out)
			require.NoError(t, err)
			call, ok := calls(over(t, &script{answers: []answer{says(200, string(raw))}}), "s")[operation]
			require.True(t, ok, "calls (pkg/client/transport_test.go) has no %q", operation)
			require.ErrorIs(t, call(t.Context()), client.ErrNotAdjourn, "%s: %s", operation, raw)
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
