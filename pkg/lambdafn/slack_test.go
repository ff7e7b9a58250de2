package lambdafn_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestSlack: the function submit takes what Slack has signed, whose body the gateway hands on in base64, from
// somebody whom no authorizer has verified; no other function does, and neither secret nor nonce is logged.
func TestSlack(t *testing.T) {
	t.Parallel()
	const secret = "8f742231b10e8888abcd99yyyzzz85a5"
	w := newWorld(t)
	wake, steps := w.start("[{call: deploy, with: {service: shop}}, {say: done}]"), step(t, w)
	deliver(t, steps, wakeMessage(t, "m", wake))
	for sent := w.queue.takeSent(); len(sent) > 0; sent = w.queue.takeSent() {
		for _, next := range sent {
			deliver(t, steps, wakeMessage(t, "m", next))
		}
	}
	key := wake.Key()
	nonce := w.stands(key).Open[0].Wait.Nonce
	value := fmt.Sprintf(`{"tenant":%q,"session":%q,"wait":"w2-1","nonce":%q}`, key.Tenant, key.ID, nonce)
	body := url.Values{"payload": {fmt.Sprintf(`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"actions":[{"action_id":"approve","value":%q}]}`, value)}}.Encode()
	at := fmt.Sprint(w.cfg.Now().Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + at + ":" + body))
	e := request("POST", "/slack/interactions")
	e.Headers["content-type"], e.Headers["x-slack-request-timestamp"], e.Headers["x-slack-signature"] = "application/x-www-form-urlencoded", at, "v0="+hex.EncodeToString(mac.Sum(nil))
	e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(body)), true

	none, err := lambdafn.NewSubmit(w.cfg)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, ask(t, none, e).StatusCode, "nobody decides in Slack")
	w.cfg.Slack = httpapi.SlackConfig{SigningSecret: secret, People: `{"T1/U1":"ana"}`, Tenant: key.Tenant}
	submit, err := lambdafn.NewSubmit(w.cfg)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, ask(t, query(t, w), e).StatusCode, "it is no route of that function")
	forged := e
	forged.Body = base64.StdEncoding.EncodeToString([]byte(body + "&x=1"))
	require.Equal(t, http.StatusUnauthorized, ask(t, submit, forged).StatusCode)
	require.Equal(t, session.WaitOpen, w.stands(key).Open[0].State)
	out := ask(t, submit, e)
	require.Equal(t, http.StatusOK, out.StatusCode, out.Body)
	records, err := w.cfg.Runtime.Waits(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []string{"ana", "slack"}, []string{records[0].Answer.Who, records[0].Answer.From})
	for _, hidden := range []string{secret, nonce} {
		require.NotContains(t, w.log.String(), hidden)
	}

	w.cfg.Slack.People = "{}x"
	_, err = lambdafn.NewSubmit(w.cfg)
	require.ErrorContains(t, err, "people in slack")
}
