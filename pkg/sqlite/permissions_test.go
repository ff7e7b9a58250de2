//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/owned"
)

// What others own, or may write, is not worked on; it is read all the same.
func TestForeign(t *testing.T) {
	t.Parallel()
	give := func(path string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.Chown(filepath.Join(dir, path), 4_000_001, 4_000_001))
		}
	}
	open600 := func(path string, mode os.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, path), mode)) }
	}
	plant := func(path string, mode os.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte("planted"), 0o600))
			require.NoError(t, os.Chmod(filepath.Join(dir, path), mode))
		}
	}
	cases := map[string]struct {
		prepare func(t *testing.T, dir string)
		says    string
	}{
		"a file that all may write":          {open600("a.db", 0o606), "every user may write"},
		"a folder that all may write":        {open600(".", 0o777), "every user may write"},
		"a log that all may write":           {plant("a.db-wal", 0o666), "every user may write"},
		"shared memory that all may write":   {plant("a.db-shm", 0o666), "every user may write"},
		"a journal":                          {plant("a.db-journal", 0o600), "SQLite would write it into the file"},
		"a log that leads somewhere else":    {func(t *testing.T, dir string) { require.NoError(t, os.Symlink("b", filepath.Join(dir, "a.db-wal"))) }, "no plain file"},
		"a folder through which it is named": {nil, "every user may write"},
	}
	if os.Geteuid() == 0 { // nobody else can give files away
		for name, path := range map[string]string{"a stranger's file": "a.db", "a stranger's folder": "."} {
			cases[name] = struct {
				prepare func(t *testing.T, dir string)
				says    string
			}{give(path), "belongs to user 4000001"}
		}
		cases["a stranger's log"] = struct {
			prepare func(t *testing.T, dir string)
			says    string
		}{func(t *testing.T, dir string) { plant("a.db-wal", 0o600)(t, dir); give("a.db-wal")(t, dir) }, "belongs to user 4000001"}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.db")
			require.NoError(t, open(t, path).Close())
			if tt.prepare != nil {
				tt.prepare(t, dir)
			} else {
				up := t.TempDir()
				require.NoError(t, os.Symlink(path, filepath.Join(up, "link.db")))
				require.NoError(t, os.Chmod(up, 0o777)) //nolint:gosec // that is the point
				path = filepath.Join(up, "link.db")
			}
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = Open(t.Context(), Config{Path: path})
			require.ErrorIs(t, err, owned.ErrOthers)
			require.ErrorContains(t, err, tt.says)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after, "it was not touched")
		})
	}
	t.Run("none is made in such a folder", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is the point
		_, err := Open(t.Context(), Config{Path: filepath.Join(dir, "a.db")})
		require.ErrorIs(t, err, owned.ErrOthers)
		require.NoFileExists(t, filepath.Join(dir, "a.db"))
	})
	t.Run("a folder like /tmp", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
		require.NoError(t, open(t, filepath.Join(dir, "a.db")).Close())
	})
	t.Run("what is only read", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a.db")
		require.NoError(t, open(t, path).Close())
		require.NoError(t, os.Chmod(path, 0o666)) //nolint:gosec // that is the point
		require.NoError(t, openConfig(t, Config{Path: path, ReadOnly: true}).Close())
	})
}

// A log that more users may read than the file is made as private as that is.
func TestLogIsAsPrivateAsTheFile(t *testing.T) {
	t.Parallel()
	path := file(t)
	require.NoError(t, open(t, path).Close())
	for _, suffix := range sidecars {
		require.NoError(t, os.WriteFile(path+suffix, nil, 0o600))
		require.NoError(t, os.Chmod(path+suffix, 0o644)) //nolint:gosec // that is the point
	}
	open(t, path)
	for _, suffix := range sidecars {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	var made []Identity
	cfg := Config{Path: path, OnCreate: func(id Identity) {
		require.NoFileExists(t, path, "before anybody can find it")
		made = append(made, id)
	}}
	db := openConfig(t, cfg)
	id := db.Identity()
	require.Len(t, made, 1)
	require.Equal(t, made[0].File, id.File)
	require.Len(t, id.File, 64)
	require.NotEmpty(t, id.Log)
	require.False(t, id.LogFound)
	require.NoError(t, db.Close())

	same := openConfig(t, cfg)
	require.Len(t, made, 1, "it was there")
	require.Equal(t, id.File, same.Identity().File)
	require.NoError(t, same.Close())

	text, err := os.ReadFile(path) //nolint:gosec // our own file
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, text, 0o600))
	db = open(t, other)
	require.NotEqual(t, id.File, db.Identity().File, "a copy is another")
	require.NoError(t, db.Close())
	require.NoError(t, os.Rename(path, other))
	db = open(t, other)
	require.Equal(t, id.File, db.Identity().File, "a file that was moved is not")
	require.NoError(t, db.Close())

	// As an earlier program made them.
	c, err := openConn(other, existing)
	require.NoError(t, err)
	require.NoError(t, c.script("DROP TABLE identity"))
	require.NoError(t, c.close())
	db = open(t, other)
	require.Empty(t, db.Identity().File)
	given, err := db.GiveIdentity(t.Context())
	require.NoError(t, err)
	require.Len(t, given.File, 64)
	require.NotEqual(t, id.File, given.File)
	require.NoError(t, db.Close())
	db = open(t, other)
	again, err := db.GiveIdentity(t.Context())
	require.NoError(t, err)
	require.Equal(t, given.File, again.File, "once")
}

// A log that lies beside a file that nobody works on is told; the one of somebody who
// works is not.
func TestLogFound(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, path)

	c, err := openConn(path, existing)
	require.NoError(t, err)
	require.NoError(t, c.script("CREATE TABLE more (x)"), "so that there is something in the log")
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	beside := open(t, path)
	require.False(t, beside.Identity().LogFound, "somebody works with it")
	require.NoError(t, beside.Close())
	require.NoError(t, c.close())
	require.NoError(t, db.Close())
	require.NoFileExists(t, path+"-wal")
	require.NoError(t, os.WriteFile(path+"-wal", log, 0o600))
	require.True(t, open(t, path).Identity().LogFound)
}
