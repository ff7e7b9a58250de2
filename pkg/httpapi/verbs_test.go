package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// bubble is a world on the clock of the bubble it is in.
func bubble(t *testing.T, changes ...change) *world {
	t.Helper()
	return newWorld(t, append(changes, change{
		runtime: func(cfg *runtime.Config) { cfg.Now = time.Now }, api: func(cfg *httpapi.Config) { cfg.Now = time.Now },
	})...)
}

// begin starts a session of ann's and has it worked on, later.
func (w *world) begin(id, input string) session.Key {
	w.Helper()
	key := session.Key{Tenant: "acme", ID: id}
	out := w.send(ann, http.MethodPost, "/sessions", fmt.Sprintf(`{"agent":"desk","sessionId":%q,"input":%q}`, id, input))
	require.Equal(w, http.StatusAccepted, out.Code, out.Body.String())
	return key
}

func (w *world) driveAfter(d time.Duration, key session.Key) {
	time.AfterFunc(d, func() { _ = w.Drive(context.Background(), key, w.queue.Only(key)) })
}

func TestPreferWait(t *testing.T) {
	t.Parallel()
	const post = http.MethodPost
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := bubble(t)
			body := `{"agent":"desk","sessionId":"a","input":"slow deploy"}`
			began := time.Now()
			out := w.send(ann, post, "/sessions", body, client.HeaderPrefer, "respond-async, wait=5", client.HeaderIdempotencyKey, "k")
			started := answer[client.Started](w, http.StatusAccepted, out)
			require.Equal(t, "wait=5", out.Header().Get(client.HeaderPreferenceApplied))
			require.Equal(t, "/sessions/a", out.Header().Get("Location"))
			require.Equal(t, 5*time.Second, time.Since(began))
			require.Equal(t, session.StatusRunning, started.Session.Status)

			w.driveAfter(time.Second, session.Key{Tenant: "acme", ID: "a"})
			out = w.send(ann, post, "/sessions", body, client.HeaderPrefer, "wait=15", client.HeaderIdempotencyKey, "k")
			started = answer[client.Started](w, http.StatusOK, out)
			require.Equal(t, "true", out.Header().Get(client.HeaderIdempotencyReplayed))
			require.True(t, started.Replayed)
			require.Equal(t, session.OutcomePaused, started.Session.Outcome)
			require.Less(t, time.Since(began), 18*time.Second)
		})
	})
	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := bubble(t)
			key := w.start("a", "locate")
			began := time.Now()
			w.driveAfter(2*time.Second, key)
			out := w.send(ann, post, "/sessions/a/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":{"city":"Bern"}}`, client.HeaderPrefer, `wait="19"`)
			submitted := answer[client.Submitted](w, http.StatusOK, out)
			require.Equal(t, client.ContinuationResumed, submitted.Continuation)
			require.Equal(t, "wait=19", out.Header().Get(client.HeaderPreferenceApplied))
			require.Equal(t, session.OutcomeCompleted, submitted.Session.Outcome)
			require.Less(t, time.Since(began), 4*time.Second)
			require.Equal(t, session.Answer{
				Wait: "w2-1", Kind: session.AnswerClientTool, ToolCallID: "c2-1", Result: json.RawMessage(`{"city":"Bern"}`),
				Who: "ann", From: "test", When: submitted.Answer.When, Digest: journal.Digest([]byte(`{"text":"<v1> & more"}`)),
			}, submitted.Answer)

			// held, then told to go on: the session looks as it did until its worker comes
			key = w.start("b", "locate")
			held := answer[client.Submitted](w, http.StatusOK, w.send(ann, post, "/sessions/b/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":null,"autoResume":false}`))
			require.Equal(t, client.ContinuationStored, held.Continuation)
			require.True(t, held.Session.CanResume)
			w.driveAfter(2*time.Second, key)
			resumed := answer[client.Resumed](w, http.StatusOK, w.send(ann, post, "/sessions/b/resume", "", client.HeaderPrefer, "wait=10"))
			require.EqualValues(t, 2, resumed.After)
			require.Equal(t, session.OutcomeCompleted, resumed.Session.Outcome)

			key = w.start("c", "two slow")
			decide := `{"decisions":{"approve":["w2-1","w2-2"]}}`
			w.driveAfter(time.Second, key)
			resumed = answer[client.Resumed](w, http.StatusAccepted, w.send(ann, post, "/sessions/c/resume", decide, client.HeaderPrefer, "wait=3"))
			require.Equal(t, session.OutcomeRunning, resumed.Session.Outcome)
			time.Sleep(20 * time.Second)
			resumed = answer[client.Resumed](w, http.StatusOK, w.send(carol, post, "/sessions/c/resume", decide))
			require.True(t, resumed.Repeated)
		})
	})
	t.Run("look", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := bubble(t, change{api: func(cfg *httpapi.Config) { cfg.MaxWait = 4 * time.Second }})
			w.begin("a", "deploy")
			for _, c := range []struct {
				prefer, applied string
				wait            time.Duration
			}{
				{"wait=2", "wait=2", 2 * time.Second},
				{"wait=3600", "wait=4", 4 * time.Second},
				{"wait=0", "wait=0", 0},
				{"Wait = 1 ; foo=bar", "wait=1", time.Second},
				{"wait=1, wait=3", "wait=1", time.Second},
				{"wait=-1", "", 0},
				{"wait=soon", "", 0},
				{"wait", "", 0},
				{"", "", 0},
				{"wait=99999999999999999999", "", 0},
				{"handling=strict", "", 0},
			} {
				began := time.Now()
				out := w.send(ann, http.MethodGet, "/sessions/a", "", client.HeaderPrefer, c.prefer)
				require.Equal(t, http.StatusOK, out.Code)
				require.Equal(t, c.applied, out.Header().Get(client.HeaderPreferenceApplied), c.prefer)
				require.Equal(t, c.wait, time.Since(began), c.prefer)
			}
			never := bubble(t, change{api: func(cfg *httpapi.Config) { cfg.MaxWait = -1 }})
			never.begin("a", "deploy")
			began := time.Now()
			out := never.send(ann, http.MethodGet, "/sessions/a", "", client.HeaderPrefer, "wait=9")
			require.Empty(t, out.Header().Get(client.HeaderPreferenceApplied))
			require.Equal(t, http.StatusOK, never.send(ann, http.MethodGet, "/sessions/a/entries?after=1&wait=9", "").Code)
			require.Zero(t, time.Since(began))
		})
	})
	t.Run("entries", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := bubble(t)
			key := w.begin("a", "slow deploy")
			began := time.Now()
			page := get[client.Entries](w, ann, "/sessions/a/entries?after=1&wait=2")
			require.Equal(t, client.Entries{Items: []journal.Entry{}, After: 1, Status: session.StatusRunning}, page)
			require.Equal(t, 2*time.Second, time.Since(began))
			w.driveAfter(0, key)
			for page.After = 1; !page.Resting; {
				after := page.After
				page = get[client.Entries](w, ann, fmt.Sprintf("/sessions/a/entries?after=%d&wait=20", after))
				require.NotEmpty(t, page.Items)
				require.Equal(t, after+1, page.Items[0].Seq)
			}
			require.Less(t, time.Since(began), 14*time.Second)
			began = time.Now()
			page = get[client.Entries](w, ann, fmt.Sprintf("/sessions/a/entries?after=%d&wait=20", page.After))
			require.Empty(t, page.Items)
			require.True(t, page.Resting)
			require.Zero(t, time.Since(began))
			get[client.Entries](w, ann, fmt.Sprintf("/sessions/a/entries?after=%d&wait=3&stay=true", page.After))
			require.Equal(t, 3*time.Second, time.Since(began))
		})
	})
}

// TestGone: who hangs up while waiting is not answered, and nothing breaks.
func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bubble(t)
		w.begin("a", "deploy")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/sessions/a", nil)
		r.Header.Set("Authorization", "Bearer "+ann)
		r.Header.Set(client.HeaderPrefer, "wait=20")
		out := w.serve(r)
		require.Equal(t, http.StatusServiceUnavailable, out.Code)
		require.Equal(t, codes.RequestTimeout, problem(t, out).Code)
		require.Equal(t, "1", out.Header().Get("Retry-After"))
		require.NotContains(t, w.log.String(), "level=ERROR", "it is nobody's fault")

		// A start has been carried out by then, and says so.
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r = httptest.NewRequestWithContext(ctx, http.MethodPost, "/sessions", strings.NewReader(`{"agent":"desk","input":"deploy"}`))
		r.Header.Set("Authorization", "Bearer "+ann)
		r.Header.Set("Content-Type", client.MediaJSON)
		r.Header.Set(client.HeaderPrefer, "wait=20")
		started := answer[client.Started](w, http.StatusAccepted, w.serve(r))
		require.NotEmpty(t, started.SessionID)
		require.Nil(t, started.Session)
	})
}

// TestReplay: the same request at once from many, and again later, is one session.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"agent":"desk","input":"deploy"}`
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, replayed := map[string]bool{}, 0
	for range 16 {
		wg.Go(func() {
			out := w.send(ann, http.MethodPost, "/sessions", body, client.HeaderIdempotencyKey, "the,same,key")
			var started client.Started
			err := json.Unmarshal(out.Body.Bytes(), &started)
			mu.Lock()
			defer mu.Unlock()
			ids[started.SessionID] = err == nil && out.Code == http.StatusAccepted
			if out.Header().Get(client.HeaderIdempotencyReplayed) == "true" {
				replayed++
			}
		})
	}
	wg.Wait()
	require.Len(t, ids, 1)
	require.NotContains(t, ids, "")
	require.Equal(t, 15, replayed)
	require.Len(t, get[client.Sessions](w, ann, "/sessions").Items, 1)

	// The whole header is the key.
	for _, key := range []string{"the", "the,", "the,same", `"the,same,key"`, strings.Repeat("~", 255)} {
		out := w.send(ann, http.MethodPost, "/sessions", body, client.HeaderIdempotencyKey, key)
		require.Equal(t, http.StatusAccepted, out.Code, key)
		require.Empty(t, out.Header().Get(client.HeaderIdempotencyReplayed), key)
	}
	// After a day it is forgotten.
	w.passed.Add(int64(25 * time.Hour))
	out := w.send(ann, http.MethodPost, "/sessions", body, client.HeaderIdempotencyKey, "the,same")
	require.Equal(t, http.StatusAccepted, out.Code)
	require.Empty(t, out.Header().Get(client.HeaderIdempotencyReplayed))
}

// TestRecorded: every answer and every start says who and from where, as the
// authenticator did and not as the body may.
func TestRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("a", "two")
	pending := get[client.Session](w, ann, "/sessions/a").Pause.Pending
	for i, token := range []string{ann, carol} {
		body := fmt.Sprintf(`{"kind":"approval-response","waitId":%q,"approvalId":%q,"approved":true}`, pending[i].WaitID, pending[i].ApprovalID)
		answer[client.Submitted](w, http.StatusOK, w.send(token, http.MethodPost, "/sessions/a/submit", body))
	}
	waits := get[client.Waits](w, ann, "/sessions/a/waits")
	require.Equal(t, "ann", waits.Items[0].Answer.Who)
	require.Equal(t, "test", waits.Items[0].Answer.From)
	require.Equal(t, "carol", waits.Items[1].Answer.Who)
	require.Equal(t, "http 192.0.2.1", waits.Items[1].Answer.From, "the address, where the authenticator says nothing")
	require.Equal(t, "ann", get[client.Entries](w, ann, "/sessions/a/entries").Items[0].By)
}

// TestPages goes through every list with pages of one, and comes by everything once.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.start(fmt.Sprintf("s%d", i), "two")
	}
	w.start("a", "echo echo deploy")
	for _, target := range []string{"/sessions", "/waits", "/sessions/a/messages", "/sessions/a/runs", "/sessions/a/checkpoints", "/sessions/s1/waits"} {
		type page struct {
			Items  []json.RawMessage `json:"items"`
			Cursor string            `json:"cursor"`
		}
		all := get[page](w, ann, target)
		require.NotEmpty(t, all.Items, target)
		require.Empty(t, all.Cursor)
		var one []json.RawMessage
		for cursor := "first"; cursor != ""; {
			next := target + "?limit=1"
			if cursor != "first" {
				next += "&cursor=" + cursor
			}
			p := get[page](w, ann, next)
			require.Len(t, p.Items, 1, target)
			one, cursor = append(one, p.Items...), p.Cursor
		}
		require.Equal(t, all.Items, one, target)
	}
	var entries []journal.Entry
	for after, more := int64(0), true; more; {
		p := get[client.Entries](w, ann, fmt.Sprintf("/sessions/a/entries?limit=1&after=%d", after))
		entries, after, more = append(entries, p.Items...), p.After, p.More
		require.Equal(t, !more, p.Resting)
	}
	require.Equal(t, get[client.Entries](w, ann, "/sessions/a/entries").Items, entries)

	// A cursor behind the end, as after going back, is an empty page.
	require.Equal(t, client.Messages{Items: nil}.Cursor, get[client.Messages](w, ann, "/sessions/a/messages?cursor=bWVzc2FnZXM6OTk5").Cursor)
	require.JSONEq(t, `{"items":[]}`, w.send(ann, http.MethodGet, "/sessions/a/messages?cursor=bWVzc2FnZXM6OTk5", "").Body.String(), "[] and not null")
	w.begin("new", "echo")
	require.JSONEq(t, `{"items":[]}`, w.send(ann, http.MethodGet, "/sessions/new/waits", "").Body.String())
	require.JSONEq(t, `{"items":[]}`, w.send(ann, http.MethodGet, "/sessions?status=cancelled", "").Body.String())
}

// smallPages end where others have not begun.
var smallPages = change{api: func(cfg *httpapi.Config) { cfg.MaxPage = 30_000 }}

// TestLarge: pages end where an answer would be too large for Lambda, and one
// that holds a single item never does.
func TestLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, smallPages)
	large := strings.Repeat("x", 10_000) // and the reply says it again
	for turn := range 4 {
		body, err := json.Marshal(client.StartRequest{SessionID: "a", Agent: "desk", Input: client.Text(large)})
		require.NoError(t, err)
		out := w.send(ann, http.MethodPost, "/sessions", string(body))
		require.Equal(t, http.StatusAccepted, out.Code, turn)
		w.drive(session.Key{Tenant: "acme", ID: "a"})
	}
	var messages []json.RawMessage
	for cursor, pages := "", 0; ; pages++ {
		out := w.send(ann, http.MethodGet, "/sessions/a/messages?cursor="+cursor, "")
		require.Less(t, out.Body.Len(), 35_000)
		var p struct {
			Items  []json.RawMessage `json:"items"`
			Cursor string            `json:"cursor"`
		}
		require.NoError(t, json.Unmarshal(out.Body.Bytes(), &p))
		messages, cursor = append(messages, p.Items...), p.Cursor
		if cursor == "" {
			require.Greater(t, pages, 1)
			break
		}
	}
	require.Len(t, messages, 8)
	page := get[client.Entries](w, ann, "/sessions/a/entries")
	require.True(t, page.More)
	require.False(t, page.Resting)
	require.Equal(t, page.Items[len(page.Items)-1].Seq, page.After)
	require.Equal(t, page.Items[len(page.Items)-1].Status, page.Status)
}

// TestLargeInbox: the inbox is cut where an answer would be too large, too.
func TestLargeInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, smallPages)
	for i := range 4 {
		w.start(fmt.Sprintf("s%d", i), "big")
	}
	seen := map[string]bool{}
	for cursor, pages := "", 1; ; pages++ {
		page := get[client.Waits](w, ann, "/waits?cursor="+cursor)
		for _, item := range page.Items {
			seen[item.SessionID] = true
		}
		if cursor = page.Cursor; cursor == "" {
			require.Greater(t, pages, 1)
			break
		}
	}
	require.Len(t, seen, 4)
}

// TestOddResults: any JSON is a result, and the session goes on with it as it was.
func TestOddResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deep := strings.Repeat("[", 90) + "1" + strings.Repeat("]", 90)
	for i, result := range []string{
		`null`, `false`, `0`, `""`, `[]`, `{}`, `1e999`, `-0.0`, `123456789012345678901234567890`, `"\u0000"`, `"\ud83d\ude00 <b>&"`, `{"":{"":1}}`, deep,
		`"` + strings.Repeat("x", 1<<17) + `"`,
	} {
		id := fmt.Sprintf("s%d", i)
		key := w.start(id, "locate")
		out := w.send(ann, http.MethodPost, "/sessions/"+id+"/submit", `{"kind":"client-tool-result","toolCallId":"c2-1","result":`+result+`}`)
		submitted := answer[client.Submitted](w, http.StatusOK, out)
		require.Equal(t, result, string(submitted.Answer.Result))
		w.drive(key)
		require.Equal(t, session.OutcomeCompleted, get[client.Session](w, ann, "/sessions/"+id).Outcome, result)
		var found string
		for cursor := "&"; cursor != ""; {
			page := get[client.Messages](w, ann, "/sessions/"+id+"/messages?limit=1&cursor="+strings.Trim(cursor, "&"))
			for _, m := range page.Items {
				for _, p := range m.Parts {
					if p.ToolResult != nil {
						found = string(p.ToolResult.Output)
					}
				}
			}
			cursor = page.Cursor
		}
		require.Equal(t, journal.Digest(json.RawMessage(result)), journal.Digest(json.RawMessage(found)))
	}
}
