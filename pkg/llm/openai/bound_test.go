package openai_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/openai"
)

// filler is a part of a text that goes on for ever.
var filler = strings.Repeat("x", 64<<10)

// endless sends begin, then more again and again until the client leaves, and counts
// the bytes.
func endless(sent *atomic.Int64, media, begin string, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		n, err := io.WriteString(w, begin)
		for sent.Add(int64(n)); err == nil; sent.Add(int64(n)) {
			n, err = io.WriteString(w, more)
		}
	}
}

// slack is what may lie between server and reader: buffers of both and of the kernel.
const slack = 16 << 20

// TestAnswersWithoutEnd: whatever a server sends without end, no more of it is read
// than a model can have said.
func TestAnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	const events, object = "text/event-stream", "application/json"
	call := func(function string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,` + function + `}]}}]}` + "\n\n"
	}
	for name, c := range map[string]struct {
		media, begin, more string
		whole              bool
		most               int64
	}{
		"text":                     {media: events, more: `data: {"choices":[{"index":0,"delta":{"content":"` + filler + `"}}]}` + "\n\n", most: 2 * llm.MaxReply},
		"reasoning":                {media: events, more: `data: {"choices":[{"index":0,"delta":{"reasoning":"` + filler + `"}}]}` + "\n\n", most: 2 * llm.MaxReply},
		"arguments":                {media: events, begin: call(`"function":{"name":"x"}`), more: call(`"function":{"arguments":"` + filler + `"}`), most: 2 * llm.MaxReply},
		"arguments before a name":  {media: events, more: call(`"function":{"arguments":"` + filler + `"}`), most: 2 * llm.MaxReply},
		"a name":                   {media: events, more: call(`"function":{"name":"` + filler + `"}`), most: 2 * llm.MaxReply},
		"calls under one index":    {media: events, begin: call(`"id":"0","function":{"name":"x"}`), more: call(`"id":"1","function":{"name":"x"}`) + call(`"id":"2","function":{"name":"x"}`), most: 1 << 20},
		"a line":                   {media: events, begin: "data: ", more: filler, most: 2 * llm.MaxReply},
		"an event of many lines":   {media: events, more: "data: " + filler + "\n", most: 2 * llm.MaxReply},
		"with lines almost empty":  {media: events, more: "data: " + filler + "\r\n\r\r\n", most: 2 * llm.MaxReply},
		"lines that mean nothing":  {media: events, more: "x: " + filler + "\n", most: 2 * llm.MaxReply},
		"one piece":                {media: object, begin: `{"choices":[{"index":0,"message":{"content":"`, more: filler, whole: true, most: 2 * llm.MaxReply},
		"one piece, not asked for": {media: object, begin: `{"choices":[{"index":0,"message":{"content":"`, more: filler, most: 64 << 10},
		"a page":                   {media: "text/html", more: filler, whole: true, most: 2 * llm.MaxReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			server := httptest.NewServer(endless(&sent, c.media, c.begin, c.more))
			m, err := openai.Open(t.Context(), "gpt-test", environment("OPENAI_BASE_URL", server.URL+"/v1", "OPENAI_API_KEY", secret, "OPENAI_STREAM", fmt.Sprint(!c.whole)))
			require.NoError(t, err)
			failure := failureOf(t, m)
			server.Close() // it has seen that the client left
			require.Equal(t, llm.ClassInvalid, failure.Class, failure)
			require.False(t, failure.Retryable())
			require.LessOrEqual(t, sent.Load(), c.most+slack)
		})
	}
}

// TestErrorsWithoutEnd: of an error message no more is read than the error repeats.
func TestErrorsWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"application/json", "text/event-stream", ""} {
		var sent atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(http.StatusTooManyRequests)
			endless(&sent, media, "slow down ", filler)(w, r)
		}))
		m, err := openai.Open(t.Context(), "gpt-test", environment("OPENAI_BASE_URL", server.URL+"/v1", "OPENAI_API_KEY", secret))
		require.NoError(t, err)
		failure := failureOf(t, m)
		server.Close()
		require.Equal(t, llm.ClassRateLimited, failure.Class)
		require.Contains(t, failure.Message, "slow down")
		require.Less(t, len(failure.Message), 4<<10)
		require.LessOrEqual(t, sent.Load(), int64(slack))
	}
}

// TestBombs: the bound counts the bytes after decompression.
func TestBombs(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"`)
	for range 1000 {
		_, _ = io.WriteString(w, filler)
	}
	_, _ = io.WriteString(w, `"}}]}`)
	require.NoError(t, w.Close())
	m := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}), "OPENAI_STREAM", "false")
	failure := failureOf(t, m)
	require.Equal(t, llm.ClassInvalid, failure.Class)
	require.ErrorIs(t, failure, llm.ErrTooLarge)
	require.Contains(t, failure.Message, "OPENAI_BASE_URL")
}

// TestLargeAnswers: an answer as large as a model may give is read, in one event or in
// one piece.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`\"`, llm.MaxReply/2)
	for _, m := range []llm.Model{
		open(t, sse(`{"choices":[{"index":0,"delta":{"content":"`+text+`"},"finish_reason":"stop"}]}`, "[DONE]")),
		open(t, body(200, `{"choices":[{"index":0,"message":{"content":"`+text+`"},"finish_reason":"stop"}]}`), "OPENAI_STREAM", "false"),
	} {
		require.Len(t, mustAsk(t, m).Message.Text(), llm.MaxReply/2)
	}
}

// TestRedirects: neither the key nor the conversation goes to the target of a redirect.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL + "/v1/chat/completions?token=t0ken", "/v2/elsewhere"} {
			for _, stream := range []string{"true", "false"} {
				m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(r.URL.Path, "/v2") {
						asked.Add(1)
					}
					http.Redirect(w, r, to, status)
				}), "OPENAI_STREAM", stream)
				failure := failureOf(t, m)
				require.Equal(t, llm.ClassInvalid, failure.Class)
				require.Contains(t, failure.Message, "redirects are not followed")
				require.NotContains(t, failure.Message, "t0ken")
			}
		}
	}
	require.Zero(t, asked.Load())
}

func TestHeadersWithoutEnd(t *testing.T) {
	t.Parallel()
	m := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), filler)
		}
	}))
	failureOf(t, m)
}
