package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/tool"
)

// setup returns the path of a file that holds text, or does not exist if text is "".
func setup(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.txt")
	if text != "" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return path
}

// beside makes the folder of a file that of the lab.
func beside(path string) tool.Files { return tool.Files{Folder: filepath.Dir(path)} }

// addTo and addOnceTo are appendLine and appendOnce in the folder of a file.
func addTo(ctx context.Context, path, text string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(appendLine(ctx, root, filepath.Base(path), text), root.Close())
}

func addOnceTo(ctx context.Context, path, key, text string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(appendOnce(ctx, root, filepath.Base(path), key, text), root.Close())
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func claims(t *testing.T, path string, records ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(claimsOf(path), []byte(strings.Join(records, "")), 0o600))
}

func record(t *testing.T, key string, at int64, line string) string {
	t.Helper()
	raw, err := json.Marshal(claim{Key: key, At: at, Line: line})
	require.NoError(t, err)
	return "\n" + string(raw) + "\n"
}

func TestAppendLine(t *testing.T) {
	t.Parallel()
	path := setup(t, "")
	args := func(text string) string { return fmt.Sprintf(`{"path": %q, "text": %q}`, path, text) }
	for _, text := range []string{"a", "", "a"} {
		got, _, err := run(t, "append_line", args(text), toolcall.Config[tool.Files]{Files: beside(path)})
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"path": %q}`, path), got)
	}
	require.Equal(t, "a\n\na\n", read(t, path))
	for _, text := range []string{"two\nlines", "a\r"} {
		_, _, err := run(t, "append_line", args(text), toolcall.Config[tool.Files]{Files: beside(path)})
		require.ErrorContains(t, err, "give one line")
	}
	_, _, err := run(t, "append_line", `{"path": "none/x", "text": "a"}`, toolcall.Config[tool.Files]{Files: beside(path)})
	require.ErrorContains(t, err, "append_line: ")
	require.ErrorContains(t, err, "no such file or directory")
}

func TestAppendLine_ends_a_torn_line(t *testing.T) {
	t.Parallel()
	path := setup(t, "a\ntor")
	require.NoError(t, addTo(t.Context(), path, "b"))
	require.Equal(t, "a\ntor\nb\n", read(t, path))
}

func TestAppendOnce(t *testing.T) {
	t.Parallel()
	path := setup(t, "")
	args := fmt.Sprintf(`{"path": %q, "text": "a"}`, path)
	for _, key := range []string{"k1", "k1", "k2", "k1", "k2"} {
		got, _, err := run(t, "append_once", args, toolcall.Config[tool.Files]{IdempotencyKey: key, Files: beside(path)})
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"path": %q, "key": %q}`, path, key), got, "each run answers the same")
	}
	require.Equal(t, "a\na\n", read(t, path))
	_, _, err := run(t, "append_once", fmt.Sprintf(`{"path": %q, "text": "a\n"}`, path), toolcall.Config[tool.Files]{IdempotencyKey: "k3", Files: beside(path)})
	require.ErrorContains(t, err, "give one line")
}

// What a run that died may leave behind, and what the next run with its key does then.
func TestAppendOnce_after_a_crash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file   string
		claims func(t *testing.T) []string
		want   string
	}{
		"before_anything": {want: "mine\n"},
		"after_the_files_were_made": {
			claims: func(*testing.T) []string { return nil }, want: "mine\n",
		},
		"while_the_claim_was_written": {
			file: "old\n",
			claims: func(t *testing.T) []string {
				t.Helper()
				r := record(t, "me", 4, "mine\n")
				return []string{r[:len(r)/2]}
			},
			want: "old\nmine\n",
		},
		"after_the_claim": {
			file:   "old\n",
			claims: func(t *testing.T) []string { t.Helper(); return []string{record(t, "me", 4, "mine\n")} },
			want:   "old\nmine\n",
		},
		"after_the_end_of_the_line": {
			file:   "old\n\x00\x00\x00\x00\n",
			claims: func(t *testing.T) []string { t.Helper(); return []string{record(t, "me", 4, "mine\n")} },
			want:   "old\nmine\n",
		},
		"in_the_middle_of_the_line": {
			file:   "old\nmi",
			claims: func(t *testing.T) []string { t.Helper(); return []string{record(t, "me", 4, "mine\n")} },
			want:   "old\nmine\n",
		},
		"after_the_line": {
			file:   "old\nmine\n",
			claims: func(t *testing.T) []string { t.Helper(); return []string{record(t, "me", 4, "mine\n")} },
			want:   "old\nmine\n",
		},
		"after_the_line_and_others_went_on": {
			file:   "old\nmine\nlater\n",
			claims: func(t *testing.T) []string { t.Helper(); return []string{record(t, "me", 4, "mine\n")} },
			want:   "old\nmine\nlater\n",
		},
		"after_a_second_claim_of_its_own": {
			file:   "old\n",
			claims: func(t *testing.T) []string { t.Helper(); r := record(t, "me", 4, "mine\n"); return []string{r, r} },
			want:   "old\nmine\n",
		},
		"of_another_key_between_claim_and_line": {
			file:   "old\n",
			claims: func(t *testing.T) []string { t.Helper(); return []string{record(t, "other", 4, "others\n")} },
			want:   "old\nothers\nmine\n",
		},
		"and_the_file_was_deleted": {
			claims: func(t *testing.T) []string {
				t.Helper()
				return []string{record(t, "other", 0, "others\n"), record(t, "me", 7, "mine\n")}
			},
			want: "others\nmine\n",
		},
		"of_somebody_who_tore_the_last_line": {
			file: "old\ntor", want: "old\ntor\nmine\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := setup(t, c.file)
			if c.claims != nil {
				claims(t, path, c.claims(t)...)
			}
			for range 2 {
				require.NoError(t, addOnceTo(t.Context(), path, "me", "mine"))
				require.Equal(t, c.want, read(t, path))
			}
		})
	}
}

// A worker is frozen after it found no claim of its key; another one takes over
// and writes; then the first goes on.
func TestAppendOnce_after_being_overtaken(t *testing.T) {
	t.Parallel()
	path := setup(t, "old\n")
	open := func(name string, flags int) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|flags, filePerm)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	file, keys := open(path, 0), open(claimsOf(path), os.O_APPEND)
	found, err := claimed(keys, "me")
	require.NoError(t, err)
	require.Nil(t, found)

	require.NoError(t, addOnceTo(t.Context(), path, "me", "mine"))
	require.NoError(t, addTo(t.Context(), path, "later"))

	lines, err := stake(file, keys, "me", "mine")
	require.NoError(t, err)
	require.NoError(t, put(file, keys, lines))
	require.Equal(t, "old\nmine\nlater\n", read(t, path))
}

func TestAppend_many_at_once(t *testing.T) {
	t.Parallel()
	path := setup(t, "")
	var wg sync.WaitGroup
	var want []string
	errs := make(chan error, 100)
	for i := range 20 {
		once, line := fmt.Sprintf("once %d", i), fmt.Sprintf("line %d", i)
		want = append(want, once, line)
		for range 2 { // a worker and the one that takes over
			wg.Go(func() { errs <- addOnceTo(t.Context(), path, once, once) })
		}
		wg.Go(func() { errs <- addTo(t.Context(), path, line) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.ElementsMatch(t, want, strings.Split(strings.TrimSuffix(read(t, path), "\n"), "\n"))
}

// Without any lock append_once still writes each line once.
func TestAppendOnce_needs_no_lock(t *testing.T) {
	t.Parallel()
	path := setup(t, "")
	var wg sync.WaitGroup
	var want []string
	errs := make(chan error, 100)
	for i := range 20 {
		key := fmt.Sprintf("key %d", i)
		want = append(want, key)
		for range 3 {
			wg.Go(func() {
				errs <- func() error {
					file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
					if err != nil {
						return err
					}
					beside, err := os.OpenFile(claimsOf(path), os.O_RDWR|os.O_CREATE|os.O_APPEND, filePerm)
					if err != nil {
						return errors.Join(err, file.Close())
					}
					lines, err := stake(file, beside, key, key)
					if err == nil {
						err = put(file, beside, lines)
					}
					return errors.Join(err, file.Close(), beside.Close())
				}()
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	lines := strings.Split(strings.TrimSuffix(read(t, path), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" }) // two writers may both end a torn line
	require.ElementsMatch(t, want, lines)
}

// A process that holds the file for ever, because it is frozen, stops no other.
func TestAppend_beside_a_holder(t *testing.T) {
	t.Parallel()
	path := setup(t, "old\n")
	holder, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, holder.Close()) })
	unlock, err := lock(t.Context(), holder)
	require.NoError(t, err)
	t.Cleanup(unlock)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		require.NoError(t, addTo(t.Context(), path, "line"))
		require.NoError(t, addOnceTo(t.Context(), path, "key", "once"))
		require.LessOrEqual(t, time.Since(begin), 2*(patience+time.Second))

		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("interrupted by ada")
		cancel(reason)
		if err := addTo(ctx, path, "no"); err != nil { // where there are no locks it is simply written
			require.ErrorIs(t, err, reason)
			require.Equal(t, "old\nline\nonce\n", read(t, path))
		}
	})
}

// append_once that cannot remember its key writes no line: it would be written
// again by the next run.
func TestAppendOnce_without_a_place_for_its_keys(t *testing.T) {
	t.Parallel()
	path := setup(t, "old\n")
	require.NoError(t, os.Mkdir(claimsOf(path), 0o700))
	require.ErrorContains(t, addOnceTo(t.Context(), path, "key", "mine"), ".keys")
	require.Equal(t, "old\n", read(t, path))
}

// The file beside may hold records that no lab wrote: they own no line.
func TestAppendOnce_beside_other_records(t *testing.T) {
	t.Parallel()
	path := setup(t, "old\n")
	claims(t, path, "hello\n", "{}\n", `{"key":"","at":0,"line":"x"}`+"\n", "null\n",
		record(t, "me", -1, "before\n"), record(t, "me", 1<<40, "far away\n"), record(t, "me", 4, "two\nlines\n"), record(t, "me", 4, "first\n"), record(t, "me", 99, "second\n"))
	require.NoError(t, addOnceTo(t.Context(), path, "me", "mine"))
	require.Equal(t, "old\nfirst\n", read(t, path), "the first claim of a key counts")
}

// The right to read a file is not the right to add to it.
func TestAppend_to_a_read_only_file(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Log("root may write everything; nothing to see")
		return
	}
	path := setup(t, "old\n")
	require.NoError(t, os.Chmod(path, 0o400))
	require.ErrorIs(t, addTo(t.Context(), path, "a"), os.ErrPermission)
	require.ErrorIs(t, addOnceTo(t.Context(), path, "key", "a"), os.ErrPermission)
	require.Equal(t, "old\n", read(t, path))
	require.NoFileExists(t, claimsOf(path))
}
