//go:build unix

package owned

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// of is a file as somebody else would have it.
type of struct {
	fs.FileInfo
	uid, gid uint32
	mode     fs.FileMode
}

func (f of) Mode() fs.FileMode { return f.mode }
func (f of) Sys() any          { return &syscall.Stat_t{Uid: f.uid, Gid: f.gid} }

const (
	stranger = 4_000_001
	nowhere  = 4_000_002
)

func TestFileAndFolder(t *testing.T) {
	t.Parallel()
	me := uint32(os.Geteuid()) //nolint:gosec // an id
	for name, tt := range map[string]struct {
		info   of
		file   string // what is said of a file
		folder string
	}{
		"mine alone":                        {of{uid: me, mode: 0o600}, "", ""},
		"mine, others read it":              {of{uid: me, mode: 0o644}, "", ""},
		"root's":                            {of{uid: 0, mode: 0o644}, "", ""},
		"a stranger's":                      {of{uid: stranger, mode: 0o600}, "belongs to user 4000001", "belongs to user 4000001"},
		"mine, all may write it":            {of{uid: me, mode: 0o602}, "chmod go-w '/it'\\''s'", "chmod go-w '/it'\\''s'"},
		"mine, a group of many writes it":   {of{uid: me, gid: nowhere, mode: 0o620}, "chmod g-w", "chmod g-w"},
		"mine, and each in it their own":    {of{uid: me, mode: 0o777 | fs.ModeSticky}, "chmod go-w", ""},
		"like /tmp":                         {of{uid: 0, mode: 0o777 | fs.ModeSticky}, "chmod go-w", ""},
		"like /tmp, but a stranger's":       {of{uid: stranger, mode: 0o777 | fs.ModeSticky}, "belongs to", "belongs to"},
		"a link, whoever's and to whatever": {of{uid: me, mode: 0o777 | fs.ModeSymlink}, "no plain file", "chmod go-w"},
		"a pipe":                            {of{uid: me, mode: 0o600 | fs.ModeNamedPipe}, "no plain file", ""},
	} {
		for what, got := range map[string]struct {
			err  error
			want string
		}{"file": {File("/it's", tt.info), tt.file}, "folder": {Folder("/it's", tt.info), tt.folder}} {
			if got.want == "" {
				require.NoError(t, got.err, "%s: %s", name, what)
				continue
			}
			require.ErrorIs(t, got.err, ErrOthers, "%s: %s", name, what)
			require.ErrorContains(t, got.err, got.want, "%s: %s", name, what)
		}
	}
}

// A group that a user has for himself is no others.
func TestInGroup(t *testing.T) {
	t.Parallel()
	const lines = "root:x:0:\nada:x:1000:\nbob:x:1001:bob\neve:x:1002:ada\nstaff:x:50:\nbroken\n"
	for _, tt := range []struct {
		id   int
		name string
		want bool
	}{
		{1000, "ada", true},
		{1001, "bob", true},
		{1002, "eve", false}, // ada is in it
		{50, "ada", false},   // of another name: whoever has it as their first is not listed
		{7, "ada", false},
	} {
		require.Equal(t, tt.want, inGroup(lines, strconv.Itoa(tt.id), tt.name), tt)
	}
}

// A file that is moved stays the one it is; a copy, and what comes after it, is another.
func TestBirth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("x"), 0o600))
	was := Birth(a)
	require.NotEmpty(t, was)
	require.NoError(t, os.WriteFile(a, []byte("changed"), 0o600))
	require.Equal(t, was, Birth(a))
	require.NoError(t, os.WriteFile(b, []byte("changed"), 0o600))
	require.NotEqual(t, was, Birth(b))
	require.NoError(t, os.Rename(a, b))
	require.Equal(t, was, Birth(b))
	require.Empty(t, Birth(a))
}
