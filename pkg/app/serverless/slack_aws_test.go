//go:build aws

package serverless_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// posted is what a fake Slack was asked.
type posted struct {
	at     time.Time
	method string
	body   map[string]any
}

func pays() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name:  "clerk",
		Tools: []tool.Tool{tool.Define(tool.Spec[struct{}]{Name: "pay", Approve: tool.Always[struct{}], Who: []string{"ana"}}, func(context.Context, *tool.Call, struct{}) (string, error) { return "paid", nil })},
		Planner: agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
			if len(v.Messages) > 1 {
				return agent.Reply{Text: "done"}, nil
			}
			return agent.Reply{Calls: []agent.Call{{Name: "pay", Arguments: json.RawMessage(`{}`)}}}, nil
		}),
	}}})
}

// TestSlack_on_AWS: the notice function posts a card that the queue of notices told it of; a click that Slack has
// signed comes by the gateway to the submit function and decides, and the card is edited within two seconds of it,
// with the name. A session of another tenant has no card. No secret is in a log.
func TestSlack_on_AWS(t *testing.T) {
	t.Parallel()
	const token, secret = "xoxb-hush-token", "hush-signing-secret"
	endpoint := os.Getenv("ADJOURN_TEST_AWS")
	require.NotEmpty(t, endpoint, "run it with make test-aws")
	load := func(context.Context) (aws.Config, error) {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		})}, nil
	}
	cfg, _ := load(t.Context())
	client := sqs.NewFromConfig(cfg)
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("adjourn-" + app.NewID() + "-notices")})
	require.NoError(t, err)

	var mu sync.Mutex
	var asked []posted
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		p := posted{at: time.Now(), method: r.URL.Path}
		raw, _ := io.ReadAll(r.Body)
		if json.Unmarshal(raw, &p.body) != nil || r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusForbidden)
		}
		asked = append(asked, p)
		_, _ = io.WriteString(w, `{"ok":true,"channel":"C1","ts":"17.1"}`)
	}))
	t.Cleanup(slack.Close)

	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var log bytes.Buffer
	var logs sync.Mutex
	open := func(more ...string) *serverless.App {
		a, err := serverless.Open(t.Context(), serverless.Config{
			Registry: pays, AWS: load, Env: set(append(more, "ADJOURN_LOG", "debug", "ADJOURN_API_ID", "api1")...),
			Log: func(level slog.Level) *slog.Logger {
				return slog.New(slog.NewJSONHandler(writer(func(p []byte) (int, error) {
					logs.Lock()
					defer logs.Unlock()
					return log.Write(p)
				}), &slog.HandlerOptions{Level: level}))
			},
			Decorate: func(p app.Parts) app.Parts { p.Store, p.Queue = db.Store(), db.Queue(); return p },
		})
		require.NoError(t, err)
		return a
	}
	// As the stack's functions have them: who writes, who takes what Slack asks, who posts.
	writes := []string{"ADJOURN_NOTICES", ",,slack", "ADJOURN_NOTICE_QUEUE_URL", *made.QueueUrl, "ADJOURN_SLACK_TENANT", "acme"}
	step := open(writes...)
	submit := open(append(writes, "ADJOURN_SLACK_SIGNING_SECRET", secret, "ADJOURN_SLACK_PEOPLE", `{"T1/U1":"ana","T1/U2":"bob"}`)...)
	sends := open("ADJOURN_SLACK_TOKEN", token, "ADJOURN_SLACK_CHANNEL", "C1", "ADJOURN_SLACK_ARGUMENTS", "true", "ADJOURN_SLACK_DECIDES", "true", "ADJOURN_SLACK_API", slack.URL+"/api/")
	door, err := lambdafn.NewSubmit(lambdafn.Config{
		Runtime: submit.Runtime, Now: time.Now, APIID: "api1", Log: submit.Log,
		Slack: httpapi.SlackConfig{SigningSecret: submit.Settings.Notices.SlackSigningSecret, People: submit.Settings.Notices.SlackPeople, Tenant: submit.Settings.Notices.SlackTenant},
	})
	require.NoError(t, err)
	notices, err := lambdafn.NewNotice(lambdafn.Config{Now: time.Now, Log: sends.Log, Notices: sends.Notices})
	require.NoError(t, err)

	run := func(tenant string) session.Key {
		key := session.Key{Tenant: tenant, ID: app.NewID()}
		_, err := step.Runtime.Start(t.Context(), runtime.StartParams{Key: key, Agent: "clerk", Input: llm.TextParts("go"), Caller: runtime.Caller{Who: "eve"}})
		require.NoError(t, err)
		require.NoError(t, step.Runtime.Drive(t.Context(), key, step.Queue))
		return key
	}
	// send invokes the notice function with the next message of its queue.
	send := func() {
		for range 20 {
			got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, WaitTimeSeconds: 1})
			require.NoError(t, err)
			if len(got.Messages) == 0 {
				continue
			}
			body, err := json.Marshal(*got.Messages[0].Body)
			require.NoError(t, err)
			out, err := notices.Invoke(t.Context(), fmt.Appendf(nil, `{"Records":[{"messageId":"1","body":%s}]}`, body))
			require.NoError(t, err)
			require.JSONEq(t, `{"batchItemFailures":[]}`, string(out))
			_, err = client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: made.QueueUrl, ReceiptHandle: got.Messages[0].ReceiptHandle})
			require.NoError(t, err)
			return
		}
		require.Fail(t, "no notice came")
	}
	run("other") // its people are others
	key := run("acme")
	send()
	require.Len(t, asked, 1)
	require.Equal(t, "/api/chat.postMessage", asked[0].method)
	card, err := json.Marshal(asked[0].body)
	require.NoError(t, err)
	require.Contains(t, string(card), key.ID)

	// The button's value is what the card has.
	var value string
	for _, block := range asked[0].body["blocks"].([]any) {
		elements, _ := block.(map[string]any)["elements"].([]any)
		for _, element := range elements {
			if button := element.(map[string]any); button["action_id"] == "approve" {
				value = button["value"].(string)
			}
		}
	}
	require.NotEmpty(t, value)
	click := func(user, signedWith string) int {
		payload, err := json.Marshal(map[string]any{"type": "block_actions", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": user}, "actions": []any{map[string]any{"action_id": "approve", "value": value}}})
		require.NoError(t, err)
		body, at := url.Values{"payload": {string(payload)}}.Encode(), fmt.Sprint(time.Now().Unix())
		mac := hmac.New(sha256.New, []byte(signedWith))
		_, _ = mac.Write([]byte("v0:" + at + ":" + body))
		event, err := json.Marshal(map[string]any{
			"version": "2.0", "routeKey": "POST /slack/interactions", "rawPath": "/slack/interactions", "body": body,
			"headers":        map[string]any{"content-type": "application/x-www-form-urlencoded", "x-slack-request-timestamp": at, "x-slack-signature": "v0=" + hex.EncodeToString(mac.Sum(nil))},
			"requestContext": map[string]any{"apiId": "api1", "routeKey": "POST /slack/interactions", "stage": "$default", "requestId": "r1", "domainName": "api.example.com", "http": map[string]any{"method": "POST", "path": "/slack/interactions", "sourceIp": "192.0.2.7"}},
		})
		require.NoError(t, err)
		out, err := door.Invoke(t.Context(), event)
		require.NoError(t, err)
		var response struct{ StatusCode int }
		require.NoError(t, json.Unmarshal(out, &response))
		return response.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, click("U1", "another"))
	require.Equal(t, http.StatusForbidden, click("U2", secret), "bob may not")
	require.Equal(t, http.StatusForbidden, click("U3", secret), "nobody knows who that is")
	began := time.Now()
	require.Equal(t, http.StatusOK, click("U1", secret))
	send()
	require.Len(t, asked, 2)
	require.Equal(t, "/api/chat.update", asked[1].method)
	require.Less(t, asked[1].at.Sub(began), 2*time.Second)
	require.Equal(t, "17.1", asked[1].body["ts"])
	settled, err := json.Marshal(asked[1].body)
	require.NoError(t, err)
	require.Contains(t, string(settled), "Approved by ana")
	require.NotContains(t, string(settled), "button")

	var told string
	for item, err := range db.Store().Items(t.Context(), key, store.KindNotice, "") {
		require.NoError(t, err)
		told += string(item.Notice.Type) + " " + string(item.Notice.Sends[0].State) + "\n"
	}
	require.Contains(t, told, "session.suspended sent")
	require.Contains(t, told, "wait.answered sent")
	logs.Lock()
	defer logs.Unlock()
	for _, hidden := range []string{"hush", strings.Trim(value, "{}")} {
		require.NotContains(t, log.String(), hidden)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
