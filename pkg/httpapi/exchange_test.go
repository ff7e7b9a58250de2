package httpapi_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// update writes the golden exchanges. What changes in them is a change of the
// API: fields may be added, and nothing may go.
var update = flag.Bool("update", false, "write the golden exchanges")

const exchangeDir = "testdata/exchanges"

// exchange is one request with its answer, as it is kept.
type exchange struct {
	Request struct {
		Method string            `json:"method"`
		Target string            `json:"target"`
		Header map[string]string `json:"header,omitempty"`
		Body   json.RawMessage   `json:"body,omitempty"`
	} `json:"request"`
	Response struct {
		Status int               `json:"status"`
		Header map[string]string `json:"header"`
		Body   json.RawMessage   `json:"body"`
	} `json:"response"`
}

// mediaForm is what a browser sends.
const mediaForm = "application/x-www-form-urlencoded"

// told is the part of the answer's header that is kept.
var told = []string{
	"Allow", "Content-Type", "Location", "Retry-After", "Www-Authenticate",
	client.HeaderIdempotencyReplayed, client.HeaderPreferenceApplied, client.HeaderRequestID,
}

// teller tells one story after the other to a world and keeps every exchange.
type teller struct {
	*world
	told map[string]exchange
}

func (s *teller) tell(name, token, method, target, body string, header ...string) client.Session {
	s.Helper()
	var e exchange
	e.Request.Method, e.Request.Target = method, target
	e.Request.Header = map[string]string{}
	if token != "" {
		e.Request.Header["Authorization"] = "Bearer " + token
	}
	for pair := range slices.Chunk(header, 2) {
		e.Request.Header[pair[0]] = pair[1]
	}
	if body != "" {
		if e.Request.Header["Content-Type"] != mediaForm {
			e.Request.Header["Content-Type"] = client.MediaJSON
		}
		if json.Valid([]byte(body)) {
			e.Request.Body = json.RawMessage(body)
		} else {
			quoted, err := json.Marshal(body)
			require.NoError(s, err)
			e.Request.Body = quoted
		}
	}
	out := s.send(token, method, target, body, header...)
	e.Response.Status, e.Response.Header = out.Code, map[string]string{}
	for _, name := range told {
		if value := out.Header().Get(name); value != "" {
			e.Response.Header[name] = value
		}
	}
	e.Response.Body = bytes.TrimSpace(out.Body.Bytes())
	if strings.HasPrefix(out.Header().Get("Content-Type"), "text/html") {
		text, err := json.Marshal(string(e.Response.Body))
		require.NoError(s, err)
		e.Response.Body = text
	}
	if len(e.Response.Body) > 1<<14 {
		e.Response.Body = json.RawMessage(`"left out: it is long"`)
	}
	require.NotContains(s, s.told, name)
	s.told[name] = e
	var session struct {
		client.Session
		Inner *client.Session `json:"session"`
	}
	_ = json.Unmarshal(out.Body.Bytes(), &session) // where it is one
	if session.Inner != nil {
		return *session.Inner
	}
	return session.Session
}

// exchanges tells everything there is to tell, in a world where every run is the same.
func exchanges(t *testing.T) map[string]exchange {
	t.Helper()
	s := &teller{world: newWorld(t), told: map[string]exchange{}}
	key := func(id string) session.Key { return session.Key{Tenant: "acme", ID: id} }
	const post, get = http.MethodPost, http.MethodGet

	s.tell("openapi", "", get, "/openapi.json", "")

	// an approval, from the start to the end
	s.tell("start", ann, post, "/sessions", `{"agent":"desk","sessionId":"trip","input":"echo deploy"}`, client.HeaderIdempotencyKey, "one,two")
	s.tell("start_again", ann, post, "/sessions", `{"agent":"desk","sessionId":"trip","input":"echo deploy"}`, client.HeaderIdempotencyKey, "one,two")
	s.tell("start_other_body", ann, post, "/sessions", `{"agent":"desk","sessionId":"trip","input":"something else"}`, client.HeaderIdempotencyKey, "one,two")
	s.tell("start_running", ann, post, "/sessions", `{"sessionId":"trip","input":"and"}`)
	s.tell("session_running", ann, get, "/sessions/trip", "")
	s.drive(key("trip"))
	trip := s.tell("session_paused", ann, get, "/sessions/trip", "", client.HeaderPrefer, "wait=5")
	require.NotNil(t, trip.Pause)
	approval := trip.Pause.Pending[0]
	s.tell("start_rests", ann, post, "/sessions", `{"agent":"desk","sessionId":"trip","input":"echo deploy"}`, client.HeaderIdempotencyKey, "one,two", client.HeaderPrefer, "wait=5")
	s.tell("inbox", ann, get, "/waits?limit=10", "")
	s.tell("resume_waiting", ann, post, "/sessions/trip/resume", "")
	s.tell("submit_forged", ann, post, "/sessions/trip/submit", fmt.Sprintf(`{"kind":"approval-response","toolCallId":%q,"approvalId":"forged","approved":true}`, approval.CallID))
	s.tell("submit_wrong_kind", ann, post, "/sessions/trip/submit", fmt.Sprintf(`{"kind":"client-tool-result","toolCallId":%q,"result":null}`, approval.CallID))
	yes := fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"toolCallId":%q,"approvalId":%q,"approved":true,"reason":"fine"}`, approval.WaitID, approval.CallID, approval.ApprovalID)
	s.tell("submit_approval", ann, post, "/sessions/trip/submit", yes)
	s.tell("submit_approval_again", carol, post, "/sessions/trip/submit", yes)
	s.tell("submit_approval_differently", carol, post, "/sessions/trip/submit", strings.Replace(yes, "true", "false", 1))
	s.drive(key("trip"))
	s.tell("session_completed", ann, get, "/sessions/trip", "")
	s.tell("resume_completed", ann, post, "/sessions/trip/resume", `{}`)
	s.tell("resume_stale", ann, post, "/sessions/trip/resume", fmt.Sprintf(`{"mode":"continue","checkpointId":%q}`, trip.CheckpointID))
	s.tell("resume_bad_checkpoint", ann, post, "/sessions/trip/resume", `{"checkpointId":"nonsense"}`)

	// looking at it
	s.tell("messages", ann, get, "/sessions/trip/messages", "")
	s.tell("messages_page", ann, get, "/sessions/trip/messages?limit=2", "")
	s.tell("runs", ann, get, "/sessions/trip/runs", "")
	s.tell("checkpoints", ann, get, "/sessions/trip/checkpoints?limit=2", "")
	s.tell("waits", ann, get, "/sessions/trip/waits", "")
	s.tell("entries", ann, get, "/sessions/trip/entries", "")
	s.tell("entries_after", ann, get, "/sessions/trip/entries?after=4&limit=1&wait=20", "")
	s.tell("entries_none", ann, get, "/sessions/trip/entries?after=99&wait=20", "")

	// the next turn, with two approvals
	s.tell("next_turn", ann, post, "/sessions", `{"sessionId":"trip","input":"two"}`)
	s.drive(key("trip"))
	trip = s.tell("session_two_approvals", ann, get, "/sessions/trip", "")
	one, two := trip.Pause.Pending[0], trip.Pause.Pending[1]
	decide := fmt.Sprintf(`{"checkpointId":%q,"decisions":{"approve":[%q],"reject":[%q],"reason":"one is enough"}}`, trip.CheckpointID, one.CallID, two.WaitID)
	s.tell("resume_confirmation_of_two", ann, post, "/sessions/trip/resume", `{"mode":"with_confirmation","confirmation":{"approved":false}}`)
	s.tell("resume_decisions", ann, post, "/sessions/trip/resume", decide)
	s.tell("resume_decisions_again", ann, post, "/sessions/trip/resume", decide)
	s.drive(key("trip"))
	s.tell("resume_decisions_rested", ann, post, "/sessions/trip/resume", decide, client.HeaderPrefer, "wait=1")

	// every kind of wait
	s.start("place", "locate")
	s.tell("session_client_tool", ann, get, "/sessions/place", "")
	s.tell("submit_result", ann, post, "/sessions/place/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":null,"autoResume":false}`)
	s.tell("resume_stored", ann, post, "/sessions/place/resume", `{"mode":"continue"}`)
	s.start("colour", "pick")
	s.tell("session_question", ann, get, "/sessions/colour", "")
	s.tell("submit_bad_reply", ann, post, "/sessions/colour/submit", `{"kind":"reply","waitId":"w3-1","selected":["green"]}`)
	s.tell("submit_reply", ann, post, "/sessions/colour/submit", `{"kind":"reply","waitId":"w3-1","id":"colour","selected":["red"]}`)
	s.start("words", "where")
	s.tell("session_input", ann, get, "/sessions/words", "")
	s.tell("resume_message", ann, post, "/sessions/words/resume", `{"message":"echo"}`)
	s.start("confirm", "deploy")
	s.tell("resume_confirmation", ann, post, "/sessions/confirm/resume", `{"confirmation":{"approved":false,"reason":"no"}}`)
	s.start("asked", "where")
	s.tell("submit_message", ann, post, "/sessions/asked/submit", `{"kind":"message","message":"echo"}`)
	s.start("mixed", "two")
	s.tell("submit_one_of_two", ann, post, "/sessions/mixed/submit", fmt.Sprintf(`{"kind":"approval-response","toolCallId":"c2-1","approvalId":%q,"approved":true,"editedInput":{"text":"v2"}}`,
		get2(s, "mixed").Pause.Pending[0].ApprovalID))

	// who may, and who is too late
	s.start("board", "board")
	board := get2(s, "board").Pause.Pending[0]
	s.tell("submit_not_allowed", ann, post, "/sessions/board/submit", fmt.Sprintf(`{"kind":"approval-response","toolCallId":"c2-1","approvalId":%q,"approved":true}`, board.ApprovalID))
	s.tell("submit_allowed", carol, post, "/sessions/board/submit", fmt.Sprintf(`{"kind":"approval-response","toolCallId":"c2-1","approvalId":%q,"approved":true}`, board.ApprovalID))
	s.start("late", "hurry")
	s.tell("session_deadline", ann, get, "/sessions/late", "")
	late := get2(s, "late").Pause.Pending[0]
	s.passed.Add(int64(2 * time.Hour))
	s.tell("submit_expired", ann, post, "/sessions/late/submit", fmt.Sprintf(`{"kind":"approval-response","toolCallId":"c2-1","approvalId":%q,"approved":true}`, late.ApprovalID))
	s.passed.Add(-int64(2 * time.Hour))
	s.start("broken", "fail")
	s.tell("session_failed", ann, get, "/sessions/broken", "")
	s.tell("start_failed", ann, post, "/sessions", `{"sessionId":"broken","input":"again"}`)

	// lists
	s.tell("sessions", ann, get, "/sessions?limit=3", "")
	s.tell("sessions_of_status", ann, get, "/sessions?status=failed", "")
	s.tell("sessions_of_another_tenant", eve, get, "/sessions", "")
	s.tell("inbox_of_another_tenant", eve, get, "/waits", "")

	// refusals
	s.tell("nobody", "", get, "/sessions", "")
	s.tell("stranger", "who", get, "/sessions", "")
	s.tell("banned", "banned", get, "/sessions", "")
	s.tell("issuer_broken", "broken", get, "/sessions", "")
	s.tell("not_ours", eve, get, "/sessions/trip", "")
	s.tell("no_such_session", ann, get, "/sessions/none", "")
	s.tell("no_such_agent", ann, post, "/sessions", `{"agent":"nobody","input":"x"}`)
	s.tell("another_agent", ann, post, "/sessions", `{"sessionId":"trip","agent":"other","input":"x"}`)
	s.tell("no_such_wait", ann, post, "/sessions/trip/submit", `{"kind":"verdict","toolCallId":"c9-9","verdict":"happened"}`)
	s.tell("no_input", ann, post, "/sessions", `{"agent":"desk","input":" "}`)
	s.tell("bad_id", ann, post, "/sessions", `{"sessionId":"a/b","agent":"desk","input":"x"}`)
	s.tell("bad_cursor", ann, get, "/sessions?cursor=%21", "")
	s.tell("bad_parameter", ann, get, "/sessions?limit=0", "")
	s.tell("bad_header", ann, post, "/sessions", `{"agent":"desk","input":"x"}`, client.HeaderIdempotencyKey, "a b")
	s.tell("no_body", ann, post, "/sessions", "")
	s.tell("not_json", ann, post, "/sessions", `{"agent":"desk",`)
	s.tell("unknown_field", ann, post, "/sessions", `{"agent":"desk","input":"x","tenant":"rival"}`)
	s.tell("field_twice", ann, post, "/sessions/trip/submit", `{"kind":"message","message":"a","message":"b"}`)
	s.tell("wrong_type", ann, post, "/sessions", `{"agent":"desk","input":5}`)
	s.tell("media_type", ann, post, "/sessions", `{"agent":"desk","input":"x"}`, "Content-Type", "text/plain")
	s.tell("input_too_large", ann, post, "/sessions", `{"agent":"desk","input":"`+strings.Repeat("x", 4<<20+1)+`"}`)
	s.tell("body_too_large", ann, post, "/sessions", `{"agent":"desk","input":"`+strings.Repeat("x", 5<<20)+`"}`)
	s.tell("no_such_route", ann, get, "/nothing", "")
	s.tell("no_such_method", ann, http.MethodPut, "/sessions/trip", "")

	// a message in parts
	s.tell("start_parts", ann, post, "/sessions", `{"agent":"desk","sessionId":"parts","input":[{"kind":"text","text":"echo"},{"kind":"image","file":{"mediaType":"image/png","url":"https://example.org/a.png"}},{"kind":"file","file":{"mediaType":"text/csv","name":"a.csv","data":"YSxi"}}]}`)
	s.tell("messages_parts", ann, get, "/sessions/parts/messages", "")
	// a task that is stopped
	s.tell("interrupt", ann, post, "/sessions/parts/interrupt", `{"reason":"wrong picture"}`)
	s.tell("interrupt_twice", ann, post, "/sessions/parts/interrupt", "")
	s.tell("interrupted_resume", ann, post, "/sessions/parts/resume", "")
	s.tell("cancel", ann, post, "/sessions/parts/cancel", `{"task":1}`, client.HeaderIdempotencyKey, "stop-1")
	s.tell("cancel_again", ann, post, "/sessions/parts/cancel", `{"task":1}`, client.HeaderIdempotencyKey, "stop-1")
	s.tell("cancel_ended", ann, post, "/sessions/parts/cancel", "")
	s.tell("interrupt_ended", ann, post, "/sessions/parts/interrupt", "")
	s.tell("stop_later_task", ann, post, "/sessions/parts/cancel", `{"task":7}`)
	s.tell("stop_long_reason", ann, post, "/sessions/parts/cancel", `{"reason":"`+strings.Repeat("x", 1<<10+1)+`"}`)
	s.tell("start_abort", ann, post, "/sessions", `{"agent":"desk","sessionId":"abort","input":"echo deploy"}`)
	s.tell("abort", ann, post, "/sessions/abort/abort", `{"reason":"wrong cluster"}`)
	s.tell("abort_ended", ann, post, "/sessions/abort/abort", "")
	// steps that are halted
	s.tell("halt", ann, post, "/halt", `{"agent":"desk","reason":"wrong prices"}`)
	s.tell("halt_again", ann, post, "/halt", `{"agent":"desk"}`)
	s.tell("halt_not_ours", ann, post, "/halt", `{"tenant":"someone"}`)
	s.tell("halt_no_such_agent", ann, post, "/halt", `{"agent":"desks"}`)
	s.tell("start_halted", ann, post, "/sessions", `{"agent":"desk","sessionId":"held","input":"echo"}`)
	s.tell("halts", ann, get, "/halts", "")
	s.tell("go", ann, post, "/go", `{"agent":"desk"}`)
	s.tell("go_nothing", ann, post, "/go", "")
	// back to a checkpoint, tried again, forked
	checkpoints := checkpointsOf(s, "trip")
	paused := checkpoints[slices.IndexFunc(checkpoints, func(c client.Checkpoint) bool { return c.Kind == session.KindSuspended })]
	last := checkpoints[len(checkpoints)-1]
	s.tell("checkpoint", ann, get, "/sessions/trip/checkpoints/"+paused.ID, "")
	s.tell("checkpoint_compared", ann, get, "/sessions/trip/checkpoints/"+last.ID+"?limit=2&compare="+paused.ID, "")
	s.tell("checkpoint_none", ann, get, "/sessions/parts/checkpoints/"+paused.ID, "")
	s.tell("back_effects", ann, post, "/sessions/trip/resume", fmt.Sprintf(`{"fromCheckpoint":{"checkpointId":%q}}`, paused.ID))
	var refused client.Problem
	require.NoError(t, json.Unmarshal(s.told["back_effects"].Response.Body, &refused))
	back := fmt.Sprintf(`{"fromCheckpoint":{"checkpointId":%q,"acknowledge":%q}}`, paused.ID, refused.Effects.Digest)
	s.tell("back", ann, post, "/sessions/trip/resume", back, client.HeaderIdempotencyKey, "back-1")
	s.tell("back_again", ann, post, "/sessions/trip/resume", back, client.HeaderIdempotencyKey, "back-1")
	s.tell("back_without_checkpoint", ann, post, "/sessions/trip/resume", `{"fromCheckpoint":{}}`)
	s.tell("back_and_decisions", ann, post, "/sessions/trip/resume", fmt.Sprintf(`{"fromCheckpoint":{"checkpointId":%q},"decisions":{"rejectAll":true}}`, paused.ID))
	s.tell("fork", ann, post, "/sessions/trip/fork", fmt.Sprintf(`{"checkpointId":%q,"sessionId":"copy"}`, paused.ID))
	s.tell("fork_again", ann, post, "/sessions/trip/fork", `{"sessionId":"copy"}`)
	s.tell("fork_session", ann, get, "/sessions/copy", "")
	s.tell("forks", ann, get, "/sessions?forkedFrom=trip&limit=1", "")
	s.tell("forks_of_status", ann, get, "/sessions?forkedFrom=trip&status=failed", "")
	s.tell("retry", ann, post, "/sessions/broken/retry", `{"from":"start","message":"echo"}`)
	s.tell("retry_running", ann, post, "/sessions/broken/retry", "")
	s.tell("retry_aborted", ann, post, "/sessions/abort/retry", "")
	// rules that a caller asks of a task
	s.tell("start_rules", ann, post, "/sessions", `{"agent":"desk","sessionId":"held2","input":"echo","rules":{"limits":{"steps":3},"allowedTools":["echo"]},"state":{"notes":["a"]},"metadata":{"order":"A-17"}}`)
	s.tell("session_rules", ann, get, "/sessions/held2", "")
	s.tell("start_rules_raised", ann, post, "/sessions", `{"agent":"desk","input":"echo","rules":{"limits":{"steps":-1}}}`)
	s.tell("start_rules_no_such_tool", ann, post, "/sessions", `{"agent":"desk","input":"echo","rules":{"allowedTools":["rm"]}}`)
	s.tell("resume_rules", ann, post, "/sessions/held2/resume", `{"rules":{"allowedTools":[]}}`)
	// a session that is deleted
	s.tell("start_delete", ann, post, "/sessions", `{"agent":"desk","sessionId":"wrong","input":"echo deploy"}`)
	s.tell("delete", ann, http.MethodDelete, "/sessions/wrong", "", client.HeaderIdempotencyKey, "delete-1")
	s.tell("delete_again", ann, http.MethodDelete, "/sessions/wrong", "", client.HeaderIdempotencyKey, "delete-1")
	s.tell("delete_deleted", ann, http.MethodDelete, "/sessions/wrong", "")
	s.tell("deleted_session", ann, get, "/sessions/wrong", "")
	s.tell("start_deleted", ann, post, "/sessions", `{"agent":"desk","sessionId":"wrong","input":"echo"}`)
	// messages to what works, has ended, waits, was interrupted
	s.tell("send_no_message", ann, post, "/sessions/trip/messages", `{"start":true}`)
	s.tell("start_steered", ann, post, "/sessions", `{"agent":"desk","sessionId":"steered","input":"echo deploy"}`)
	s.tell("send_queued", ann, post, "/sessions/steered/messages", `{"message":"echo deploy"}`, client.HeaderIdempotencyKey, "send-1")
	s.tell("send_queued_again", ann, post, "/sessions/steered/messages", `{"message":"echo deploy"}`, client.HeaderIdempotencyKey, "send-1")
	s.drive(key("steered"))
	s.tell("entries_with_mail", ann, get, "/sessions/steered/entries", "")
	s.tell("send_waits_for_approval", ann, post, "/sessions/steered/messages", `{"message":"and the red ones"}`)
	s.tell("send_interrupt", ann, post, "/sessions/steered/interrupt", "")
	s.tell("send_interrupted", ann, post, "/sessions/steered/messages", `{"message":"and the red ones"}`)
	s.tell("send_cancel", ann, post, "/sessions/steered/cancel", "")
	s.tell("send_ended", ann, post, "/sessions/steered/messages", `{"message":"echo"}`)
	s.tell("send_other_task", ann, post, "/sessions/steered/messages", `{"message":"echo","task":2,"start":true}`)
	s.tell("send_started", ann, post, "/sessions/steered/messages", `{"message":"echo","start":true}`)
	s.drive(key("steered"))
	s.tell("messages_steered", ann, get, "/sessions/steered/messages", "")
	// a task that is cancelled after a time
	s.tell("start_cancel_after", ann, post, "/sessions", `{"agent":"desk","sessionId":"timed","input":"echo","rules":{"cancelAfterMillis":3600000}}`)
	s.tell("session_cancel_after", ann, get, "/sessions/timed", "")
	s.tell("start_cancel_after_never", ann, post, "/sessions", `{"agent":"desk","sessionId":"timed2","input":"echo","rules":{"cancelAfterMillis":-2}}`)
	// rules that change while a task is under way
	s.tell("resume_rules_running", ann, post, "/sessions/timed/resume", `{"rules":{"limits":{"steps":3}}}`)
	s.tell("interrupt_to_change_rules", ann, post, "/sessions/timed/interrupt", "")
	s.tell("resume_rules_changed", ann, post, "/sessions/timed/resume", `{"rules":{"limits":{"steps":3},"cancelAfterMillis":-1}}`)
	s.tell("session_rules_changed", ann, get, "/sessions/timed", "")
	s.tell("resume_rules_with_decisions", ann, post, "/sessions/timed/resume", `{"rules":{"limits":{"steps":3}},"decisions":{"approveAll":true}}`)
	// a policy of tools
	s.tell("start_policy", ann, post, "/sessions", `{"agent":"desk","sessionId":"prompted","input":"echo","rules":{"policy":{"tools":{"echo":"prompt"},"default":"auto"}}}`)
	s.drive(key("prompted"))
	s.tell("session_policy", ann, get, "/sessions/prompted", "")
	s.tell("start_policy_no_mode", ann, post, "/sessions", `{"agent":"desk","input":"echo","rules":{"policy":{"default":"ask"}}}`)
	// several answers at once, and the forms of others
	s.start("several", "two")
	several := get2(s, "several").Pause.Pending
	s.tell("answers_one_refused", ann, post, "/sessions/several/answers", fmt.Sprintf(`{"answers":[{"kind":"approval-response","waitId":%q,"approved":true},{"kind":"approval-response","waitId":"w9-9","approved":true}]}`, several[0].WaitID))
	s.tell("answers", ann, post, "/sessions/several/answers", fmt.Sprintf(`{"answers":[{"kind":"approval-response","waitId":%q,"approved":true},{"kind":"approval-response","waitId":%q,"approved":false,"reason":"one is enough"}]}`, several[0].WaitID, several[1].WaitID))
	s.start("strands", "two")
	s.tell("answers_strands", ann, post, "/sessions/strands/answers", `[{"interruptResponse":{"interruptId":"w2-1","response":"yes"}},{"interruptResponse":{"interruptId":"w2-2","response":{"approved":false,"reason":"no"}}}]`)
	s.start("stakpak", "two")
	s.tell("answers_stakpak", ann, post, "/sessions/stakpak/answers", `{"run_id":"run_1","decisions":{"w2-1":{"action":"accept"},"w2-2":{"action":"reject","content":"no"}}}`)
	s.start("stakpak2", "two")
	s.tell("answers_stakpak_all", ann, post, "/sessions/stakpak2/answers", `{"approve":["w2-1"],"reject":["w2-2"]}`)
	s.start("kortyx", "pick")
	s.tell("answers_kortyx", ann, post, "/sessions/kortyx/answers", `{"resume":{"token":"w3-1","requestId":"w3-1","choice":{"id":"red"}}}`)
	s.start("helix", "deploy")
	s.tell("submit_given_up", ann, post, "/sessions/helix/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","error":"the user closed the window"}`)
	// what is done to a wait without deciding it, and what a person needs to decide
	s.start("act", "hurry")
	act := get2(s, "act").Pause.Pending[0]
	ofAct := "/sessions/act/waits/" + act.WaitID
	later := act.Deadline.At.Add(24 * time.Hour).UTC().Format(time.RFC3339)
	s.tell("wait", ann, get, ofAct, "")
	s.tell("wait_none", ann, get, "/sessions/act/waits/w9-9", "")
	s.tell("extend", ann, post, ofAct+"/extend", fmt.Sprintf(`{"deadline":%q,"reason":"ben is away"}`, later), client.HeaderIdempotencyKey, "extend-1")
	s.tell("extend_again", ann, post, ofAct+"/extend", fmt.Sprintf(`{"deadline":%q,"reason":"ben is away"}`, later), client.HeaderIdempotencyKey, "extend-1")
	s.tell("extend_earlier", ann, post, ofAct+"/extend", fmt.Sprintf(`{"deadline":%q}`, act.OpenedAt.Format(time.RFC3339)))
	s.tell("delegate", ann, post, ofAct+"/delegate", `{"to":"ben","reason":"his cluster"}`)
	s.tell("delegate_to_oneself", ann, post, ofAct+"/delegate", `{"to":"ann"}`)
	s.tell("dismiss_without_reason", ann, post, ofAct+"/dismiss", `{}`)
	s.tell("dismiss", ann, post, ofAct+"/dismiss", `{"reason":"the release was withdrawn"}`)
	s.tell("dismiss_dismissed", carol, post, ofAct+"/dismiss", `{"reason":"so"}`)
	s.drive(key("act"))
	s.tell("messages_dismissed", ann, get, "/sessions/act/messages", "")
	s.start("act2", "deploy")
	s.tell("extend_no_deadline", ann, post, "/sessions/act2/waits/"+get2(s, "act2").Pause.Pending[0].WaitID+"/extend", fmt.Sprintf(`{"deadline":%q}`, later))
	// notices
	s.putNotices(key("prompted"))
	s.tell("notices", ann, get, "/notices?limit=10", "")
	s.tell("notices_next_page", ann, get, "/notices?limit=1", "")
	// the audit, with a line of who has read the wait
	s.tell("audit", ann, get, "/sessions/trip/audit?verify=true", "")
	s.tell("audit_page", ann, get, "/sessions/trip/audit?limit=1", "")
	// a link to an approval, and its page
	s.tell("start_linked", ann, post, "/sessions", `{"agent":"desk","sessionId":"linked","input":"deploy"}`)
	s.drive(key("linked"))
	made := s.tellAs("link", ann, post, "/sessions/linked/waits/w2-1/links", `{"expiresInMillis":3600000}`)
	var link client.Link
	require.NoError(t, json.Unmarshal(made.Response.Body, &link))
	page := strings.TrimPrefix(link.URL, linksConfig.URL)
	s.tell("link_for_somebody_else", ann, post, "/sessions/linked/waits/w2-1/links", `{"recipient":"carol"}`)
	s.tell("link_no_wait", ann, post, "/sessions/linked/waits/w9-1/links", "")
	s.tell("link_page", "", get, page, "")
	s.tell("link_page_unknown", "", get, page[:len(page)-1], "")
	s.tell("link_decides_nothing", "", post, page, "decision=perhaps", "Content-Type", mediaForm)
	s.tell("link_decides", "", post, page, "decision=approve&reason=go", "Content-Type", mediaForm)
	s.tell("link_decided", "", get, page, "")
	s.tell("link_too_late", "", post, page, "decision=deny", "Content-Type", mediaForm)
	// a button of a card in Slack
	s.tell("start_carded", ann, post, "/sessions", `{"agent":"desk","sessionId":"carded","input":"deploy"}`)
	s.drive(key("carded"))
	asked := get2(s, "carded").Pause.Pending[0]
	click := func(user, action string) string {
		return url.Values{"payload": {fmt.Sprintf(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":%q},"actions":[{"action_id":%q,"value":%q}]}`,
			user, action, fmt.Sprintf(`{"tenant":"acme","session":"carded","wait":"w2-1","nonce":%q}`, asked.ApprovalID))}}.Encode()
	}
	signed := func(body string) []string {
		at := fmt.Sprint(s.now().Unix())
		mac := hmac.New(sha256.New, []byte(slackConfig.SigningSecret))
		_, _ = mac.Write([]byte("v0:" + at + ":" + body))
		return []string{"Content-Type", mediaForm, "X-Slack-Request-Timestamp", at, "X-Slack-Signature", "v0=" + hex.EncodeToString(mac.Sum(nil))}
	}
	s.tell("slack_forged", "", post, "/slack/interactions", click("U1", "approve"), signed("something else")...)
	s.tell("slack_stranger", "", post, "/slack/interactions", click("U9", "approve"), signed(click("U9", "approve"))...)
	s.tell("slack_decides", "", post, "/slack/interactions", click("U1", "approve"), signed(click("U1", "approve"))...)
	s.tell("slack_too_late", "", post, "/slack/interactions", click("U2", "reject"), signed(click("U2", "reject"))...)
	// who stands in for whom
	s.start("away", "board")
	s.tell("away_nobody", ann, get, "/away", "")
	s.tell("away_submit_not_allowed", ann, post, "/sessions/away/resume", `{"decisions":{"approve":["w2-1"]}}`)
	until := s.now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	s.tell("away_set", carol, http.MethodPut, "/away", fmt.Sprintf(`{"to":"ann","until":%q,"reason":"on holiday"}`, until))
	s.tell("away_set_again", carol, http.MethodPut, "/away", fmt.Sprintf(`{"to":"ann","until":%q,"reason":"on holiday"}`, until))
	s.tell("away_oneself", ann, http.MethodPut, "/away", fmt.Sprintf(`{"to":"ann","until":%q}`, until))
	s.tell("away_cycle", ann, http.MethodPut, "/away", fmt.Sprintf(`{"to":"carol","until":%q}`, until))
	s.tell("away", ann, get, "/away", "")
	s.tell("away_wait", ann, get, "/sessions/away/waits/w2-1", "")
	s.tell("away_link", ann, post, "/sessions/away/waits/w2-1/links", "")
	s.tell("away_submit", ann, post, "/sessions/away/resume", `{"decisions":{"approve":["w2-1"]}}`)
	s.tell("away_waits", ann, get, "/sessions/away/waits", "")
	s.tell("away_end", carol, http.MethodDelete, "/away", "")
	s.tell("away_end_again", carol, http.MethodDelete, "/away", "")
	// New exchanges go here: ids are counted, and one further up renumbers every file after it.
	// standing permissions
	s.spends("till", false)
	till := get2(s, "till").Pause.Pending[0]
	s.tell("permission_preview", ann, post, "/sessions/till/waits/"+till.WaitID+"/permission", `{"for":"2h","conditions":[{"field":"/text","prefix":"<v1>"}]}`)
	s.tell("permission_preview_refused", ann, post, "/sessions/till/waits/"+till.WaitID+"/permission", `{"for":"2h","conditions":[{"field":"/amount","atMost":100}]}`)
	s.tell("permission_until", ann, post, "/sessions/till/submit", fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approved":true,"standing":{"for":"2h","until":"2026-01-05T12:00:00Z"}}`, till.WaitID))
	s.tell("permission_given", ann, post, "/sessions/till/submit", fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approvalId":%q,"approved":true,"standing":{"for":"2h","conditions":[{"field":"/text","prefix":"<v1>"}]}}`, till.WaitID, till.ApprovalID))
	s.drive(key("till"))
	s.tell("permissions", ann, get, "/sessions/till/permissions", "")
	s.tell("permission_used", ann, post, "/sessions", `{"sessionId":"till","input":"spend"}`)
	s.drive(key("till"))
	s.tell("audit_covered", ann, get, "/sessions/till/audit?verify=true", "")
	s.tell("permission_revoke", carol, post, "/sessions/till/permissions/"+till.WaitID+"/revoke", `{"reason":"ask me again"}`)
	s.tell("permission_revoke_again", ann, post, "/sessions/till/permissions/"+till.WaitID+"/revoke", "")
	s.tell("permission_none", ann, post, "/sessions/till/permissions/w9-9/revoke", `{}`)
	return s.told
}

// putNotices writes notices as an outbox does: one that was sent to one channel and given up at
// another, and one that is tried again.
func (s *teller) putNotices(key session.Key) {
	s.Helper()
	at := s.now().UTC()
	wait := journal.NoticeWait{ID: "w2-1", Kind: session.WaitApproval, Tool: "echo", Who: []string{"ann"}, Deadline: &session.Deadline{At: at.Add(time.Hour), Outcome: session.ExpireDeny}}
	asked := journal.Notice{ID: journal.EntryNotice(2), Type: journal.NoticeSuspended, At: at, Agent: "desk", Seq: 2, Waits: []journal.NoticeWait{wait}, Sends: []journal.NoticeSend{
		{Channel: "webhook", State: journal.NoticeSent, Tries: 1, TriedAt: &at},
		{Channel: "other", State: journal.NoticeGivenUp, Tries: 10, TriedAt: &at, Error: "the server answered 500"},
	}}
	wait.Deadline, wait.Decision, wait.By, wait.When = nil, journal.DecisionApproved, "ann", &at
	answered := journal.Notice{ID: journal.DecisionNotice("w2-1"), Type: journal.NoticeAnswered, At: at.Add(time.Second), Agent: "desk", Seq: 2, Waits: []journal.NoticeWait{wait}, Sends: []journal.NoticeSend{
		{Channel: "webhook", State: journal.NoticePending, Tries: 2, TriedAt: &at, Next: new(at.Add(5 * time.Minute)), Error: "the server answered 503"},
	}}
	_, err := s.store.Update(s.Context(), key, store.NoticeItem(asked, 0), store.NoticeItem(answered, 0))
	require.NoError(s, err)
}

// tellAs is tell, and returns the exchange.
func (s *teller) tellAs(name, token, method, target, body string, header ...string) exchange {
	s.Helper()
	s.tell(name, token, method, target, body, header...)
	return s.told[name]
}

func checkpointsOf(s *teller, id string) []client.Checkpoint {
	return get[client.Checkpoints](s.world, ann, "/sessions/"+id+"/checkpoints").Items
}

func get2(s *teller, id string) client.Session {
	return get[client.Session](s.world, ann, "/sessions/"+id)
}

func TestExchanges(t *testing.T) {
	t.Parallel()
	all := exchanges(t)
	for name, e := range all {
		if len(e.Request.Body) > 1<<14 {
			e.Request.Body = json.RawMessage(`"left out: it is long"`)
		}
		raw, err := json.MarshalIndent(e, "", "  ")
		require.NoError(t, err)
		raw = append(raw, '\n')
		path := filepath.Join(exchangeDir, name+".json")
		if *update {
			require.NoError(t, os.MkdirAll(exchangeDir, 0o755))
			require.NoError(t, os.WriteFile(path, raw, 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err, "run go test ./pkg/httpapi -run 'TestExchanges$' -update (without the $ other tests read the files before they are written)")
		require.Equal(t, string(want), string(raw), name)
	}
	files, err := os.ReadDir(exchangeDir)
	require.NoError(t, err)
	for _, f := range files {
		require.Contains(t, all, strings.TrimSuffix(f.Name(), ".json"), "%s tells what nobody tells any more", f.Name())
	}
}
