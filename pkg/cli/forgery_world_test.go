package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

const slackSecret = "8f742231b10e8888abcd99yyyzzz85a5"

// forgeryWorld is one data file with every door to it: the program's own Go API, its commands, a server, and a
// second program whose agents have changed. Nothing works on sessions by itself.
type forgeryWorld struct {
	testing.TB
	data  string
	env   map[string]string
	ahead atomic.Int64
	store store.Store
	// programs are that of now, and a later one.
	programs [2]*embedded.App
	urls     [2]string
	handlers [2]http.Handler
	keys     map[string]string
	links    grant.Keys

	mu  sync.Mutex
	ran map[string]int
}

func (w *forgeryWorld) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func newForgeryWorld(t testing.TB) *forgeryWorld {
	t.Helper()
	w := &forgeryWorld{TB: t, data: filepath.Join(t.TempDir(), "a.db"), ran: map[string]int{}, keys: map[string]string{}}
	people := w.data + ".people"
	require.NoError(t, os.WriteFile(people, []byte(`{"T1/UADA":"ada","T1/UBOB":"bob"}`), 0o600))
	w.env = map[string]string{
		configHome: os.Getenv(configHome), "ADJOURN_NOTICES": ",", // nothing is sent
		"ADJOURN_SLACK_TOKEN": "xoxb-1", "ADJOURN_SLACK_CHANNEL": "C1", "ADJOURN_SLACK_SIGNING_SECRET": slackSecret, "ADJOURN_SLACK_PEOPLE": people,
		"ADJOURN_GRANT_KEYS": grantKeys("one", "1"), "ADJOURN_PUBLIC_URL": "https://adjourn.example",
	}
	// A command makes the data file, so that commands know it.
	require.Equal(t, "10", w.command(claim{who: "ada"}, false, "run", "--agent", "clerk", "--session", "first", "deploy"))
	var err error
	w.links, err = grant.ParseKeys(w.env["ADJOURN_GRANT_KEYS"])
	require.NoError(t, err)
	for i := range w.programs {
		w.programs[i] = w.program(i)
	}
	for _, who := range []string{"ada", "bob"} {
		w.keys[who], err = httpapi.NewAPIKey(dev.KeysBeside(w.data).File, who, "")
		require.NoError(t, err)
	}
	return w
}

func grantKeys(id, of string) string {
	return id + ":" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(of, grant.MinKey)))
}

// program opens a version of the program, and serves its requests.
func (w *forgeryWorld) program(version int) *embedded.App {
	w.Helper()
	env := maps.Clone(w.env)
	a, err := embedded.Open(w.Context(), embedded.Config{
		Registry: w.registry(version), Data: w.data, Env: func(name string) string { return env[name] }, Now: w.now,
		Decorate: func(p app.Parts) app.Parts { w.store = p.Store; return p },
	})
	require.NoError(w, err)
	server := httptest.NewUnstartedServer(nil)
	served, err := dev.Listen(w.Context(), dev.Config{App: a, Listener: server.Listener, Keys: dev.KeysBeside(w.data), Who: "ada", Now: w.now})
	require.NoError(w, err)
	server.Config.Handler, w.handlers[version] = served.Handler(), served.Handler()
	server.Start()
	w.Cleanup(func() {
		server.Close()
		require.NoError(w, a.Close())
	})
	w.urls[version] = server.URL
	return a
}

// registry has one agent that follows a script, and the same where a message abandons what waits. What a tool's
// function does is counted by session.
func (w *forgeryWorld) registry(version int) func() (*agent.Registry, error) {
	return func() (*agent.Registry, error) {
		run := func(_ context.Context, c *tool.Call, _ noIn) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ran[c.Session().ID]++
			return "done", nil
		}
		spec := func(name string) tool.Spec[noIn] { return tool.Spec[noIn]{Name: name, Approve: tool.Always[noIn]} }
		board, others, hurry := spec("board"), spec("others"), spec("hurry")
		board.Who = []string{"bob"}
		others.NotRequester = true
		hurry.Expiry = &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny}
		clerk := agent.Agent{
			Name: "clerk", System: fmt.Sprintf("version %d", version), Planner: agent.PlannerFunc(planWords),
			Tools: []tool.Tool{tool.Define(spec("deploy"), run), tool.Define(board, run), tool.Define(others, run), tool.Define(hurry, run)},
		}
		mild := clerk
		mild.Name, mild.Policy.AbandonOnMessage = "mild", true
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{clerk, mild}})
	}
}

// planWords calls the tool that the first message names next, one after the other.
func planWords(_ context.Context, v agent.View) (agent.Reply, error) {
	words, replies := strings.Fields(v.Messages[0].Text()), 0
	for _, m := range v.Messages {
		if m.Role == llm.RoleAssistant {
			replies++
		}
	}
	if replies >= len(words) {
		return agent.Reply{Text: "done"}, nil
	}
	return agent.Reply{Calls: []agent.Call{{Name: words[replies], Arguments: json.RawMessage(`{}`)}}}, nil
}

func keyOf(id string) session.Key { return session.Key{Tenant: session.DefaultTenant, ID: id} }

// start begins a session of ada's that waits, and returns what approves that.
func (w *forgeryWorld) start(agentName, id, script string) claim {
	w.Helper()
	_, err := w.programs[0].Runtime.Start(w.Context(), runtime.StartParams{Key: keyOf(id), Agent: agentName, Input: llm.TextParts(script), Caller: runtime.Caller{Who: "ada", From: "test"}})
	require.NoError(w, err)
	w.drive(0, id)
	return w.good(id)
}

// good is what approves the open wait of a session.
func (w *forgeryWorld) good(id string) claim {
	w.Helper()
	for _, record := range w.waits(id) {
		if record.State == session.WaitOpen {
			return claim{session: id, wait: record.Wait.ID, nonce: record.Wait.Nonce, digest: record.Wait.Digest, said: `true`, who: "ada"}
		}
	}
	w.Fatalf("%s waits for nothing", id)
	return claim{}
}

func (w *forgeryWorld) drive(version int, id string) {
	w.Helper()
	a := w.programs[version]
	require.NoError(w, a.Runtime.Drive(w.Context(), keyOf(id), a.Only(keyOf(id))))
}

// goOn drives a session whose waits are all answered, also where the answers are only stored.
func (w *forgeryWorld) goOn(version int, id string) {
	w.Helper()
	s, err := w.programs[version].Runtime.Session(w.Context(), keyOf(id))
	require.NoError(w, err)
	open := slices.ContainsFunc(w.waits(id), func(r journal.WaitRecord) bool { return r.State == session.WaitOpen })
	if s.Status == session.StatusSuspended && !open {
		_, err = w.programs[version].Runtime.Resume(w.Context(), runtime.ResumeParams{Key: keyOf(id), Mode: runtime.ResumeContinue, Caller: runtime.Caller{Who: "ada"}})
		require.NoError(w, err)
	}
	w.drive(version, id)
}

// waits are the records of a session's waits; none of one that is gone.
func (w *forgeryWorld) waits(id string) []journal.WaitRecord {
	w.Helper()
	records, err := w.programs[0].Runtime.Waits(w.Context(), keyOf(id))
	if err != nil {
		require.Equal(w, runtime.CodeSessionNotFound, runtime.AsError(err).Code)
	}
	return records
}

// stands is what a session's waits are, but for their audit, and how often its tools ran.
func (w *forgeryWorld) stands(ids ...string) string {
	w.Helper()
	var b strings.Builder
	for _, id := range ids {
		for _, record := range w.waits(id) {
			record.Audit, record.ViewedBy, record.Unrecorded = journal.AuditTip{}, nil, 0
			raw, err := json.Marshal(record)
			require.NoError(w, err)
			fmt.Fprintf(&b, "%s %s\n", id, raw)
		}
		fmt.Fprintf(&b, "%s ran %d\n", id, w.runs(id))
	}
	return b.String()
}

func (w *forgeryWorld) runs(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[id]
}

// refusals are the codes of the refused answers that the audit of a session has.
func (w *forgeryWorld) refusals(id string) (codes []string) {
	w.Helper()
	lines, err := w.programs[0].Runtime.Audit(w.Context(), keyOf(id))
	if err != nil {
		return nil // the session is gone
	}
	for _, line := range lines {
		if line.Kind == session.AuditRefused {
			var data struct{ Code string }
			require.NoError(w, json.Unmarshal(line.Data, &data))
			codes = append(codes, line.Wait+" "+data.Code)
		}
	}
	return codes
}

// send posts a body and returns the status with the code of the refusal.
func (w *forgeryWorld) send(c claim, path, media, body string, header http.Header) string {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.urls[c.version]+path, strings.NewReader(body))
	require.NoError(w, err)
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", media)
	out, err := http.DefaultClient.Do(r)
	require.NoError(w, err)
	defer func() { _ = out.Body.Close() }()
	var text bytes.Buffer
	_, err = text.ReadFrom(out.Body)
	require.NoError(w, err)
	var problem struct{ Code string }
	if strings.Contains(out.Header.Get("Content-Type"), "json") {
		_ = json.Unmarshal(text.Bytes(), &problem)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", out.StatusCode, problem.Code))
}

// post sends a JSON body with the key of who claims.
func (w *forgeryWorld) post(c claim, path, body string) string {
	w.Helper()
	return w.send(c, path, "application/json", body, http.Header{"Authorization": {"Bearer " + c.credential(w.keys[c.who])}})
}
