package tool_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

func TestFiles_OpenFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := tool.Files{Folder: filepath.Join(dir, "own"), Home: dir, Data: filepath.Join(dir, ".adjourn", "adjourn.db"), DataFolder: filepath.Join(dir, ".adjourn")}
	require.NoError(t, os.Mkdir(files.DataFolder, 0o700))
	for range 2 {
		root, err := files.OpenFolder()
		require.NoError(t, err)
		require.NoError(t, root.WriteFile("a.txt", []byte("a"), 0o600))
		require.Error(t, root.WriteFile("../b.txt", []byte("b"), 0o600), "nothing leads out")
		require.NoError(t, root.Close())
	}
	info, err := os.Stat(files.Folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Symlink(files.Folder, filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for name, folder := range map[string]string{
		"none": "", "a symlink": filepath.Join(dir, "link"), "a file": filepath.Join(dir, "file"), "no parent": filepath.Join(dir, "x", "y"),
		"the data's": files.DataFolder, "in the data's": filepath.Join(files.DataFolder, "own"), "above the data": dir,
	} {
		refused := files
		refused.Folder = folder
		_, err := refused.OpenFolder()
		require.ErrorIs(t, err, tool.ErrNoFolder, name)
	}
}
