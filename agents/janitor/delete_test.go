package janitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"keep": "x", "sub/dir/copy": "x"})
	out, err := call[DeleteIn](t, t.Context(), DeleteFile, DeleteIn{dir, "sub/dir/copy", 1, sum("x"), "keep"})
	require.NoError(t, err)
	require.Equal(t, DeleteIn{dir, "sub/dir/copy", 1, sum("x"), "keep"}, out)
	require.Equal(t, map[string]string{"keep": "x"}, contents(t, dir))
}

// Each of these must leave every file where it is.
func TestDelete_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		edit   func(in *DeleteIn)
		says   string
	}{
		"a_path_that_climbs_out": {
			edit: func(in *DeleteIn) { in.Path = "../outside/copy" }, says: "is not the path of a file inside the folder",
		},
		"a_path_that_climbs_out_and_back": {
			edit: func(in *DeleteIn) { in.Path = "sub/../copy" }, says: "is not the path of a file inside the folder",
		},
		"an_absolute_path": {
			edit: func(in *DeleteIn) { in.Path = filepath.Join(in.Folder, "copy") }, says: "is not the path of a file inside the folder",
		},
		"no_path":    {edit: func(in *DeleteIn) { in.Path = "" }, says: "is not the path of a file inside the folder"},
		"the_folder": {edit: func(in *DeleteIn) { in.Path = "." }, says: "is not the path of a file inside the folder"},
		"a_folder_inside": {
			edit: func(in *DeleteIn) { in.Path = "sub" }, says: "sub: is a folder, not a file",
		},
		"a_file_as_a_folder": {
			edit: func(in *DeleteIn) { in.Path = "keep/copy" }, says: "keep/copy: keep is a file, not a folder",
		},
		"an_original_outside": {
			edit: func(in *DeleteIn) { in.SameAs = "../outside/copy" }, says: "the original path \"../outside/copy\" is not the path",
		},
		"a_relative_folder": {
			edit: func(in *DeleteIn) { in.Folder = "." }, says: "is not absolute: use the one that find_copies returned",
		},
		"a_folder_that_is_gone": {
			edit: func(in *DeleteIn) { in.Folder += "-gone" }, says: "there is no folder",
		},
		"the_copy_became_a_symlink": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Remove(filepath.Join(dir, "sub/copy")))
				require.NoError(t, os.Symlink("../keep", filepath.Join(dir, "sub/copy")))
			},
			says: "sub/copy: is a symlink, not a file",
		},
		"a_folder_on_the_way_became_a_symlink_inside": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "moved")))
				require.NoError(t, os.Symlink("moved", filepath.Join(dir, "sub")))
			},
			says: "sub/copy: sub is a symlink, not a folder",
		},
		"a_folder_on_the_way_became_a_symlink_outside": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.RemoveAll(filepath.Join(dir, "sub")))
				require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(dir), "outside"), filepath.Join(dir, "sub")))
			},
			says: "sub/copy: sub is a symlink, not a folder",
		},
		"the_folder_itself_became_a_symlink": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Rename(dir, dir+"-moved"))
				require.NoError(t, os.Symlink(dir+"-moved", dir))
			},
			says: "-moved: use the one that find_copies returned",
		},
		"the_content_changed": {
			change: func(t *testing.T, dir string) { t.Helper(); write(t, dir, "sub/copy", "y") },
			says:   "sub/copy: is no longer the file that was shown: its content has changed",
		},
		"the_size_changed": {
			change: func(t *testing.T, dir string) { t.Helper(); write(t, dir, "sub/copy", "xx") },
			says:   "sub/copy: is no longer the file that was shown: it has 2 bytes, not 1",
		},
		"the_copy_is_gone": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Remove(filepath.Join(dir, "sub/copy")))
			},
			says: "sub/copy: does not exist",
		},
		"the_original_is_gone": {
			change: func(t *testing.T, dir string) { t.Helper(); require.NoError(t, os.Remove(filepath.Join(dir, "keep"))) },
			says:   "the original keep: does not exist",
		},
		"the_original_changed": {
			change: func(t *testing.T, dir string) { t.Helper(); write(t, dir, "keep", "y") },
			says:   "the original keep: is no longer the file that was shown",
		},
		"the_original_became_a_symlink_to_the_copy": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Remove(filepath.Join(dir, "keep")))
				require.NoError(t, os.Symlink("sub/copy", filepath.Join(dir, "keep")))
			},
			says: "the original keep: is a symlink, not a file",
		},
		"the_original_is_the_copy": {
			edit: func(in *DeleteIn) { in.SameAs = in.Path }, says: "is the file to keep, or has another name too",
		},
		"the_copy_is_a_hard_link_to_a_file_outside": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Remove(filepath.Join(dir, "sub/copy")))
				require.NoError(t, os.Link(filepath.Join(filepath.Dir(dir), "outside/copy"), filepath.Join(dir, "sub/copy")))
			},
			says: "has another name too (a hard link)",
		},
		"the_original_is_a_hard_link_to_the_copy": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				require.NoError(t, os.Remove(filepath.Join(dir, "keep")))
				require.NoError(t, os.Link(filepath.Join(dir, "sub/copy"), filepath.Join(dir, "keep")))
			},
			says: "is the file to keep, or has another name too (a hard link)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := folder(t, map[string]string{"outside/copy": "x", "in/keep": "x", "in/copy": "x", "in/sub/copy": "x"})
			in := DeleteIn{filepath.Join(base, "in"), "sub/copy", 1, sum("x"), "keep"}
			if c.change != nil {
				c.change(t, in.Folder)
			}
			if c.edit != nil {
				c.edit(&in)
			}
			before := contents(t, base)
			_, err := call[DeleteIn](t, t.Context(), DeleteFile, in)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, contents(t, base))
		})
	}
}

// Two deletions may each name the other one's file as the original, and run at
// the same time: one file must stay, under its own name.
func TestDelete_never_the_last_copy(t *testing.T) {
	t.Parallel()
	h := atHome(t)
	for range 50 {
		dir := folder(t, map[string]string{"a": "x", "b": "x"})
		var wg sync.WaitGroup
		for _, in := range []DeleteIn{{dir, "a", 1, sum("x"), "b"}, {dir, "b", 1, sum("x"), "a"}} {
			wg.Go(func() { _ = remove(t.Context(), h, in, in.Path) })
		}
		wg.Wait()
		left := keys(contents(t, dir))
		require.NotEmpty(t, left)
		require.Subset(t, []string{"a", "b"}, left)
	}
}

func TestDelete_never_the_last_copy_when_the_other_one_is_half_done(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x", "b": "x"})
	root, err := atHome(t).Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	// A worker was frozen after it had moved a aside.
	require.NoError(t, root.Rename("a", ".adjourn-frozen"))
	err = remove(t.Context(), atHome(t), DeleteIn{dir, "b", 1, sum("x"), "a"}, "other")
	require.ErrorContains(t, err, "the original a: does not exist")
	require.Equal(t, []string{".adjourn-frozen", "b"}, keys(contents(t, dir)))
}

func TestDelete_overwrites_nothing(t *testing.T) {
	t.Parallel()
	aside := deletion.AsideName("id", "b")
	dir := folder(t, map[string]string{"a": "x", "b": "x", aside: "somebody's"})
	err := remove(t.Context(), atHome(t), DeleteIn{dir, "b", 1, sum("x"), "a"}, "id")
	require.ErrorContains(t, err, aside+" is in the way")
	require.Equal(t, []string{aside, "a", "b"}, keys(contents(t, dir)))
}

// A name as long as a file system takes can be deleted too.
func TestDelete_a_very_long_name(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 255)
	dir := folder(t, map[string]string{"a": "x", long: "x"})
	_, err := call[DeleteIn](t, t.Context(), DeleteFile, DeleteIn{dir, long, 1, sum("x"), "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, keys(contents(t, dir)))
}

func TestDelete_stops_with_its_context(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "x", "b": "x"})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted by ada")
	cancel(reason)
	_, err := call[DeleteIn](t, ctx, DeleteFile, DeleteIn{dir, "b", 1, sum("x"), "a"})
	require.ErrorIs(t, err, reason)
	_, err = call[Found](t, ctx, FindCopies, FindIn{dir})
	require.ErrorIs(t, err, reason)
	require.Equal(t, []string{"a", "b"}, keys(contents(t, dir)))
}
