//go:build aws

package serverless_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/awscall"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// TestNotices_reach_EventBridge: what a function writes is brought to the notice function by a queue
// of its own, and from there onto a bus, of which a rule takes it.
func TestNotices_reach_EventBridge(t *testing.T) {
	t.Parallel()
	endpoint := os.Getenv("ADJOURN_TEST_AWS")
	require.NotEmpty(t, endpoint, "run it with make test-aws")
	load := func(context.Context) (aws.Config, error) {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		})}, nil
	}
	cfg, _ := load(t.Context())
	client, name := sqs.NewFromConfig(cfg), "adjourn-"+app.NewID()
	makeQueue := func(suffix string) (url, arn string) {
		made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + suffix)})
		require.NoError(t, err)
		about, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
		require.NoError(t, err)
		return *made.QueueUrl, about.Attributes["QueueArn"]
	}
	receive := func(url string) string {
		for range 60 { // the emulator is slow beside other tests
			got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 1})
			require.NoError(t, err)
			if len(got.Messages) > 0 {
				return *got.Messages[0].Body
			}
		}
		require.Fail(t, "nothing came")
		return ""
	}
	notices, _ := makeQueue("-notices")
	taken, takenArn := makeQueue("-taken")
	caller := awscall.Caller{Config: cfg, Now: time.Now, Most: 1 << 20}
	events := func(action string, in any) {
		require.NoError(t, caller.JSON(t.Context(), "events", "AWSEvents."+action, "1.1", in, new(json.RawMessage)))
	}
	events("CreateEventBus", map[string]any{"Name": name})
	events("PutRule", map[string]any{"Name": name, "EventBusName": name, "EventPattern": `{"source":["adjourn"],"detail-type":["session.completed"]}`})
	events("PutTargets", map[string]any{"Rule": name, "EventBusName": name, "Targets": []any{map[string]any{"Id": "1", "Arn": takenArn}}})

	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	open := func(more ...string) *serverless.App {
		a, err := serverless.Open(t.Context(), serverless.Config{
			Registry: registry, AWS: load, Env: set(more...), Decorate: func(p app.Parts) app.Parts { p.Store, p.Queue = db.Store(), db.Queue(); return p },
		})
		require.NoError(t, err)
		return a
	}
	writes := open("ADJOURN_NOTICES", ",eventbridge", "ADJOURN_NOTICE_QUEUE_URL", notices)
	started, err := writes.Runtime.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: "acme"}, Agent: "hello", Input: llm.TextParts("hi"), Caller: runtime.Caller{Who: "ada"}})
	require.NoError(t, err)
	require.NoError(t, writes.Runtime.Drive(t.Context(), started.Key, writes.Queue))

	sends := open("ADJOURN_NOTICE_BUS", name, "ADJOURN_PUBLIC_URL", "https://api.example.com")
	h, err := lambdafn.NewNotice(lambdafn.Config{Now: time.Now, Notices: sends.Notices})
	require.NoError(t, err)
	body, err := json.Marshal(receive(notices))
	require.NoError(t, err)
	out, err := h.Invoke(t.Context(), fmt.Appendf(nil, `{"Records":[{"messageId":"1","body":%s}]}`, body))
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, string(out))

	event := receive(taken)
	require.Contains(t, event, `"session.completed"`)
	require.Contains(t, event, started.Key.ID)
	require.Contains(t, strings.ReplaceAll(event, " ", ""), `"link":"https://api.example.com/sessions/`+started.Key.ID+`"`)
	page, err := writes.Runtime.Notices(t.Context(), runtime.NoticesParams{Tenant: "acme"})
	require.NoError(t, err)
	require.EqualValues(t, "sent", page.Found[0].Item.Notice.Sends[0].State, page.Found[0].Item.Notice.Sends[0].Error)
}
