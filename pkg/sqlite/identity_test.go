//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
)

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
	runSQL(t, other, "DROP TABLE identity")
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

// TestHoldLog: a log that was found beside the file is in it after Close only if it was accepted.
func TestHoldLog(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]bool{"held": false, "accepted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			db := open(t, filepath.Join(t.TempDir(), "b.db"))
			_, err := db.Store().Commit(t.Context(), store.CommitParams{Key: crashKey, Entry: plainEntry(1)})
			require.NoError(t, err)
			content := map[string][]byte{}
			for _, suffix := range []string{"", "-wal"} { // as a process leaves them that is killed
				content[suffix], err = os.ReadFile(db.path + suffix)
				require.NoError(t, err)
				require.NotEmpty(t, content[suffix])
				require.NoError(t, os.WriteFile(path+suffix, content[suffix], 0o600))
			}
			found, err := Open(t.Context(), Config{Path: path, HoldLog: true})
			require.NoError(t, err)
			require.True(t, found.Identity().LogFound)
			if accept {
				found.AcceptLog()
			}
			require.NoError(t, found.Close())
			text, err := os.ReadFile(path) //nolint:gosec // our own file
			require.NoError(t, err)
			if accept {
				require.NotEqual(t, content[""], text)
				require.NoFileExists(t, path+"-wal")
				return
			}
			require.Equal(t, content[""], text, "nothing of the log is in the file")
			log, err := os.ReadFile(path + "-wal")
			require.NoError(t, err)
			require.Equal(t, content["-wal"], log)
		})
	}
}
