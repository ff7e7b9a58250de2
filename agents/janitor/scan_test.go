package janitor

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

func TestListFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"b": "12", "a": "34", "sub/c": "56", "long name": "78", "single": "123", "empty": "", ".hidden": "12", ".git/config": "12",
	})
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "linked folder")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "broken")))
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "sub", "a again")))
	want := Listing{
		Folder:    dir,
		Files:     []File{{Path: "a", Size: 2, Linked: true}, {Path: "b", Size: 2}, {Path: "sub/c", Size: 2}, {Path: "long name", Size: 2}},
		HardLinks: []HardLink{{Path: "sub/a again", SameAs: "a"}},
		Scanned:   7, Empty: 1, Hidden: 2, Symlinks: 3,
	}
	got, err := call[Listing](t, t.Context(), ListFiles, ListIn{dir})
	require.NoError(t, err)
	require.Equal(t, want, got)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	got, err = call[Listing](t, t.Context(), ListFiles, ListIn{link})
	require.NoError(t, err)
	require.Equal(t, want, got, "the folder's real name is returned, whatever it was called")
}

func TestListFiles_resolves_relative_folders(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x"})
	relative, err := filepath.Rel(atHome(t).Path, dir)
	require.NoError(t, err)
	got, err := call[Listing](t, t.Context(), ListFiles, ListIn{"./" + relative + "/"})
	require.NoError(t, err)
	require.Equal(t, dir, got.Folder)
	require.Equal(t, 1, got.Scanned)
}

func TestListFiles_refuses(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1", "b": "2", "c/d": "3"})
	for in, says := range map[string]string{
		"":                              "no folder was named",
		filepath.Join(dir, "none"):      "there is no folder " + filepath.Join(dir, "none"),
		filepath.Join(dir, "a"):         "is not a folder",
		filepath.Join(dir, "a", "none"): "not a directory",
		dir + "/\x00":                   "invalid argument",
	} {
		_, err := call[Listing](t, t.Context(), ListFiles, ListIn{in})
		require.ErrorContains(t, err, says)
	}
	_, err := atHome(t).scan(t.Context(), dir, 3)
	require.EqualError(t, err, "folder "+dir+": it holds more than 3 files and folders: name a smaller folder inside it")
	_, err = atHome(t).scan(t.Context(), dir, 4)
	require.NoError(t, err)
}

func TestListFiles_goes_on_past_what_it_cannot_read(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Log("root may read everything; nothing to see")
		return
	}
	dir := folder(t, map[string]string{"a": "1", "closed/b": "2", "c": "3"})
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Chmod(closed, 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(closed, 0o700)) })
	got, err := call[Listing](t, t.Context(), ListFiles, ListIn{dir})
	require.NoError(t, err)
	require.Equal(t, []Skipped{{Path: "closed", Reason: "permission denied"}}, got.Skipped)
	require.Len(t, got.Files, 2)
}

func TestHashFile(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 3<<16) + "end"
	dir := folder(t, map[string]string{"sub/large": large, "empty": ""})
	require.NoError(t, os.Symlink("sub/large", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "via")))
	got, err := call[Hash](t, t.Context(), HashFile, HashIn{dir, "sub/large"})
	require.NoError(t, err)
	require.Equal(t, Hash{Path: "sub/large", Size: int64(len(large)), SHA256: sum(large)}, got)
	for path, says := range map[string]string{
		"empty":         "is empty",
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
		_, err := call[Hash](t, t.Context(), HashFile, HashIn{dir, path})
		require.ErrorContains(t, err, says, path)
	}
}

func TestHash_notices_changes(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x", "b": "x"})
	root, err := atHome(t).Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	p, err := atHome(t).Locate(root, "a")
	require.NoError(t, err)
	t.Cleanup(p.Close)
	write(t, dir, "a", "longer")
	_, _, err = p.Hash(t.Context())
	require.ErrorContains(t, err, "a: changed while it was read")
	require.NoError(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")))
	_, _, err = p.Hash(t.Context())
	require.ErrorContains(t, err, "a: was exchanged for another file just now")
}

// A folder may hold things that are neither files nor folders: they are named,
// and no tool touches them.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x", "b": "x"})
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Logf("there are no sockets here: %v", err)
		return
	}
	t.Cleanup(func() { require.NoError(t, socket.Close()) })
	got, err := call[Listing](t, t.Context(), ListFiles, ListIn{dir})
	require.NoError(t, err)
	require.Equal(t, []Skipped{{Path: "s", Reason: "is a special file"}}, got.Skipped)
	_, err = call[Hash](t, t.Context(), HashFile, HashIn{dir, "s"})
	require.ErrorContains(t, err, "s: is a special file, not a file")
	_, err = call[Hash](t, t.Context(), HashFile, HashIn{dir, "s/x"})
	require.ErrorContains(t, err, "s/x: s is a special file, not a folder")
	_, err = call[Deleted](t, t.Context(), DeleteFile, DeleteIn{dir, "b", 1, sum("x"), "s"})
	require.ErrorContains(t, err, "the original s: is a special file, not a file")

	messages := (&drive{}).run(t, []llm.Message{llm.User(dir)})
	require.Contains(t, messages[len(messages)-1].Text(), "Could not be read:\n  s: is a special file")
	require.Equal(t, []string{"a", "s"}, entriesOf(t, dir))
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// The folder may be exchanged for another between two calls: its name alone
// opens nothing but what list_files named.
func TestFolder_is_the_one_that_was_listed(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"in/a": "x", "other/a": "y"})
	in := filepath.Join(dir, "in")
	_, err := call[Hash](t, t.Context(), HashFile, HashIn{in + "/", "a"})
	require.NoError(t, err, "a slash at its end changes nothing")
	_, err = call[Hash](t, t.Context(), HashFile, HashIn{filepath.Join(dir, "other") + "/../in", "a"})
	require.NoError(t, err, "nor do dots that lead nowhere else")
	require.NoError(t, os.RemoveAll(in))
	_, err = call[Hash](t, t.Context(), HashFile, HashIn{in, "a"})
	require.ErrorContains(t, err, "there is no folder "+in)
	require.NoError(t, os.Symlink("other", in))
	_, err = call[Hash](t, t.Context(), HashFile, HashIn{in, "a"})
	require.ErrorContains(t, err, "leads to "+filepath.Join(dir, "other"))
	write(t, dir, "file", "x")
	_, err = call[Hash](t, t.Context(), HashFile, HashIn{filepath.Join(dir, "file"), "a"})
	require.ErrorContains(t, err, "is not a folder")
}
