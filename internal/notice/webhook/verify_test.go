//go:build node

package webhook

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSend_is_verified: what is sent is taken by the libraries of Standard Webhooks and of Svix, and
// what was changed on the way is not.
func TestSend_is_verified(t *testing.T) {
	t.Parallel()
	type request struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	var sent request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = request{Secret: secret, Body: string(body), Headers: map[string]string{}}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			sent.Headers[name] = r.Header.Get(name)
		}
	}))
	t.Cleanup(server.Close)
	// The libraries refuse what is older than five minutes by the clock of this machine.
	_, err := channel(t, server.URL, func(cfg *Config) { cfg.Now = time.Now }).Send(t.Context(), message())
	require.NoError(t, err)

	changed := func(change func(*request)) request {
		other := sent
		other.Headers = map[string]string{}
		for name, value := range sent.Headers {
			other.Headers[name] = value
		}
		change(&other)
		return other
	}
	requests := []request{
		sent,
		changed(func(r *request) { r.Body += " " }),
		changed(func(r *request) { r.Headers["webhook-id"] += "x" }),
		changed(func(r *request) { r.Headers["webhook-timestamp"] = "1700000000" }),
		changed(func(r *request) { r.Secret = "whsec_" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }),
	}
	cmd := exec.CommandContext(t.Context(), "node", "verify.mjs")
	cmd.Dir = "testdata/verify"
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), "make test-webhooks installs what it needs")
	to, from := json.NewEncoder(in), bufio.NewScanner(out)
	for i, r := range requests {
		require.NoError(t, to.Encode(r))
		require.True(t, from.Scan(), "make test-webhooks installs what it needs")
		said := map[string]string{}
		require.NoError(t, json.Unmarshal(from.Bytes(), &said))
		require.Len(t, said, 2)
		for library, word := range said {
			if i == 0 {
				require.Equal(t, "test", word, library)
			} else {
				require.Contains(t, word, "refused", "%s, request %d", library, i)
			}
		}
	}
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}
