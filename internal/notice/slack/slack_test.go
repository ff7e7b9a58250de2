package slack_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/notice/slack"
	"github.com/adjourn/adjourn/internal/outbox"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// workspace is Slack: it keeps what was asked of it.
type workspace struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	bodies []map[string]any
	answer func(n int, w http.ResponseWriter) bool
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	s := &workspace{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		raw, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(raw, &body)
		s.asked, s.bodies = append(s.asked, r.Header.Get("Authorization")+" "+r.URL.Path), append(s.bodies, body)
		if s.answer != nil && s.answer(len(s.asked), w) {
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "channel": "C1", "ts": fmt.Sprintf("1.%d", len(s.asked))})
	}))
	t.Cleanup(s.Close)
	return s
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

var key = session.Key{Tenant: "acme", ID: "s1"}

// world is a session with two waits, and what sends its notices to Slack.
type world struct {
	*testing.T
	store  store.Store
	sender *notice.Sender
	now    time.Time
}

func newWorld(t *testing.T, s *workspace, decides bool, change ...func(*slack.Config, *session.Wait)) *world {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	w := &world{T: t, now: time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)}
	w.store = outbox.New(outbox.Config{Store: db.Store(), Channels: []string{"slack"}, Notify: func(context.Context, session.Key, string) error { return nil }})
	cfg := slack.Config{Token: "xoxb-1", Channel: "C1", Decides: decides, API: s.URL + "/api/"}
	approval := session.Wait{ID: "w1-1", Kind: session.WaitApproval, Tool: "refund <!channel>", Nonce: "n1", Arguments: json.RawMessage(`{"secret":1}`)}
	for _, f := range change {
		f(&cfg, &approval)
	}
	w.sender = notice.NewSender(notice.Config{
		Store: db.Store(), Now: func() time.Time { return w.now }, Channels: []notice.Channel{slack.New(cfg)},
		Link: func(key session.Key, wait string) string { return "https://example.com/" + key.ID + "/" + wait },
	})
	waits := []session.Wait{
		approval,
		{ID: "w1-2", Kind: session.WaitInput, Deadline: &session.Deadline{At: w.now.Add(time.Hour), Outcome: session.ExpireDeny}},
	}
	items := []store.Item{store.HeadItem(journal.Head{Key: key, Agent: "desk", Status: session.StatusSuspended, CreatedAt: w.now, UpdatedAt: w.now}, 0)}
	for _, wait := range waits {
		items = append(items, store.WaitItem(journal.WaitRecord{Wait: wait, State: session.WaitOpen, Agent: "desk"}, 0))
	}
	_, err = w.store.Commit(t.Context(), store.CommitParams{Key: key, Items: items, Entry: journal.Entry{
		V: journal.Format, Seq: 1, Kind: session.KindSuspended, Status: session.StatusSuspended, At: w.now, Run: 1, Task: 1, RulesAt: 1, Token: "t", Waits: waits,
	}})
	require.NoError(t, err)
	return w
}

func (w *world) send(id string) journal.NoticeSend {
	w.Helper()
	require.NoError(w, w.sender.Send(w.Context(), key, id))
	for item, err := range w.store.Items(w.Context(), key, store.KindNotice, id) {
		require.NoError(w, err)
		return item.Notice.Sends[0]
	}
	w.Fatal("no notice")
	return journal.NoticeSend{}
}

func (w *world) approve() {
	w.Helper()
	for item, err := range w.store.Items(w.Context(), key, store.KindWait, "w1-1") {
		require.NoError(w, err)
		yes := true
		item.Wait.State, item.Wait.Answer = session.WaitAnswered, &session.Answer{Wait: "w1-1", Kind: session.AnswerApproval, Approved: &yes, Who: "ana", When: w.now}
		_, err = w.store.Update(w.Context(), key, item)
		require.NoError(w, err)
	}
}

// Each wait is a card; the one that is decided, by whatever door, says by whom and has no button any
// more.
func TestSend(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	w := newWorld(t, s, true)
	require.Equal(t, journal.NoticeSent, w.send("e0000000001").State)
	require.Equal(t, []string{"Bearer xoxb-1 /api/chat.postMessage", "Bearer xoxb-1 /api/chat.postMessage"}, s.asked)
	card := text(t, s.bodies[0])
	require.Contains(t, card, `"text":"desk: approval of refund \u003c!channel\u003e (session s1, w1-1)","type":"plain_text"`, "as text, not as markup")
	require.NotContains(t, card, `"action_id":"approve"`, "what is not shown")
	require.Contains(t, card, `"action_id":"reject"`)
	require.Contains(t, card, `\"wait\":\"w1-1\",\"nonce\":\"n1\"`)
	require.Contains(t, card, `"url":"https://example.com/s1/w1-1"`)
	require.NotContains(t, card, "secret")
	require.NotContains(t, card, "mrkdwn\":true")
	require.Equal(t, false, s.bodies[0]["unfurl_links"])
	require.Contains(t, text(t, s.bodies[1]), "Until 2026-11-26 10:00 UTC, then: deny")
	require.NotContains(t, text(t, s.bodies[1]), "approve", "only an approval is decided by a button")

	w.approve()
	require.Equal(t, journal.NoticeSent, w.send("dw1-1").State)
	require.Equal(t, "Bearer xoxb-1 /api/chat.update", s.asked[2])
	settled := text(t, s.bodies[2])
	require.Contains(t, settled, `"ts":"1.1"`)
	require.Contains(t, settled, "Approved by ana, 2026-11-26 09:00 UTC")
	require.NotContains(t, settled, "button")
}

// TestSend_shown: a card approves only what it shows whole, and nothing of high risk.
func TestSend_shown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change   func(*slack.Config, *session.Wait)
		contains string
		approves bool
	}{
		"whole":  {func(*slack.Config, *session.Wait) {}, `{\"secret\":1}`, true},
		"hidden": {func(_ *slack.Config, w *session.Wait) { w.Arguments = json.RawMessage("{\"to\":\"a\u202eb\"}") }, `\\u202e`, true},
		"too long": {func(_ *slack.Config, w *session.Wait) {
			w.Arguments = json.RawMessage(`"` + strings.Repeat("x", 4000) + `"`)
		}, "(cut:", false},
		"of low risk": {func(_ *slack.Config, w *session.Wait) {
			w.Preview = &session.Preview{Title: "Pay\nRisk: low", Risk: session.RiskLow}
		}, `Pay\\nRisk: low\nRisk: low`, true},
		"of high risk":     {func(_ *slack.Config, w *session.Wait) { w.Preview = &session.Preview{Risk: session.RiskHigh} }, "Risk: high", false},
		"of unknown risk":  {func(_ *slack.Config, w *session.Wait) { w.Preview = &session.Preview{Risk: "?"} }, "Risk: ?", false},
		"a failed preview": {func(_ *slack.Config, w *session.Wait) { w.Preview = &session.Preview{Failed: "panic"} }, "The preview failed: panic", false},
		"a diff":           {func(_ *slack.Config, w *session.Wait) { w.Preview = &session.Preview{Diff: &session.Diff{After: "x"}} }, "", false},
		"not taken":        {func(c *slack.Config, _ *session.Wait) { c.Decides = false }, "secret", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorkspace(t)
			w := newWorld(t, s, true, func(c *slack.Config, w *session.Wait) {
				c.Arguments = true
				test.change(c, w)
			})
			require.Equal(t, journal.NoticeSent, w.send("e0000000001").State)
			card := text(t, s.bodies[0])
			require.Contains(t, card, test.contains)
			require.Equal(t, test.approves, strings.Contains(card, `"action_id":"approve"`))
		})
	}
}

func TestSend_without_somebody_who_takes_what_buttons_ask(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	newWorld(t, s, false).send("e0000000001")
	require.NotContains(t, text(t, s.bodies[0]), "approve")
	require.Contains(t, text(t, s.bodies[0]), "https://example.com/s1/w1-1")
}

// What was posted is not posted again after a failure, and a decision that overtakes its card waits for it.
func TestSend_after_a_failure(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	s.answer = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 2:
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		case 5:
			_, _ = io.WriteString(w, `{"ok":false,"error":"message_not_found"}`)
			return true
		}
		return false
	}
	w := newWorld(t, s, true)
	w.approve()
	early := w.send("dw1-1")
	require.Equal(t, journal.NoticePending, early.State)
	require.Contains(t, early.Error, "not posted yet")
	require.Empty(t, s.asked)
	half := w.send("e0000000001")
	require.Equal(t, journal.NoticePending, half.State)
	require.Contains(t, half.Error, "429")
	require.Equal(t, w.now.Add(30*time.Second), *half.Next)
	w.now = w.now.Add(time.Minute)
	require.Equal(t, journal.NoticeSent, w.send("e0000000001").State)
	require.Len(t, s.asked, 3, "the first card is there")
	require.Equal(t, journal.NoticeSent, w.send("dw1-1").State)
	require.Contains(t, text(t, s.bodies[3]), `"ts":"1.1"`)
}

func TestSend_test_message(t *testing.T) {
	t.Parallel()
	s := newWorkspace(t)
	s.answer = func(_ int, w http.ResponseWriter) bool {
		_, _ = io.WriteString(w, `{"ok":false,"error":"not_in_channel"}`)
		return true
	}
	w := newWorld(t, s, false)
	require.ErrorContains(t, w.sender.Test(t.Context(), "slack", "1"), "not_in_channel")
	s.answer = nil
	require.NoError(t, w.sender.Test(t.Context(), "slack", "2"))
}

// The vector of Slack's page on verifying requests.
func TestVerify(t *testing.T) {
	t.Parallel()
	const secret = "8f742231b10e8888abcd99yyyzzz85a5"
	body := []byte("token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c")
	header := http.Header{"X-Slack-Request-Timestamp": {"1531420618"}, "X-Slack-Signature": {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}}
	at := time.Unix(1531420618, 0)
	require.NoError(t, slack.Verify(secret, header, body, at))
	require.NoError(t, slack.Verify(secret, header, body, at.Add(5*time.Minute)))
	require.ErrorIs(t, slack.Verify(secret, header, body, at.Add(5*time.Minute+time.Second)), slack.ErrForged)
	require.ErrorIs(t, slack.Verify(secret, header, body, at.Add(-6*time.Minute)), slack.ErrForged)
	require.ErrorIs(t, slack.Verify("", header, body, at), slack.ErrForged)
	require.ErrorIs(t, slack.Verify(secret+"x", header, body, at), slack.ErrForged)
	require.ErrorIs(t, slack.Verify(secret, header, append(body, 'x'), at), slack.ErrForged)
	require.ErrorIs(t, slack.Verify(secret, http.Header{}, body, at), slack.ErrForged)
	without := header.Clone()
	without.Del("X-Slack-Signature")
	require.ErrorIs(t, slack.Verify(secret, without, body, at), slack.ErrForged)
	empty := hmac.New(sha256.New, nil)
	_, _ = io.WriteString(empty, "v0:1531420618:")
	_, _ = empty.Write(body)
	without.Set("X-Slack-Signature", "v0="+hex.EncodeToString(empty.Sum(nil)))
	require.ErrorIs(t, slack.Verify("", without, body, at), slack.ErrForged, "without a secret nobody is believed")
}

func TestReadInteraction(t *testing.T) {
	t.Parallel()
	people := slack.People{"T1/U1": "ana"}
	const value = `{\"tenant\":\"acme\",\"session\":\"s1\",\"wait\":\"w1-1\",\"nonce\":\"n1\"}`
	click := func(action, of, value string) []byte {
		return []byte(url.Values{"payload": {`{"type":"block_actions","team":{"id":"T1"},"user":` + of + `,"actions":[{"action_id":"` + action + `","value":"` + value + `"}]}`}}.Encode())
	}
	d, ok, err := slack.ReadInteraction(click("approve", `{"id":"U1"}`, value), people)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, slack.Decision{Key: key, Wait: "w1-1", Nonce: "n1", Approved: true, Who: "ana"}, d)
	d, ok, err = slack.ReadInteraction(click("reject", `{"id":"U1","team_id":"T1"}`, value), people)
	require.NoError(t, err)
	require.True(t, ok)
	require.False(t, d.Approved)
	_, ok, err = slack.ReadInteraction(click("open", `{"id":"U1"}`, value), people)
	require.NoError(t, err)
	require.False(t, ok)
	for _, stranger := range []string{`{"id":"U2"}`, `{}`, `{"id":"U1","team_id":"T2"}`, `{"id":""}`} {
		_, ok, err = slack.ReadInteraction(click("approve", stranger, value), people)
		require.ErrorIs(t, err, slack.ErrStranger, stranger)
		require.False(t, ok)
	}
	_, _, err = slack.ReadInteraction(click("approve", `{"id":"U1"}`, value), nil)
	require.ErrorIs(t, err, slack.ErrStranger, "without a list nobody is known")
	for _, forged := range []string{"x", `{}`, strings.Replace(value, "n1", "", 1), strings.Replace(value, "acme", "a/b", 1), strings.Replace(value, "w1-1", "", 1)} {
		_, ok, err = slack.ReadInteraction(click("approve", `{"id":"U1"}`, forged), people)
		require.ErrorIs(t, err, slack.ErrForged, forged)
		require.False(t, ok)
	}
	for _, body := range []string{"payload=x", "", "%zz"} {
		_, _, err = slack.ReadInteraction([]byte(body), people)
		require.ErrorIs(t, err, slack.ErrForged, body)
	}
}

func TestReadPeople(t *testing.T) {
	t.Parallel()
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "people.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	people, err := slack.ReadPeople(write(`{"T1/U1":"ana"}`))
	require.NoError(t, err)
	require.Equal(t, slack.People{"T1/U1": "ana"}, people)
	people, err = slack.ReadPeople(` {"T1/U1":"ana"}`)
	require.NoError(t, err)
	require.Equal(t, slack.People{"T1/U1": "ana"}, people)
	for _, wrong := range []string{`{"T1/U1":""}`, `{"":"ana"}`, `{"U1":"ana"}`, `{"/U1":"ana"}`, `{"T1/":"ana"}`, `{"T1/U1":" "}`, `[]`, ``} {
		_, err = slack.ReadPeople(write(wrong))
		require.Error(t, err, wrong)
		_, err = slack.ReadPeople(wrong)
		require.Error(t, err, wrong)
	}
	_, err = slack.ReadPeople("nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
}
