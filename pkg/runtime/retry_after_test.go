package runtime_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/openai"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// A provider that answers 429 with retry-after: no process sleeps, the journal shows the wait, and the
// task completes; what is put off for longer than a queue can goes on through the sweep.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"2 seconds": 2 * time.Second, "20 minutes": 20 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				if asked.Add(1) == 1 {
					w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, `{"error":{"message":"Slow down.","type":"rate_limit_error"}}`)
					return
				}
				_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`)
			}))
			defer provider.Close()
			env := map[string]string{"OPENAI_BASE_URL": provider.URL + "/v1", "OPENAI_STREAM": "false"}
			model, err := openai.Open(t.Context(), "gpt-test", func(name string) string { return env[name] })
			require.NoError(t, err)
			asks := func(ctx context.Context, v agent.View) (agent.Reply, error) {
				reply, err := llm.Collect(model.Stream(ctx, llm.Request{Messages: v.Messages}), nil)
				return agent.Reply{Text: reply.Message.Text()}, err
			}
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {asks, asks}}))
			p := w.process()
			w.start(p, "go")
			began := w.clock.Now()
			require.NoError(t, p.work())
			require.Equal(t, []session.Kind{session.KindStarted, session.KindDelayed}, w.kinds())
			until := *w.session().Newest.Until
			require.Equal(t, after, until.Sub(began).Round(time.Second), "the journal says when it goes on")
			require.Equal(t, after > journal.MaxAhead, w.head().Head.Due != nil && w.head().Head.Due.Before(until), "the sweep looks after what no queue can put off")
			for w.session().Status == session.StatusRunning {
				w.clock.advance(min(after, time.Minute))
				sweepOf(t, p)
				require.NoError(t, p.work())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.WithinRange(t, w.session().Newest.At, until, until.Add(time.Minute))
			require.EqualValues(t, 2, asked.Load(), "asked once more, and by nobody before its time")
			w.checkAtRest()
		})
	}
}
