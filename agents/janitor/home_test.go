package janitor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// confinedTo returns the janitor of a program whose data is in dir.
func confinedTo(t *testing.T, dir string, served bool) deletion.Folder {
	t.Helper()
	files := tool.Files{
		Folder: filepath.Join(dir, "adjourn-lab"), Home: dir,
		Data: filepath.Join(dir, ".adjourn", "adjourn.db"), DataFolder: filepath.Join(dir, ".adjourn"),
	}
	if served {
		files.Home = files.Folder
	}
	h, err := confined.Home(files)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Root.Close()) })
	return deletion.Folder{Folder: h}
}

// It refuses every folder that is not in its own.
func TestHome(t *testing.T) {
	t.Parallel()
	base := folder(t, map[string]string{
		"project/.adjourn/adjourn.db": "d", "project/.adjourn/api-keys": "key", "project/.adjourn/edit/x": "key", "project/photos/a": "key", "project/photos/b": "key",
		"other/a": "key", "other/b": "key",
	})
	project, other := filepath.Join(base, "project"), filepath.Join(base, "other")
	require.NoError(t, os.Symlink(other, filepath.Join(project, "away")))
	require.NoError(t, os.Symlink(".adjourn", filepath.Join(project, "data")))
	require.NoError(t, os.Link(filepath.Join(project, ".adjourn", "api-keys"), filepath.Join(project, "photos", "c")))
	before := contents(t, base)

	h := confinedTo(t, project, false)
	for told, says := range map[string]string{
		other: "outside of the folder", "../other": "outside of the folder", "/": "outside of the folder", "away": "outside of the folder",
		"photos/../../other": "outside of the folder", base: "outside of the folder",
		".adjourn": "the program's data", "data": "the program's data", filepath.Join(project, ".adjourn"): "the program's data",
	} {
		_, err := find(t.Context(), h, told, maxEntries)
		require.ErrorContains(t, err, says, told)
	}
	for _, in := range []string{other, filepath.Join(project, ".adjourn"), filepath.Join(project, "away"), filepath.Join(project, "data")} {
		_, err := h.Open(in)
		require.Error(t, err, in)
		require.Error(t, remove(t.Context(), h, DeleteIn{in, "b", 3, sum("key"), "a"}, "id"), in)
	}
	root, err := h.Open(project)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	for _, path := range []string{".adjourn/api-keys", ".adjourn/edit/x", "data/api-keys", "photos/c"} {
		_, err := h.Read(t.Context(), root, path)
		require.Error(t, err, path)
		require.Error(t, remove(t.Context(), h, DeleteIn{project, path, 3, sum("key"), "photos/a"}, "id"), path)
		require.Error(t, remove(t.Context(), h, DeleteIn{project, "photos/b", 3, sum("key"), path}, "id"), path)
	}
	require.Equal(t, before, contents(t, base), "nothing was deleted")

	listing, err := find(t.Context(), h, "photos", maxEntries)
	require.NoError(t, err)
	require.Equal(t, []Set{{3, sum("key"), []string{"a"}, []string{"b"}}}, listing.Sets, "another name of the data is not listed")
	require.NoError(t, remove(t.Context(), h, DeleteIn{listing.Folder, "b", 3, sum("key"), "a"}, "id"), "its own work goes on")
}

// At a server, where others may call it, it looks only into the lab's folder.
func TestHome_of_a_server(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"photos/a": "x", "photos/b": "x", "adjourn-lab/a": "x", "adjourn-lab/b": "x"})
	h := confinedTo(t, dir, true)
	for _, told := range []string{dir, filepath.Join(dir, "photos"), "../photos"} {
		_, err := find(t.Context(), h, told, maxEntries)
		require.ErrorContains(t, err, "outside of the folder", told)
	}
	listing, err := find(t.Context(), h, ".", maxEntries)
	require.NoError(t, err)
	require.Len(t, listing.Sets, 1)
}

// TestHome_of_a_session: what a server began stays in the server's folder when the
// owner of the data goes on with it in a terminal.
func TestHome_of_a_session(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"photos/a": "x", "photos/b": "x", "adjourn-lab/a": "x", "adjourn-lab/b": "x"})
	lab := filepath.Join(dir, "adjourn-lab")
	terminal, server := tool.Files{Folder: lab, Home: dir}, tool.Files{Folder: lab, Home: lab}
	list := func(state *session.State, files tool.Files, told string) error {
		c := toolcall.New[tool.Call](toolcall.Config[tool.Files]{ID: "c1-0", Name: FindCopies, State: state, Files: files})
		args, err := json.Marshal(FindIn{told})
		require.NoError(t, err)
		_, err = toolCalled(t, FindCopies).Run(t.Context(), c, args)
		for _, op := range toolcall.Take[tool.Question](c).StateOps {
			require.NoError(t, state.Apply(op))
		}
		return err
	}
	var owners, strangers session.State
	require.NoError(t, list(&owners, terminal, "photos"))
	require.Error(t, list(&owners, server, filepath.Join(dir, "photos")), "a server goes no further, whoever began")
	require.NoError(t, list(&owners, terminal, "photos"))

	require.NoError(t, list(&strangers, server, "."))
	require.ErrorContains(t, list(&strangers, terminal, filepath.Join(dir, "photos")), "outside of the folder")
	require.NoError(t, list(&strangers, terminal, "."))
}
