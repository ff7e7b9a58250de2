package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// secret stands in a session of the other tenant, and must never be seen by ann.
const secret = "TOP-SECRET-OF-RIVAL"

// crowded is a world with sessions of both tenants in which things can go wrong.
func crowded(t testing.TB, changes ...change) *world {
	t.Helper()
	w := newWorld(t, changes...)
	w.start("trip", "echo deploy")
	w.start("pair", "two")
	w.start("place", "locate")
	w.start("colour", "pick")
	w.start("words", "where")
	w.start("board", "board")
	w.start("late", "hurry")
	w.start("over", "echo")
	w.startAs(eve, "theirs", "deploy "+secret)
	w.startAs(eve, "trip", "deploy "+secret)
	return w
}

// TestRefusals sends what must be refused: the status and the code are right, and
// nothing is changed.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := crowded(t)
	out := w.send(ann, http.MethodPost, "/sessions", `{"agent":"desk","sessionId":"keyed","input":"echo"}`, client.HeaderIdempotencyKey, "key")
	require.Equal(t, http.StatusAccepted, out.Code)
	pending := func(token, id string) client.Wait {
		return get[client.Session](w, token, "/sessions/"+id).Pause.Pending[0]
	}
	trip, theirs, pair := pending(ann, "trip"), pending(eve, "theirs"), pending(ann, "pair")
	checkpoint := get[client.Session](w, ann, "/sessions/pair").CheckpointID
	their := get[client.Session](w, eve, "/sessions/theirs").CheckpointID
	approve := func(call, nonce string) string {
		return fmt.Sprintf(`{"kind":"approval-response","toolCallId":%q,"approvalId":%q,"approved":true}`, call, nonce)
	}
	const (
		get, post = http.MethodGet, http.MethodPost
		start     = "/sessions"
		submit    = "/sessions/trip/submit"
		answers   = "/sessions/trip/answers"
		resume    = "/sessions/trip/resume"
		body      = `{"agent":"desk","input":"x"}`
	)
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	before := w.dump()
	for _, c := range []struct {
		name                        string
		token, method, target, body string
		header                      []string
		status                      int
		code                        string
		detail                      string
	}{
		// who
		{"nobody", "", get, start, "", nil, 401, "unauthenticated", ""},
		{"nobody, with a body that cannot be read", "", post, start, "{", nil, 401, "unauthenticated", ""},
		{"nobody, at no address", "", get, "/etc/passwd", "", nil, 401, "unauthenticated", ""},
		{"nobody, posting to what is public", "", post, "/openapi.json", "{}", nil, 401, "unauthenticated", ""},
		{"a stranger", "who", get, start, "", nil, 401, "unauthenticated", ""},
		{"banned", "banned", get, start, "", nil, 403, "forbidden", ""},
		{"a tenant that is none", "odd", get, start, "", nil, 403, "forbidden", ""},
		{"no name", "ghost", get, start, "", nil, 403, "forbidden", ""},

		// other tenants
		{"another tenant's session", ann, get, "/sessions/theirs", "", nil, 404, "session_not_found", ""},
		{"its messages", ann, get, "/sessions/theirs/messages", "", nil, 404, "session_not_found", ""},
		{"its runs", ann, get, "/sessions/theirs/runs", "", nil, 404, "session_not_found", ""},
		{"its checkpoints", ann, get, "/sessions/theirs/checkpoints", "", nil, 404, "session_not_found", ""},
		{"its waits", ann, get, "/sessions/theirs/waits", "", nil, 404, "session_not_found", ""},
		{"its entries", ann, get, "/sessions/theirs/entries?after=1&wait=20&stay=true", "", nil, 404, "session_not_found", ""},
		{"its approval", ann, post, "/sessions/theirs/submit", approve(theirs.CallID, theirs.ApprovalID), nil, 404, "session_not_found", ""},
		{"its resumption", ann, post, "/sessions/theirs/resume", `{"decisions":{"rejectAll":true}}`, nil, 404, "session_not_found", ""},
		{"a tenant in the body", ann, post, start, `{"tenant":"rival","agent":"desk","input":"x"}`, nil, 400, "unknown_field", `"tenant"`},
		{"a tenant in the query", ann, get, start + "?tenant=rival", "", nil, 400, "invalid_parameter", `"tenant"`},
		{"its checkpoint", ann, post, "/sessions/pair/resume", fmt.Sprintf(`{"checkpointId":%q,"decisions":{"approveAll":true}}`, their), nil, 400, "invalid_checkpoint", ""},

		// forged answers
		{"a forged approvalId", ann, post, submit, approve(trip.CallID, "forged"), nil, 404, "wait_not_found", "approvalId"},
		{"no approvalId", ann, post, submit, fmt.Sprintf(`{"kind":"approval-response","toolCallId":%q,"approved":true}`, trip.CallID), nil, 400, "invalid_answer", "Name the wait: w3-1"},
		{"the approvalId of another session", ann, post, submit, approve(trip.CallID, pair.ApprovalID), nil, 404, "wait_not_found", "approvalId"},
		{"the approvalId of another tenant's session of that name", ann, post, submit, approve(trip.CallID, theirs.ApprovalID), nil, 404, "wait_not_found", "approvalId"},
		{"one wait with the call of another", ann, post, "/sessions/pair/submit", fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"toolCallId":"c2-2","approvalId":%q,"approved":true}`, pair.WaitID, pair.ApprovalID), nil, 404, "wait_not_found", ""},
		{"not the one who may", ann, post, "/sessions/board/submit", approve("c2-1", pending(ann, "board").ApprovalID), nil, 403, "not_allowed", "carol"},
		{"not the one who may, with decisions", ann, post, "/sessions/board/resume", `{"decisions":{"approve":["w2-1"]}}`, nil, 403, "not_allowed", "carol"},
		{"not the one who may, with a confirmation", ann, post, "/sessions/board/resume", `{"confirmation":{"approved":true,"waitId":"w2-1"}}`, nil, 403, "not_allowed", "carol"},
		{"approved or not", ann, post, submit, fmt.Sprintf(`{"kind":"approval-response","toolCallId":%q,"approvalId":%q}`, trip.CallID, trip.ApprovalID), nil, 400, "invalid_answer", "approved"},
		{"edited into what the tool does not take", ann, post, submit, fmt.Sprintf(`{"kind":"approval-response","toolCallId":%q,"approvalId":%q,"approved":true,"editedInput":{"amount":1}}`, trip.CallID, trip.ApprovalID), nil, 400, "invalid_answer", "edited input"},
		{"edited and denied", ann, post, submit, fmt.Sprintf(`{"kind":"approval-response","toolCallId":%q,"approvalId":%q,"approved":false,"editedInput":{"text":"a"}}`, trip.CallID, trip.ApprovalID), nil, 400, "invalid_answer", "edited input"},
		{"the wrong kind", ann, post, submit, `{"kind":"client-tool-result","waitId":"w3-1","result":1}`, nil, 400, "wrong_kind", "w3-1"},
		{"a child's end", ann, post, submit, `{"kind":"child-end","toolCallId":"c3-1","result":1}`, nil, 400, "invalid_field", "kind"},
		{"an expiry", ann, post, submit, `{"kind":"expiry","toolCallId":"c3-1"}`, nil, 400, "invalid_field", "kind"},
		{"no kind", ann, post, submit, `{"toolCallId":"c3-1","approved":true}`, nil, 400, "invalid_field", "kind"},
		{"an answer that says two things", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":1,"approved":true}`, nil, 400, "invalid_input", "approved"},
		{"a result and an error", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":1,"error":"x"}`, nil, 400, "invalid_answer", "either"},
		{"a choice there is not", ann, post, "/sessions/colour/submit", `{"kind":"reply","waitId":"w3-1","selected":["green"]}`, nil, 400, "invalid_answer", "green"},
		{"another question", ann, post, "/sessions/colour/submit", `{"kind":"reply","waitId":"w3-1","id":"size","selected":["red"]}`, nil, 400, "wrong_kind", ""},
		{"an empty message", ann, post, "/sessions/words/submit", `{"kind":"message","message":" "}`, nil, 400, "invalid_input", ""},
		{"a verdict nobody asked for", ann, post, submit, `{"kind":"verdict","waitId":"w9-9","verdict":"happened"}`, nil, 404, "wait_not_found", ""},
		{"after the end", ann, post, "/sessions/over/submit", `{"kind":"message","message":"x"}`, nil, 404, "wait_not_found", ""},

		// resumptions
		{"still waiting", ann, post, resume, "", nil, 409, "still_waiting", ""},
		{"a message to who waits for something else", ann, post, resume, `{"message":"go"}`, nil, 409, "still_waiting", ""},
		{"nothing to confirm", ann, post, "/sessions/place/resume", `{"confirmation":{"approved":false}}`, nil, 409, "nothing_to_decide", ""},
		{"one of two", ann, post, "/sessions/pair/resume", `{"confirmation":{"approved":false}}`, nil, 409, "nothing_to_decide", "w2-1"},
		{"to confirm nobody knows what", ann, post, resume, `{"confirmation":{"approved":true}}`, nil, 400, "invalid_input", "checkpoint"},
		{"all of nobody knows what", ann, post, "/sessions/pair/resume", `{"decisions":{"approveAll":true}}`, nil, 400, "invalid_input", "checkpoint"},
		{"a call where a wait belongs", ann, post, "/sessions/pair/resume", `{"decisions":{"approve":["c2-1"]}}`, nil, 404, "wait_not_found", "w2-1"},
		{"no word on it", ann, post, resume, `{"confirmation":{}}`, nil, 400, "invalid_field", "confirmation.approved"},
		{"both ways", ann, post, "/sessions/pair/resume", `{"decisions":{"approve":["w2-1"],"reject":["w2-1"]}}`, nil, 400, "invalid_input", ""},
		{"all both ways", ann, post, "/sessions/pair/resume", `{"decisions":{"approveAll":true,"rejectAll":true}}`, nil, 400, "invalid_input", ""},
		{"nobody's wait", ann, post, "/sessions/pair/resume", `{"decisions":{"approve":["w7-7"]}}`, nil, 404, "wait_not_found", ""},
		{"no decision", ann, post, "/sessions/pair/resume", `{"decisions":{}}`, nil, 409, "nothing_to_decide", ""},
		{"two things at once", ann, post, resume, `{"message":"x","decisions":{"approveAll":true}}`, nil, 400, "invalid_field", ""},
		{"a mode that does not fit", ann, post, resume, `{"mode":"continue","message":"x"}`, nil, 400, "invalid_field", ""},
		{"a mode there is not", ann, post, resume, `{"mode":"from_checkpoint"}`, nil, 400, "invalid_field", ""},
		{"a checkpoint of nobody", ann, post, "/sessions/pair/resume", `{"checkpointId":"` + checkpoint[:len(checkpoint)-2] + `AA","decisions":{"approveAll":true}}`, nil, 400, "invalid_checkpoint", ""},
		{"after the end", ann, post, "/sessions/over/resume", `{}`, nil, 409, "not_resumable", ""},
		{"no such session", ann, post, "/sessions/none/resume", `{}`, nil, 404, "session_not_found", ""},

		// starts
		{"no agent", ann, post, start, `{"input":"x"}`, nil, 400, "invalid_input", "a new session needs an agent: say which one; there are desk"},
		{"an agent there is not", ann, post, start, `{"agent":"none","input":"x"}`, nil, 404, "unknown_agent", ""},
		{"another agent", ann, post, start, `{"sessionId":"over","agent":"other","input":"x"}`, nil, 409, "agent_mismatch", ""},
		{"suspended", ann, post, start, `{"sessionId":"trip","input":"x"}`, nil, 409, "not_resumable", ""},
		{"an agent with a name without end", ann, post, start, `{"agent":"` + strings.Repeat("ü", 1<<20) + `","input":"x"}`, nil, 404, "unknown_agent", "…"},
		{"no input", ann, post, start, `{"agent":"desk"}`, nil, 400, "invalid_input", ""},
		{"an id that is none", ann, post, start, `{"agent":"desk","sessionId":"../x","input":"x"}`, nil, 400, "invalid_id", ""},
		{"an id that is too long", ann, post, start, `{"agent":"desk","sessionId":"` + strings.Repeat("a", 129) + `","input":"x"}`, nil, 400, "invalid_id", ""},
		{"the key of another request", ann, post, start, `{"agent":"desk","sessionId":"keyed","input":"other"}`, []string{client.HeaderIdempotencyKey, "key"}, 409, "idempotency_mismatch", ""},
		{"the key of another session", ann, post, start, `{"agent":"desk","input":"echo"}`, []string{client.HeaderIdempotencyKey, "key"}, 409, "idempotency_mismatch", ""},
		{"the key with another agent", ann, post, start, `{"agent":"other","sessionId":"keyed","input":"echo"}`, []string{client.HeaderIdempotencyKey, "key"}, 409, "idempotency_mismatch", ""},
		{"a key with a space", ann, post, start, body, []string{client.HeaderIdempotencyKey, "a b"}, 400, "invalid_header", ""},
		{"an empty key", ann, post, start, body, []string{client.HeaderIdempotencyKey, ""}, 400, "invalid_header", ""},
		{"a key that is too long", ann, post, start, body, []string{client.HeaderIdempotencyKey, strings.Repeat("k", 256)}, 400, "invalid_header", ""},
		{"a key that is not ASCII", ann, post, start, body, []string{client.HeaderIdempotencyKey, "schlüssel"}, 400, "invalid_header", ""},
		{"too much input", ann, post, start, `{"agent":"desk","input":"` + strings.Repeat("x", runtime.MaxInput+1) + `"}`, nil, 413, "input_too_large", ""},

		// bodies
		{"no body", ann, post, start, "", nil, 400, "body_missing", ""},
		{"an id without end", ann, post, submit, `{"kind":"approval-response","approved":true,"waitId":"` + strings.Repeat("w", 257) + `"}`, nil, 413, "input_too_large", "waitId"},
		{"a reason without end", ann, post, submit, `{"kind":"approval-response","approved":false,"waitId":"w3-1","reason":"` + strings.Repeat("x", httpapi.DefaultMaxError+1) + `"}`, nil, 413, "input_too_large", "reason"},
		{"an error without end", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","error":"` + strings.Repeat("x", httpapi.DefaultMaxError+1) + `"}`, nil, 413, "input_too_large", "error"},
		{"a result without end", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":"` + strings.Repeat("x", httpapi.DefaultMaxResult) + `"}`, nil, 413, "input_too_large", "result"},
		{"no answers", ann, post, answers, `{"answers":[]}`, nil, 400, "invalid_field", "0 answers"},
		{"no body of answers", ann, post, answers, "", nil, 400, "body_missing", ""},
		{"neither form", ann, post, answers, `{"approved":true}`, nil, 400, "unknown_field", "answers"},
		{"no word of Strands for yes", ann, post, answers, `[{"interruptResponse":{"interruptId":"w3-1","response":null}}]`, nil, 400, "invalid_field", "Strands"},
		{"a wait that Strands does not name", ann, post, answers, `[{"interruptResponse":{"interruptId":"c3-1","response":true}}]`, nil, 404, "wait_not_found", "Strands"},
		{"a field of Strands twice", ann, post, answers, `[{"interruptResponse":{"interruptId":"w3-1","response":false,"response":true}}]`, nil, 400, "duplicate_field", "response"},
		{"a result of Stakpak in place of an approval", ann, post, answers, `{"decisions":{"w3-1":{"action":"custom_result","content":"done"}}}`, nil, 400, "invalid_field", "Stakpak"},
		{"all that Stakpak was not shown", ann, post, answers, `{"approve_all":true}`, nil, 400, "invalid_input", "checkpoint"},
		{"another token of Kortyx", ann, post, answers, fmt.Sprintf(`{"token":%q,"requestId":"w3-1","selected":"approve"}`, pair.ApprovalID), nil, 404, "wait_not_found", "Kortyx"},
		{"no body to submit", ann, post, submit, "", nil, 400, "body_missing", ""},
		{"a body of blanks", ann, post, start, " \n ", nil, 400, "body_missing", ""},
		{"too much body", ann, post, start, `{"input":"` + strings.Repeat("x", httpapi.DefaultMaxBody) + `"}`, nil, 413, "body_too_large", ""},
		{"text", ann, post, start, body, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", ""},
		{"a form", ann, post, start, "agent=desk&input=x", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media_type", ""},
		{"no type", ann, post, start, body, []string{"Content-Type", ""}, 415, "unsupported_media_type", ""},
		{"a type that is none", ann, post, start, body, []string{"Content-Type", ";;"}, 415, "unsupported_media_type", ""},
		{"another charset", ann, post, start, body, []string{"Content-Type", "application/json; charset=latin1"}, 415, "unsupported_media_type", ""},
		{"compressed", ann, post, start, body, []string{"Content-Encoding", "gzip"}, 415, "unsupported_media_type", ""},
		{"half a body", ann, post, start, "{\n  \"agent\": \"desk\",\n  \"inp", nil, 400, "malformed_json", "line 3, character 7"},
		{"a comma too many", ann, post, start, `{"agent":"desk","input":"x",}`, nil, 400, "malformed_json", "line 1, character 29"},
		{"umlauts before it", ann, post, start, `{"agent":"ööö",x}`, nil, 400, "malformed_json", "line 1, character 16"},
		{"two bodies", ann, post, start, body + body, nil, 400, "malformed_json", "after top-level value"},
		{"a body and more", ann, post, start, body + "x", nil, 400, "malformed_json", "after top-level value"},
		{"a list", ann, post, start, "[" + body + "]", nil, 400, "malformed_json", "object"},
		{"null", ann, post, start, "null", nil, 400, "malformed_json", "object"},
		{"decisions that got lost", ann, post, resume, `{"decisions":null}`, nil, 400, "invalid_field", `"decisions" is null`},
		{"a confirmation that got lost", ann, post, resume, `{"confirmation":null}`, nil, 400, "invalid_field", `"confirmation" is null`},
		{"a message that got lost", ann, post, resume, `{"message":null}`, nil, 400, "invalid_field", `"message" is null`},
		{"a session without a name", ann, post, start, `{"agent":"desk","input":"x","sessionId":""}`, nil, 400, "invalid_field", `"sessionId" is empty`},
		{"a checkpoint that got lost", ann, post, resume, `{"decisions":{"rejectAll":true},"checkpointId":""}`, nil, 400, "invalid_field", `"checkpointId" is empty`},
		{"a checkpoint that is null", ann, post, resume, `{"decisions":{"rejectAll":true},"checkpointId":null}`, nil, 400, "invalid_field", `"checkpointId" is null`},
		{"a wait that got lost", ann, post, resume, `{"confirmation":{"approved":false,"waitId":""}}`, nil, 400, "invalid_field", `"confirmation.waitId" is empty`},
		{"a wait of an answer that got lost", ann, post, submit, `{"kind":"reply","waitId":"","text":"x"}`, nil, 400, "invalid_field", `"waitId" is empty`},
		{"not UTF-8", ann, post, start, "{\"agent\":\"desk\",\n\"input\":\"\xff\"}", nil, 400, "malformed_json", "line 2, character 10: this is not UTF-8"},
		{"an unknown field", ann, post, start, `{"agent":"desk","input":"x","inptu":"y"}`, nil, 400, "unknown_field", `"inptu"`},
		{"a field in other letters", ann, post, submit, `{"kind":"message","Message":"x"}`, nil, 400, "unknown_field", `"Message"`},
		{"an unknown field further in", ann, post, resume, `{"decisions":{"aprove":["c3-1"]}}`, nil, 400, "unknown_field", `"decisions.aprove"`},
		{"a field twice", ann, post, submit, `{"kind":"message","message":"a","message":"b"}`, nil, 400, "duplicate_field", `"message"`},
		{"a field twice where anything may stand", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":{"rows":[{"a":1,"a":2}]}}`, nil, 400, "duplicate_field", `"result.rows[0].a"`},
		{"an approval both ways", ann, post, submit, `{"kind":"approval-response","approved":false,"Approved":true}`, nil, 400, "unknown_field", `"Approved"`},
		{"a field of the wrong type", ann, post, start, `{"agent":"desk","input":["x"]}`, nil, 400, "invalid_field", "a JSON string does not belong there"},
		{"a message that is no message", ann, post, resume, `{"message":{"text":"x"}}`, nil, 400, "invalid_field", "a message is a string, or a list"},
		{"a field of a part that it does not have", ann, post, start, `{"agent":"desk","input":[{"kind":"image","file":{"mime":"image/png"}}]}`, nil, 400, "unknown_field", `"input[0].file.mime"`},
		{"a part that is not for people", ann, post, start, `{"agent":"desk","input":[{"kind":"text","text":"a"},{"kind":"tool_call","toolCall":{"name":"x","arguments":{}}}]}`, nil, 400, "invalid_input", "part 2 of the input"},
		{"a field of the wrong type further in", ann, post, resume, `{"decisions":{"approve":[1]}}`, nil, 400, "invalid_field", "approve"},
		{"too deep", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":` + deep + `}`, nil, 400, "malformed_json", "deep"},
		{"far too deep", ann, post, start, strings.Repeat(`{"a":`, 1<<20), nil, 400, "malformed_json", "depth"},

		// addresses
		{"no such address", ann, get, "/session", "", nil, 404, "route_not_found", ""},
		{"the root", ann, get, "/", "", nil, 404, "route_not_found", ""},
		{"a slash at the end", ann, get, "/sessions/", "", nil, 404, "route_not_found", ""},
		{"a slash too many", ann, get, "//sessions", "", nil, 404, "route_not_found", ""},
		{"a slash too many inside", ann, post, "/sessions//submit", "{}", nil, 404, "route_not_found", ""},
		{"up", ann, get, "/sessions/../sessions", "", nil, 404, "route_not_found", ""},
		{"up, hidden", ann, get, "/sessions/%2e%2e/waits", "", nil, 404, "route_not_found", ""},
		{"here", ann, get, "/sessions/./trip", "", nil, 404, "route_not_found", ""},
		{"a hidden slash", ann, get, "/sessions/..%2f..%2fetc%2fpasswd", "", nil, 404, "route_not_found", ""},
		{"an id with a hidden letter", ann, get, "/sessions/tr%69p", "", nil, 404, "route_not_found", ""},
		{"an id with a space", ann, get, "/sessions/a%20b", "", nil, 404, "route_not_found", ""},
		{"an id with a NUL", ann, get, "/sessions/a%00b", "", nil, 404, "route_not_found", ""},
		{"an id with a question mark", ann, get, "/sessions/a%3Fb", "", nil, 404, "route_not_found", ""},
		{"an id with a hash of a tenant", ann, get, "/sessions/rival%23theirs", "", nil, 404, "route_not_found", ""},
		{"an id with an umlaut", ann, get, "/sessions/%C3%BC", "", nil, 404, "route_not_found", ""},
		{"an id with a dot", ann, get, "/sessions/a.b", "", nil, 400, "invalid_id", ""},
		{"a long id", ann, get, "/sessions/" + strings.Repeat("a", 129), "", nil, 400, "invalid_id", ""},
		{"a hidden slash on a POST", ann, post, "/sessions/trip%2fsubmit", "{}", nil, 404, "route_not_found", ""},
		{"too far in", ann, get, "/sessions/trip/waits/w2-1/dismiss/now", "", nil, 404, "route_not_found", ""},
		{"a template", ann, get, "/sessions/{id}", "", nil, 404, "route_not_found", ""},

		// methods
		{"put", ann, http.MethodPut, "/sessions/trip", "", nil, 405, "method_not_allowed", "GET, HEAD, DELETE"},
		{"delete with a body", ann, http.MethodDelete, "/sessions/trip", `{"reason":"x"}`, nil, 400, "unknown_field", "reason"},
		{"delete with a query", ann, http.MethodDelete, "/sessions/trip?force=1", "", nil, 400, "invalid_parameter", "force"},
		{"put", ann, http.MethodPut, start, body, nil, 405, "method_not_allowed", "GET, HEAD, POST"},
		{"a GET that would answer", ann, get, submit, "", nil, 405, "method_not_allowed", "POST"},
		{"a HEAD that would answer", ann, http.MethodHead, resume, "", nil, 405, "method_not_allowed", "POST"},
		{"a method that is none", ann, "BREW", start, "", nil, 405, "method_not_allowed", ""},
		{"small letters", ann, "post", start, body, nil, 405, "method_not_allowed", ""},
		{"another method said in a header", ann, http.MethodGet, submit, "", []string{"X-HTTP-Method-Override", "POST"}, 405, "method_not_allowed", ""},

		// parameters
		{"a parameter there is not", ann, get, start + "?offset=3", "", nil, 400, "invalid_parameter", `"offset"`},
		{"a parameter on a POST", ann, post, submit + "?approved=true", "{}", nil, 400, "invalid_parameter", `"approved"`},
		{"a parameter twice", ann, get, start + "?limit=1&limit=2", "", nil, 400, "invalid_parameter", "twice"},
		{"a query that is none", ann, get, start + "?limit=%zz", "", nil, 400, "invalid_parameter", ""},
		{"a semicolon", ann, get, start + "?limit=1;status=failed", "", nil, 400, "invalid_parameter", ""},
		{"limit 0", ann, get, start + "?limit=0", "", nil, 400, "invalid_parameter", "1 to 1000"},
		{"limit 1001", ann, get, "/waits?limit=1001", "", nil, 400, "invalid_parameter", "1 to 1000"},
		{"limit in words", ann, get, "/sessions/trip/messages?limit=ten", "", nil, 400, "invalid_parameter", "1 to 1000"},
		{"no limit", ann, get, "/sessions/trip/entries?limit=", "", nil, 400, "invalid_parameter", "1 to 1000"},
		{"a status there is not", ann, get, start + "?status=paused", "", nil, 400, "invalid_parameter", "status must be one of running, suspended, "},
		{"a kind there is not", ann, get, "/waits?kind=foo", "", nil, 400, "invalid_parameter", "kind must be one of client_tool, approval, "},
		{"after -1", ann, get, "/sessions/trip/entries?after=-1", "", nil, 400, "invalid_parameter", ""},
		{"after far too much", ann, get, "/sessions/trip/entries?after=99999999999999999999", "", nil, 400, "invalid_parameter", ""},
		{"wait 21", ann, get, "/sessions/trip/entries?wait=21", "", nil, 400, "invalid_parameter", "0 to 20"},
		{"stay perhaps", ann, get, "/sessions/trip/entries?stay=1", "", nil, 400, "invalid_parameter", "true or false"},
		{"a cursor of nobody", ann, get, start + "?cursor=x", "", nil, 400, "invalid_cursor", ""},
		{"a cursor of nobody, in the inbox", ann, get, "/waits?cursor=AAAA", "", nil, 400, "invalid_cursor", ""},
		{"a cursor of nobody, of messages", ann, get, "/sessions/trip/messages?cursor=AAAA", "", nil, 400, "invalid_cursor", ""},
		{"a cursor of another list", ann, get, "/sessions/trip/waits?cursor=bWVzc2FnZXM6MQ", "", nil, 400, "invalid_cursor", ""},
		{"a cursor before the list", ann, get, "/sessions/trip/messages?cursor=bWVzc2FnZXM6LTE", "", nil, 400, "invalid_cursor", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := w.send(c.token, c.method, c.target, c.body, c.header...)
			if c.method != http.MethodHead {
				p := problem(t, out)
				require.Equal(t, c.code, p.Code, p.Detail)
				require.Contains(t, p.Detail, c.detail)
				require.Less(t, len(p.Detail), 1010)
				require.NotContains(t, out.Body.String(), secret)
			}
			require.Equal(t, c.status, out.Code)
			switch c.status {
			case http.StatusUnauthorized:
				require.Contains(t, out.Header().Get("WWW-Authenticate"), "Bearer")
			case http.StatusMethodNotAllowed:
				require.NotEmpty(t, out.Header().Get("Allow"))
			}
			require.Empty(t, out.Header().Get("Location"), "a redirect could change the method")
		})
	}
	require.Equal(t, before, w.dump(), "nothing that was refused changed anything")
}

// TestNotOurs: that a session is another tenant's cannot be told from the answer.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	w := crowded(t)
	targets := append(slices.Collect(maps.Values(routesOf(http.MethodGet, "theirs"))), "/sessions/theirs/entries?after=1")
	for _, target := range targets {
		theirs, none := w.send(ann, http.MethodGet, target, ""), w.send(ann, http.MethodGet, strings.Replace(target, "theirs", "nobodys", 1), "")
		require.Equal(t, http.StatusNotFound, theirs.Code, target)
		require.Equal(t, none.Code, theirs.Code, target)
		require.Equal(t, strings.ReplaceAll(none.Body.String(), "nobodys", "theirs"), theirs.Body.String(), target)
	}
	for verb, target := range routesOf(http.MethodPost, "theirs") {
		body := map[string]string{"submitAnswer": `{"kind":"message","message":"x"}`, "submitAnswers": `[{"interruptResponse":{"interruptId":"w2-1","response":true}}]`, "resumeSession": `{"message":"x"}`, "sendMessage": `{"message":"x"}`, "interruptSession": `{"task":1}`, "cancelSession": `{"reason":"x"}`, "abortSession": `{}`, "retrySession": `{}`, "forkSession": `{}`, "makeLink": `{}`, "dismissWait": `{"reason":"x"}`, "extendWait": `{"deadline":"2026-01-05T12:00:00Z"}`, "delegateWait": `{"to":"ben"}`, "previewPermission": `{"for":"session"}`, "revokePermission": `{}`}[verb]
		require.NotEmpty(t, body, "what would %s take, if the session were there?", verb)
		theirs, none := w.send(ann, http.MethodPost, target, body), w.send(ann, http.MethodPost, strings.Replace(target, "theirs", "nobodys", 1), body)
		require.Equal(t, http.StatusNotFound, theirs.Code, verb)
		require.Equal(t, strings.ReplaceAll(none.Body.String(), "nobodys", "theirs"), theirs.Body.String(), verb)
		require.Contains(t, theirs.Body.String(), "there is no such session", verb)
	}
	for verb, target := range routesOf(http.MethodDelete, "theirs") {
		theirs, none := w.send(ann, http.MethodDelete, target, ""), w.send(ann, http.MethodDelete, strings.Replace(target, "theirs", "nobodys", 1), "")
		require.Equal(t, http.StatusNotFound, theirs.Code, verb)
		require.Equal(t, strings.ReplaceAll(none.Body.String(), "nobodys", "theirs"), theirs.Body.String(), verb)
		require.Equal(t, http.StatusOK, w.send(eve, http.MethodGet, target, "").Code, "it is still theirs")
	}
	for _, target := range routesOf(http.MethodGet, "") {
		out := w.send(ann, http.MethodGet, target, "")
		require.Equal(t, http.StatusOK, out.Code)
		require.NotContains(t, out.Body.String(), "theirs")
	}
	// Their cursor brings ann nothing of theirs.
	w.startAs(eve, "theirs2", "deploy "+secret)
	for _, target := range []string{"/sessions?limit=1", "/waits?limit=1"} {
		page := get[struct {
			Items  []any  `json:"items"`
			Cursor string `json:"cursor"`
		}](w, eve, target)
		require.NotEmpty(t, page.Cursor)
		out := w.send(ann, http.MethodGet, target+"&cursor="+page.Cursor, "")
		require.NotContains(t, out.Body.String(), "theirs")
		require.NotContains(t, out.Body.String(), secret)
	}
	// The same id and the same key are theirs to use.
	for _, token := range []string{ann, eve} {
		out := w.send(token, http.MethodPost, "/sessions", fmt.Sprintf(`{"agent":"desk","sessionId":"same","input":"echo %s"}`, token), client.HeaderIdempotencyKey, "same")
		require.Equal(t, http.StatusAccepted, out.Code, out.Body.String())
		require.Empty(t, out.Header().Get(client.HeaderIdempotencyReplayed))
	}
}

// TestTwice: headers that are there twice say two things.
func TestTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for header, code := range map[string]string{client.HeaderIdempotencyKey: "invalid_header", "Content-Type": "unsupported_media_type"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sessions", strings.NewReader(`{"agent":"desk","input":"x"}`))
		r.Header.Set("Authorization", "Bearer "+ann)
		r.Header.Set("Content-Type", client.MediaJSON)
		r.Header[header] = []string{client.MediaJSON, client.MediaJSON}
		require.Equal(t, code, problem(t, w.serve(r)).Code)
	}
}

// TestKeys: a request with a key counts once, whatever it does; with another body
// its key is refused, and nobody has the key of somebody else or of another route.
func TestKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ input, verb, body, other string }{
		"an approval":    {"deploy", "submit", `{"kind":"approval-response","waitId":"w2-1","approved":true}`, `{"kind":"approval-response","waitId":"w2-1","approved":false}`},
		"a message":      {"where", "submit", `{"kind":"message","message":"here"}`, `{"kind":"message","message":"there"}`},
		"stored":         {"locate", "submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":1,"autoResume":false}`, `{"kind":"client-tool-result","toolCallId":"c2-1","result":1}`},
		"decisions":      {"two", "resume", `{"decisions":{"approve":["w2-1"]}}`, `{"decisions":{"approve":["w2-2"]}}`},
		"rejecting all":  {"two", "resume", `{"decisions":{"rejectAll":true}}`, `{"decisions":{"rejectAll":true,"reason":"x"}}`},
		"a confirmation": {"deploy", "resume", `{"confirmation":{"approved":true,"waitId":"w2-1"}}`, `{"message":"x"}`},
		"a word":         {"where", "resume", `{"message":"here"}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start("trip", c.input)
			path := "/sessions/trip/" + c.verb
			send := func(who, body string) *httptest.ResponseRecorder {
				return w.send(who, http.MethodPost, path, body, client.HeaderIdempotencyKey, "k")
			}
			first := send(ann, c.body)
			require.Less(t, first.Code, 300, first.Body.String())
			require.Empty(t, first.Header().Get(client.HeaderIdempotencyReplayed))
			waits := get[client.Waits](w, ann, "/sessions/trip/waits")
			for range 2 {
				again := send(ann, c.body)
				require.Equal(t, first.Code, again.Code, again.Body.String())
				require.Equal(t, "true", again.Header().Get(client.HeaderIdempotencyReplayed))
				require.NotContains(t, again.Body.String(), `"repeated":true`, "it is the first answer")
				require.Equal(t, waits, get[client.Waits](w, ann, "/sessions/trip/waits"))
			}
			p := problem(t, send(ann, c.other))
			require.Equal(t, http.StatusConflict, p.Status)
			require.Equal(t, "idempotency_mismatch", p.Code)
			require.NotEqual(t, "idempotency_mismatch", problemOrNone(send(carol, c.other)), "another caller's key")
			start := w.send(ann, http.MethodPost, "/sessions", `{"agent":"desk","input":"echo"}`, client.HeaderIdempotencyKey, "k")
			require.Equal(t, http.StatusAccepted, start.Code, "another route's key: %s", start.Body.String())
		})
	}
}

// problemOrNone returns the code of a refusal, "" for none.
func problemOrNone(out *httptest.ResponseRecorder) string {
	var p client.Problem
	_ = json.Unmarshal(out.Body.Bytes(), &p)
	return p.Code
}

// TestApprovalByItsID: an approvalId alone names what was shown, and what names
// nothing, or two things, is told so.
func TestApprovalByItsID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("trip", "echo deploy")
	wait := get[client.Session](w, ann, "/sessions/trip").Pause.Pending[0]
	for body, says := range map[string]string{
		`{"kind":"reply","id":"color","selected":["red"]}`:                                                   "the answer does not say which wait it is for",
		`{"kind":"message","message":"x"}`:                                                                   "does not wait for a message",
		`{"kind":"approval-response","approvalId":"made-up","approved":true}`:                                "no approval has this approvalId",
		`{"kind":"approval-response","toolCallId":"` + wait.CallID + `","approved":true}`:                    "Name the wait: " + wait.WaitID,
		`{"kind":"approval-response","waitId":"` + wait.WaitID + `","toolCallId":"c9-1","approved":true}`:    `of a call \"c9-1\"`,
		`{"kind":"approval-response","waitId":"` + wait.WaitID + `","approvalId":"made-up","approved":true}`: "not that of the approval",
	} {
		out := w.send(ann, http.MethodPost, "/sessions/trip/submit", body)
		require.GreaterOrEqual(t, out.Code, 400, body)
		require.Contains(t, out.Body.String(), says, body)
	}
	out := w.send(ann, http.MethodPost, "/sessions/trip/resume", `{"decisions":{"reason":"x"}}`)
	require.Equal(t, "nothing_to_decide", problem(t, out).Code)
	require.Contains(t, out.Body.String(), "no approval is named")
	for _, repeated := range []bool{false, true} {
		out := w.send(ann, http.MethodPost, "/sessions/trip/submit", `{"kind":"approval-response","approvalId":"`+wait.ApprovalID+`","approved":true}`)
		require.Equal(t, http.StatusOK, out.Code, out.Body.String())
		require.Equal(t, repeated, strings.Contains(out.Body.String(), `"repeated":true`))
	}
}

// broken is a body that breaks off.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, change{api: func(cfg *httpapi.Config) { cfg.MaxBody = 100 }})
	request := func(body io.Reader, length int64) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sessions", body)
		r.ContentLength = length
		r.Header.Set("Authorization", "Bearer "+ann)
		r.Header.Set("Content-Type", "Application/JSON; charset=UTF-8")
		return r
	}
	valid := `{"agent":"desk","input":"x"}`
	require.Equal(t, "body_unreadable", problem(t, w.serve(request(broken{strings.NewReader(valid)}, 99))).Code)
	require.Equal(t, "body_too_large", problem(t, w.serve(request(strings.NewReader(valid), 101))).Code, "told before a byte is read")
	require.Equal(t, "body_too_large", problem(t, w.serve(request(strings.NewReader(valid+strings.Repeat(" ", 100)), -1))).Code, "of a length nobody told")
	require.Equal(t, "body_missing", problem(t, w.serve(request(strings.NewReader(""), -1))).Code)
	require.Equal(t, http.StatusAccepted, w.serve(request(strings.NewReader(valid), -1)).Code)
	require.Equal(t, http.StatusAccepted, w.serve(request(strings.NewReader(valid+strings.Repeat("\n", 100-len(valid))), 100)).Code, "exactly as much as is taken")
}

// TestServer: what a real server makes of odd requests reaches the handler as
// here, and what it answers is whole.
func TestServer(t *testing.T) {
	t.Parallel()
	w := crowded(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	ask := func(raw string) *http.Response {
		conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, raw)
		require.NoError(t, err)
		method, _, _ := strings.Cut(raw, " ")
		out, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
		require.NoError(t, err)
		t.Cleanup(func() { _ = out.Body.Close() })
		return out
	}
	const who = "Host: x\r\nAuthorization: Bearer ann\r\nConnection: close\r\n"
	for _, target := range []string{"//sessions", "/sessions//trip", "/sessions/../waits", "/sessions/trip/", "/sessions/trip%2f..", "http://x/sessions/", "/%73essions", "/sessions/trip;a=b"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			out := ask(method + " " + target + " HTTP/1.1\r\n" + who + "Content-Length: 0\r\n\r\n")
			require.Equal(t, http.StatusNotFound, out.StatusCode, "%s %s", method, target)
			require.Equal(t, client.MediaProblem, out.Header.Get("Content-Type"), "%s %s", method, target)
		}
	}
	out := ask("GET http://elsewhere/sessions/trip HTTP/1.1\r\n" + who + "\r\n")
	require.Equal(t, http.StatusOK, out.StatusCode, "an absolute address is the same one")

	whole := ask("GET /sessions/trip HTTP/1.1\r\n" + who + "\r\n")
	body, err := io.ReadAll(whole.Body)
	require.NoError(t, err)
	head := ask("HEAD /sessions/trip HTTP/1.1\r\n" + who + "\r\n")
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.EqualValues(t, len(body), head.ContentLength)
	rest, err := io.ReadAll(head.Body)
	require.NoError(t, err)
	require.Empty(t, rest)

	// A body that is refused by its length is not read.
	large := ask("POST /sessions HTTP/1.1\r\n" + who + "Content-Type: application/json\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n")
	require.Equal(t, http.StatusRequestEntityTooLarge, large.StatusCode)
	nobody := ask("POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n")
	require.Equal(t, http.StatusUnauthorized, nobody.StatusCode, "nor is that of somebody who is not known")
	require.True(t, bytes.Contains(body, []byte("trip")))
}
