package app_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/session"
)

func none(string) string { return "" }

func TestReadSettings(t *testing.T) {
	t.Parallel()
	s, err := app.ReadSettings(none)
	require.NoError(t, err)
	require.Equal(t, app.Settings{Data: app.DefaultData, StepsPerInvocation: 16, Lease: 20 * time.Second, LogLevel: slog.LevelWarn}, s)

	env := map[string]string{
		"ADJOURN_DATA": "x.db", "ADJOURN_AGENT": "lab", "ADJOURN_MODEL": "openai:m", "ADJOURN_LEASE": "1m",
		"ADJOURN_STEPS_PER_INVOCATION": "7", "ADJOURN_LOG": "debug", "ADJOURN_POLICY": "{default: prompt}",
		"ADJOURN_GRANT_KEYS": "one:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=", "ADJOURN_PUBLIC_URL": "https://a.example", "ADJOURN_SIGN_IN_URL": "https://b.example",
	}
	s, err = app.ReadSettings(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, app.Settings{
		Data: "x.db", Agent: "lab", Model: "openai:m", Lease: time.Minute, StepsPerInvocation: 7, LogLevel: slog.LevelDebug,
		GrantKeys: env["ADJOURN_GRANT_KEYS"], PublicURL: "https://a.example", SignInURL: "https://b.example", Notices: app.Notices{URL: "https://a.example"}, Policy: &session.ToolPolicy{Default: session.ToolPrompt},
	}, s)
	env["ADJOURN_LOG"] = "OFF"
	s, err = app.ReadSettings(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, app.LogOff, s.LogLevel)

	for name, values := range map[string][]string{
		"ADJOURN_LEASE": {"soon", "10", "1ms", "-5s"}, "ADJOURN_STEPS_PER_INVOCATION": {"0", "-1", "many", "1.5"}, "ADJOURN_LOG": {"loud"}, "ADJOURN_POLICY": {"no-such-file", "{}", "{default: yes}", "{tools: {a: null}}"},
		"ADJOURN_GRANT_KEYS": {"secret-of-mine", "one:c2VjcmV0LW9mLW1pbmU="}, "ADJOURN_PUBLIC_URL": {"adjourn.example", "https://a?b"}, "ADJOURN_SIGN_IN_URL": {"javascript:x"},
	} {
		for _, value := range values {
			_, err := app.ReadSettings(func(n string) string { return map[string]string{name: value}[n] })
			require.ErrorIs(t, err, app.ErrInvalidSetting, "%s=%s", name, value)
			require.ErrorContains(t, err, name)
			require.NotRegexp(t, "secret-of-mine|c2VjcmV0", err.Error())
		}
	}
	_, err = app.ReadSettings(func(string) string { return "x" })
	require.ErrorContains(t, err, "ADJOURN_LEASE")
	require.ErrorContains(t, err, "ADJOURN_LOG", "every mistake is told at once")
}

func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := app.NewID()
		require.Regexp(t, `^[a-z2-7]{20}$`, id)
		require.NoError(t, session.Key{Tenant: session.DefaultTenant, ID: id}.Validate())
		require.False(t, seen[id])
		seen[id] = true
	}
}
