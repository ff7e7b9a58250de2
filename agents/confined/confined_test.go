package confined_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/pkg/tool"
)

// project makes a folder with data as `adjourn` leaves it, and returns its real path.
func project(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(dir, ".adjourn", "adjourn.db"))
	write(t, filepath.Join(dir, ".adjourn", "api-keys"))
	return dir
}

func write(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("secret\n"), 0o600))
}

func data(dir string) tool.Files {
	return tool.Files{
		Folder: filepath.Join(dir, "adjourn-lab"), Home: dir,
		Data: filepath.Join(dir, ".adjourn", "adjourn.db"), DataFolder: filepath.Join(dir, ".adjourn"),
	}
}

func closing(t *testing.T, f *confined.Folder) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, f.Root.Close()) })
}

func TestOwn(t *testing.T) {
	t.Parallel()
	dir := project(t)
	for range 2 { // it is made once
		f, err := confined.Own(data(dir))
		require.NoError(t, err)
		closing(t, f)
		require.Equal(t, filepath.Join(dir, "adjourn-lab"), f.Path)
	}
}

// A folder is refused, whatever its name, if the data can be reached from it or if it
// lies in the folder of the data.
func TestOwn_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, f *tool.Files)
		is     error
	}{
		"no folder":               {func(_ *testing.T, _ string, f *tool.Files) { *f = tool.Files{} }, confined.ErrNoFolder},
		"the folder of the data":  {func(_ *testing.T, _ string, f *tool.Files) { f.Folder = f.DataFolder }, confined.ErrData},
		"a folder inside it":      {func(_ *testing.T, _ string, f *tool.Files) { f.Folder = filepath.Join(f.DataFolder, "lab") }, confined.ErrData},
		"a folder above it":       {func(_ *testing.T, dir string, f *tool.Files) { f.Folder = dir }, confined.ErrData},
		"above that":              {func(_ *testing.T, dir string, f *tool.Files) { f.Folder = filepath.Dir(dir) }, confined.ErrData},
		"everything":              {func(_ *testing.T, _ string, f *tool.Files) { f.Folder = "/" }, confined.ErrData},
		"a file":                  {func(_ *testing.T, _ string, f *tool.Files) { f.Folder = f.Data }, confined.ErrNoFolder},
		"a folder without parent": {func(_ *testing.T, dir string, f *tool.Files) { f.Folder = filepath.Join(dir, "none", "lab") }, confined.ErrNoFolder},
		"a symlink that came with a clone": {func(t *testing.T, dir string, _ *tool.Files) {
			t.Helper()
			require.NoError(t, os.Symlink(".adjourn", filepath.Join(dir, "adjourn-lab")))
		}, confined.ErrNoFolder},
		"one that leads away": {func(t *testing.T, dir string, _ *tool.Files) {
			t.Helper()
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "adjourn-lab")))
		}, confined.ErrNoFolder},
		"the data by another name": {func(t *testing.T, dir string, f *tool.Files) {
			t.Helper()
			other := filepath.Join(t.TempDir(), "other")
			require.NoError(t, os.Symlink(dir, other))
			f.Folder = filepath.Join(other, ".adjourn")
		}, confined.ErrData},
		"data that is a symlink into it": {func(t *testing.T, dir string, f *tool.Files) {
			t.Helper()
			write(t, filepath.Join(dir, "adjourn-lab", "real.db"))
			require.NoError(t, os.Remove(f.Data))
			require.NoError(t, os.Symlink(filepath.Join(dir, "adjourn-lab", "real.db"), f.Data))
		}, confined.ErrData},
		"data put into it": {func(t *testing.T, dir string, f *tool.Files) {
			t.Helper()
			f.Data, f.DataFolder = filepath.Join(dir, "adjourn-lab", "try.db"), ""
			write(t, f.Data)
		}, confined.ErrData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t)
			files := data(dir)
			c.change(t, dir, &files)
			_, err := confined.Own(files)
			require.ErrorIs(t, err, c.is)
			require.ErrorIs(t, err, confined.ErrNoFolder)
		})
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	dir := project(t)
	f, err := confined.Own(data(dir))
	require.NoError(t, err)
	closing(t, f)
	for path, want := range map[string]string{
		"out.txt": "out.txt", "./out.txt": "out.txt", "a/../out.txt": "out.txt", f.Path + "/out.txt": "out.txt", f.Path: ".", ".": ".",
	} {
		got, err := f.Local(path)
		require.NoError(t, err, path)
		require.Equal(t, want, got)
	}
	for _, path := range []string{
		"", "..", "../.adjourn/api-keys", "a/../../.adjourn/api-keys", "/etc/passwd", filepath.Join(dir, ".adjourn", "api-keys"),
		f.Path + "/../.adjourn/api-keys", f.Path + "-other/x", "/",
	} {
		_, err := f.Local(path)
		require.ErrorIs(t, err, confined.ErrOutside, path)
	}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	dir := project(t)
	guards := func(files tool.Files, path string) bool {
		t.Helper()
		f, err := confined.Home(files)
		require.NoError(t, err)
		closing(t, f)
		info, err := os.Stat(path)
		require.NoError(t, err)
		return f.Guards(info)
	}
	require.True(t, guards(data(dir), filepath.Join(dir, ".adjourn")))
	require.True(t, guards(data(dir), filepath.Join(dir, ".adjourn", "api-keys")))
	link := filepath.Join(dir, "innocent")
	require.NoError(t, os.Link(filepath.Join(dir, ".adjourn", "api-keys"), link))
	require.True(t, guards(data(dir), link), "another name of it")
	write(t, filepath.Join(dir, "photo"))
	require.False(t, guards(data(dir), filepath.Join(dir, "photo")))

	// Beside other files the data is known by its name.
	files := tool.Files{Folder: filepath.Join(dir, "adjourn-lab"), Home: dir, Data: filepath.Join(dir, "try.db")}
	for _, name := range []string{"try.db", "try.db-wal", "try.db.api-keys", "TRY.DB.token", "pause.json"} {
		write(t, filepath.Join(dir, name))
		require.True(t, guards(files, filepath.Join(dir, name)), name)
	}
	require.False(t, guards(files, filepath.Join(dir, "photo")))

	// So are the arguments that a person edits there just now.
	edited, err := private.MakeFolder(filepath.Join(dir, "edit"))
	require.NoError(t, err)
	require.True(t, guards(files, edited.Path()), edited.Path())
	require.NoError(t, edited.Remove())
	write(t, filepath.Join(dir, "edit", "notes")) // somebody's own
	require.False(t, guards(files, filepath.Join(dir, "edit")))
}

// What does not exist is said in plain words, and still known to a program.
func TestCause(t *testing.T) {
	t.Parallel()
	_, err := os.Open(filepath.Join(t.TempDir(), "none"))
	require.EqualError(t, confined.Cause(err), "does not exist")
	require.ErrorIs(t, confined.Cause(err), fs.ErrNotExist)
	require.EqualError(t, confined.Cause(&fs.PathError{Op: "open", Path: "/secret", Err: fs.ErrPermission}), "permission denied")
	require.Equal(t, context.Canceled, confined.Cause(context.Canceled))
}
