package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

func problem(status int) answer {
	return says(status, `{"code": "store_unavailable", "detail": "busy"}`)
}

// repeatable are requests of every kind: each may be sent again when nobody knows what
// became of it, for what changes something has a key.
func repeatable(c *client.Client) map[string]func(context.Context) error {
	again := calls(c, "s-1")
	for name, p := range map[string]client.SubmitRequest{
		"approval":      {Kind: session.AnswerApproval, ApprovalID: "n"},
		"question":      {Kind: session.AnswerReply, WaitID: "w2-1", QuestionID: "q"},
		"client result": {Kind: session.AnswerClientTool, ToolCallID: "c2-1"},
		"message":       {Kind: session.AnswerMessage, Message: client.Text("x")},
		"verdict":       {Kind: session.AnswerVerdict, WaitID: "w2-1"},
	} {
		again["submit "+name] = submit(c, p)
	}
	for name, p := range map[string]client.ResumeRequest{
		"nothing":   {},
		"message":   {Message: client.Text("x")},
		"confirmed": {Confirmation: &client.Confirmation{}},
		"all":       {CheckpointID: "c", Decisions: &client.Decisions{ApproveAll: true}},
		"none":      {Decisions: &client.Decisions{RejectAll: true}},
		"waits":     {Decisions: &client.Decisions{Approve: []string{"w2-1"}, Reject: []string{"w2-2"}}},
	} {
		again["resume "+name] = resume(c, p)
	}
	return again
}

func submit(c *client.Client, answer client.SubmitRequest) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Submit(ctx, client.SubmitParams{SessionID: "s", Answer: answer})
		return err
	}
}

func resume(c *client.Client, r client.ResumeRequest) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Resume(ctx, client.ResumeParams{SessionID: "s", Request: r})
		return err
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	faults := map[string]answer{
		"429":           problem(429),
		"502":           problem(502),
		"503":           problem(503),
		"504":           says(504, ""),
		"no connection": refusesConnection,
		"broken":        breaks(errors.New("connection reset by peer")),
		"hangs":         hangs,
		"broken body":   brokenBody,
	}
	for name, fault := range faults {
		synctest.Test(t, func(t *testing.T) {
			for call, do := range repeatable(over(t, &script{answers: []answer{says(200, anything)}})) {
				require.NoError(t, do(t.Context()), call)
			}
			s, keys := &script{}, map[string]bool{}
			c := over(t, s)
			for call, do := range repeatable(c) {
				s.answers, s.requests, s.bodies = []answer{fault, fault, says(200, anything)}, nil, nil
				require.NoError(t, do(t.Context()), "%s: %s", name, call)
				require.Len(t, s.requests, 3, "%s: %s", name, call)
				require.Equal(t, s.bodies[0], s.bodies[2], "the same is sent again")
				key := s.requests[0].Header.Get(client.HeaderIdempotencyKey)
				require.Equal(t, key, s.requests[2].Header.Get(client.HeaderIdempotencyKey))
				require.Equal(t, s.requests[0].Method != http.MethodGet, key != "", call)
				require.False(t, key != "" && keys[key], "each request has its own")
				keys[key] = true
			}
		})
	}
}

func TestNoRetry(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 500, 501} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: []answer{problem(status)}}
			for name, do := range calls(over(t, s), "s-1") {
				s.requests = nil
				require.Error(t, do(t.Context()), name)
				require.Len(t, s.requests, 1, "%d: %s", status, name)
			}
		})
	}
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{problem(503)}}
		began := time.Now()
		_, err := over(t, s).Inbox(t.Context(), client.InboxParams{})
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Len(t, s.requests, 5)
		require.Less(t, time.Since(began), 5*time.Second)
		for i := 1; i < len(s.at); i++ {
			gap, longest := s.at[i].Sub(s.at[i-1]), 200*time.Millisecond<<(i-1)
			require.True(t, gap >= longest/2 && gap < longest, "wait %d took %s", i, gap)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{says(429, "", "Retry-After", "7"), says(503, "", "Retry-After", time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat)), says(200, anything)}}
		_, err := over(t, s).Inbox(t.Context(), client.InboxParams{})
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, s.at[1].Sub(s.at[0]))
		require.InDelta(t, 13, s.at[2].Sub(s.at[1]).Seconds(), 1.1)

		s = &script{answers: []answer{says(429, "", "Retry-After", "3600"), says(200, anything)}}
		_, err = over(t, s).Inbox(t.Context(), client.InboxParams{})
		var refused *client.Error
		require.ErrorAs(t, err, &refused, "an hour is not waited for: the caller is told")
		require.Equal(t, time.Hour, refused.RetryAfter)

		for _, nonsense := range []string{"-1", "soon", "99999999999999999999", "1e3"} {
			s = &script{answers: []answer{says(429, "", "Retry-After", nonsense), says(200, anything)}}
			_, err = over(t, s).Inbox(t.Context(), client.InboxParams{})
			require.NoError(t, err, nonsense)
			require.Less(t, s.at[1].Sub(s.at[0]), time.Second)
		}
	})
}

func TestContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The caller's deadline ends a request.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := over(t, &script{answers: []answer{hangs}}).Inbox(ctx, client.InboxParams{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))

		// A wait that would outlast it is not begun: the last answer says more.
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began = time.Now()
		_, err = over(t, &script{answers: []answer{says(503, "", "Retry-After", "10")}}).Inbox(ctx, client.InboxParams{})
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Zero(t, time.Since(began))

		// A caller who leaves is not kept.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err = over(t, &script{answers: []answer{refusesConnection}}).Inbox(ctx, client.InboxParams{})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestTimeoutOfAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{hangs, says(200, `{"sessionId": "s"}`)}}
		began := time.Now()
		started, err := over(t, s).Start(t.Context(), client.StartParams{Wait: 20 * time.Second})
		require.NoError(t, err)
		require.Equal(t, "s", started.SessionID)
		require.InDelta(t, 50, time.Since(began).Seconds(), 1, "30 s, and what the server was asked to wait")

		c, err := client.New(client.Config{URL: address, HTTP: &http.Client{Transport: &script{answers: []answer{hangs}}}, Timeout: time.Second, Tries: 2})
		require.NoError(t, err)
		_, err = c.Inbox(t.Context(), client.InboxParams{})
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.ErrorContains(t, err, "no answer within 1s")
		require.NotErrorIs(t, err, context.DeadlineExceeded, "that is for the caller's own")
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	page := func(cursor string, ids ...string) answer {
		p := client.Sessions{Cursor: cursor}
		for _, id := range ids {
			p.Items = append(p.Items, client.Summary{ID: id})
		}
		body, err := json.Marshal(p)
		require.NoError(t, err)
		return says(200, string(body))
	}
	s := &script{answers: []answer{page("1", "a", "b"), page("2"), page("", "c"), page("1", "a", "b")}}
	c := over(t, s)
	var ids []string
	all := c.AllSessions(t.Context(), client.SessionsParams{Page: client.Page{Limit: 2, Cursor: "0"}, Status: session.StatusFailed})
	for found, err := range all {
		require.NoError(t, err)
		ids = append(ids, found.ID)
	}
	require.Equal(t, []string{"a", "b", "c"}, ids)
	for i, cursor := range []string{"0", "1", "2"} {
		require.Equal(t, "cursor="+cursor+"&limit=2&status=failed", s.requests[i].URL.RawQuery)
	}
	for range all {
		break
	}
	require.Len(t, s.requests, 4, "who breaks off asks for no more")

	s = &script{answers: []answer{page("1", "a"), problem(400)}}
	c = over(t, s)
	var last error
	n := 0
	for _, err := range c.AllSessions(t.Context(), client.SessionsParams{}) {
		n, last = n+1, err
	}
	require.Equal(t, 2, n)
	require.Error(t, last)

	s = &script{answers: []answer{page("same", "a")}}
	for _, err := range over(t, s).AllSessions(t.Context(), client.SessionsParams{}) {
		require.NoError(t, err)
	}
	require.Len(t, s.requests, 2, "a cursor that leads to itself does not go on for ever")

	s = &script{answers: []answer{says(200, `{"items": [{"waitId": "w2-1", "sessionId": "s"}, {"waitId": "w2-2", "sessionId": "s"}]}`)}}
	c = over(t, s)
	for name, count := range map[string]func() int{
		"messages":    func() int { return counted(t, c.AllMessages(t.Context(), "s")) },
		"runs":        func() int { return counted(t, c.AllRuns(t.Context(), "s")) },
		"checkpoints": func() int { return counted(t, c.AllCheckpoints(t.Context(), "s")) },
		"waits":       func() int { return counted(t, c.AllWaits(t.Context(), "s")) },
		"inbox":       func() int { return counted(t, c.AllInbox(t.Context(), client.InboxParams{})) },
	} {
		require.Equal(t, 2, count(), name)
	}
}

func counted[T any](t *testing.T, all func(func(T, error) bool)) int {
	t.Helper()
	n := 0
	for _, err := range all {
		require.NoError(t, err)
		n++
	}
	return n
}

func TestAwaitEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{
			says(200, `{"items": [], "after": 2, "status": "suspended", "resting": true}`),
			says(200, `{"items": [{"seq": 3}], "after": 3, "status": "running"}`),
		}}
		require.NoError(t, over(t, s).AwaitEntry(t.Context(), "s", 2))
		require.Equal(t, "after=2&limit=1&stay=true&wait=20", s.requests[0].URL.RawQuery)
		require.GreaterOrEqual(t, s.at[1].Sub(s.at[0]), 500*time.Millisecond)
		require.ErrorIs(t, over(t, s).AwaitEntry(t.Context(), "no id", 2), session.ErrInvalidID)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s = &script{answers: []answer{says(200, `{"items": [], "after": 2}`)}}
		require.ErrorIs(t, over(t, s).AwaitEntry(ctx, "s", 2), context.DeadlineExceeded)
	})
}

func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{
			says(200, `{"items": [{"seq": 3}, {"seq": 4}], "after": 4, "more": true, "status": "running"}`),
			says(200, `{"items": [], "after": 4, "status": "running"}`),
			problem(503),
			says(200, `{"items": [{"seq": 5}], "after": 5, "status": "suspended", "resting": true}`),
		}}
		c := over(t, s)
		var seqs []int64
		for e, err := range c.Follow(t.Context(), "s", 2) {
			require.NoError(t, err)
			seqs = append(seqs, e.Seq)
		}
		require.Equal(t, []int64{3, 4, 5}, seqs)
		require.Equal(t, "after=2&wait=20", s.requests[0].URL.RawQuery)
		require.Equal(t, "after=4&wait=20", s.requests[1].URL.RawQuery)
		require.GreaterOrEqual(t, s.at[2].Sub(s.at[1]), 500*time.Millisecond, "a server that does not hold back is not asked without a pause")

		s = &script{answers: []answer{says(200, `{"items": [{"seq": 1}], "after": 1, "status": "running"}`)}}
		require.Equal(t, 1, counted(t, over(t, s).Journal(t.Context(), "s", 0)), "what there is, and no more")

		s = &script{answers: []answer{says(200, `{"items": [], "after": 0, "more": true}`)}}
		var last error
		for _, err := range over(t, s).Follow(t.Context(), "s", 0) {
			last = err
		}
		require.ErrorIs(t, last, client.ErrNotAdjourn)
		for _, err := range over(t, s).Follow(t.Context(), "no id", 0) {
			last = err
		}
		require.ErrorIs(t, last, session.ErrInvalidID)

		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		s = &script{answers: []answer{says(200, `{"items": [], "after": 0}`)}}
		for _, err := range over(t, s).Follow(ctx, "s", 0) {
			last = err
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
		require.Len(t, s.requests, 3)
	})
}
