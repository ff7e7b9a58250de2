//go:build pythontypes

package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/openai"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// pythonTypes is the variable that names the Python in which the SDKs are installed.
const pythonTypes = "ADJOURN_PYTHON_TYPES"

// listening is a server of a model that says one word to each request, and keeps its messages.
type listening struct {
	*httptest.Server
	heard json.RawMessage
}

func (l *listening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
	}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.heard = body.Messages
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"again"},"finish_reason":"stop"}]}`)
}

// asks is a turn that asks the model of the server, as an agent with a model does.
func (l *listening) asks(t *testing.T) turn {
	t.Helper()
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	env := map[string]string{"OPENAI_BASE_URL": l.URL + "/v1", "OPENAI_STREAM": "false"}
	model, err := openai.Open(t.Context(), "gpt-test", func(name string) string { return env[name] })
	require.NoError(t, err)
	return func(ctx context.Context, v agent.View) (agent.Reply, error) {
		reply, err := llm.Collect(model.Stream(ctx, llm.Request{Messages: v.Messages}), nil)
		return agent.Reply{Text: reply.Message.Text()}, err
	}
}

// cancelledAt are the four places where a task may be cancelled (docs/design/README.md): each
// brings a session to its end by a signal of a kind. hear is the turn after it.
var cancelledAt = map[string]func(t *testing.T, hear turn) *world{
	"before the model call": func(t *testing.T, hear turn) *world {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {says("bye")}, "more": {hear}}))
		w.start(w.process(), "go")
		w.signal(journal.SignalCancel)
		require.NoError(t, w.process().settle())
		return w
	},
	"while the model streams": func(t *testing.T, hear turn) *world {
		made := newEffects()
		var w *world
		speaks := func(ctx context.Context, _ agent.View) (agent.Reply, error) {
			w.signal(journal.SignalCancel)
			<-ctx.Done()
			return agent.Reply{Text: "half a sentence"}, nil
		}
		w = newWorld(t, made, helper(made, script{"go": {speaks}, "more": {hear}}))
		p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Millisecond })
		w.start(p, "go")
		require.NoError(t, p.work())
		return w
	},
	"after a reply and before its tools": func(t *testing.T, hear turn) *world {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "line", `{"text":"2"}`)}, "more": {hear}}))
		p := w.fusedProcess(&fuse{at: 5}, true, 1)
		w.start(p, "go")
		require.ErrorIs(t, p.work(), errDied)
		require.Equal(t, session.KindReplied, w.session().Newest.Kind)
		w.signal(journal.SignalCancel)
		require.NoError(t, w.process().settle())
		require.Empty(t, made.all())
		return w
	},
	"between tools": func(t *testing.T, hear turn) *world {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "line", `{"text":"2"}`, "deploy", `{"text":"3"}`)}, "more": {hear}}))
		w.cfg.ToolsAtOnce = 1 // one has run when the worker dies
		p := w.fusedProcess(&fuse{at: 7}, true, 1)
		w.start(p, "go")
		require.ErrorIs(t, p.work(), errDied)
		w.signal(journal.SignalCancel)
		require.NoError(t, w.process().settle())
		require.NotEmpty(t, made.all())
		return w
	},
}

// What the next turn sends to the model after a task was cancelled is what the official Python SDKs
// of OpenAI and Anthropic take, and every call in it has one result.
func TestPythonTypes(t *testing.T) {
	t.Parallel()
	python := os.Getenv(pythonTypes)
	require.NotEmpty(t, python, "make test-python-types sets %s", pythonTypes)
	heard := map[string]json.RawMessage{}
	for name, cancel := range cancelledAt {
		server := &listening{}
		w := cancel(t, server.asks(t))
		require.Equal(t, session.StatusCancelled, w.session().Status, name)
		valid(t, w.session())
		w.run(w.process(), "more")
		require.Equal(t, session.StatusCompleted, w.session().Status, name)
		require.NotEmpty(t, server.heard, name)
		heard[name] = server.heard
	}
	raw, err := json.Marshal(heard)
	require.NoError(t, err)
	check := exec.CommandContext(t.Context(), python, "../../tools/python-types/check.py")
	check.Stdin = bytes.NewReader(raw)
	said, err := check.CombinedOutput()
	require.NoError(t, err, "%s\n%s", said, raw)
	require.Contains(t, string(said), "4 lists of messages are checked")
}
