package janitor

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

func TestFindCopies(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"b": "12", "a": "12", "sub/c": "34", "long name": "34", "other": "56", "single": "123", "empty": "", "sub/empty": "",
		".hidden": "12", ".git/config": "12", "twice/x": "78", "y": "78",
	})
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "linked folder")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "broken")))
	require.NoError(t, os.Link(filepath.Join(dir, "long name"), filepath.Join(dir, "sub", "long name again")))
	require.NoError(t, os.Link(filepath.Join(dir, "other"), filepath.Join(dir, "sub", "other again")))
	want := Found{
		Folder: dir,
		Sets: []Set{
			{2, sum("12"), []string{"a"}, []string{"b"}},
			{2, sum("34"), []string{"long name", "sub/long name again"}, []string{"sub/c"}},
			{2, sum("78"), []string{"y"}, []string{"twice/x"}},
		},
		Scanned: 12,
	}
	got, err := call[Found](t, t.Context(), FindCopies, FindIn{dir})
	require.NoError(t, err)
	require.Equal(t, want, got)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	got, err = call[Found](t, t.Context(), FindCopies, FindIn{link})
	require.NoError(t, err)
	require.Equal(t, want, got, "the folder's real name is returned, whatever it was called")
}

func TestFindCopies_resolves_relative_folders(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x"})
	relative, err := filepath.Rel(atHome(t).Path, dir)
	require.NoError(t, err)
	got, err := call[Found](t, t.Context(), FindCopies, FindIn{"./" + relative + "/"})
	require.NoError(t, err)
	require.Equal(t, dir, got.Folder)
	require.Equal(t, 1, got.Scanned)
}

func TestFindCopies_refuses(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1", "b": "2", "c/d": "3"})
	for in, says := range map[string]string{
		"":                              "no folder was named",
		filepath.Join(dir, "none"):      "there is no folder " + filepath.Join(dir, "none"),
		filepath.Join(dir, "a"):         "is not a folder",
		filepath.Join(dir, "a", "none"): "not a directory",
		dir + "/\x00":                   "invalid argument",
	} {
		_, err := call[Found](t, t.Context(), FindCopies, FindIn{in})
		require.ErrorContains(t, err, says)
	}
	_, err := find(t.Context(), atHome(t), dir, 3)
	require.EqualError(t, err, "folder "+dir+": it holds more than 3 files and folders: name a smaller folder inside it")
	_, err = find(t.Context(), atHome(t), dir, 4)
	require.NoError(t, err)
}

func TestFindCopies_goes_on_past_what_it_cannot_read(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Log("root may read everything; nothing to see")
		return
	}
	dir := folder(t, map[string]string{"a": "1", "closed/b": "1", "c": "1"})
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Chmod(closed, 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(closed, 0o700)) })
	got, err := call[Found](t, t.Context(), FindCopies, FindIn{dir})
	require.NoError(t, err)
	require.Equal(t, []string{"closed: permission denied"}, got.Skipped)
	require.Equal(t, []Set{{1, sum("1"), []string{"a"}, []string{"c"}}}, got.Sets)
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
	got, err := call[Found](t, t.Context(), FindCopies, FindIn{dir})
	require.NoError(t, err)
	require.Equal(t, []string{"s: is a special file"}, got.Skipped)
	_, err = call[DeleteIn](t, t.Context(), DeleteFile, DeleteIn{dir, "s", 1, sum("x"), "a"})
	require.ErrorContains(t, err, "s: is a special file, not a file")
	_, err = call[DeleteIn](t, t.Context(), DeleteFile, DeleteIn{dir, "s/x", 1, sum("x"), "a"})
	require.ErrorContains(t, err, "s/x: s is a special file, not a folder")
	_, err = call[DeleteIn](t, t.Context(), DeleteFile, DeleteIn{dir, "b", 1, sum("x"), "s"})
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
// opens nothing but what find_copies named.
func TestFolder_is_the_one_that_was_listed(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"in/a": "x", "in/b": "x", "in/c": "x", "other/a": "x", "other/b": "x"})
	in := filepath.Join(dir, "in")
	deletes := func(folder, path string) error {
		_, err := call[DeleteIn](t, t.Context(), DeleteFile, DeleteIn{folder, path, 1, sum("x"), "a"})
		return err
	}
	require.NoError(t, deletes(in+"/", "b"), "a slash at its end changes nothing")
	require.NoError(t, deletes(filepath.Join(dir, "other")+"/../in", "c"), "nor do dots that lead nowhere else")
	require.NoError(t, os.RemoveAll(in))
	require.ErrorContains(t, deletes(in, "b"), "there is no folder "+in)
	require.NoError(t, os.Symlink("other", in))
	require.ErrorContains(t, deletes(in, "b"), "leads to "+filepath.Join(dir, "other"))
	write(t, dir, "file", "x")
	require.ErrorContains(t, deletes(filepath.Join(dir, "file"), "b"), "is not a folder")
	require.Equal(t, []string{"a", "b"}, keys(contents(t, filepath.Join(dir, "other"))))
}
