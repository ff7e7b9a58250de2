package dev_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

type nothing struct{}

// pays asks whether it may pay, and pays then.
func pays() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "clerk",
		Tools: []tool.Tool{tool.Define(tool.Spec[nothing]{Name: "pay", Approve: tool.Always[nothing], Who: []string{"ana"}}, func(context.Context, *tool.Call, nothing) (string, error) {
			return "paid", nil
		})},
		Planner: agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
			if len(v.Messages) > 1 {
				return agent.Reply{Text: "done"}, nil
			}
			return agent.Reply{Calls: []agent.Call{{Name: "pay", Arguments: json.RawMessage(`{}`)}}}, nil
		}),
	}}})
}

// TestSlack: what a button in Slack asks is carried out for people who are known and may decide, once,
// and for nobody else.
func TestSlack(t *testing.T) {
	t.Parallel()
	const secret = "8f742231b10e8888abcd99yyyzzz85a5"
	folder := t.TempDir()
	people := filepath.Join(folder, "people.json")
	require.NoError(t, os.WriteFile(people, []byte(`{"T1/U1":"ana","T1/U2":"bob"}`), 0o600))
	env := map[string]string{
		"ADJOURN_SLACK_TOKEN": "xoxb-1", "ADJOURN_SLACK_CHANNEL": "C1", "ADJOURN_SLACK_SIGNING_SECRET": secret, "ADJOURN_SLACK_PEOPLE": people,
		"ADJOURN_NOTICES": ",", // nothing is sent
	}
	a, err := embedded.Open(t.Context(), embedded.Config{Registry: pays, Data: filepath.Join(folder, "a.db"), Env: func(name string) string { return env[name] }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	key := session.Key{Tenant: session.DefaultTenant, ID: "s1"}
	_, err = a.Runtime.Start(t.Context(), runtime.StartParams{Key: key, Agent: "clerk", Input: llm.TextParts("go"), Caller: runtime.Caller{Who: "eve"}})
	require.NoError(t, err)
	require.NoError(t, a.Runtime.Drive(t.Context(), key, a.Only(key)))
	waits, err := a.Runtime.Waits(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, waits, 1)

	b := &bench{t: t, data: filepath.Join(folder, "a.db"), cfg: dev.Config{App: a, Addr: "127.0.0.1:0", Keys: dev.KeysBeside(filepath.Join(folder, "a.db")), Who: "ada"}}
	s := b.listen()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })

	click := func(user, nonce, signedWith string) int {
		value, err := json.Marshal(fmt.Sprintf(`{"tenant":"default","session":"s1","wait":%q,"nonce":%q}`, waits[0].Wait.ID, nonce))
		require.NoError(t, err)
		body := url.Values{"payload": {fmt.Sprintf(`{"type":"block_actions","team":{"id":"T1"},"user":{"id":%q},"actions":[{"action_id":"approve","value":%s}]}`, user, value)}}.Encode()
		at := fmt.Sprint(time.Now().Unix())
		mac := hmac.New(sha256.New, []byte(signedWith))
		_, _ = mac.Write([]byte("v0:" + at + ":" + body))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/slack/interactions", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("X-Slack-Request-Timestamp", at)
		r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	nonce := waits[0].Wait.Nonce
	require.Equal(t, http.StatusUnauthorized, click("U1", nonce, "another secret"))
	require.Equal(t, http.StatusForbidden, click("U9", nonce, secret), "nobody knows who that is")
	require.Equal(t, http.StatusForbidden, click("U2", nonce, secret), "bob may not decide")
	require.Equal(t, http.StatusBadRequest, click("U1", waits[0].Wait.ID+".forged", secret))
	waits, err = a.Runtime.Waits(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, session.WaitOpen, waits[0].State)
	require.Equal(t, http.StatusOK, click("U1", nonce, secret))
	waits, err = a.Runtime.Waits(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "ana", waits[0].Answer.Who)
	require.Equal(t, "slack", waits[0].Answer.From)
}

// A server that cannot know who is who does not start.
func TestSlack_without_people(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	env := map[string]string{"ADJOURN_SLACK_TOKEN": "x", "ADJOURN_SLACK_CHANNEL": "C1", "ADJOURN_SLACK_SIGNING_SECRET": "s", "ADJOURN_SLACK_PEOPLE": filepath.Join(folder, "none.json")}
	a, err := embedded.Open(t.Context(), embedded.Config{Registry: pays, Data: filepath.Join(folder, "a.db"), Env: func(name string) string { return env[name] }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	_, err = dev.Listen(t.Context(), dev.Config{App: a, Addr: "127.0.0.1:0", Keys: dev.KeysBeside(filepath.Join(folder, "a.db")), Who: "ada"})
	require.ErrorIs(t, err, os.ErrNotExist)
}
