package httpapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

func TestNew_fails_closed(t *testing.T) {
	t.Parallel()
	rt := newWorld(t).Runtime
	_, err := httpapi.New(httpapi.Config{Authenticate: authenticate})
	require.ErrorContains(t, err, "Runtime")
	_, err = httpapi.New(httpapi.Config{Runtime: rt})
	require.ErrorContains(t, err, "AllowUnauthenticated")
	_, err = httpapi.New(httpapi.Config{Runtime: rt, Authenticate: authenticate, Functions: []httpapi.Function{"sweep"}})
	require.ErrorContains(t, err, "sweep")

	open, err := httpapi.New(httpapi.Config{Runtime: rt, AllowUnauthenticated: true})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sessions", strings.NewReader(`{"agent":"desk","sessionId":"a","input":"deploy"}`))
	r.Header.Set("Content-Type", client.MediaJSON)
	open.ServeHTTP(out, r)
	require.Equal(t, http.StatusAccepted, out.Code)
	require.Len(t, out.Header().Get(client.HeaderRequestID), 26)
	entries, err := rt.Journal(t.Context(), session.Key{Tenant: session.DefaultTenant, ID: "a"})
	require.NoError(t, err)
	require.Equal(t, httpapi.Anonymous, entries[0].By)

	// Where there is an authenticator, it counts.
	both, err := httpapi.New(httpapi.Config{Runtime: rt, Authenticate: authenticate, AllowUnauthenticated: true})
	require.NoError(t, err)
	out = httptest.NewRecorder()
	both.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sessions", nil))
	require.Equal(t, http.StatusUnauthorized, out.Code)
}

// TestFunctions: a function serves its routes and no others, and every route is
// served by one.
func TestFunctions(t *testing.T) {
	t.Parallel()
	for _, function := range httpapi.Functions() {
		t.Run(string(function), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, change{api: func(cfg *httpapi.Config) { cfg.Functions = []httpapi.Function{function} }})
			for _, route := range httpapi.Routes() {
				out := w.send(ann, route.Method, strings.NewReplacer("{id}", "none", "{checkpoint}", someCheckpoint, "{wait}", someWait, "{permission}", someWait, "{token}", "x").Replace(route.Path), "")
				if out.Code == http.StatusOK || strings.HasPrefix(out.Header().Get("Content-Type"), "text/html") {
					require.Equal(t, function, route.Function)
					continue
				}
				code := problem(t, out).Code
				served := code != codes.RouteNotFound && code != codes.MethodNotAllowed
				require.Equal(t, function == route.Function, served, "%s %s: %s", route.Method, route.Path, code)
			}
			if function != httpapi.FunctionQuery {
				require.Equal(t, http.StatusNotFound, w.send("", http.MethodGet, "/openapi.json", "").Code, "public, and not here")
			}
		})
	}
	routes := httpapi.Routes()
	routes[0].Path = "/changed"
	require.NotEqual(t, routes, httpapi.Routes(), "the table is not handed out")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("a", "deploy")
	for _, out := range []*httptest.ResponseRecorder{
		w.send(ann, http.MethodGet, "/sessions/a", ""), w.send("", http.MethodGet, "/sessions/a", ""), w.send(ann, http.MethodGet, "/no", ""),
		w.send("", http.MethodGet, "/openapi.json", ""), w.send("panic", http.MethodGet, "/sessions", ""),
	} {
		require.Equal(t, "no-store", out.Header().Get("Cache-Control"))
		require.Equal(t, "nosniff", out.Header().Get("X-Content-Type-Options"))
		require.Contains(t, out.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, "no-referrer", out.Header().Get("Referrer-Policy"))
		require.NotEmpty(t, out.Header().Get(client.HeaderRequestID))
		require.Equal(t, fmt.Sprint(out.Body.Len()), out.Header().Get("Content-Length"))
		require.Empty(t, out.Header().Get("Access-Control-Allow-Origin"))
	}
	require.Equal(t, `Bearer realm="adjourn"`, w.send("", http.MethodGet, "/waits", "").Header().Get("WWW-Authenticate"))
	require.Equal(t, `Bearer realm="adjourn", error="invalid_token"`, w.send("who", http.MethodGet, "/waits", "").Header().Get("WWW-Authenticate"))
	require.JSONEq(t, `{"text":"<v1> & more"}`, string(get[client.Session](w, ann, "/sessions/a").Pause.Pending[0].Arguments), "what is approved is shown as it is")
	head := w.send(ann, http.MethodHead, "/sessions/a", "")
	require.Equal(t, http.StatusOK, head.Code)
	require.Zero(t, head.Body.Len())
	require.NotEqual(t, "0", head.Header().Get("Content-Length"))
}

// TestLog: a request is one line at debug, a fault one at error, and no secret is in them.
func TestLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(ann, http.MethodPost, "/sessions", `{"agent":"desk","input":"the words of a user"}`, client.HeaderIdempotencyKey, "the-key")
	w.send("who-is-this-token", http.MethodGet, "/sessions?cursor=the-cursor", "")
	require.NotContains(t, w.log.String(), "level=ERROR")
	require.Contains(t, w.log.String(), "status=202")
	require.Contains(t, w.log.String(), "status=401")
	for _, secret := range []string{"the words of a user", "the-key", "who-is-this-token", "the-cursor"} {
		require.NotContains(t, w.log.String(), secret)
	}

	out := w.send("panic", http.MethodGet, "/sessions", "")
	p := problem(t, out)
	require.Equal(t, http.StatusInternalServerError, out.Code)
	require.NotContains(t, out.Body.String(), "secret of the program")
	require.Equal(t, out.Header().Get(client.HeaderRequestID), p.RequestID)
	require.Contains(t, w.log.String(), "level=ERROR")
	require.Contains(t, w.log.String(), "secret of the program")
	require.Contains(t, w.log.String(), p.RequestID)

	out = w.send("broken", http.MethodGet, "/sessions", "")
	require.Equal(t, http.StatusInternalServerError, out.Code, "who cannot be asked about is nobody, and nobody's fault but ours")
	require.NotContains(t, out.Body.String(), "10.0.0.7")
	require.Contains(t, w.log.String(), "10.0.0.7")
}

// TestFrom: some gateways tell an address without a port.
func TestFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for addr, from := range map[string]string{"192.0.2.7:99": "http 192.0.2.7", "[::1]:5": "http ::1", "192.0.2.8": "http 192.0.2.8", "": "http "} {
		id := fmt.Sprintf("s%d", len(addr))
		w.start(id, "where")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sessions/"+id+"/submit", strings.NewReader(`{"kind":"message","message":"x"}`))
		r.Header.Set("Content-Type", client.MediaJSON)
		r.Header.Set("Authorization", "Bearer "+carol)
		r.RemoteAddr = addr
		require.Equal(t, from, answer[client.Submitted](w, http.StatusOK, w.serve(r)).Answer.From)
	}
}

// down is a store that does not answer its n-th read or write, and says why in
// words that are nobody's business.
type down struct {
	store.Store
	mu sync.Mutex
	at int
	n  int
}

const inside = "dial tcp 10.1.2.3:8000: /var/lib/secret.db"

func (d *down) on(s store.Store) { d.Store = s }

func (d *down) fails() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	if d.n != d.at {
		return nil
	}
	return fmt.Errorf("%w: %s", store.ErrUnavailable, inside)
}

func (d *down) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if err := d.fails(); err != nil {
		return store.Committed{}, err
	}
	return d.Store.Commit(ctx, p)
}

func (d *down) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if err := d.fails(); err != nil {
		return nil, err
	}
	return d.Store.Update(ctx, key, items...)
}

func (d *down) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	if err := d.fails(); err != nil {
		return store.Page{}, err
	}
	return d.Store.Find(ctx, p)
}

func (d *down) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if err := d.fails(); err != nil {
		return func(yield func(store.Item, error) bool) { yield(store.Item{}, err) }
	}
	return d.Store.Items(ctx, key, kind, id)
}

func (d *down) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	if err := d.fails(); err != nil {
		return func(yield func(journal.Entry, error) bool) { yield(journal.Entry{}, err) }
	}
	return d.Store.Entries(ctx, key, after)
}

// TestDown: whichever request to the store fails, the answer is a 503 that may be
// tried again, or what was done without where the session stands; nothing hangs,
// and nothing is told of what is inside.
func TestDown(t *testing.T) {
	t.Parallel()
	approve := func(w client.Wait) string {
		return fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approvalId":%q,"approved":true}`, w.WaitID, w.ApprovalID)
	}
	type request struct{ method, target, body string }
	requests := []request{{http.MethodGet, "/sessions/trip/entries?after=99", ""}}
	for _, id := range []string{"", "trip"} {
		for verb, target := range routesOf(http.MethodPost, id) {
			// What is empty here approves the wait.
			body, ok := map[string]string{"startSession": `{"agent":"desk","input":"echo"}`, "submitAnswer": "", "submitAnswers": `{"decisions":{"WAIT":{"action":"accept"}}}`, "resumeSession": `{"decisions":{"approve":["WAIT"]}}`, "sendMessage": `{"message":"x"}`, "interruptSession": `{}`, "cancelSession": `{}`, "abortSession": `{}`, "retrySession": `{}`, "forkSession": `{}`, "haltSteps": `{}`, "letStepsGo": `{}`, "makeLink": `{}`, "dismissWait": `{"reason":"x"}`, "extendWait": `{"deadline":"DEADLINE"}`, "delegateWait": `{"to":"ben"}`, "previewPermission": `{"for":"session"}`, "revokePermission": `{}`}[verb]
			require.True(t, ok, "with which body does %s change something?", verb)
			requests = append(requests, request{http.MethodPost, target, body})
		}
		for _, target := range routesOf(http.MethodPut, id) {
			requests = append(requests, request{http.MethodPut, target, fmt.Sprintf(`{"to":"ben","until":%q}`, epoch.Add(time.Hour).Format(time.RFC3339))})
		}
		for _, target := range routesOf(http.MethodDelete, id) {
			requests = append(requests, request{http.MethodDelete, target, ""})
		}
		for _, target := range routesOf(http.MethodGet, id) {
			requests = append(requests, request{http.MethodGet, target, ""})
		}
	}
	for _, c := range requests {
		t.Run(c.method+" "+c.target, func(t *testing.T) {
			t.Parallel()
			leftOut := false
			for at := 1; ; at++ {
				d := &down{}
				w := newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Store = d }})
				waits := "echo deploy"
				switch {
				case strings.HasSuffix(c.target, "/retry"):
					waits = "fail"
				case strings.HasSuffix(c.target, "/extend"):
					waits = "hurry"
				case strings.HasSuffix(c.target, "/messages") && c.method == http.MethodPost:
					waits = "where"
				}
				stands := strings.HasSuffix(c.target, "/permission") || strings.HasSuffix(c.target, "/revoke")
				if stands {
					w.spends("trip", strings.HasSuffix(c.target, "/revoke"))
				} else {
					w.start("trip", waits)
				}
				body := c.body
				if c.method == http.MethodPost && (body == "" || strings.Contains(body, "WAIT")) {
					wait := get[client.Session](w, ann, "/sessions/trip").Pause.Pending[0]
					body = cmp.Or(strings.Replace(body, "WAIT", wait.WaitID, 1), approve(wait))
				}
				target := c.target
				if strings.HasSuffix(target, someCheckpoint) {
					target = strings.Replace(target, someCheckpoint, get[client.Session](w, ann, "/sessions/trip").CheckpointID, 1)
				}
				if strings.Contains(target, someWait) {
					wait := get[client.Waits](w, ann, "/sessions/trip/waits").Items[0]
					target = strings.Replace(target, someWait, wait.WaitID, 1)
					if wait.Deadline != nil {
						body = strings.Replace(body, "DEADLINE", wait.Deadline.At.Add(time.Hour).Format(time.RFC3339), 1)
					}
				}
				d.mu.Lock()
				d.n, d.at = 0, at
				d.mu.Unlock()
				out := w.send(ann, c.method, target, body, client.HeaderIdempotencyKey, "k", client.HeaderPrefer, "wait=0")
				require.NotContains(t, out.Body.String(), "10.1.2.3")
				require.NotContains(t, out.Body.String(), "secret")
				if d.n < at {
					require.Less(t, out.Code, 300)
					require.Greater(t, at, 1)
					require.Equal(t, strings.HasPrefix(c.target, "/sessions") && !strings.HasSuffix(c.target, "/links") && !stands && c.method == http.MethodPost, leftOut)
					return
				}
				if out.Code < 300 && strings.Contains(out.Body.String(), `"session":{`) && out.Header().Get(client.HeaderIdempotencyReplayed) != "" {
					continue // it was done, and looking again found that out
				}
				if out.Code < 300 && c.method == http.MethodGet {
					require.Contains(t, []string{"/sessions/trip", "/sessions/trip/waits"}, c.target, "who reads a wait is recorded, or the read goes on without")
					continue
				}
				require.Contains(t, w.log.String(), inside)
				if out.Code < 300 {
					require.Equal(t, http.MethodPost, c.method)
					require.Contains(t, w.log.String(), "left out")
					leftOut = leftOut || !strings.Contains(out.Body.String(), `"session":{`)
					continue
				}
				require.Equal(t, "store_unavailable", problem(t, out).Code)
				require.Equal(t, http.StatusServiceUnavailable, out.Code)
				require.Equal(t, "1", out.Header().Get("Retry-After"))
				// Tried again, as it says, it is done, once.
				out = w.send(ann, c.method, target, body, client.HeaderIdempotencyKey, "k")
				require.Less(t, out.Code, 300, out.Body.String())
			}
		})
	}
}

// ill is a store that fails each search in one way.
type ill struct {
	store.Store
	err error
}

func (i *ill) on(s store.Store) { i.Store = s }

func (i *ill) Find(context.Context, store.FindParams) (store.Page, error) {
	return store.Page{}, fmt.Errorf("find %s: %w", inside, i.err)
}

// TestUnavailable: a 503 says what is wrong and who can mend it, and nothing of what is inside.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	for code, c := range map[runtime.Code]struct {
		err    error
		detail string
		retry  string
	}{
		runtime.CodeStoreUnavailable: {store.ErrUnavailable, "the store or the queue does not answer; try again in a moment", "1"},
		runtime.CodeStoreLocked:      {store.ErrLocked, "another process holds the server's data file; try again in a moment", "1"},
		runtime.CodeStoreGone:        {store.ErrGone, "the server's data file was deleted or replaced: its operator has to restart it", ""},
		runtime.CodeNotOurs:          {store.ErrNotOurs, "the server's store was not written by this program: its operator has to act", ""},
		runtime.CodeNewerNeeded:      {&journal.NeedsError{What: "entry 7", Word: "votes"}, `entry 7 needs "votes", which this program does not know: use a newer adjourn`, "1"},
	} {
		d := &ill{err: c.err}
		w := newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Store = d }})
		out := w.send(ann, http.MethodGet, "/sessions", "")
		require.Equal(t, http.StatusServiceUnavailable, out.Code)
		p := problem(t, out)
		require.Equal(t, string(code), p.Code)
		require.Equal(t, c.detail, p.Detail)
		require.NotEmpty(t, p.RequestID)
		require.Equal(t, c.retry, out.Header().Get("Retry-After"), code)
		// To the program that the handler is part of all of it is told.
		d.err = fmt.Errorf("%w: %s", c.err, strings.Repeat("long ", 300))
		w = newWorld(t, change{runtime: func(cfg *runtime.Config) { cfg.Store = d }, api: func(cfg *httpapi.Config) { cfg.InProcess = true }})
		p = problem(t, w.send(ann, http.MethodGet, "/sessions", ""))
		require.Equal(t, string(code), p.Code)
		require.Equal(t, fmt.Sprintf("find %s: %v", inside, d.err), p.Detail)
		require.Empty(t, p.RequestID)
	}
}

// TestDeadline: a function that runs out of time says so, and hides nothing done.
func TestDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, errors.New("Lambda's time is over"))
	defer cancel()
	<-ctx.Done()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/sessions", nil)
	r.Header.Set("Authorization", "Bearer "+ann)
	out := w.serve(r)
	require.Equal(t, http.StatusServiceUnavailable, out.Code, out.Body.String())
	require.True(t, json.Valid(out.Body.Bytes()))
}
