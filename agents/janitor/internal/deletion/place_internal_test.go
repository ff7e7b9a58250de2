package deletion

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/pkg/tool"
)

// holding makes a folder of files, and opens it.
func holding(t *testing.T, files map[string]string) (Folder, *os.Root) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, content := range files {
		put(t, filepath.Join(dir, name), content)
	}
	home, err := confined.Home(tool.Files{Home: dir})
	require.NoError(t, err)
	f := Folder{Folder: home}
	t.Cleanup(func() { require.NoError(t, f.Root.Close()) })
	root, err := f.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return f, root
}

func put(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestRead(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 3<<16) + "end"
	f, root := holding(t, map[string]string{"sub/large": large, "a": "x"})
	require.NoError(t, os.Symlink("sub/large", filepath.Join(f.Path, "link")))
	require.NoError(t, os.Symlink("sub", filepath.Join(f.Path, "via")))
	require.NoError(t, os.Link(filepath.Join(f.Path, "a"), filepath.Join(f.Path, "again")))
	p, err := f.Read(t.Context(), root, "sub/large")
	require.NoError(t, err)
	t.Cleanup(p.Close)
	sum := sha256.Sum256([]byte(large))
	require.Equal(t, hex.EncodeToString(sum[:]), p.SHA256)
	require.Equal(t, int64(len(large)), p.Info.Size())
	require.False(t, p.Linked)
	p, err = f.Read(t.Context(), root, "again")
	require.NoError(t, err)
	t.Cleanup(p.Close)
	require.True(t, p.Linked)
	for path, says := range map[string]string{
		"link":          "link: is a symlink, not a file",
		"via/large":     "via/large: via is a symlink, not a folder",
		"../x":          "is not the path of a file inside the folder",
		"sub":           "sub: is a folder, not a file",
		"sub/none":      "sub/none: does not exist",
		"none/x":        "none/x: none does not exist",
		"sub//large":    "is not the path of a file inside the folder",
		"sub/./large":   "is not the path of a file inside the folder",
		"/etc/hostname": "is not the path of a file inside the folder",
	} {
		_, err := f.Read(t.Context(), root, path)
		require.ErrorContains(t, err, says, path)
	}
}

func TestRead_special_files(t *testing.T) {
	t.Parallel()
	f, root := holding(t, nil)
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(f.Path, "s"))
	if err != nil {
		t.Logf("there are no sockets here: %v", err)
		return
	}
	t.Cleanup(func() { require.NoError(t, socket.Close()) })
	_, err = f.Read(t.Context(), root, "s")
	require.ErrorContains(t, err, "s: is a special file, not a file")
	_, err = f.Read(t.Context(), root, "s/x")
	require.ErrorContains(t, err, "s/x: s is a special file, not a folder")
}

func TestHash_notices_changes(t *testing.T) {
	t.Parallel()
	f, root := holding(t, map[string]string{"a": "x", "b": "x"})
	p, err := f.Locate(root, "a")
	require.NoError(t, err)
	t.Cleanup(p.Close)
	put(t, filepath.Join(f.Path, "a"), "longer")
	require.ErrorContains(t, p.Hash(t.Context()), "a: changed while it was read")
	require.NoError(t, os.Rename(filepath.Join(f.Path, "b"), filepath.Join(f.Path, "a")))
	require.ErrorContains(t, p.Hash(t.Context()), "a: was exchanged for another file just now")
}

// A file that was exchanged, or whose original changed, after both were read is kept.
func TestDelete_notices_changes(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"a": "a: changed just now", "b": "the original b: changed just now"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, root := holding(t, map[string]string{"a": "x", "b": "x"})
			a, err := f.Read(t.Context(), root, "a")
			require.NoError(t, err)
			t.Cleanup(a.Close)
			b, err := f.Read(t.Context(), root, "b")
			require.NoError(t, err)
			t.Cleanup(b.Close)
			require.NoError(t, os.Remove(filepath.Join(f.Path, name)))
			put(t, filepath.Join(f.Path, name), "new")
			require.ErrorContains(t, a.Delete("id", b), says)
			require.Equal(t, "new", contentOf(t, filepath.Join(f.Path, name)))
			require.FileExists(t, filepath.Join(f.Path, "a"))
			require.FileExists(t, filepath.Join(f.Path, "b"))
		})
	}
}

func TestAsideName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 230)
	for _, base := range []string{"b.txt", "a-b", ".hidden", "a\nb", long[:229], long} {
		name := AsideName("call 1", base)
		require.LessOrEqual(t, len(name), maxName)
		require.True(t, strings.HasPrefix(name, AsidePrefix), "it is hidden")
		require.NotEqual(t, name, AsideName("call 2", base))
		require.Equal(t, base != long, strings.HasSuffix(name, "-"+base), "the name tells what it was called, if there is room")
		require.True(t, IsAside(name), name)
	}
	for _, name := range []string{
		"b.txt", ".adjourn", ".adjourn-", ".adjourn-0123456789abcde", ".adjourn-0123456789abcdex", ".adjourn-0123456789abcdeg",
		".adjourn-0123456789abcdef-", ".adjourn-0123456789abcdefb", "adjourn-0123456789abcdef-b",
	} {
		require.False(t, IsAside(name), name)
	}
}

func TestMoveBack(t *testing.T) {
	t.Parallel()
	f, root := holding(t, map[string]string{"a": "x"})
	path, aside := filepath.Join(f.Path, "a"), filepath.Join(f.Path, ".aside")
	p, err := f.Locate(root, "a")
	require.NoError(t, err)
	t.Cleanup(p.Close)
	require.NoError(t, p.Dir.Rename("a", ".aside"))
	require.ErrorContains(t, p.Unchanged("a"), "a: is gone")
	require.NoError(t, p.Unchanged(".aside"))

	put(t, path, "new")
	require.ErrorContains(t, p.moveBack(".aside"), "a was moved to .aside, and a new file has its name now")
	require.ErrorContains(t, p.Unchanged("a"), "a: changed just now")
	require.Equal(t, "x", contentOf(t, aside))
	require.Equal(t, "new", contentOf(t, path))

	require.NoError(t, os.Remove(path))
	require.NoError(t, p.moveBack(".aside"))
	require.Equal(t, "x", contentOf(t, path))
	require.NoFileExists(t, aside)
	require.ErrorContains(t, p.moveBack(".aside"), "new file has its name")
	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, p.moveBack(".aside"), "could not be moved back: does not exist")
}
