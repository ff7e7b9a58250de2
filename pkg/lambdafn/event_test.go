package lambdafn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

func eventer(t testing.TB, w *world, template string) lambdafn.Handler {
	t.Helper()
	w.cfg.EventTemplate = template
	h, err := lambdafn.NewEvent(w.cfg)
	return need(t, h, err)
}

type startedSession struct {
	SessionID, CheckpointID string
	Task                    int64
	Replayed                bool
}

// starts invokes the event function and returns the sessions it says it started.
func starts(t testing.TB, h lambdafn.Handler, event string) []startedSession {
	t.Helper()
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1", InvokedFunctionArn: "arn:event"})
	raw, err := h.Invoke(ctx, []byte(event))
	require.NoError(t, err)
	var got struct{ Sessions []startedSession }
	require.NoError(t, json.Unmarshal(raw, &got))
	require.NotNil(t, got.Sessions)
	return got.Sessions
}

// said is the user message a session was started with.
func (w *world) said(id string) string {
	w.t.Helper()
	s, err := w.cfg.Runtime.Session(w.t.Context(), session.Key{Tenant: w.cfg.EventTenant, ID: id})
	require.NoError(w.t, err)
	return s.Messages[0].Text()
}

func TestEvent_a_plain_invocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.EventTenant = "acme"
	h := eventer(t, w, "")
	first := starts(t, h, `{"agent":"lab","input":"- say: hi"}`)
	require.Len(t, first, 1)
	require.Equal(t, "- say: hi", w.said(first[0].SessionID))
	require.NotEmpty(t, first[0].CheckpointID)

	again := starts(t, h, `{"agent":"lab","input":"- say: hi"}`)
	require.True(t, again[0].Replayed, "Lambda repeats an invocation under its request id")
	require.Equal(t, first[0].SessionID, again[0].SessionID)

	named := starts(t, h, `{"agent":"lab","input":"- say: hi","session":"mine","idempotencyKey":"k1"}`)
	require.Equal(t, "mine", named[0].SessionID)
	require.True(t, starts(t, h, `{"agent":"lab","input":"- say: hi","session":"mine","idempotencyKey":"k1"}`)[0].Replayed)
	w.logs("event started session", `"who":"invoke"`, `"from":"arn:event"`, `"tenant":"acme"`)

	w = newWorld(t)
	h = eventer(t, w, "")
	for range 2 { // without a request id, nothing says that they are one
		raw, err := h.Invoke(t.Context(), []byte(`{"agent":"lab","input":"x"}`))
		require.NoError(t, err)
		require.NotContains(t, string(raw), "replayed")
	}
}

func TestEvent_an_event_of_EventBridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := eventer(t, w, `{"agent":"lab","input":"{{.source}}: order {{.detail.order}} of {{.detail.customer}}, {{.detail.lines}}"}`)
	event := `{"version":"0","id":"e-1","detail-type":"OrderPlaced","source":"shop","detail":{"order":12345678901234567890,"customer":"Ann \"<Lee>\"","lines":[{"n":1},null]}}`
	first := starts(t, h, event)
	require.Len(t, first, 1)
	require.Equal(t, `shop: order 12345678901234567890 of Ann "<Lee>", [{"n":1},null]`, w.said(first[0].SessionID))
	require.True(t, starts(t, h, event)[0].Replayed, "the event's id is the idempotency key")
	require.False(t, starts(t, h, strings.Replace(event, "e-1", "e-2", 1))[0].Replayed)
	require.False(t, starts(t, h, strings.Replace(event, `"version"`, `"replay-name":"again","version"`, 1))[0].Replayed, "a replay is meant to happen again")
	w.logs(`"who":"eventbridge"`, `"from":"shop"`)
}

func TestEvent_records_of_notifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := eventer(t, w, `{"agent":"lab","input":"{{unescape .s3.object.key}}"}`)
	record := func(key, sequencer string) string {
		return fmt.Sprintf(`{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","eventTime":"2026-01-02T03:04:05.000Z","responseElements":{"x-amz-request-id":"R"},"s3":{"bucket":{"name":"b"},"object":{"key":%q,"size":1,"eTag":"t","sequencer":%q}}}`, key, sequencer)
	}
	event := fmt.Sprintf(`{"Records":[%s,%s]}`, record("a+b%2Fc", "1"), record("d", "2"))
	first := starts(t, h, event)
	require.Len(t, first, 2)
	require.Equal(t, "a b/c", w.said(first[0].SessionID))
	require.Equal(t, "d", w.said(first[1].SessionID))
	for i, s := range starts(t, h, event) {
		require.True(t, s.Replayed)
		require.Equal(t, first[i].SessionID, s.SessionID)
	}
	require.False(t, starts(t, h, `{"Records":[`+record("d", "3")+`]}`)[0].Replayed, "the object was written again")
	require.Len(t, starts(t, h, `{"Records":[`+record("d", "")+`]}`), 1)
	require.True(t, starts(t, h, `{"Records":[`+record("d", "")+`]}`)[0].Replayed, "without a sequencer the request's id counts")
	require.Empty(t, starts(t, h, `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`))

	w = newWorld(t)
	h = eventer(t, w, `{"agent":"lab","input":"{{(json .Sns.Message).order}}"}`)
	sns := `{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0","Sns":{"MessageId":"m-1","TopicArn":"arn:topic","Message":"{\"order\":7}"}}]}`
	got := starts(t, h, sns)
	require.Equal(t, "7", w.said(got[0].SessionID))
	require.True(t, starts(t, h, sns)[0].Replayed)
	w.logs(`"who":"sns"`, `"from":"arn:topic"`)
}

// TestEvent_two_sources: the template of docs/deploy.md, as it stands there, serves both.
func TestEvent_two_sources(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/deploy.md")
	require.NoError(t, err)
	template := regexp.MustCompile("(?m)^\\{\"agent\": \"clerk\".*\\{\\{with \\.Sns\\}\\}.*\\}$").FindString(string(docs))
	require.NotEmpty(t, template)
	w := newWorld(t)
	h := eventer(t, w, strings.Replace(template, "clerk", "lab", 1)) // the one agent there is here
	for _, event := range []string{
		`{"version":"0","id":"e-1","detail-type":"OrderPlaced","source":"shop.orders","detail":{"orderId":7}}`,
		`{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0","Sns":{"MessageId":"m-1","TopicArn":"arn:topic","Message":"{\"orderId\":7}"}}]}`,
	} {
		got := starts(t, h, event)
		require.Len(t, got, 1)
		require.Equal(t, "Look at order 7.", w.said(got[0].SessionID))
	}
	for event, lacks := range map[string]string{
		`{"version":"0","id":"e-2","source":"shop.orders","detail":{}}`:                                            "the event has no .detail.orderId",
		`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"1"}}}]}`: "the event has no .detail.orderId",
		`{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m-2","Message":"{\"order\":7}"}}]}`:              "the event has no (json .Message).orderId",
	} {
		_, err := h.Invoke(t.Context(), []byte(event))
		require.ErrorContains(t, err, lacks)
	}
	got := starts(t, eventer(t, w, `{"agent":"lab","input":"{{if .Sns.Message}}x{{else}}y{{end}}"}`), `{"a":1}`)
	require.Equal(t, "y", w.said(got[0].SessionID), "in a condition it is false")
}

func TestEvent_one_bad_record_does_not_hide_the_others(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := eventer(t, w, `{"agent":"lab","input":"{{.Sns.Message}}"}`)
	_, err := h.Invoke(t.Context(), []byte(`{"Records":[
		{"EventSource":"aws:sns","Sns":{"MessageId":"m-1"}},
		{"EventSource":"aws:sns","Sns":{"MessageId":"m-2","Message":"good"}},
		{"EventSource":"aws:sns","Sns":{"MessageId":"m-3","Message":""}}]}`))
	require.ErrorContains(t, err, "record 1 of 3", "it has no Message")
	require.ErrorContains(t, err, "invalid_input", "the third is empty")
	require.Len(t, w.queue.takeSent(), 1)
	w.logs("event refused", "event started no session", "event started session")
}

func TestEvent_what_it_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	without, with := eventer(t, w, ""), eventer(t, w, `{"agent":"lab","input":"{{.detail.a}}"}`)
	for event, want := range map[string]string{
		``:                               "neither",
		`7`:                              "neither",
		`null`:                           `no "input"`,
		`{}`:                             `no "input"`,
		`{"agent":"lab"}`:                `no "input"`,
		`{"agent":"lab","input":"x"} 1`:  "neither",
		`{"input":"x","tenant":"acme"}`:  `unknown field "tenant"`,
		`{"agent":"nobody","input":"x"}`: "unknown_agent",
		`{"agent":"lab","input":" "}`:    "invalid_input",
		`{"agent":"lab","input":"x","session":"../etc"}`:                                           "invalid_id",
		`{"id":"e","detail-type":"x","detail":{}}`:                                                 "ADJOURN_EVENT_TEMPLATE",
		`{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m"}}]}`:                          "ADJOURN_EVENT_TEMPLATE",
		`{"Records":[{"eventSource":"aws:sqs","messageId":"m"}]}`:                                  "aws:sqs",
		`{"Records":[{"EventSource":"aws:sns"}]}`:                                                  "without a message id",
		`{"Records":[{"eventSource":"aws:s3","s3":{}}]}`:                                           "without bucket or key",
		`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},"object":{"key":"k"}}}]}`: "without sequencer",
		`{"Records":[7]}`: "unknown event",
	} {
		_, err := without.Invoke(t.Context(), []byte(event))
		require.ErrorContains(t, err, want, event)
	}
	for event, want := range map[string]string{
		`{"id":"e","detail-type":"x","detail":{}}`:         "the event has no .detail.a, or null there",
		`{"id":"e","detail-type":"x","detail":{"a":null}}`: "null",
		`{"id":"e","detail-type":"x","detail":null}`:       "event template",
		`{"id":"e","detail-type":"x"}`:                     "the event has no .detail.a",
		`7`:                                                "can't evaluate field detail",
		``:                                                 "not JSON",
	} {
		_, err := with.Invoke(t.Context(), []byte(event))
		require.ErrorContains(t, err, want, event)
	}
	require.Empty(t, w.queue.takeSent())
}

func TestEvent_plain_events_through_a_template(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := eventer(t, w, `{"agent":"lab","input":"{{.say}}{{if .note}}!{{end}}","session":"s-{{.n}}"}`)
	got := starts(t, h, `{"say":"\"}, {\"agent\": \"evil\"","note":null,"n":100000000000000000000}`)
	require.Len(t, got, 1)
	require.Equal(t, "s-100000000000000000000", got[0].SessionID)
}

func TestEvent_an_event_stays_within_its_text(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := eventer(t, w, `{"agent":"lab","input":"a: {{.a}}"}`)
	evil := `"},"agent":"x","input":"{{.b}} {{template \"x\"}}`
	raw, err := json.Marshal(map[string]string{"a": evil, "b": "no"})
	require.NoError(t, err)
	got := starts(t, h, string(raw))
	require.Equal(t, "a: "+evil, w.said(got[0].SessionID))
	s, err := w.cfg.Runtime.Session(t.Context(), session.Key{Tenant: session.DefaultTenant, ID: got[0].SessionID})
	require.NoError(t, err)
	require.Equal(t, "lab", s.Rules.Agent)
}

func TestEvent_the_engine_panics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.read = func() { panic("broken") }
	_, err := eventer(t, w, "").Invoke(t.Context(), []byte(`{"agent":"lab","input":"x"}`))
	var panicked *lambdafn.PanicError
	require.ErrorAs(t, err, &panicked)
}

func TestEvent_ends_before_Lambda_does(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := eventer(t, w, "").Invoke(ctx, []byte(`{"agent":"lab","input":"x"}`))
	require.ErrorIs(t, err, context.Canceled)
}

func TestParseTemplate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                     "no JSON object",
		`{{.a}}`:                               "no JSON object",
		`[]`:                                   "no JSON object",
		`{"agent":"lab","input":"x"} {}`:       "follows",
		`{"agent":"lab","input":"x","who":""}`: `"who"`,
		`{"agent":"lab","input":7}`:            "no JSON object",
		`{"agent":"lab"}`:                      `"input" is missing`,
		`{"input":"x"}`:                        `"agent" is missing`,
		`{"agent":"{{","input":"x"}`:           "agent:1",
		`{"agent":"lab","input":"{{nope 1}}"}`: `"nope" not defined`,
	} {
		_, err := lambdafn.ParseTemplate(text)
		require.ErrorIs(t, err, lambdafn.ErrInvalidTemplate, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := lambdafn.ParseTemplate(`{"agent":"{{","session":"{{"}`)
	for _, want := range []string{"agent", "input", "session"} {
		require.ErrorContains(t, err, want, "every mistake is told at once")
	}
	_, err = lambdafn.ParseTemplate(`{"session":"s","input":"{{.a}}"}`)
	require.NoError(t, err, "a session that exists has its agent")
	w := newWorld(t)
	w.cfg.EventTemplate = "{"
	_, err = lambdafn.NewEvent(w.cfg)
	require.ErrorContains(t, err, "ADJOURN_EVENT_TEMPLATE")
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	event := `{"s":"a<b>\"","n":1.50,"zero":0,"yes":true,"no":false,"null":null,"empty":"","list":[1,"b",null,{"c":2}],"none":[],"o":{"b":2,"a":1,"x-y":"z"},"raw":"{\"k\":[7]}"}`
	for _, c := range []struct{ text, want, err string }{
		{"plain {{/* nothing */}}text", "plain text", ""},
		{"{{.s}}|{{.n}}|{{.yes}}|{{.no}}|{{.zero}}|{{.empty}}", `a<b>"|1.50|true|false|0|`, ""},
		{"{{.list}} {{.o}} {{.none}}", `[1,"b",null,{"c":2}] {"a":1,"b":2,"x-y":"z"} []`, ""},
		{"{{.o.a}}{{$.o.b}}", "12", ""},
		{"{{with .o}}{{.a}}{{$.n}}{{else}}no{{end}}", "11.50", ""},
		{"{{if .s}}s{{end}}{{if .empty}}e{{else if .zero}}z{{else}}else{{end}}{{if .nope}}x{{else}}-{{end}}{{if .null}}x{{end}}{{if .none}}x{{end}}", "selse-", ""},
		{"{{range .list}}[{{if .}}{{.}}{{end}}]{{end}}", `[1][b][][{"c":2}]`, ""},
		{"{{range .o}}{{.}},{{end}}{{range .none}}x{{else}}none{{end}}{{range .null}}x{{else}}null{{end}}", "1,2,z,nonenull", ""},
		{`{{index .o "x-y"}} {{index .list 1}} {{index .list 3 "c"}} {{(index .list 3).c}}`, "z b 2 2", ""},
		{`{{(json .raw).k}} {{.raw | json}} {{unescape "a+b%2F"}}`, `[7] {"k":[7]} a b/`, ""},
		{`{{eq .s "x"}} {{eq .yes true}} {{ne .n 2}} {{eq .zero 1 0}} {{not .no}} {{and .s .n}} {{or .empty .n}} {{len .s}} {{len .list}} {{len .o}}`, "false true true true true 1.50 1.50 5 4 3", ""},
		{"{{.}}", "", "{"}, // all of it
		{"{{.null}}", "", "no .null, or null there"},
		{"{{.nope}}", "", "the event has no .nope"},
		{"{{.nope.x}}", "", "the event has no .nope.x"},
		{"{{.s.x}}", "", "can't evaluate field x"},
		{"{{.null.x}}", "", "nil pointer evaluating"},
		{`{{index .list 4}}`, "", "index out of range"},
		{`{{index .list "a"}}`, "", "cannot index slice/array with type string"},
		{`{{index .o 1}}`, "", "value has type int; should be string"},
		{`{{index .o "no"}}`, "", `the event has no index .o "no"`},
		{`{{json .n}}`, "", "expected string"},
		{`{{json .s}}`, "", "not JSON"},
		{`{{unescape .n}}`, "", "expected string"},
		{`{{unescape "%zz"}}`, "", "invalid URL escape"},
		{`{{eq .s}}`, "", "two arguments"},
		{`{{eq .list .o}}`, "", "lists and objects cannot be compared"},
		{`{{len .zero}}`, "", "len of type int"},
		{`{{len .nope}}`, "", "error calling len"},
		{`{{index .nope 1}}`, "", "error calling index"},
		{`{{.nope | json}}`, "", "invalid value; expected string"},
		{`{{if not .nope}}{{or .nope "else"}}{{eq .nope "x"}}{{end}}`, "elsefalse", ""},
		{`{{len}}`, "", "wrong number of args for len"},
		{`{{or}}`, "", "wrong number of args for or"},
		{`{{index}}`, "", "wrong number of args for index"},
		{`{{.s .n}}`, "", "s is not a method"},
		{`{{.s | .n}}`, "", "n is not a method"},
		{`{{range .s}}{{end}}`, "", "range can't iterate over"},
		{`{{if len .zero}}{{end}}`, "", "len of type int"},
		{`{{range len .zero}}{{end}}`, "", "len of type int"},
	} {
		w := newWorld(t)
		template, err := json.Marshal(map[string]string{"agent": "lab", "input": ">" + c.text})
		require.NoError(t, err)
		h := eventer(t, w, string(template))
		raw, err := h.Invoke(t.Context(), []byte(event))
		if c.err == "{" {
			require.NoError(t, err)
			continue
		}
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.text)
			continue
		}
		require.NoError(t, err, c.text)
		var got struct{ Sessions []startedSession }
		require.NoError(t, json.Unmarshal(raw, &got))
		require.Equal(t, ">"+c.want, w.said(got.Sessions[0].SessionID), c.text)
	}
}

func ExampleParseTemplate() {
	_, err := lambdafn.ParseTemplate(`{"agent": "clerk", "input": "File {{unescape .s3.object.key}} arrived in {{.s3.bucket.name}"}`)
	fmt.Println(err)
	// Output: invalid event template: template: input:1: bad character U+007D '}'
}

func FuzzEvent(f *testing.F) {
	w := newWorld(f)
	handlers := []lambdafn.Handler{eventer(f, w, ""), eventer(f, w, `{"agent":"lab","input":"{{.}}{{range .}}{{.}}{{end}}"}`)}
	for _, seed := range []string{
		`{"agent":"lab","input":"x"}`, `{"id":"e","detail-type":"x","detail":{"a":[1,null,"b"]}}`, `{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m"}}]}`,
		`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"1"}}}]}`, `{"requestContext":{"http":{"method":"POST"}},"rawPath":"/sessions"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, h := range handlers {
			answer, err := h.Invoke(t.Context(), raw)
			if err == nil {
				require.True(t, json.Valid(answer))
			}
			var panicked *lambdafn.PanicError
			require.NotErrorAs(t, err, &panicked)
			_ = runtime.AsError(err)
		}
	})
}
