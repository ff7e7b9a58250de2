//go:build linux

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// appendMore says which entries it finds and which three it was told are written
// behind them, then waits for the end of stdin and closes the file.
func appendMore(path string) error {
	db, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		return err
	}
	found, err := attempts(db)
	if err != nil {
		return err
	}
	for range 3 {
		e := plainEntry(int64(len(found)) + 1)
		e.Attempt.ID = fmt.Sprintf("%d-%d", os.Getpid(), e.Seq)
		if _, err := db.Store().Commit(context.Background(), store.CommitParams{Key: crashKey, Entry: e}); err != nil {
			return err
		}
		found = append(found, e.Attempt.ID)
	}
	fmt.Println(strings.Join(found, " "))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return db.Close()
}

// attempts tells entries of one number but of different writers apart.
func attempts(db *DB) (ids []string, err error) {
	for e, err := range db.Store().Entries(context.Background(), crashKey, 0) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, e.Attempt.ID)
	}
	return ids, nil
}

// Who has lost its log leaves the one that others have begun since: what they were
// told is there after it has closed, and nothing of it stays open.
func TestLostLogOfOthersIsKept(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]string{"both": {"-wal", "-shm"}, "shared memory": {"-shm"}, "log": {"-wal"}} {
		for _, readOnly := range []bool{false, true} {
			for _, noticed := range []bool{false, true} {
				for _, other := range []string{"closed", "killed", "open"} {
					t.Run(fmt.Sprintf("%s/read_only=%v/noticed=%v/other_%s", name, readOnly, noticed, other), func(t *testing.T) {
						t.Parallel()
						path := file(t)
						made, err := Open(t.Context(), Config{Path: path})
						require.NoError(t, err)
						_, err = made.Store().Commit(t.Context(), store.CommitParams{
							Key: crashKey, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(crashKey), 0)},
						})
						require.NoError(t, err)
						require.NoError(t, made.Close())
						before := start(t, "append", path, nil)
						confirmed := before.line(t) // the log has it alone
						a, err := Open(t.Context(), Config{Path: path, ReadOnly: readOnly})
						require.NoError(t, err)
						seen, err := attempts(a) // with a connection that reads
						require.NoError(t, err)
						require.Equal(t, confirmed, strings.Join(seen, " "))
						before.signal(t, syscall.SIGKILL)
						_ = before.Wait()

						for _, suffix := range lost {
							require.NoError(t, os.Remove(path+suffix))
						}
						b := start(t, "append", path, nil)
						told := b.line(t)
						if strings.HasPrefix(told, "error") {
							require.Equal(t, "log", name)
							require.Contains(t, told, "lacks its log (-wal), which was removed")
							told = confirmed
						}
						if noticed {
							_, err := attempts(a)
							require.ErrorIs(t, err, store.ErrGone)
							if !readOnly {
								require.ErrorIs(t, a.Queue().Send(t.Context(), journal.NewWake(crashKey, 8, journal.WakeStep)), store.ErrGone)
							}
						}
						switch other {
						case "closed":
							require.NoError(t, b.stdin.Close())
							_ = b.Wait()
						case "killed":
							b.signal(t, syscall.SIGKILL)
							_ = b.Wait()
						}
						require.NoError(t, a.Close())
						requireNotOpen(t, path)
						moved, err := filepath.Glob(path + "*.lost-*")
						require.NoError(t, err)
						require.Empty(t, moved, "others work with it")
						for range 2 {
							next, err := Open(t.Context(), Config{Path: path})
							require.NoError(t, err)
							got, err := attempts(next)
							require.NoError(t, err)
							require.Equal(t, told, strings.Join(got, " "))
							require.NoError(t, next.Close())
						}
					})
				}
			}
		}
	}
}

// Where nobody has come since, what the lost log confirmed is kept.
func TestLostLogIsTakenIntoTheFile(t *testing.T) {
	t.Parallel()
	for _, lost := range [][]string{{"-wal", "-shm"}, {"-shm"}, {"-wal"}} {
		path := file(t)
		a, err := Open(t.Context(), Config{Path: path})
		require.NoError(t, err)
		_, err = a.Store().Commit(t.Context(), store.CommitParams{Key: crashKey, Entry: plainEntry(1)})
		require.NoError(t, err)
		for _, suffix := range lost {
			require.NoError(t, os.Remove(path+suffix))
		}
		require.NoError(t, a.Close())
		got, err := attempts(open(t, path))
		require.NoError(t, err)
		require.Equal(t, []string{"a1"}, got, lost)
	}
}

func requireNotOpen(t *testing.T, path string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		to, _ := os.Readlink(link) // others close theirs meanwhile
		require.False(t, strings.HasPrefix(to, path), to)
	}
}

// A file that was cut off stays empty, so that nobody takes it for a whole one.
func TestCutOffFileStaysEmpty(t *testing.T) {
	t.Parallel()
	path := file(t)
	a, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	_, err = a.Store().Commit(t.Context(), store.CommitParams{Key: crashKey, Entry: plainEntry(1)})
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, a.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Size())
	requireNotOpen(t, path)
}

// Who only reads moves nothing away.
func TestReaderOfALostFileMovesNothing(t *testing.T) {
	t.Parallel()
	path := file(t)
	b := start(t, "append", path, nil)
	_ = b.line(t)
	a, err := Open(t.Context(), Config{Path: path, ReadOnly: true})
	require.NoError(t, err)
	b.signal(t, syscall.SIGKILL)
	_ = b.Wait()
	require.NoError(t, os.Rename(path, path+".old"))
	_, err = attempts(a)
	require.ErrorIs(t, err, store.ErrGone)
	require.NoError(t, a.Close())
	require.FileExists(t, path+"-wal")
}

// Whoever finds in the shared memory what the log lacks is told of the log, not of the disk.
func TestRemovedLogIsNamed(t *testing.T) {
	t.Parallel()
	path := file(t)
	a, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, a.do(t.Context(), &testOp{f: func(w *writer) error { // the first page is in the log
		return errors.Join(w.c.Script("CREATE TABLE another (n)"), w.c.Script("DROP TABLE another"))
	}}))
	require.NoError(t, os.Remove(path+"-wal"))
	said := start(t, "append", path, nil).line(t)
	require.Contains(t, said, store.ErrUnavailable.Error())
	require.Contains(t, said, "lacks its log (-wal), which was removed")
	require.Contains(t, said, "disk I/O error (522)")
	require.NoError(t, a.Close())
}
