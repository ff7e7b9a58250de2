package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestMain makes the codec's encoder and decoder before any bubble of synctest
// does: their channels would belong to that bubble.
func TestMain(m *testing.M) {
	e := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindStarted, Token: strings.Repeat("x", 4096)}
	raw, err := journal.Encode(&e)
	if err == nil {
		_, err = journal.Decode(raw)
	}
	if err != nil {
		panic(err)
	}
	m.Run()
}

// Tokens of the callers there are. Eve is of another tenant.
const (
	ann   = "ann"
	carol = "carol"
	eve   = "eve"
)

var callers = map[string]httpapi.Caller{
	ann:     {Tenant: "acme", Who: "ann", From: "test"},
	carol:   {Tenant: "acme", Who: "carol"},
	eve:     {Tenant: "rival", Who: "eve"},
	"odd":   {Tenant: "a/b", Who: "odd"},
	"ghost": {Tenant: "acme"},
}

func authenticate(r *http.Request) (httpapi.Caller, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch token {
	case "banned":
		return httpapi.Caller{}, fmt.Errorf("%w: banned", httpapi.ErrForbidden)
	case "broken":
		return httpapi.Caller{}, errors.New("the issuer at 10.0.0.7 does not answer")
	case "panic":
		panic("secret of the program")
	}
	caller, ok := callers[token]
	if !ok {
		return caller, fmt.Errorf("%w: send a token", httpapi.ErrUnauthenticated)
	}
	return caller, nil
}

// linksConfig is what links are made with here.
var linksConfig = httpapi.LinksConfig{
	Keys: "one:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1", 32))), URL: "https://adjourn.example", SignInURL: "https://sign.example/in",
}

// slackConfig is what requests of Slack are taken with here.
var slackConfig = httpapi.SlackConfig{SigningSecret: "8f742231b10e8888abcd99yyyzzz85a5", Tenant: "acme", People: `{"T1/U1":"ann","T1/U2":"bob"}`}

// world is the API on an embedded engine, with everything a test wants to reach.
type world struct {
	testing.TB
	*runtime.Runtime
	handler http.Handler
	store   store.Store
	queue   *sqlite.Queue
	sends   *sends
	passed  atomic.Int64
	ids     atomic.Int64
	log     bytes.Buffer
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (w *world) now() time.Time { return epoch.Add(time.Duration(w.passed.Load())) }

func (w *world) newID() string { return fmt.Sprintf("id%014d", w.ids.Add(1)) }

// sends counts what goes into the queue other than by a commit.
type sends struct {
	queue.Queue
	n atomic.Int64
}

func (s *sends) Send(ctx context.Context, wakes ...journal.Wake) error {
	s.n.Add(int64(len(wakes)))
	return s.Queue.Send(ctx, wakes...)
}

// change alters the wiring of a world.
type change struct {
	runtime func(*runtime.Config)
	api     func(*httpapi.Config)
}

func newWorld(t testing.TB, changes ...change) *world {
	t.Helper()
	w := &world{TB: t}
	cfg := runtime.Config{Owner: "test", Now: w.now, NewID: w.newID}
	links, err := httpapi.NewLinks(linksConfig)
	require.NoError(t, err)
	slack, err := httpapi.NewSlack(slackConfig)
	require.NoError(t, err)
	api := httpapi.Config{Links: links, Slack: slack, Authenticate: authenticate, NewID: w.newID, Now: w.now, Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, c := range changes {
		if c.runtime != nil {
			c.runtime(&cfg)
		}
		if c.api != nil {
			c.api(&api)
		}
	}
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: ":memory:", Now: cfg.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w.store, w.queue, w.sends = db.Store(), db.Queue(), &sends{Queue: db.Queue()}
	cfg.Queue = w.sends
	if cfg.Store == nil {
		cfg.Store = w.store
	}
	if late, ok := cfg.Store.(interface{ on(store.Store) }); ok {
		late.on(w.store)
	}
	if cfg.Registry == nil {
		cfg.Registry, err = agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "desk", Planner: script{}, Tools: tools()}, {Name: "other", Planner: script{}, Tools: []tool.Tool{pay, name, spend}}}})
		require.NoError(t, err)
	}
	w.Runtime, err = runtime.New(cfg)
	require.NoError(t, err)
	if api.Runtime == nil {
		api.Runtime = w.Runtime
	}
	w.handler, err = httpapi.New(api)
	require.NoError(t, err)
	return w
}

// script plans by the words of the newest user message, one word a reply.
type script struct{}

func (script) Plan(_ context.Context, v agent.View) (agent.Reply, error) {
	k, words := 0, []string{}
	for i, m := range slices.Backward(v.Messages) {
		if m.Role != llm.RoleUser {
			continue
		}
		words = strings.Fields(m.Text())
		for _, later := range v.Messages[i:] {
			if later.Role == llm.RoleAssistant {
				k++
			}
		}
		break
	}
	if k >= len(words) {
		return agent.Reply{Text: "done: " + strings.Join(words, " ")}, nil
	}
	call := func(name string, texts ...string) agent.Reply {
		var reply agent.Reply
		for _, text := range texts {
			reply.Calls = append(reply.Calls, agent.Call{Name: name, Arguments: json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))})
		}
		return reply
	}
	switch words[k] {
	case "deploy", "board", "hurry", "locate", "pick", "echo", "pay", "name", "spend":
		return call(words[k], "<v1> & more"), nil
	case "two":
		return call("deploy", "1", "2"), nil
	case "both":
		reply := call("deploy", "1")
		reply.Calls = append(reply.Calls, call("locate", "2").Calls...)
		return reply, nil
	case "big":
		return call("deploy", strings.Repeat("x", 10_000)), nil
	case "where":
		return agent.Reply{Text: "where?", NeedsInput: true}, nil
	case "fail":
		return agent.Reply{}, errors.New("no plan")
	case "slow":
		time.Sleep(10 * time.Second) // of the bubble it is in
		return call("echo", "slowly"), nil
	}
	return agent.Reply{Text: "done: " + strings.Join(words, " ")}, nil
}

type textIn struct {
	Text string `json:"text"`
}

// spend is a tool that takes standing permissions.
var spend = tool.Define(tool.Spec[textIn]{Name: "spend", Approve: tool.Always[textIn], Standing: &tool.Standing{}}, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
	return "spent " + in.Text, nil
})

// pay is a tool of which nobody knows whether it did its work.
var pay = tool.Define(tool.Spec[textIn]{Name: "pay", OnUnknown: session.UnknownAsk, Timeout: time.Millisecond}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
})

// name asks a question without choices.
var name = tool.Define(tool.Spec[textIn]{Name: "name"}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
	reply, err := c.Ask(ctx, tool.Question{ID: "name", Text: "What is your name?"})
	return reply.Text, err
})

func tools() []tool.Tool {
	did := func(_ context.Context, _ *tool.Call, in textIn) (string, error) { return "did " + in.Text, nil }
	return []tool.Tool{
		tool.Define(tool.Spec[textIn]{Name: "deploy", Approve: tool.Always[textIn]}, did),
		tool.Define(tool.Spec[textIn]{Name: "board", Approve: tool.Always[textIn], Who: []string{"carol"}}, did),
		tool.Define(tool.Spec[textIn]{Name: "hurry", Approve: tool.Always[textIn], Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny}}, did),
		tool.Define(tool.Spec[textIn]{Name: "echo", Effect: session.ReadOnly}, did),
		tool.DefineClient(tool.Spec[textIn]{Name: "locate"}),
		tool.Define(tool.Spec[textIn]{Name: "pick"}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
			reply, err := c.Ask(ctx, tool.Question{ID: "colour", Text: "Which?", Choices: []session.Choice{{ID: "red", Label: "Red"}, {ID: "blue"}}})
			if err != nil {
				return "", err
			}
			return reply.Selected[0], nil
		}),
	}
}

// send sends one request as a caller; "" is nobody.
func (w *world) send(token, method, target, body string, header ...string) *httptest.ResponseRecorder {
	w.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(w.Context(), method, target, reader)
	if body != "" {
		r.Header.Set("Content-Type", client.MediaJSON)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return w.serve(r)
}

func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	w.Helper()
	out := httptest.NewRecorder()
	w.handler.ServeHTTP(out, r)
	return out
}

// get reads an answer of status 200 into a value.
func get[T any](w *world, token, target string, header ...string) T {
	w.Helper()
	return answer[T](w, http.StatusOK, w.send(token, http.MethodGet, target, "", header...))
}

func answer[T any](w *world, status int, out *httptest.ResponseRecorder) T {
	w.Helper()
	require.Equal(w, status, out.Code, out.Body.String())
	require.Equal(w, client.MediaJSON, out.Header().Get("Content-Type"))
	var v T
	decoder := json.NewDecoder(out.Body)
	decoder.DisallowUnknownFields()
	require.NoError(w, decoder.Decode(&v))
	return v
}

// problem reads an answer that is an error.
func problem(t testing.TB, out *httptest.ResponseRecorder) client.Problem {
	t.Helper()
	require.Equal(t, client.MediaProblem, out.Header().Get("Content-Type"), out.Body.String())
	var p client.Problem
	decoder := json.NewDecoder(bytes.NewReader(out.Body.Bytes()))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&p))
	require.Equal(t, out.Code, p.Status)
	require.Equal(t, client.ProblemType+p.Code, p.Type)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

// start begins a session of ann's and drives it until it rests.
func (w *world) start(id, input string) session.Key {
	w.Helper()
	return w.startAs(ann, id, input)
}

func (w *world) startAs(token, id, input string) session.Key {
	w.Helper()
	key := session.Key{Tenant: callers[token].Tenant, ID: id}
	body, err := json.Marshal(client.StartRequest{SessionID: id, Agent: "desk", Input: client.Text(input)})
	require.NoError(w, err)
	out := w.send(token, http.MethodPost, "/sessions", string(body))
	require.Equal(w, http.StatusAccepted, out.Code, out.Body.String())
	w.drive(key)
	return key
}

// spends starts a session whose call waits that a standing permission may be given for, and gives one.
func (w *world) spends(id string, give bool) {
	w.Helper()
	key := session.Key{Tenant: callers[ann].Tenant, ID: id}
	require.Equal(w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions", fmt.Sprintf(`{"agent":"other","sessionId":%q,"input":"spend"}`, id)).Code)
	w.drive(key)
	if give {
		wait := get[client.Session](w, ann, "/sessions/"+id).Pause.Pending[0]
		out := w.send(ann, http.MethodPost, "/sessions/"+id+"/submit", fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approved":true,"standing":{"for":"session"}}`, wait.WaitID))
		require.Equal(w, http.StatusOK, out.Code, out.Body.String())
		w.drive(key)
	}
}

func (w *world) drive(key session.Key) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(w, w.Drive(ctx, key, w.queue.Only(key)))
}

// dump is everything that is stored, of both tenants, but what refusals leave: lines of audit.
func (w *world) dump() string {
	w.Helper()
	ctx := context.Background()
	var b strings.Builder
	write := func(v any) {
		raw, err := json.Marshal(v)
		require.NoError(w, err)
		fmt.Fprintf(&b, "%s\n", raw)
	}
	for _, tenant := range []string{"acme", "rival", session.DefaultTenant} {
		for item, err := range w.store.Items(ctx, session.Key{Tenant: tenant}, store.KindIdempotency, "") {
			require.NoError(w, err)
			write(item)
		}
		page, err := w.store.Find(ctx, store.FindParams{Kind: store.FindSessions, Tenant: tenant, Limit: 1000})
		require.NoError(w, err)
		for _, found := range page.Found {
			for e, err := range w.store.Entries(ctx, found.Key, 0) {
				require.NoError(w, err)
				write(e)
			}
			for _, kind := range []store.ItemKind{store.KindHead, store.KindWait, store.KindRun, store.KindTool, store.KindMail} {
				for item, err := range w.store.Items(ctx, found.Key, kind, "") {
					require.NoError(w, err)
					if item.Wait != nil { // the lines of its audit are not part of it
						item.Rev, item.Wait.Audit = 0, journal.AuditTip{}
						item.Wait.ViewedBy = nil
					}
					write(item)
				}
			}
		}
	}
	fmt.Fprintf(&b, "sent: %d\n", w.sends.n.Load())
	return b.String()
}

// someCheckpoint is the form of a checkpoint's id; there is no such checkpoint.
const someCheckpoint = "czEuMi5xODN2QVNORlo0bXJ6ZThC"

// someWait is the form of a wait's id; no session of these tests has one of so late an entry.
const someWait = "w99-1"

// routesOf are the paths of the routes of a method that are about one session, or about
// none, by operation; the session's id is filled in.
func routesOf(method, id string) map[string]string {
	paths := map[string]string{}
	for _, route := range httpapi.Routes() {
		path := strings.Replace(route.Path, "{id}", id, 1)
		if route.Method == method && route.Path != "/openapi.json" && route.Path != "/a/{token}" && route.Path != "/slack/interactions" && (path != route.Path) == (id != "") {
			paths[route.OperationID] = strings.NewReplacer("{checkpoint}", someCheckpoint, "{wait}", someWait, "{permission}", someWait).Replace(path)
		}
	}
	return paths
}
