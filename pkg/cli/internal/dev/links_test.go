package dev_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
)

// TestLinkKey: a key of links is made once, for its user's eyes alone, and kept; only where it leads
// changes. What is not such a file is not replaced.
func TestLinkKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.cfg.Keys.Links
	keyOf := func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		key, _, found := strings.Cut(string(text), "\n")
		require.True(t, found)
		return key
	}
	_, stop := b.serve()
	first := keyOf()
	require.NoError(t, stop())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, stop = b.serve()
	require.Equal(t, first, keyOf())
	require.NoError(t, stop())
	links, err := b.cfg.Keys.LinksOf(app.Settings{})
	require.NoError(t, err)
	require.NotNil(t, links)

	for name, spoil := range map[string]func(){
		"open to others": func() { require.NoError(t, os.Chmod(path, 0o644)) },
		"no key":         func() { require.NoError(t, os.WriteFile(path, []byte("somebody's notes\n"), 0o600)) },
		"a short key":    func() { require.NoError(t, os.WriteFile(path, []byte("one:c2hvcnQ=\nhttp://127.0.0.1:1\n"), 0o600)) },
		"no address":     func() { require.NoError(t, os.WriteFile(path, []byte(first+"\n"), 0o600)) },
		"a folder":       func() { require.NoError(t, os.Mkdir(path, 0o700)) },
		"a link":         func() { require.NoError(t, os.Symlink(b.cfg.Keys.File, path)) },
	} {
		require.NoError(t, os.RemoveAll(path))
		if name == "open to others" {
			require.NoError(t, os.WriteFile(path, []byte(first+"\nhttp://127.0.0.1:1\n"), 0o600))
		}
		spoil()
		_, err := dev.Listen(t.Context(), b.cfg)
		require.ErrorContains(t, err, "key of links", name)
		if name == "open to others" {
			require.ErrorIs(t, err, owned.ErrOpen)
		}
		_, err = b.cfg.Keys.LinksOf(app.Settings{})
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "c2hvcnQ")
	}

	elsewhere := dev.KeysBeside(filepath.Join(t.TempDir(), "none.db"))
	links, err = elsewhere.LinksOf(app.Settings{})
	require.NoError(t, err)
	require.Nil(t, links, "no server has served that data file")
	links, err = elsewhere.LinksOf(app.Settings{GrantKeys: first, PublicURL: "https://a.example"})
	require.NoError(t, err)
	require.NotNil(t, links)
	require.NoFileExists(t, elsewhere.Links)
}
