//go:build unix

package sqlite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Nothing is told to be stored, received or there in a file that nobody has any more.
func TestLostFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(t *testing.T, path string)
		says string
	}{
		"deleted":        {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, "was deleted or moved away"},
		"moved away":     {func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) }, "was deleted or moved away"},
		"folder deleted": {func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) }, "was deleted or moved away"},
		"replaced": {func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "b.db")
			require.NoError(t, open(t, other).Close())
			require.NoError(t, os.Rename(other, path))
		}, "was replaced by another file"},
		"made anew": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			_ = open(t, path)
		}, "while it was in use"}, // whoever waits may have seen it deleted
		"log deleted":           {func(t *testing.T, path string) { require.NoError(t, os.Remove(path+"-wal")) }, "-wal was deleted or moved away"},
		"shared memory deleted": {func(t *testing.T, path string) { require.NoError(t, os.Remove(path+"-shm")) }, "-shm was deleted or moved away"},
		"cut off":               {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }, "was cut off to 0 bytes"},
	} {
		for _, idle := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := file(t)
				db := open(t, path)
				_, err := db.Store().Commit(t.Context(), store.CommitParams{
					Key: crashKey, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(crashKey), 0)},
				})
				require.NoError(t, err)
				received := make(chan error, 1)
				if idle {
					go func() {
						_, err := db.Queue().Receive(context.Background(), queue.ReceiveParams{Wait: time.Hour, Visibility: time.Hour})
						received <- err
					}()
				}
				tt.lose(t, path)
				told := func(err error) {
					require.ErrorIs(t, err, store.ErrGone)
					require.ErrorContains(t, err, tt.says)
					require.ErrorContains(t, err, path)
				}
				if idle {
					told(<-received) // though nothing was written
				} else {
					// The first that follows is told: an effect may stand on it.
					_, err = db.Store().Update(t.Context(), crashKey, store.ToolItem(journal.ToolRecord{Call: "c1-0", State: journal.ToolStarted}, 0))
					told(err)
				}
				_, err = db.Store().Claim(t.Context(), store.ClaimParams{
					Key: crashKey, Mode: store.ClaimTake, Owner: "me", Seq: 2, Now: time.Now(), Until: time.Now().Add(time.Minute),
				})
				told(err)
				told(db.Queue().Send(t.Context(), journal.NewWake(crashKey, 2, journal.WakeStep)))
				for _, err := range db.Store().Entries(t.Context(), crashKey, 0) {
					told(err)
				}
			})
		}
	}
}

// What is read is of the file that is there, also by who has read from it before and
// writes nothing.
func TestLostFileIsNotRead(t *testing.T) {
	t.Parallel()
	const readers = 4 // as many as the data file has connections that read
	for _, readOnly := range []bool{false, true} {
		path := file(t)
		made := open(t, path)
		_, err := made.Store().Commit(t.Context(), store.CommitParams{Key: crashKey, Entry: plainEntry(1)})
		require.NoError(t, err)
		db := openConfig(t, Config{Path: path, ReadOnly: readOnly})
		read := func() (n int, err error) {
			for _, err = range db.Store().Entries(t.Context(), crashKey, 0) {
				n++
			}
			return n, err
		}
		for range readers { // each with a connection of its own
			n, err := read()
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		require.NoError(t, os.Rename(path, path+".old"))
		for range readers {
			_, err := read()
			require.ErrorIs(t, err, store.ErrGone)
		}
	}
}

// Who has lost its file leaves the one that took its place alone, its log too.
func TestLostFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := file(t)
	old, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, old.Queue().Send(t.Context(), journal.NewWake(crashKey, 1, journal.WakeStep)))
	require.NoError(t, os.Remove(path))
	db := open(t, path)
	require.Empty(t, receiveNow(t, db.Queue()), "nothing of the old file's log is in the new one")
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crashKey, 2, journal.WakeStep)))
	require.NoError(t, old.Close())
	require.FileExists(t, path+"-wal")
	again := open(t, path)
	require.Len(t, receiveNow(t, again.Queue()), 1)
}

// Another file in the place of one in use meets nothing of it: neither what it had
// confirmed nor what it does until it notices.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(t *testing.T, other, path string){
		"moved over": func(t *testing.T, other, path string) { require.NoError(t, os.Rename(other, path)) },
		"copied": func(t *testing.T, other, path string) {
			data, err := os.ReadFile(other)
			require.NoError(t, err)
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.WriteFile(path, data, 0o600))
		},
	} {
		for _, notice := range []string{"writing", "reading", "closing"} {
			t.Run(name+"/"+notice, func(t *testing.T) {
				t.Parallel()
				path, other := file(t), filepath.Join(t.TempDir(), "b.db")
				theirs, err := Open(t.Context(), Config{Path: other})
				require.NoError(t, err)
				_, err = theirs.Store().Commit(t.Context(), store.CommitParams{
					Key: crashKey, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(crashKey), 0)},
				})
				require.NoError(t, err)
				require.NoError(t, theirs.Close())
				run, err := Open(t.Context(), Config{Path: path})
				require.NoError(t, err)
				silent, err := Open(t.Context(), Config{Path: path}) // another process that works on
				require.NoError(t, err)
				require.NoError(t, run.Queue().Send(t.Context(), journal.NewWake(crashKey, 7, journal.WakeStep)))

				put(t, other, path)
				switch notice {
				case "writing":
					err := run.Queue().Send(t.Context(), journal.NewWake(crashKey, 8, journal.WakeStep))
					require.ErrorIs(t, err, store.ErrGone)
					require.ErrorContains(t, err, "its log, with what the file itself may lack, was moved to "+path+"-wal.lost-")
				case "reading":
					for _, err := range run.Store().Entries(t.Context(), crashKey, 0) {
						require.ErrorIs(t, err, store.ErrGone)
					}
				}
				require.NoError(t, run.Close())
				require.NoFileExists(t, path+"-wal")
				require.NoFileExists(t, path+"-shm")

				for i := range 2 {
					db, err := Open(t.Context(), Config{Path: path})
					require.NoError(t, err)
					require.Empty(t, receiveNow(t, db.Queue()), "nothing of the old file")
					n := 0
					for e, err := range db.Store().Entries(t.Context(), crashKey, 0) {
						require.NoError(t, err)
						require.Equal(t, int64(1), e.Seq)
						n++
					}
					require.Equal(t, 1, n)
					if i == 0 {
						require.ErrorIs(t, silent.Queue().Send(t.Context(), journal.NewWake(crashKey, 9, journal.WakeStep)), store.ErrGone)
						require.NoError(t, silent.Close())
					}
					require.NoError(t, db.Close())
				}
			})
		}
	}
}

// A file that comes back without its log would lack what was confirmed: it is
// refused until the log is back too, by the words of the refusal.
func TestLostFileComesBack(t *testing.T) {
	t.Parallel()
	path := file(t)
	run, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, run.Queue().Send(t.Context(), journal.NewWake(crashKey, 7, journal.WakeStep)))
	require.NoError(t, os.Rename(path, path+".old"))
	lost := run.Queue().Send(t.Context(), journal.NewWake(crashKey, 8, journal.WakeStep))
	require.ErrorIs(t, lost, store.ErrGone)
	require.NoError(t, run.Close())
	require.NoError(t, os.Rename(path+".old", path))
	for _, readOnly := range []bool{true, false} {
		_, err = Open(t.Context(), Config{Path: path, ReadOnly: readOnly})
		require.ErrorIs(t, err, store.ErrNotOurs)
		says := regexp.MustCompile(`mv '[^;]*`).FindString(err.Error())
		require.NotEmpty(t, says)
		require.ErrorContains(t, lost, says, "both say the same")
	}
	says := regexp.MustCompile(`mv '[^;]*`).FindString(lost.Error())
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", says).Run())
	again := open(t, path)
	require.NotEmpty(t, receiveNow(t, again.Queue()))
}
