package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// FuzzHandler sends any request as ann, or as nobody. It is answered with JSON
// that is documented, never with a fault of ours, and never with anything of
// another tenant's; nobody learns and changes nothing.
func FuzzHandler(f *testing.F) {
	for _, e := range kept(f) {
		var header strings.Builder
		for name, value := range e.Request.Header {
			if name != "Authorization" {
				header.WriteString(name + ": " + value + "\r\n")
			}
		}
		f.Add(true, e.Request.Method, e.Request.Target, header.String(), []byte(e.Request.Body))
	}
	f.Add(false, "GET", "/sessions", "", []byte(nil))
	f.Add(true, "HEAD", "/sessions/trip", "Prefer: wait=9\r\n", []byte(nil))
	f.Add(true, "POST", "/sessions//..%2f", "Content-Type: application/json\r\n", []byte(`{"input":"x"}`))
	f.Add(true, "GET", "/sessions/theirs/entries?after=0&stay=true", "", []byte(nil))

	codes := map[string]bool{}
	for _, code := range document(f).Components.Schemas["Code"].Value.Enum {
		codes[code.(string)] = true
	}
	w := crowded(f, change{api: func(cfg *httpapi.Config) { cfg.Log = nil }})
	written := func() string {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/sessions/theirs/entries", nil)
		r.Header.Set("Authorization", "Bearer "+eve)
		out := httptest.NewRecorder()
		w.handler.ServeHTTP(out, r)
		return out.Body.String()
	}
	theirs := written()
	require.Contains(f, theirs, secret)
	var mu sync.Mutex
	f.Fuzz(func(t *testing.T, known bool, method, target, header string, body []byte) {
		if strings.Contains(target+header+string(body), secret) {
			return // ann says it herself
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + header + "\r\n")))
		if err != nil {
			return // a server refuses it before it reaches a handler
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Del("Authorization")
		if known {
			r.Header.Set("Authorization", "Bearer "+ann)
		}
		if r.Header.Get(client.HeaderPrefer) != "" {
			r.Header.Set(client.HeaderPrefer, "wait=0") // a fuzzer has no patience
		}
		if query := r.URL.Query(); query.Has("wait") {
			query.Set("wait", "0")
			r.URL.RawQuery = query.Encode()
		}
		mu.Lock()
		defer mu.Unlock()
		before := w.sends.n.Load()
		out := httptest.NewRecorder()
		w.handler.ServeHTTP(out, r)

		require.Less(t, out.Code, 500, out.Body.String())
		require.NotContains(t, out.Body.String(), secret)
		if r.Method == http.MethodHead {
			require.Zero(t, out.Body.Len())
			return
		}
		if strings.HasPrefix(r.URL.Path, "/a/") && strings.HasPrefix(out.Header().Get("Content-Type"), "text/html") {
			require.Equal(t, before, w.sends.n.Load(), "no token of anybody's is among these requests")
			return
		}
		require.True(t, json.Valid(out.Body.Bytes()), out.Body.String())
		if out.Code >= 300 {
			p := problem(t, out)
			require.True(t, codes[p.Code], p.Code)
			require.GreaterOrEqual(t, out.Code, 400)
			require.Less(t, len(p.Detail), 2000)
			require.Equal(t, before, w.sends.n.Load(), "what was refused sends nothing")
		}
		if !known && out.Code != http.StatusUnauthorized {
			require.Equal(t, "/openapi.json", r.URL.Path)
		}
		if out.Code == http.StatusOK || out.Code == http.StatusAccepted {
			require.Equal(t, theirs, written())
		}
	})
}
