package lambdafn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestHops: one start from the gateway to the journal and back, the answer to its approval
// from the gateway to the tool, and the same answer to a session that there is not.
// tools/hops has it end at a place of its way, and counts what the next place adds.
func TestHops(t *testing.T) {
	t.Parallel()
	const ends = "ADJOURN_HOPS"
	at := os.Getenv(ends)
	long := strings.Repeat("x", 10_000)
	called := make(chan string, 1)
	type in struct {
		Text string `json:"text"`
	}
	w := newWorld(t, tool.Define(tool.Spec[in]{Name: "note", Approve: tool.Always[in]}, func(_ context.Context, _ *tool.Call, in in) (string, error) {
		called <- in.Text
		if at == "answer" {
			select {} // nothing after the tool is counted
		}
		return "noted", nil
	}))
	step, err := lambdafn.NewStep(w.cfg)
	require.NoError(t, err)
	submit, err := lambdafn.NewSubmit(w.cfg)
	require.NoError(t, err)
	start := starter(t, w)
	post := func(handler lambdafn.Handler, path string, body any) string {
		t.Helper()
		e := jwt("POST", path, map[string]string{"tenant": session.DefaultTenant, "sub": "ann"})
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		e.Headers["content-type"], e.Body = "application/json", string(raw)
		event, err := json.Marshal(e)
		require.NoError(t, err)
		out, err := handler.Invoke(lambdaContext(t, time.Minute), event)
		require.NoError(t, err)
		return string(out)
	}
	work := func() {
		for sent := w.queue.takeSent(); len(sent) > 0; sent = w.queue.takeSent() {
			if failed := deliver(t, step, wakeMessage(t, fmt.Sprint("m", sent[0].Seq), sent[0])); len(failed) > 0 {
				t.Error("the step wants its message again")
			}
		}
	}

	if at == "begin" {
		return
	}
	out := post(start, "/sessions", map[string]any{"agent": "lab", "sessionId": "s", "input": "[{call: note, with: {text: " + long + "}}, {say: done}]"})
	require.Contains(t, out, `"statusCode":202`)
	if at == "start" {
		return
	}
	work()
	if at == "asked" {
		return
	}
	answer := map[string]any{"kind": "approval-response", "waitId": "w2-1", "approved": true, "editedInput": map[string]any{"text": long + "!"}}
	require.Contains(t, post(submit, "/sessions/none/submit", answer), `"statusCode":404`)
	if at == "refused" {
		return
	}
	require.Contains(t, post(submit, "/sessions/s/submit", answer), `"statusCode":200`)
	if at == "answer" {
		go work() // it does not come back
		<-called
		return
	}
	work()
	require.Equal(t, long+"!", <-called)
}
