package remote_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// transport is a server as a function.
type transport func(r *http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is what a server sends: pieces, each after a wait.
type answer struct {
	ctx    context.Context //nolint:containedctx // of the one request whose answer this is
	waits  []time.Duration
	closed bool
}

func (a *answer) Read(p []byte) (int, error) {
	if len(a.waits) == 0 {
		return 0, io.EOF
	}
	select {
	case <-a.ctx.Done():
		return 0, a.ctx.Err()
	case <-time.After(a.waits[0]):
		a.waits = a.waits[1:]
		return copy(p, "x"), nil
	}
}

func (a *answer) Close() error {
	a.closed = true
	return nil
}

func get(t *testing.T, ctx context.Context, server transport) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.org", nil)
	require.NoError(t, err)
	client := http.Client{Transport: remote.Bounded(server, "BASE_URL")}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	require.NoError(t, response.Body.Close())
	return string(text), err
}

// The time to the first byte is bounded, the time between bytes is the caller's matter.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header time.Duration
		waits  []time.Duration
		slow   bool
	}{
		"at_once":              {0, []time.Duration{0, 0}, false},
		"just_in_time":         {remote.Patience / 2, []time.Duration{remote.Patience/2 - time.Second, 0}, false},
		"header_too_late":      {remote.Patience + time.Second, nil, true},
		"first_byte_too_late":  {remote.Patience / 2, []time.Duration{remote.Patience}, true},
		"second_byte_far_away": {0, []time.Duration{time.Second, 5 * remote.Patience}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				text, err := get(t, t.Context(), func(r *http.Request) (*http.Response, error) {
					select {
					case <-r.Context().Done():
						return nil, r.Context().Err()
					case <-time.After(c.header):
					}
					return &http.Response{StatusCode: http.StatusOK, Body: &answer{ctx: r.Context(), waits: c.waits}}, nil
				})
				if !c.slow {
					require.NoError(t, err)
					require.Len(t, text, len(c.waits))
					return
				}
				var failure *llm.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, llm.ClassTimeout, failure.Class)
				require.Contains(t, failure.Message, "the server has sent nothing for 10m0s")
				require.Equal(t, remote.Patience, time.Since(begun))
			})
		})
	}
}

// A request that its caller gives up is no slow server.
func TestPatience_of_the_caller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := get(t, ctx, func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: &answer{ctx: r.Context(), waits: []time.Duration{time.Hour}}}, nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var failure *llm.Error
		require.NotErrorAs(t, err, &failure)
	})
}

// The end of a body ends its request and its timer.
func TestBounded_closes(t *testing.T) {
	t.Parallel()
	var ctx context.Context
	body := &answer{}
	_, err := get(t, t.Context(), func(r *http.Request) (*http.Response, error) {
		ctx, body.ctx = r.Context(), r.Context()
		return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
	})
	require.NoError(t, err)
	require.True(t, body.closed)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}

// An event is bounded, a stream of small events only as a whole, an answer in one piece
// and an error each by its own.
func TestBounded(t *testing.T) {
	t.Parallel()
	event := []byte("data: " + strings.Repeat("x", 64<<10) + "\r\n\r\n")
	for name, c := range map[string]struct {
		media  string
		status int
		text   []byte
		most   int64 // of an answer that is refused
		kept   int   // of an error
	}{
		"events":              {"text/event-stream", 200, bytes.Repeat(event, 500), 0, 0},
		"events_without_end":  {"text/event-stream; charset=utf-8", 200, bytes.Repeat(event, 2500), 128 << 20, 0},
		"an_event_too_large":  {"text/event-stream", 200, bytes.Repeat([]byte("data: x\n"), 3<<20), 2 * llm.MaxReply, 0},
		"almost_empty_lines":  {"text/event-stream", 200, bytes.Repeat([]byte("data: xxxxxxxx\r\n\r\r\n"), 1<<20), 2 * llm.MaxReply, 0},
		"one_piece":           {"application/json", 200, bytes.Repeat(event, 250), 0, 0},
		"one_piece_too_large": {"application/json", 200, bytes.Repeat(event, 300), 2 * llm.MaxReply, 0},
		"an_error":            {"text/event-stream", 500, event[:100], 0, 100},
		"a_long_error":        {"text/event-stream", 500, bytes.Repeat(event, 3), 0, remote.MaxError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := get(t, t.Context(), func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(bytes.NewReader(c.text)),
				}, nil
			})
			switch {
			case c.most > 0:
				require.ErrorIs(t, err, llm.ErrTooLarge)
				require.ErrorContains(t, err, "is BASE_URL right")
				require.LessOrEqual(t, int64(len(got)), c.most)
			case c.kept > 0:
				require.NoError(t, err)
				require.Equal(t, string(c.text[:c.kept]), got)
			default:
				require.NoError(t, err)
				require.Len(t, got, len(c.text))
			}
		})
	}
}

func TestClient_bounds_headers(t *testing.T) {
	t.Parallel()
	require.Positive(t, remote.MaxHeader(remote.Client("BASE_URL")))
}
