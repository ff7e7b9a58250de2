package eventbridge_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/notice/eventbridge"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestSend(t *testing.T) {
	t.Parallel()
	var got map[string]any
	status, answer := http.StatusOK, `{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got = map[string]any{"target": r.Header.Get("X-Amz-Target"), "signed": r.Header.Get("Authorization") != ""}
		_ = json.Unmarshal(raw, &got)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	at := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	c := eventbridge.New(eventbridge.Config{Bus: "people", Now: func() time.Time { return at }, AWS: aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
		}),
	}})
	require.Equal(t, "eventbridge", c.Name())
	m := notice.Message{ID: "msg_1", Key: session.Key{Tenant: "acme", ID: "s1"}, Notice: journal.Notice{Type: journal.NoticeCompleted, At: at, Agent: "desk", Seq: 4}}
	_, err := c.Send(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"target": "AWSEvents.PutEvents", "signed": true, "Entries": []any{map[string]any{
		"Time": float64(at.Unix()), "Source": "adjourn", "DetailType": "session.completed", "EventBusName": "people",
		"Detail": `{"id":"msg_1","tenant":"acme","session":"s1","agent":"desk","version":4}`,
	}}}, got)

	answer = `{"FailedEntryCount":1,"Entries":[{"ErrorCode":"InternalFailure","ErrorMessage":"later"}]}`
	_, err = c.Send(t.Context(), m)
	require.ErrorContains(t, err, "InternalFailure: later")
	answer = `{}`
	_, err = c.Send(t.Context(), m)
	require.ErrorContains(t, err, "took no event")
	status, answer = http.StatusForbidden, `{"__type":"AccessDeniedException","message":"no"}`
	_, err = c.Send(t.Context(), m)
	require.ErrorContains(t, err, "AccessDenied")
}
