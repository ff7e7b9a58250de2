package lambdafn_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
)

// served are the handlers that answer the API.
func served(t testing.TB, w *world) map[string]lambdafn.Handler {
	t.Helper()
	handlers := map[string]lambdafn.Handler{}
	for name, build := range map[string]func(lambdafn.Config) (lambdafn.Handler, error){
		"start": lambdafn.NewStart, "resume": lambdafn.NewResume, "submit": lambdafn.NewSubmit, "query": lambdafn.NewQuery,
	} {
		h, err := build(w.cfg)
		handlers[name] = need(t, h, err)
	}
	return handlers
}

// TestDoors_events_start_nothing_at_the_API: whoever may invoke a function of the
// API with an event begins no session by it.
func TestDoors_events_start_nothing_at_the_API(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.EventTemplate, w.cfg.AllowUnauthenticated = `{"agent":"lab","input":"- say: hi"}`, true
	for name, h := range served(t, w) {
		for _, event := range []string{
			`{"agent":"lab","input":"- say: hi"}`, `{"agent":"lab","input":"- say: hi","idempotencyKey":"k"}`,
			`{"version":"0","id":"e-1","detail-type":"x","source":"shop","detail":{}}`,
			`{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m-1","Message":"x"}}]}`,
			`{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"1"}}}]}`,
			`{"Records":[{"eventSource":"aws:sqs","messageId":"m","body":"{}"}]}`,
			`{"version":"1.0","httpMethod":"POST","path":"/sessions","requestContext":{"httpMethod":"POST"},"body":"{}"}`,
			`{"httpMethod":"POST","path":"/sessions","requestContext":{"elb":{}},"body":"{}"}`,
		} {
			_, err := h.Invoke(t.Context(), []byte(event))
			require.ErrorContains(t, err, "not an HTTP request", "%s: %s", name, event)
		}
	}
	require.Empty(t, w.queue.takeSent())
}

// TestDoors_requests_start_nothing_at_the_event_function: what has a caller is
// answered by those who ask who he is.
func TestDoors_requests_start_nothing_at_the_event_function(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.AllowUnauthenticated = true
	e := jwt("POST", "/sessions", map[string]string{"tenant": "globex", "sub": "u1"})
	e.Body = `{"agent":"lab","input":"- say: hi"}`
	whole, err := json.Marshal(e)
	require.NoError(t, err)
	for _, template := range []string{"", `{"agent":"lab","input":"- say: hi"}`} {
		h := eventer(t, w, template)
		for _, event := range []string{
			string(whole), `{"requestContext":{"http":{"method":"GET"}},"agent":"lab","input":"- say: hi"}`,
			`{"requestcontext":{"HTTP":{"Method":"GET"}},"rawPath":"/sessions"}`,
			`{"requestContext":{"http":7},"version":"2.0"}`,
			`{"version":"1.0","httpMethod":"POST","path":"/sessions","requestContext":{"httpMethod":"POST"},"body":"{}"}`,
			`{"httpMethod":"POST","path":"/sessions","requestContext":{"elb":{"targetGroupArn":"arn"}},"body":"{}"}`,
		} {
			_, err := h.Invoke(t.Context(), []byte(event))
			require.ErrorIs(t, err, lambdafn.ErrUnknownEvent, event)
			require.ErrorContains(t, err, "an HTTP request", event)
		}
	}
	require.Empty(t, w.queue.takeSent())
	require.NotContains(t, w.log.String(), "globex")
}

// TestDoors_no_event_names_its_tenant: whose its session is says EventTenant alone.
func TestDoors_no_event_names_its_tenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.EventTenant = "events"
	h := eventer(t, w, `{"agent":"lab","input":"- say: hi"}`)
	for _, event := range []string{
		`{"agent":"lab","input":"- say: hi","tenant":"globex"}`, `{"tenant":"globex","eventTenant":"globex","EventTenant":"globex"}`,
		`{"version":"0","id":"e-1","detail-type":"x","source":"shop","account":"globex","tenant":"globex","detail":{"tenant":"globex"}}`,
		`{"version":"0","id":"e-2","detail-type":"x","source":"shop","detail":{},"requestContext":{"authorizer":{"jwt":{"claims":{"tenant":"globex","sub":"u1"}}}}}`,
		`{"Records":[{"EventSource":"aws:sns","tenant":"globex","Sns":{"MessageId":"m-1","Message":"{\"tenant\":\"globex\"}","MessageAttributes":{"tenant":{"Type":"String","Value":"globex"}}}}]}`,
		`{"Records":[{"eventSource":"aws:s3","tenant":"globex","s3":{"bucket":{"name":"b","ownerIdentity":{"principalId":"globex"}},"object":{"key":"globex/k","sequencer":"1"}}}]}`,
	} {
		for _, s := range starts(t, h, event) {
			_, err := w.cfg.Runtime.Session(t.Context(), session.Key{Tenant: "events", ID: s.SessionID})
			require.NoError(t, err, event)
		}
	}
	sent := w.queue.takeSent()
	require.Len(t, sent, 6, "one for each")
	for _, wake := range sent {
		require.Equal(t, "events", wake.Tenant)
	}
	// A session's id is within the tenant: there is no way out by it.
	for _, id := range []string{"../globex/s", "globex#s", "S#globex#s", strings.Repeat("x", 300)} {
		raw, err := json.Marshal(map[string]string{"agent": "lab", "input": "- say: hi", "session": id})
		require.NoError(t, err)
		_, err = eventer(t, w, "").Invoke(t.Context(), raw)
		require.ErrorContains(t, err, "invalid_id", id)
	}
	for _, tenant := range []string{"", "a b", "a#b", "../x"} {
		w.cfg.EventTenant = tenant
		_, err := lambdafn.NewEvent(w.cfg)
		require.ErrorContains(t, err, "EventTenant", "%q", tenant)
	}
}
