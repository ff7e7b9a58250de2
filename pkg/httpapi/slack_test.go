package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

// click is a button of a card that somebody in Slack has pressed.
type click struct {
	user, action, tenant, session, wait, nonce string
}

func (c click) body() string {
	value := fmt.Sprintf(`{"tenant":%q,"session":%q,"wait":%q,"nonce":%q}`, c.tenant, c.session, c.wait, c.nonce)
	return url.Values{"payload": {fmt.Sprintf(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":%q},"actions":[{"action_id":%q,"value":%q}]}`, c.user, c.action, value)}}.Encode()
}

// slack sends a body as Slack does that has signed it with a secret.
func (w *world) slack(body, secret string, at time.Time) *httptest.ResponseRecorder {
	w.Helper()
	seconds := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + seconds + ":" + body))
	return w.send("", http.MethodPost, "/slack/interactions", body, "Content-Type", mediaForm, "X-Slack-Request-Timestamp", seconds, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

// TestSlack: a button decides for somebody who is known and may, of the tenant whose people they are, when Slack
// has just signed it; it decides nothing otherwise. Nothing secret is in the log.
func TestSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("ours", "deploy")
	w.startAs(eve, "theirs", "deploy")
	nonce := get[client.Session](w, ann, "/sessions/ours").Pause.Pending[0].ApprovalID
	theirs := get[client.Session](w, eve, "/sessions/theirs").Pause.Pending[0].ApprovalID
	good := click{user: "U1", action: "approve", tenant: "acme", session: "ours", wait: "w2-1", nonce: nonce}
	secret := slackConfig.SigningSecret
	with := func(change func(*click)) string {
		c := good
		change(&c)
		return c.body()
	}
	for name, c := range map[string]struct {
		body, secret string
		at           time.Time
		code         codes.Code
	}{
		"another secret":          {good.body(), "x" + secret, w.now(), codes.Unauthenticated},
		"no secret":               {good.body(), "", w.now(), codes.Unauthenticated},
		"long ago":                {good.body(), secret, w.now().Add(-6 * time.Minute), codes.Unauthenticated},
		"of tomorrow":             {good.body(), secret, w.now().Add(6 * time.Minute), codes.Unauthenticated},
		"nobody known":            {with(func(c *click) { c.user = "U9" }), secret, w.now(), codes.Forbidden},
		"nobody":                  {with(func(c *click) { c.user = "" }), secret, w.now(), codes.Forbidden},
		"another tenant":          {click{user: "U1", action: "approve", tenant: eveTenant(w), session: "theirs", wait: "w2-1", nonce: theirs}.body(), secret, w.now(), codes.Forbidden},
		"another tenant's people": {with(func(c *click) { c.tenant, c.nonce = eveTenant(w), theirs }), secret, w.now(), codes.Forbidden},
		"another nonce":           {with(func(c *click) { c.nonce = theirs }), secret, w.now(), codes.InvalidAnswer},
		"no nonce":                {with(func(c *click) { c.nonce = "" }), secret, w.now(), codes.BodyUnreadable},
		"another wait":            {with(func(c *click) { c.wait = "w9-1" }), secret, w.now(), codes.WaitNotFound},
		"no session":              {with(func(c *click) { c.session = "none" }), secret, w.now(), codes.SessionNotFound},
		"no interaction":          {"payload=x", secret, w.now(), codes.BodyUnreadable},
		"nothing":                 {"", secret, w.now(), codes.BodyUnreadable},
	} {
		out := w.slack(c.body, c.secret, c.at)
		require.GreaterOrEqual(t, out.Code, 400, name)
		require.Contains(t, out.Body.String(), `"code":"`+string(c.code)+`"`, name)
	}
	require.Equal(t, http.StatusOK, w.slack(with(func(c *click) { c.action = "open" }), secret, w.now()).Code, "a button with a link asks for nothing")
	require.Equal(t, session.WaitOpen, get[client.Session](w, ann, "/sessions/ours").Pause.Pending[0].State)

	require.Equal(t, http.StatusOK, w.slack(good.body(), secret, w.now()).Code)
	require.Equal(t, http.StatusOK, w.slack(good.body(), secret, w.now()).Code, "Slack repeats")
	waits := get[client.Waits](w, ann, "/sessions/ours/waits").Items
	require.Equal(t, "ann", waits[0].Answer.Who)
	require.Equal(t, "slack", waits[0].Answer.From)
	require.Equal(t, http.StatusConflict, w.slack(with(func(c *click) { c.user, c.action = "U2", "reject" }), secret, w.now()).Code)
	for _, hidden := range []string{secret, nonce, theirs, "v0="} {
		require.NotContains(t, w.log.String(), hidden)
	}
}

func eveTenant(w *world) string {
	w.Helper()
	require.NotEqual(w, "acme", callers[eve].Tenant)
	return callers[eve].Tenant
}

// TestSlack_off: where nobody decides in Slack there is no such address, and a list that says nobody is refused.
func TestSlack_off(t *testing.T) {
	t.Parallel()
	w := newWorld(t, change{api: func(c *httpapi.Config) { c.Slack = nil }})
	require.Equal(t, http.StatusNotFound, w.slack("payload={}", slackConfig.SigningSecret, w.now()).Code)
	for _, wrong := range []httpapi.SlackConfig{
		{}, {SigningSecret: "s"}, {People: `{"T1/U1":"ann"}`}, {SigningSecret: "s", People: "nowhere.json"}, {SigningSecret: "s", People: `{"T1/U1":""}`},
	} {
		_, err := httpapi.NewSlack(wrong)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "ann")
	}
}
