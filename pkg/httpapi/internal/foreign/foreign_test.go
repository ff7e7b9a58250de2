package foreign_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/foreign"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// waits are one of each kind that a caller may answer, and a child.
var waits = []journal.WaitRecord{
	{Wait: session.Wait{ID: "w2-1", Kind: session.WaitApproval, Nonce: "w2-1_secret", Call: "c2-1"}},
	{Wait: session.Wait{ID: "w2-2", Kind: session.WaitApproval, Nonce: "w2-2_secret", Call: "c2-2"}},
	{Wait: session.Wait{ID: "w3-1", Kind: session.WaitQuestion, Question: &session.Question{Kind: session.QuestionText}}},
	{Wait: session.Wait{ID: "w3-2", Kind: session.WaitQuestion, Question: &session.Question{Kind: session.QuestionChoice}}},
	{Wait: session.Wait{ID: "w3-3", Kind: session.WaitQuestion, Question: &session.Question{Kind: session.QuestionMultiChoice}}},
	{Wait: session.Wait{ID: "w4-1", Kind: session.WaitClientTool, Call: "c4-1"}},
	{Wait: session.Wait{ID: "w4-2", Kind: session.WaitInput}},
	{Wait: session.Wait{ID: "w4-3", Kind: session.WaitUnknown}},
	{Wait: session.Wait{ID: "w4-4", Kind: session.WaitChild}},
}

func approves(id string, yes bool, reason string) client.SubmitRequest {
	return client.SubmitRequest{WaitID: id, Kind: session.AnswerApproval, Approved: &yes, Reason: reason}
}

func TestRead(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	one := func(id, response string) string {
		return `[{"interruptResponse":{"interruptId":"` + id + `","response":` + response + `}}]`
	}
	for body, want := range map[string][]client.SubmitRequest{
		one("w2-1", `true`):                             {approves("w2-1", true, "")},
		one("w2-1_secret", `" Yes "`):                   {approves("w2-1", true, "")},
		one("w2-1", `"n"`):                              {approves("w2-1", false, "")},
		one("w2-1", `false`):                            {approves("w2-1", false, "")},
		one("w3-1", `""`):                               {{WaitID: "w3-1", Kind: session.AnswerReply, Text: text("")}},
		one("w3-2", `"red"`):                            {{WaitID: "w3-2", Kind: session.AnswerReply, Selected: []string{"red"}}},
		one("w3-2", `{"id":"red"}`):                     {{WaitID: "w3-2", Kind: session.AnswerReply, Selected: []string{"red"}}},
		one("w3-3", `[]`):                               {{WaitID: "w3-3", Kind: session.AnswerReply, Selected: []string{}}},
		one("w3-3", `["a",{"id":"b"}]`):                 {{WaitID: "w3-3", Kind: session.AnswerReply, Selected: []string{"a", "b"}}},
		one("w4-1", `null`):                             {{WaitID: "w4-1", Kind: session.AnswerClientTool, Result: json.RawMessage(`null`)}},
		one("w4-1", `0`):                                {{WaitID: "w4-1", Kind: session.AnswerClientTool, Result: json.RawMessage(`0`)}},
		one("w4-2", `"eu"`):                             {{WaitID: "w4-2", Kind: session.AnswerMessage, Message: client.Text("eu")}},
		one("w4-3", `"happened"`):                       {{WaitID: "w4-3", Kind: session.AnswerVerdict, Verdict: session.VerdictHappened}},
		strings.Trim(one("w2-1", `true`), "[]"):         {approves("w2-1", true, "")},
		one("w2-1", `{"approved":false,"reason":"no"}`): {approves("w2-1", false, "no")},
		strings.TrimSuffix(one("w2-1", `true`), "]") + "," + strings.TrimPrefix(one("w2-2", `false`), "["): {approves("w2-1", true, ""), approves("w2-2", false, "")},

		`{"run_id":"r1","decisions":{"w2-2":{"action":"reject","content":"late"},"w2-1":{"action":"accept"}}}`: {approves("w2-1", true, ""), approves("w2-2", false, "late")},
		`{"decisions":{"w4-1":{"action":"custom_result","content":"Bern"}}}`:                                   {{WaitID: "w4-1", Kind: session.AnswerClientTool, Result: json.RawMessage(`"Bern"`)}},
		`{"input":"eu","run_id":1}`: {{Kind: session.AnswerMessage, Message: client.Text("eu")}},

		`{"token":"w2-1_secret","requestId":"w2-1","selected":"approve"}`:       {approves("w2-1", true, "")},
		`{"token":"w2-1_secret","requestId":"w2-1","choice":{"id":"deny"}}`:     {approves("w2-1", false, "")},
		`{"resume":{"token":"w2-1_secret","requestId":"w2-1","cancel":true}}`:   {approves("w2-1", false, "")},
		`{"token":"w3-1","requestId":"w3-1","selected":["Ann"]}`:                {{WaitID: "w3-1", Kind: session.AnswerReply, Text: text("Ann")}},
		`{"token":"w3-3","requestId":"w3-3","choices":[{"id":"a"},{"id":"b"}]}`: {{WaitID: "w3-3", Kind: session.AnswerReply, Selected: []string{"a", "b"}}},
		`{"token":"w4-1","requestId":"w4-1","cancel":true}`:                     {{WaitID: "w4-1", Kind: session.AnswerClientTool, Error: "cancelled by the user"}},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			asked, err := foreign.Read(foreign.FormOf([]byte(body)), []byte(body), waits)
			require.NoError(t, err)
			require.Equal(t, want, asked.Answers)
			require.Nil(t, asked.Decisions)
			raw := []byte(body)
			_, err = foreign.Read(foreign.FormOf(raw), raw, waits)
			require.NoError(t, err)
			require.Equal(t, body, string(raw), "the body is as it was")
		})
	}

	asked, err := foreign.Read(foreign.Stakpak, []byte(`{"approve":["w2-1_secret"],"reject":["w2-2"]}`), waits)
	require.NoError(t, err)
	require.Equal(t, &client.Decisions{Approve: []string{"w2-1"}, Reject: []string{"w2-2"}}, asked.Decisions.Decisions)
	asked, err = foreign.Read(foreign.Stakpak, []byte(`{"approve_all":true,"checkpoint_id":"abc"}`), waits)
	require.NoError(t, err)
	require.Equal(t, &client.ResumeRequest{CheckpointID: "abc", Decisions: &client.Decisions{ApproveAll: true}}, asked.Decisions)
}

// TestRead_never_yes: what is missing, unknown or says two things is refused, whatever it looks like.
func TestRead_never_yes(t *testing.T) {
	t.Parallel()
	one := func(response string) string {
		return `[{"interruptResponse":{"interruptId":"w2-1","response":` + response + `}}]`
	}
	for body, want := range map[string]error{
		one(`null`): foreign.ErrInvalid, one(`1`): foreign.ErrInvalid, one(`""`): foreign.ErrInvalid, one(`"trust"`): foreign.ErrInvalid, one(`"yes please"`): foreign.ErrInvalid,
		one(`{}`): foreign.ErrInvalid, one(`{"approved":null}`): foreign.ErrInvalid, one(`{"approved":"true"}`): foreign.ErrInvalid, one(`{"Approved":true}`): foreign.ErrInvalid,
		one(`{"approved":true,"trust":true}`): foreign.ErrInvalid, one(`[true]`): foreign.ErrInvalid,
		`[]`: foreign.ErrInvalid, `[{}]`: foreign.ErrInvalid, `[null]`: foreign.ErrInvalid, `["yes"]`: foreign.ErrInvalid,
		`[{"interruptResponse":{"interruptId":"w2-1"}}]`:                                 foreign.ErrInvalid,
		`[{"interruptResponse":{"response":true}}]`:                                      foreign.ErrNoWait,
		`[{"interruptResponse":{"interruptId":"","response":true}}]`:                     foreign.ErrNoWait,
		`[{"interruptResponse":{"interruptId":"w9-9","response":true}}]`:                 foreign.ErrNoWait,
		`[{"interruptResponse":{"interruptId":"c2-1","response":true}}]`:                 foreign.ErrNoWait,
		`[{"interruptResponse":{"interruptId":"w2-1_other","response":true}}]`:           foreign.ErrNoWait,
		`[{"interruptResponse":{"interruptId":"w4-4","response":"completed"}}]`:          foreign.ErrInvalid,
		`[{"interruptResponse":{"interruptId":"w3-1","response":null}}]`:                 foreign.ErrInvalid,
		`[{"interruptResponse":{"interruptId":"w3-2","response":null}}]`:                 foreign.ErrInvalid,
		`[{"interruptResponse":{"interruptId":"w3-3","response":[["a"]]}}]`:              foreign.ErrInvalid,
		one(`true`)[:len(one(`true`))-1] + `,` + one(`false`)[1:]:                        foreign.ErrInvalid,
		`[{"interruptResponse":{"interruptId":"w2-1","response":true}},{"text":"more"}]`: foreign.ErrInvalid,

		`{"decisions":{}}`: foreign.ErrInvalid, `{"decisions":null}`: foreign.ErrInvalid, `{"run_id":"r"}`: foreign.ErrInvalid, `{"approve":[]}`: foreign.ErrInvalid,
		`{"approve":["w9-9"]}`: foreign.ErrNoWait, `{"approve":["c2-1"]}`: foreign.ErrNoWait, `{"approve":[""]}`: foreign.ErrNoWait, `{"approve_all":"true"}`: foreign.ErrInvalid,
		`{"approve":["w2-1"],"input":"and then"}`:                                      foreign.ErrInvalid,
		`{"approve":["w2-1"],"decisions":{"w2-1":{"action":"reject"}}}`:                foreign.ErrInvalid,
		`{"decisions":{"w2-1":{}}}`:                                                    foreign.ErrInvalid,
		`{"decisions":{"w2-1":{"action":"ACCEPT"}}}`:                                   foreign.ErrInvalid,
		`{"decisions":{"w2-1":{"action":"accept","content":"but"}}}`:                   foreign.ErrInvalid,
		`{"decisions":{"w2-1":{"action":"custom_result","content":"done"}}}`:           foreign.ErrInvalid,
		`{"decisions":{"w4-1":{"action":"accept"}}}`:                                   foreign.ErrInvalid,
		`{"decisions":{"w4-1":{"action":"custom_result"}}}`:                            foreign.ErrInvalid,
		`{"decisions":{"w2-1":{"action":"accept"},"w2-1_secret":{"action":"reject"}}}`: foreign.ErrInvalid,

		`{"requestId":"w2-1","selected":"approve"}`:                                            foreign.ErrNoWait,
		`{"token":"w2-1","requestId":"w2-1","selected":"approve"}`:                             foreign.ErrNoWait,
		`{"token":"w2-2_secret","requestId":"w2-1","selected":"approve"}`:                      foreign.ErrNoWait,
		`{"token":"w2-1_secret","selected":"approve"}`:                                         foreign.ErrNoWait,
		`{"token":"w2-1_secret","requestId":"w2-1"}`:                                           foreign.ErrInvalid,
		`{"token":"w2-1_secret","requestId":"w2-1","selected":[]}`:                             foreign.ErrInvalid,
		`{"token":"w2-1_secret","requestId":"w2-1","selected":["approve","approve"]}`:          foreign.ErrInvalid,
		`{"token":"w2-1_secret","requestId":"w2-1","selected":"approve","cancel":true}`:        foreign.ErrInvalid,
		`{"token":"w2-1_secret","requestId":"w2-1","selected":"approve","choice":{"id":"no"}}`: foreign.ErrInvalid,
		`{"token":"w3-2","requestId":"w3-2","cancel":true}`:                                    foreign.ErrInvalid,
		`{"resume":null}`: foreign.ErrInvalid, `{"resume":"w2-1"}`: foreign.ErrInvalid,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			_, err := foreign.Read(foreign.FormOf([]byte(body)), []byte(body), waits)
			require.ErrorIs(t, err, want)
		})
	}
}

// TestNamed: what is recorded of a body that is refused is with the waits it names, in whatever place.
func TestNamed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"waitId":"w2-1","approvalId":"w2-1_x-Y_9","approved":"false"}`: {"w2-1"},
		`[{"interruptResponse":{"interruptId":"w2-1_abc"}}]`:             {"w2-1"},
		`{"decisions":{"w2-2":{"action":"x"},"w3-1_a":null}}`:            {"w2-2", "w3-1"},
		`"w2-1"`: {"w2-1"}, `["w1-1","w1-2","w1-3","w1-4","w1-5","w1-6","w1-7","w1-8","w1-9"]`: {"w1-1", "w1-2", "w1-3", "w1-4", "w1-5", "w1-6", "w1-7", "w1-8"},
		`{"waitId":"w2-1"`: nil, ``: nil, `{"text":"see w2-1"}`: nil, `{"waitId":"W2-1"}`: nil, `{"waitId":"w2"}`: nil, `{"waitId":"w9999999999999999999-1"}`: nil,
	} {
		require.Equal(t, want, foreign.Named([]byte(body)), body)
	}
}

func TestFormOf(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]foreign.Form{
		` [1]`: foreign.Strands, `{"interruptResponse":{}}`: foreign.Strands, `{"approve":[]}`: foreign.Stakpak, `{"run_id":1,"reject":[]}`: foreign.Stakpak, `{"input":"eu"}`: foreign.Stakpak,
		`{"token":"a"}`: foreign.Kortyx, `{"resume":{}}`: foreign.Kortyx,
		`{"answers":[]}`: "", `{}`: "", `null`: "", `"yes"`: "", `{"token":"a","approve":[]}`: "", `{`: "",
	} {
		require.Equal(t, want, foreign.FormOf([]byte(body)), body)
	}
}

// FuzzRead: no body approves what it does not name, and none does so without a plain yes.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`[{"interruptResponse":{"interruptId":"w2-1","response":true}}]`, `{"decisions":{"w2-1":{"action":"accept"}}}`,
		`{"token":"w2-1_secret","requestId":"w2-1","selected":"approve"}`, `{"approve":["w2-1"],"reject":["w2-2"]}`, `{"resume":{"cancel":true}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		asked, err := foreign.Read(foreign.FormOf(body), body, waits)
		if err != nil {
			return
		}
		said := strings.ToLower(string(body))
		for _, a := range asked.Answers {
			if a.Approved == nil || !*a.Approved {
				continue
			}
			plain := strings.Contains(said, "true") || strings.Contains(said, "y") || strings.Contains(said, "approve") || strings.Contains(said, "accept") || strings.Contains(said, `\u`)
			require.True(t, plain, "%s", body)
			require.Contains(t, []string{"w2-1", "w2-2"}, a.WaitID)
		}
		if asked.Decisions != nil {
			require.NotNil(t, asked.Decisions.Decisions)
		}
	})
}
