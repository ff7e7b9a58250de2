package app_test

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestReadSettings_of_notices(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	read := func(env map[string]string) (app.Notices, error) {
		s, err := app.ReadSettings(func(name string) string { return env[name] })
		return s.Notices, err
	}
	right := map[string]string{"ADJOURN_WEBHOOK_URL": "https://example.com/hush", "ADJOURN_WEBHOOK_SECRET": secret, "ADJOURN_PUBLIC_URL": "https://api.example.com/"}
	n, err := read(right)
	require.NoError(t, err)
	require.Equal(t, app.Notices{Channels: []string{"webhook"}, URL: "https://api.example.com", WebhookURL: "https://example.com/hush", WebhookSecret: secret}, n)
	require.Equal(t, "https://api.example.com/sessions/s1", n.Link(session.Key{Tenant: "t", ID: "s1"}, "w2-1"))
	channels, err := n.Open(time.Now)
	require.NoError(t, err)
	require.Len(t, channels, 1)

	n, err = read(map[string]string{"ADJOURN_SLACK_TOKEN": "xoxb-1", "ADJOURN_SLACK_CHANNEL": "C1"})
	require.NoError(t, err)
	require.Equal(t, []string{"slack"}, n.Channels)
	require.False(t, n.SlackDecides(), "nobody takes what buttons ask")
	channels, err = n.Open(time.Now)
	require.NoError(t, err)
	require.Equal(t, "slack", channels[0].Name())
	require.Equal(t, map[string]string{"slack": session.DefaultTenant}, n.Tenants())
	n, err = read(map[string]string{"ADJOURN_SLACK_TOKEN": "xoxb-1", "ADJOURN_SLACK_CHANNEL": "C1", "ADJOURN_SLACK_DECIDES": "true", "ADJOURN_SLACK_TENANT": "acme"})
	require.NoError(t, err)
	require.True(t, n.SlackDecides(), "another program takes it")
	require.False(t, n.SlackTakes())
	require.Equal(t, map[string]string{"slack": "acme"}, n.Tenants())
	_, err = read(map[string]string{"ADJOURN_SLACK_TOKEN": "hush"})
	require.ErrorContains(t, err, "ADJOURN_SLACK_CHANNEL")
	require.NotContains(t, err.Error(), "hush")

	n, err = read(map[string]string{"ADJOURN_NOTICES": "webhook"}) // as in a function that sends none
	require.NoError(t, err)
	require.Equal(t, []string{"webhook"}, n.Channels)
	require.Empty(t, n.Link(session.Key{ID: "s1"}, ""))
	channels, err = n.Open(time.Now)
	require.NoError(t, err)
	require.Empty(t, channels)

	linked := maps.Clone(right)
	linked["ADJOURN_WEBHOOK_LINKS"], linked["ADJOURN_GRANT_KEYS"] = "true", grant.FormatKey("one", bytes.Repeat([]byte("k"), 32))
	n, err = read(linked)
	require.NoError(t, err)
	require.Equal(t, "https://api.example.com", n.Grants().URL)
	linked["ADJOURN_WEBHOOK_LINKS"] = ""
	n, err = read(linked)
	require.NoError(t, err)
	require.Nil(t, n.Grants(), "nobody has said so")
	for name, wrong := range map[string]string{"ADJOURN_GRANT_KEYS": "", "ADJOURN_PUBLIC_URL": "http://api.example.com"} {
		env := maps.Clone(linked)
		env["ADJOURN_WEBHOOK_LINKS"], env[name] = "true", wrong
		_, err := read(env)
		require.ErrorContains(t, err, "ADJOURN_WEBHOOK_LINKS", name)
	}

	for name, values := range map[string][]string{
		"ADJOURN_WEBHOOK_URL": {"example.com/hush", "http://example.com/hush", "https://ana:hush@example.com"}, "ADJOURN_WEBHOOK_SECRET": {"", "hush", "whsec_hush"},
		"ADJOURN_WEBHOOK_ARGUMENTS": {"yes"}, "ADJOURN_WEBHOOK_ALLOW_HTTP": {"1"}, "ADJOURN_WEBHOOK_ALLOW_PRIVATE": {"TRUE"},
		"ADJOURN_SLACK_PEOPLE": {"people.json"}, "ADJOURN_SLACK_DECIDES": {"1"}, "ADJOURN_SLACK_SIGNED_IN": {"yes"}, "ADJOURN_SLACK_TENANT": {"a/b"},
		"ADJOURN_WEBHOOK_LINKS": {"yes", "true"}, // without keys
		"ADJOURN_SLACK_API":     {"http://slack.example", "slack.com"},
		"ADJOURN_NOTICES":       {"pigeon", "webhook,pigeon"},
	} {
		for _, value := range values {
			env := maps.Clone(right)
			env[name] = value
			_, err := read(env)
			require.ErrorIs(t, err, app.ErrInvalidSetting, "%s=%s", name, value)
			require.ErrorContains(t, err, name)
			require.NotContains(t, err.Error(), "hush")
		}
	}
}
