package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestDriveAfter has another worker take the message with which a session was told
// to go on. Until that worker has done so the session looks as if it rested; who
// told it stays, and tells it again where the worker died.
func TestDriveAfter(t *testing.T) {
	t.Parallel()
	for name, worker := range map[string]func(b *bundle, ctx context.Context, d queue.Delivery){
		"slow": func(b *bundle, ctx context.Context, d queue.Delivery) {
			time.Sleep(3 * time.Second)
			_, _ = b.Deliver(ctx, d.Wake) // the other one may have been first by then
			_ = b.queue.Acknowledge(ctx, d)
		},
		"dead": func(*bundle, context.Context, queue.Delivery) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, withAgents(t, helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}})))
				ctx := context.Background()
				_, err := b.Start(ctx, runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
				require.NoError(t, err)
				b.drive(t)
				waits, err := b.Waits(ctx, b.key)
				require.NoError(t, err)
				yes := true
				_, err = b.Submit(ctx, runtime.SubmitParams{Key: b.key, HoldResume: true, Caller: person, Answer: session.Answer{
					Wait: waits[0].Wait.ID, Kind: session.AnswerApproval, ApprovalID: waits[0].Wait.Nonce, Approved: &yes,
				}})
				require.NoError(t, err)
				b.drive(t)
				require.Equal(t, session.StatusSuspended, b.session(t).Status, "a held answer alone moves nothing")

				resumed, err := b.Resume(ctx, runtime.ResumeParams{Key: b.key, Mode: runtime.ResumeContinue, Caller: person})
				require.NoError(t, err)
				require.Equal(t, b.session(t).Version, resumed.After)
				taken, err := b.queue.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: time.Minute})
				require.NoError(t, err)
				require.Len(t, taken, 1)
				go worker(b, ctx, taken[0])

				began := time.Now()
				require.NoError(t, b.DriveAfter(ctx, b.key, b.queue.Only(b.key), resumed.After))
				require.Equal(t, session.StatusCompleted, b.session(t).Status)
				require.Less(t, time.Since(began), 10*time.Second)
				time.Sleep(time.Minute) // until the slow one is done
			})
		})
	}
}
