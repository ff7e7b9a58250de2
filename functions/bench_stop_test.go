//go:build aws && linux

package functions_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// BenchmarkStop measures how long it takes from the request to cancel until the session has stopped, with
// the real functions: in a model's stream of 10 s, in a tool of 10 s which obeys, in a back-off of 30 s, and
// where a person is waited for. -benchtime=100x makes a hundred trials of each.
func BenchmarkStop(b *testing.B) {
	w := deploy(b, settings{concurrency: 2, visibility: time.Minute, lease: 20 * time.Second})
	caller := w.client(b, "acme")
	stream := strings.TrimSpace(strings.Repeat("word ", 3*101)) // three come at once
	for name, script := range map[string]string{
		"model":   fmt.Sprintf("[{stream: %s, every: 100ms}]", stream),
		"tool":    "[{call: sleep, with: {seconds: 10}}]",
		"delayed": "[{fail: overloaded, after: 30s}]",
		"waiting": "[{need: which color?}]",
	} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), patience)
			defer cancel()
			took := make([]time.Duration, b.N)
			for i := range took {
				key := session.Key{Tenant: "acme", ID: fmt.Sprintf("%s-%d-%d", name, b.N, i)}
				head := func() (found journal.Head) {
					for item, err := range w.store.Items(ctx, key, store.KindHead, "") {
						require.NoError(b, err)
						found = *item.Head
					}
					return found
				}
				until := func(is func(journal.Head) bool) {
					for !is(head()) {
						require.NoError(b, ctx.Err(), "%s: %+v", key, head())
						time.Sleep(2 * time.Millisecond)
					}
				}
				_, err := caller.Start(ctx, client.StartParams{Request: client.StartRequest{SessionID: key.ID, Agent: "lab", Input: client.Text(script)}})
				require.NoError(b, err)
				switch name {
				case "waiting":
					until(func(h journal.Head) bool { return h.Status == session.StatusSuspended })
				case "delayed":
					until(func(h journal.Head) bool { return h.Due != nil && h.Lease.Seq > 1 })
				default:
					until(func(h journal.Head) bool { return h.Lease.Owner != "" && h.Lease.Seq > 1 })
					time.Sleep(rand.N(500 * time.Millisecond)) // it comes at any time between two looks
				}
				began := time.Now()
				_, err = caller.Cancel(ctx, client.StopParams{SessionID: key.ID})
				require.NoError(b, err)
				until(func(h journal.Head) bool { return h.Status == session.StatusCancelled })
				took[i] = time.Since(began)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
