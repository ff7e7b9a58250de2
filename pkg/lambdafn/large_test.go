package lambdafn_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// gateway stands where API Gateway does: it makes events of requests, and answers of responses.
func gateway(t *testing.T, h lambdafn.Handler) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := request(r.Method, r.URL.Path)
		e.RawQueryString = r.URL.RawQuery
		for name := range r.Header {
			e.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		raw, err := json.Marshal(e)
		var response events.APIGatewayV2HTTPResponse
		if err == nil {
			raw, err = h.Invoke(r.Context(), raw)
		}
		if err == nil && len(raw) > 6<<20 {
			err = fmt.Errorf("%d bytes: Lambda takes no more than 6 MB", len(raw))
		}
		if err == nil {
			err = json.Unmarshal(raw, &response)
		}
		body := []byte(response.Body)
		if err == nil && response.IsBase64Encoded {
			body, err = base64.StdEncoding.DecodeString(response.Body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		for name, value := range response.Headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body) // who hung up needs no answer
	}))
	t.Cleanup(server.Close)
	return server.URL
}

type textIn struct {
	Like string `json:"like"`
	Size int    `json:"size"`
}

// text answers with made-up text, and waits for nobody.
func text(_ context.Context, _ *tool.Call, in textIn) (string, error) {
	if in.Like != "noise" {
		return strings.Repeat("<b>", in.Size/3), nil
	}
	noise, err := io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{}), int64(in.Size/4*3)))
	return base64.StdEncoding.EncodeToString(noise), err
}

// TestLarge: a session is read to its end however large what it holds is, and
// whether or not that can be made small.
func TestLarge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with       string
		compressed bool
		whole      bool
	}{
		"echo":            {`{call: echo, with: {size: 10000000}}`, true, false},
		"noise":           {`{call: text, with: {like: noise, size: 6400000}}`, true, false},
		"markup":          {`{call: text, with: {like: markup, size: 1800000}}`, true, true},
		"markup, no gzip": {`{call: text, with: {like: markup, size: 1800000}}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tool.Define(tool.Spec[textIn]{Name: "text", Description: "Make up text.", Effect: session.ReadOnly}, text))
			w.cfg.AllowUnauthenticated = true
			wakes := []journal.Wake{w.start("- " + c.with + "\n- say: done")}
			key := wakes[0].Key()
			for h := step(t, w); len(wakes) > 0; wakes = w.queue.takeSent() {
				require.Empty(t, deliver(t, h, wakeMessage(t, "m", wakes[0])))
			}
			require.Equal(t, session.OutcomeCompleted, w.stands(key).Outcome)
			q, err := lambdafn.NewQuery(w.cfg)
			adjourn, err := client.New(client.Config{
				URL: gateway(t, need(t, q, err)), Timeout: 5 * time.Minute, // the race detector takes its time over megabytes
				HTTP: &http.Client{Transport: &http.Transport{DisableCompression: !c.compressed}},
			})
			require.NoError(t, err)
			t.Cleanup(adjourn.Close)
			read(t, adjourn, key.ID, c.whole)
		})
	}
}

// read reads a session in every way there is.
func read(t *testing.T, c *client.Client, id string, whole bool) {
	t.Helper()
	var kinds []session.Kind
	for entry, err := range c.Follow(t.Context(), id, 0) {
		require.NoError(t, err)
		kinds = append(kinds, entry.Kind)
	}
	require.Equal(t, session.KindCompleted, kinds[len(kinds)-1])
	var results []llm.ToolResult
	for m, err := range c.AllMessages(t.Context(), id) {
		require.NoError(t, err)
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				results = append(results, *p.ToolResult)
			}
		}
	}
	require.Len(t, results, 1)
	require.Equal(t, llm.ResultSuccess, results[0].Status)
	require.Equal(t, whole, len(results[0].Output) > 1<<20)

	left := map[string]client.LeftOut{}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		page, err := c.Messages(t.Context(), id, client.Page{Cursor: cursor})
		require.NoError(t, err)
		for _, l := range page.LeftOut {
			left[l.At] = l
		}
		cursor = page.Cursor
	}
	if whole {
		require.Empty(t, left)
		return
	}
	require.Len(t, left, 1)
	for _, l := range left {
		require.Equal(t, "/items/0/parts/0/toolResult/output", l.At)
		require.Greater(t, l.Bytes, int64(6_000_000))
		require.Equal(t, fmt.Sprintf(`"[left out: %d bytes, digest %s]"`, l.Bytes, l.Digest), string(results[0].Output))
	}
}

// TestAcceptEncoding: who does not take gzip gets none.
func TestAcceptEncoding(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("<b>", 1<<20)
	h, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	for accepted, want := range map[string]string{
		"gzip": "gzip", "deflate, GZIP;q=0.5": "gzip", "*": "gzip", "*;q=0, gzip": "gzip", "br, gzip ; q=1.0": "gzip",
		"": "", "identity": "", "gzip;q=0": "", "gzip; q=0.000, *": "", "gzipped": "", "gzip;q=x": "", "*;q=0": "",
	} {
		e := request("GET", "/")
		e.Headers["accept-encoding"] = accepted
		got := ask(t, h, e)
		require.Equal(t, want, got.Headers["Content-Encoding"], accepted)
		require.Equal(t, "Accept-Encoding", got.Headers["Vary"], accepted)
		require.Equal(t, want != "", got.IsBase64Encoded, accepted)
		if want == "" {
			require.Equal(t, body, got.Body)
		}
	}
	body = "small"
	e := request("GET", "/")
	e.Headers["accept-encoding"] = "gzip"
	require.Equal(t, "small", ask(t, h, e).Body)
}
