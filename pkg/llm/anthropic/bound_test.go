package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

// filler is a part of a text that goes on for ever.
var filler = strings.Repeat("x", 64<<10)

// endless streams first, then more again and again until the client leaves, and counts
// the bytes.
func endless(sent *atomic.Int64, first, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n, err := io.WriteString(w, first)
		for sent.Add(int64(n)); err == nil; sent.Add(int64(n)) {
			n, err = io.WriteString(w, more)
		}
	}
}

// slack is what may lie between server and reader: buffers of both and of the kernel.
const slack = 16 << 20

// TestAnswersWithoutEnd: whatever a server sends without end, no more of it is read than a
// model can have said.
func TestAnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	thinks := events(begin, block(0, object{"type": "thinking", "thinking": "", "signature": ""}))
	calls := events(begin, block(0, object{"type": "tool_use", "id": "a", "name": "f", "input": object{}}))
	for name, c := range map[string]struct {
		first, more string
		most        int64
	}{
		"text":                   {half, events(delta(0, object{"type": "text_delta", "text": filler})), 2 * llm.MaxReply},
		"thinking":               {thinks, events(delta(0, object{"type": "thinking_delta", "thinking": filler})), 2 * llm.MaxReply},
		"signatures":             {thinks, events(delta(0, object{"type": "signature_delta", "signature": filler})), 2 * llm.MaxReply},
		"arguments":              {calls, events(delta(0, object{"type": "input_json_delta", "partial_json": filler})), 2 * llm.MaxReply},
		"redacted":               {events(begin), events(block(0, object{"type": "redacted_thinking", "data": filler}), blockEnd(0)), 2 * llm.MaxReply},
		"calls":                  {events(begin), events(block(0, object{"type": "tool_use", "id": "a", "name": "f", "input": object{}}), blockEnd(0)), 2 * llm.MaxReply},
		"a line":                 {"event: ping\ndata: ", filler, 2 * llm.MaxReply},
		"an event of many lines": {"event: ping\n", "data: " + filler + "\n", 2 * llm.MaxReply},
		"pings":                  {"", "event: ping\ndata: {\"x\":\"" + filler + "\"}\n\n", 128 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			server := httptest.NewServer(endless(&sent, c.first, c.more))
			m := openAt(t, server.URL)
			failure := failureOf(t, m)
			server.Close() // it has seen that the client left
			require.Equal(t, llm.ClassInvalid, failure.Class, failure)
			require.False(t, failure.Retryable())
			require.ErrorIs(t, failure, llm.ErrTooLarge)
			require.LessOrEqual(t, sent.Load(), c.most+slack)
		})
	}
}

// TestLarge: a reply of 300 MB is refused, and of it little was ever held.
func TestLarge(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(endless(&sent, half, events(delta(0, object{"type": "text_delta", "text": filler}))))
	defer server.Close()
	m := openAt(t, server.URL)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	failure := failureOf(t, m)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, failure, llm.ErrTooLarge)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(300<<20), "of all that was allocated, most was freed at once")
}

// TestErrorsWithoutEnd: of an error message no more is read than the error repeats.
func TestErrorsWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"application/json", "text/event-stream", ""} {
		var sent atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(http.StatusTooManyRequests)
			endless(&sent, "slow down ", filler)(w, r)
		}))
		failure := failureOf(t, openAt(t, server.URL))
		server.Close()
		require.Equal(t, llm.ClassRateLimited, failure.Class)
		require.Contains(t, failure.Message, "slow down")
		require.Less(t, len(failure.Message), 4<<10)
		require.LessOrEqual(t, sent.Load(), int64(slack))
	}
}

// TestLargeAnswers: an answer as large as a model may give is read, in one event.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`"`, llm.MaxReply-100)
	m := open(t, streams(streamedAtOnce(text)))
	require.Len(t, mustAsk(t, m).Message.Text(), len(text))
}

func streamedAtOnce(text string) string {
	return events(begin, block(0, object{"type": "text", "text": ""}), delta(0, object{"type": "text_delta", "text": text}), blockEnd(0), because("end_turn"), end)
}

// TestRedirects: neither the key nor the conversation goes to the target of a redirect.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL + "/v1/messages?token=t0ken", "/v2/elsewhere"} {
			m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/v2") {
					asked.Add(1)
				}
				http.Redirect(w, r, to, status)
			}))
			failure := failureOf(t, m)
			require.Equal(t, llm.ClassInvalid, failure.Class)
			require.Contains(t, failure.Message, "redirects are not followed; set ANTHROPIC_BASE_URL")
			require.NotContains(t, failure.Message, "t0ken")
		}
	}
	require.Zero(t, asked.Load())
}

// Errors are kept in journals, so they must not hold any part of the address that may
// be a secret.
func TestErrors_hide_secrets_of_the_address(t *testing.T) {
	t.Parallel()
	quoting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("no such page: %s (route %s, key %s)", r.URL.Path, secret, r.Header.Get("X-Api-Key")), http.StatusNotFound)
	}))
	t.Cleanup(quoting.Close)
	for name, address := range map[string]string{
		"quoted":       quoting.URL + "/" + secret,
		"key":          quoting.URL,
		"path":         "http://127.0.0.1:1/" + secret,
		"user":         "http://" + secret + "@127.0.0.1:1",
		"password":     "http://ada:" + secret + "@127.0.0.1:1",
		"escaped_path": "http://127.0.0.1:1/%20" + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, openAt(t, address))
			require.NotEmpty(t, failure.Message)
		})
	}
}
