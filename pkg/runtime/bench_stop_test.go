package runtime_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// BenchmarkStop measures how long it takes from a cancel until the session has stopped, on a data
// file, and with the tag aws on DynamoDB: in a model call and in a tool, which end with their context, in a back-off, and where a
// person is waited for. -benchtime=100x makes a hundred trials of each.
func BenchmarkStop(b *testing.B) {
	for _, name := range []string{"model", "tool", "delayed", "waiting"} {
		b.Run(name, func(b *testing.B) {
			begun := make(chan struct{}, 1)
			until := func(ctx context.Context) error {
				begun <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			lines := script{
				"model":   {func(ctx context.Context, _ agent.View) (agent.Reply, error) { return agent.Reply{}, until(ctx) }},
				"tool":    {calls("slow", `{"text":"1"}`)},
				"delayed": {fails(&llm.Error{Class: llm.ClassOverloaded, RetryAfter: 30 * time.Second})},
				"waiting": {calls("ask", `{"text":"1"}`)},
			}
			offers := withAgents(b, agent.Agent{Name: "a", System: "It stops.", Offline: lines, Tools: []tool.Tool{
				tool.Define(tool.Spec[textIn]{Name: "slow"}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) { return "", until(ctx) }),
				tool.Define(tool.Spec[textIn]{Name: "ask", Approve: tool.Always[textIn]}, func(context.Context, *tool.Call, textIn) (string, error) { return "", nil }),
			}})
			w, db := onFile(b, offers, func(cfg *runtime.Config) { cfg.WatchEvery = watchEvery })
			ctx := context.Background()
			took := make([]time.Duration, b.N)
			for i := range b.N {
				key := benchKey(i)
				_, err := w.Start(ctx, runtime.StartParams{Key: key, Agent: "a", Caller: person, Input: llm.TextParts(name)})
				require.NoError(b, err)
				driven := make(chan error, 1)
				go func() { driven <- w.Drive(ctx, key, db.Queue().Only(key)) }()
				switch name {
				case "model", "tool":
					<-begun
					time.Sleep(rand.N(watchEvery)) // it comes at any time between two looks
				case "waiting":
					require.NoError(b, <-driven)
					driven <- nil
				default:
					for w.kindOf(b, key) != session.KindDelayed {
						time.Sleep(time.Millisecond)
					}
				}
				began := time.Now()
				_, err = w.Stop(ctx, runtime.StopParams{Key: key, Kind: runtime.SignalCancel, Caller: person})
				require.NoError(b, err)
				rests, err := w.AwaitRest(ctx, key, 0, 10*time.Second)
				require.NoError(b, err)
				require.True(b, rests)
				took[i] = time.Since(began)
				require.NoError(b, <-driven)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// kindOf is the kind of the newest entry of a session.
func (b *bundle) kindOf(t require.TestingT, key session.Key) session.Kind {
	s, err := b.Session(context.Background(), key)
	require.NoError(t, err)
	return s.Newest.Kind
}
