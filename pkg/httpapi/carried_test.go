package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestDecisionsSayWho: a decision is recorded as its caller's, and one that only
// somebody may take is taken by nobody else.
func TestDecisionsSayWho(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("a", "deploy")
	decide := `{"decisions":{"approve":["w2-1"]}}`
	answer[client.Resumed](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions/a/resume", decide))
	given := get[client.Waits](w, ann, "/sessions/a/waits").Items[0].Answer
	require.Equal(t, "ann", given.Who)
	require.Equal(t, "test", given.From)

	w.start("board", "board")
	require.Equal(t, "not_allowed", problem(t, w.send(ann, http.MethodPost, "/sessions/board/resume", decide)).Code)
	answer[client.Resumed](w, http.StatusAccepted, w.send(carol, http.MethodPost, "/sessions/board/resume", decide))
	require.Equal(t, "carol", get[client.Waits](w, ann, "/sessions/board/waits").Items[0].Answer.Who)
}

// TestEditsRun: what an approver has edited is what the tool is called with,
// whichever way it is said.
func TestEditsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id, body := range map[string]string{
		"confirmed": `{"mode":"with_confirmation","confirmation":{"approved":true,"waitId":"w2-1","editedInput":{"text":"v2"}}}`,
		"decided":   `{"decisions":{"approve":["w2-1"],"editedInput":{"w2-1":{"text":"v2"}}}}`,
	} {
		key := w.start(id, "deploy")
		answer[client.Resumed](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions/"+id+"/resume", body))
		w.drive(key)
		said := w.send(ann, http.MethodGet, "/sessions/"+id+"/messages", "").Body.String()
		require.Contains(t, said, `"did v2"`, id)
		require.NotContains(t, said, "did <v1>", id)
	}
}

// TestAutoResume: only false holds a session back.
func TestAutoResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for auto, want := range map[string]client.Continuation{
		"": client.ContinuationResumed, `,"autoResume":true`: client.ContinuationResumed, `,"autoResume":false`: client.ContinuationStored,
	} {
		id := "s" + fmt.Sprint(len(auto))
		w.start(id, "locate")
		body := `{"kind":"client-tool-result","toolCallId":"c2-1","result":1` + auto + `}`
		got := answer[client.Submitted](w, http.StatusOK, w.send(ann, http.MethodPost, "/sessions/"+id+"/submit", body))
		require.Equal(t, want, got.Continuation, "%q", auto)
	}
}

// TestKindsStayApart goes through each field of an answer beside each kind.
func TestKindsStayApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fields := map[string]string{
		"approvalId": `"n"`, "id": `"q"`, "approved": "false", "reason": `"r"`, "editedInput": `{"text":"x"}`, "result": "1", "error": `"e"`,
		"selected": "[]", "text": `""`, "message": `"m"`, "verdict": `"happened"`,
	}
	own := map[string]string{
		"client-tool-result": "result error", "approval-response": "approvalId approved reason editedInput", "reply": "id selected text",
		"message": "message", "verdict": "verdict reason result",
	}
	for kind, names := range own {
		for name, value := range fields {
			body := fmt.Sprintf(`{"kind":%q,"toolCallId":"c2-1",%q:%s}`, kind, name, value)
			p := problem(t, w.send(ann, http.MethodPost, "/sessions/none/submit", body))
			if strings.Contains(" "+names+" ", " "+name+" ") {
				require.EqualValues(t, runtime.CodeSessionNotFound, p.Code, body)
				continue
			}
			require.EqualValues(t, runtime.CodeInvalidInput, p.Code, body)
			require.Contains(t, p.Detail, name+" does not belong", body)
		}
	}
}

// TestOneAnswer: of two fields of one kind that say two things, the one that does not
// belong is named.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, names := range map[string]string{
		`{"kind":"reply","waitId":"w2-1","selected":["red"],"text":"blue"}`:               "selected and text",
		`{"kind":"reply","waitId":"w2-1","selected":[],"text":""}`:                        "selected and text",
		`{"kind":"verdict","waitId":"w2-1","verdict":"not_happened","result":null}`:       "result does not go with the verdict not_happened",
		`{"kind":"verdict","waitId":"w2-1","verdict":"not_happened","result":{"id":"7"}}`: "result does not go with the verdict not_happened",
	} {
		p := problem(t, w.send(ann, http.MethodPost, "/sessions/none/submit", body))
		require.Equal(t, http.StatusBadRequest, p.Status, body)
		require.EqualValues(t, runtime.CodeInvalidInput, p.Code, body)
		require.Contains(t, p.Detail, names)
	}
}

// TestVerdict: what a caller says about an unknown outcome is what the model is told.
func TestVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started := answer[client.Started](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions", `{"agent":"other","sessionId":"v","input":"pay"}`))
	key := session.Key{Tenant: callers[ann].Tenant, ID: started.SessionID}
	w.drive(key)
	body := `{"kind":"verdict","waitId":"w3-1","verdict":"happened","result":"paid once"}`
	given := answer[client.Submitted](w, http.StatusOK, w.send(ann, http.MethodPost, "/sessions/v/submit", body))
	require.EqualValues(t, "happened", given.Answer.Verdict)
	require.Equal(t, "ann", given.Answer.Who)
	w.drive(key)
	require.Contains(t, w.send(ann, http.MethodGet, "/sessions/v/messages", "").Body.String(), `"paid once"`)
}

// TestStatusOfResume: 202 says that the session goes on, and nothing else does.
func TestStatusOfResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("r", "both")
	const decide = `{"decisions":{"approve":["w2-1"]}}`
	waiting := answer[client.Resumed](w, http.StatusOK, w.send(ann, http.MethodPost, "/sessions/r/resume", decide))
	require.Equal(t, client.ContinuationWaiting, waiting.Continuation)
	require.Equal(t, "c2-2", waiting.Open[0].CallID)
	w.start("s", "deploy")
	answer[client.Resumed](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions/s/resume", decide))
}

// TestResumeSaysWho: whichever way a resume brings an answer, it is its caller's.
func TestResumeSaysWho(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for input, body := range map[string]string{
		"where": `{"message":"here"}`, "deploy": `{"confirmation":{"approved":true,"waitId":"w2-1"}}`, "two": `{"decisions":{"approve":["w2-1","w2-2"]}}`,
	} {
		w.start(input, input)
		answer[client.Resumed](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions/"+input+"/resume", body))
		for _, wait := range get[client.Waits](w, ann, "/sessions/"+input+"/waits").Items {
			require.Equal(t, "ann", wait.Answer.Who, input)
			require.Equal(t, "test", wait.Answer.From, input)
		}
	}
}

// TestLongDetail: what an authenticator says is told, but not at any length.
func TestLongDetail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, change{api: func(cfg *httpapi.Config) {
		cfg.Authenticate = func(*http.Request) (httpapi.Caller, error) {
			return httpapi.Caller{}, errors.Join(httpapi.ErrForbidden, errors.New("x"+strings.Repeat("é", 4000)))
		}
	}})
	out := w.send(ann, http.MethodGet, "/sessions", "")
	p := problem(t, out)
	require.Equal(t, http.StatusForbidden, p.Status)
	require.Less(t, len(p.Detail), 1010)
	require.Greater(t, len(p.Detail), 900)
	require.True(t, utf8.ValidString(p.Detail) && strings.HasSuffix(p.Detail, "é…"), p.Detail)
	require.True(t, json.Valid(out.Body.Bytes()))
}
