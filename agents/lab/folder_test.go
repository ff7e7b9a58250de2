package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/tool"
)

// writers are the tools that write to a file somebody names.
var writers = map[string]string{
	"append_line": `{"path": %q, "text": "x"}`,
	"append_once": `{"path": %q, "text": "x"}`,
	"deploy":      `{"service": "x", "log": %q}`,
	"refund":      `{"order": "x", "amount": 1, "log": %q}`,
}

// There is no way to write a line into a file that is not the lab's.
func TestFiles_stay_in_the_folder(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	keys := filepath.Join(base, ".adjourn", "api-keys")
	folder := filepath.Join(base, "adjourn-lab")
	for _, dir := range []string{filepath.Dir(keys), folder} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(keys, []byte("mine\n"), 0o600))
	require.NoError(t, os.Symlink(keys, filepath.Join(folder, "absolute")))
	require.NoError(t, os.Symlink("../.adjourn/api-keys", filepath.Join(folder, "relative")))
	require.NoError(t, os.Symlink("../.adjourn", filepath.Join(folder, "data")))
	require.NoError(t, os.Symlink("../.adjourn/new", filepath.Join(folder, "dangling")))
	require.NoError(t, os.Link(keys, filepath.Join(folder, "hard")))
	files := tool.Files{Folder: folder, Home: base, Data: filepath.Join(base, ".adjourn", "adjourn.db"), DataFolder: filepath.Join(base, ".adjourn")}
	for path, says := range map[string]string{
		keys: "outside of the folder", "../.adjourn/api-keys": "outside of the folder", "x/../../.adjourn/api-keys": "outside of the folder",
		folder + "/../.adjourn/api-keys": "outside of the folder", "/etc/adjourn-was-here": "outside of the folder", "": "outside of the folder",
		"absolute": "escapes", "relative": "escapes", "data/api-keys": "escapes", "data/new": "escapes", "dangling": "escapes",
		"hard": "hard link",
	} {
		for name, args := range writers {
			_, _, err := run(t, name, fmt.Sprintf(args, path), toolcall.Config[tool.Files]{IdempotencyKey: "k", Files: files})
			if path == "" && strings.Contains(args, "log") {
				require.NoError(t, err, "no log was asked for")
				continue
			}
			require.ErrorContains(t, err, says, "%s %s", name, path)
		}
	}
	require.Equal(t, "mine\n", read(t, keys))
	entries, err := os.ReadDir(filepath.Dir(keys))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestFiles_have_an_end(t *testing.T) {
	t.Parallel()
	path := setup(t, strings.Repeat("x", maxFile-2)+"\n")
	files := beside(path)
	for _, name := range []string{"append_line", "append_once"} {
		_, _, err := run(t, name, fmt.Sprintf(`{"path": %q, "text": "too much"}`, path), toolcall.Config[tool.Files]{IdempotencyKey: "k", Files: files})
		require.ErrorContains(t, err, "the most of a file of the lab", name)
	}
	require.Len(t, read(t, path), maxFile-1)

	// A record with a place far behind the end counts for nobody: it would make a hole.
	far := setup(t, "old\n")
	claims(t, far, record(t, "k", maxFile*2, "far\n"))
	_, _, err := run(t, "append_once", fmt.Sprintf(`{"path": %q, "text": "near"}`, far), toolcall.Config[tool.Files]{IdempotencyKey: "k", Files: beside(far)})
	require.NoError(t, err)
	require.Equal(t, "old\nnear\n", read(t, far))

	many := t.TempDir()
	for i := range maxFiles {
		require.NoError(t, os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o600))
	}
	_, _, err = run(t, "append_line", `{"path": "one-more", "text": "x"}`, toolcall.Config[tool.Files]{Files: tool.Files{Folder: many}})
	require.ErrorContains(t, err, "holds 256 files")
	_, _, err = run(t, "append_line", `{"path": "7", "text": "x"}`, toolcall.Config[tool.Files]{Files: tool.Files{Folder: many}})
	require.NoError(t, err, "one that is there takes lines")
}

func TestAgent_has_finite_limits(t *testing.T) {
	t.Parallel()
	a := Agent()
	require.True(t, a.Trial)
	require.Positive(t, a.Limits.Steps)
	require.Positive(t, a.Limits.Tokens)
	require.GreaterOrEqual(t, a.Limits.ActiveMillis, int64(0), "zero is the default, an hour")
}
