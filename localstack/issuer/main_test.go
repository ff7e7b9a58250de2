package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

var now = time.Unix(1_800_000_000, 0)

func TestToken(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	key := filepath.Join(folder, "key", "issuer.json")
	issue := func(args ...string) string {
		var out strings.Builder
		args = append([]string{args[0], "-key", key, "-issuer", "http://127.0.0.1:1/i"}, args[1:]...)
		require.NoError(t, run(args, &out, now))
		return strings.TrimSpace(out.String())
	}
	require.Empty(t, issue("documents", folder))
	token := issue("token", "-tenant", "acme", "-sub", "ann", "-for", "1h")

	info, err := os.Stat(key)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "nobody else may read the key")

	// As an authorizer does it: discovery, keys, signature, claims.
	var discovery struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	read(t, filepath.Join(folder, ".well-known", "openid-configuration"), &discovery)
	require.Equal(t, "http://127.0.0.1:1/i", discovery.Issuer)
	require.Equal(t, discovery.Issuer+"/jwks.json", discovery.Keys)
	var keys jose.JSONWebKeySet
	read(t, filepath.Join(folder, "jwks.json"), &keys)
	require.Len(t, keys.Keys, 1)
	require.True(t, keys.Keys[0].IsPublic())

	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	require.NoError(t, err)
	require.Equal(t, keys.Keys[0].KeyID, parsed.Headers[0].KeyID)
	var claims jwt.Claims
	var own struct {
		Tenant string `json:"tenant"`
	}
	require.NoError(t, parsed.Claims(keys.Keys[0].Key, &claims, &own))
	require.Equal(t, "acme", own.Tenant)
	require.Equal(t, "ann", claims.Subject)
	require.NoError(t, claims.Validate(jwt.Expected{Issuer: discovery.Issuer, AnyAudience: jwt.Audience{"adjourn"}, Time: now.Add(59 * time.Minute)}))
	require.Error(t, claims.Validate(jwt.Expected{Time: now.Add(2 * time.Hour)}))

	t.Run("the key is kept", func(t *testing.T) {
		t.Parallel()
		again, err := jwt.ParseSigned(issue("token"), []jose.SignatureAlgorithm{jose.RS256})
		require.NoError(t, err)
		require.NoError(t, again.Claims(keys.Keys[0].Key, &claims))
	})
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte("{}"), 0o600))
	for name, args := range map[string][]string{
		"no verb":             {},
		"no such verb":        {"keys", "-key", filepath.Join(folder, "k.json")},
		"documents go where?": {"documents", "-key", filepath.Join(folder, "k.json")},
		"no such flag":        {"token", "-colour", "red"},
		"a file of no key":    {"token", "-key", bad},
	} {
		require.Error(t, run(args, &strings.Builder{}, now), name)
	}
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, v))
}
