//go:build linux

package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/process"
	"github.com/adjourn/adjourn/pkg/store"
)

// stopInCommit stops itself when it has written in a transaction, and commits when
// it is continued.
func stopInCommit(path string) error {
	db, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		return err
	}
	err = db.do(context.Background(), &testOp{f: func(w *writer) error {
		if err := w.send(false, []journal.Wake{journal.NewWake(crashKey, 7, journal.WakeStep)}); err != nil {
			return err
		}
		fmt.Println("inside")
		// To this very thread, so that it does not go on before the signal has come.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP)
	}})
	if err != nil {
		return err
	}
	fmt.Println("committed")
	return db.Close()
}

// A process that is stopped inside a commit keeps nobody from reading, and who
// writes is told whom it waits for.
func TestStoppedInCommit(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, path)
	_, err := db.Store().Commit(t.Context(), store.CommitParams{
		Key: crashKey, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(crashKey), 0)},
	})
	require.NoError(t, err)
	c := start(t, "freeze", path, nil)
	require.Equal(t, "inside", c.line(t))
	require.Eventually(t, func() bool {
		_, state := process.Describe(c.Process.Pid)
		return state == ProcessStopped
	}, soon, time.Millisecond)

	read := func(db *DB) {
		require.EqualValues(t, 1, readHead(t, db).StatusSeq)
		for e, err := range db.Store().Entries(t.Context(), crashKey, 0) {
			require.NoError(t, err)
			require.EqualValues(t, 1, e.Seq)
		}
		for _, kind := range []store.FindKind{store.FindSessions, store.FindWaits, store.FindDue} {
			_, err := db.Store().Find(t.Context(), store.FindParams{Kind: kind, Tenant: session.DefaultTenant})
			require.NoError(t, err)
		}
	}
	read(db)
	reading := openConfig(t, Config{Path: path, ReadOnly: true})
	read(reading)
	require.NoError(t, reading.Close())
	held := make(chan Holder, 1)
	writing := openConfig(t, Config{Path: path, OnLocked: func(h Holder) { held <- h }})
	read(writing)
	short := openConfig(t, Config{Path: path, Wait: 10 * time.Millisecond})
	_, err = short.Store().Commit(t.Context(), store.CommitParams{Key: crashKey, Entry: plainEntry(2)})
	require.ErrorIs(t, err, store.ErrLocked)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, fmt.Sprintf("kill -CONT %d", c.Process.Pid))

	sent := make(chan error, 1)
	go func() {
		sent <- writing.Queue().Send(context.Background(), journal.NewWake(crashKey, 9, journal.WakeStep))
	}()
	h := <-held
	require.Equal(t, c.Process.Pid, h.PID)
	require.Equal(t, ProcessStopped, h.State)
	require.Equal(t, path, h.Path)
	require.False(t, h.LastWrite.IsZero())
	require.Contains(t, h.String(), fmt.Sprintf("kill -KILL %d", c.Process.Pid))
	require.Contains(t, h.String(), filepath.Base(os.Args[0])[:6])
	c.signal(t, syscall.SIGCONT)
	require.NoError(t, <-sent)
	require.Equal(t, "committed", c.line(t))
	got, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Max: 9, Visibility: time.Hour})
	require.NoError(t, err)
	require.Len(t, got, 2)
}

func TestHolderString(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	for want, h := range map[string]Holder{
		"process 42 (adjourn), which is stopped, holds the data file a.db, to which nothing was written since 2026-03-04 05:06:07; " +
			"continue it: kill -CONT 42, or end it: kill -KILL 42 (what it had confirmed is kept)": {Path: "a.db", PID: 42, Name: "adjourn", State: ProcessStopped, LastWrite: at},
		"process 42 (adjourn), which is running, holds the data file a.db; if it does not finish, end it: kill 42": {Path: "a.db", PID: 42, Name: "adjourn", State: ProcessRunning},
		"process 42 holds the data file a.db; if it does not finish, end it: kill 42":                              {Path: "a.db", PID: 42, State: ProcessUnknown},
		"a process that cannot be seen from here (of another container?) holds the data file a.db; find it there, and continue or end it": {
			Path: "a.db", State: ProcessUnknown,
		},
	} {
		require.Equal(t, want, h.String())
	}
}

// nobody makes this process one that may do nothing of its own. Folders and files
// of a test's are told apart by their modes.
func nobody() error {
	if os.Getuid() != 0 {
		return nil
	}
	return syscall.Setuid(65534)
}

// useReadOnly opens a file it may not write, as somebody who is not root.
func useReadOnly(path string) error {
	if err := nobody(); err != nil {
		return err
	}
	db, err := Open(context.Background(), Config{Path: path})
	if err == nil {
		_, err = db.Store().Commit(context.Background(), store.CommitParams{Key: crashKey, Entry: plainEntry(1)})
		_ = db.Close()
	}
	fmt.Println(err)
	return nil
}

// readAsNobody opens a file for reading and, whenever it is told to, says how many
// entries there are.
func readAsNobody(path string) error {
	if err := nobody(); err != nil {
		return err
	}
	db, err := Open(context.Background(), Config{Path: path, ReadOnly: true})
	if err != nil {
		return err
	}
	for told := bufio.NewScanner(os.Stdin); ; {
		n := 0
		for _, err := range db.Store().Entries(context.Background(), crashKey, 0) {
			if err != nil {
				return err
			}
			n++
		}
		fmt.Println(n, "entries")
		if !told.Scan() {
			break
		}
	}
	fmt.Println(db.Queue().Send(context.Background(), journal.NewWake(crashKey, 1, journal.WakeStep)))
	return db.Close()
}

// publish lets nobody come to a folder.
func publish(t *testing.T, dir string) {
	t.Helper()
	for up := dir; up != os.TempDir() && len(up) > 1; up = filepath.Dir(up) {
		require.NoError(t, os.Chmod(up, 0o755)) //nolint:gosec // for the child, which is nobody
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
	}{
		{"file", func(t *testing.T, dir string) {
			db := open(t, filepath.Join(dir, "a.db"))
			require.NoError(t, db.Close())
			require.NoError(t, os.Chmod(filepath.Join(dir, "a.db"), 0o444)) //nolint:gosec // that is the point
			require.NoError(t, os.Chmod(dir, 0o555))                        //nolint:gosec // as above
		}},
		{"folder without a file", func(t *testing.T, dir string) {
			require.NoError(t, os.Chmod(dir, 0o555)) //nolint:gosec // as above
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			publish(t, dir)
			tt.prepare(t, dir)
			t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) //nolint:gosec // so that it can be removed
			said := start(t, "denied", filepath.Join(dir, "a.db"), nil).line(t)
			require.Contains(t, said, store.ErrUnavailable.Error())
			require.Regexp(t, "read-only|permission denied|permissions", said)
		})
	}
}

// Reading needs no right to write: not to the file, not to its folder, whether or
// not somebody else works on it, and what they write meanwhile is read.
func TestReadingWithoutTheRightToWrite(t *testing.T) {
	t.Parallel()
	commit := func(t *testing.T, db *DB, seq int64) {
		_, err := db.Store().Commit(t.Context(), store.CommitParams{Key: crashKey, Entry: plainEntry(seq)})
		require.NoError(t, err)
	}
	for _, tt := range []struct {
		name string
		live bool // somebody has the file open before
	}{
		{"nobody works", false},
		{"somebody works", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.db")
			publish(t, dir)
			db := open(t, path)
			require.NoError(t, os.Chmod(path, 0o644)) //nolint:gosec // that is the point
			commit(t, db, 1)
			if !tt.live {
				require.NoError(t, db.Close())
			} else {
				for _, suffix := range []string{"-wal", "-shm"} {
					require.NoError(t, os.Chmod(path+suffix, 0o644)) //nolint:gosec // as SQLite would have made them
				}
			}
			c := start(t, "reader", path, nil)
			require.Equal(t, "1 entries", c.line(t))
			more := func() string {
				_, err := c.stdin.Write([]byte("\n"))
				require.NoError(t, err)
				return c.line(t)
			}
			if !tt.live { // somebody came, and is gone
				db = open(t, path)
				commit(t, db, 2)
				require.NoError(t, db.Close())
				require.Equal(t, "2 entries", more())
				db = open(t, path)
			} else {
				commit(t, db, 2)
				require.Equal(t, "2 entries", more(), "what was written meanwhile")
			}
			commit(t, db, 3)
			require.Equal(t, "3 entries", more())
			require.NoError(t, db.Close())
			require.Equal(t, "3 entries", more(), "and is in the file now")
			db = open(t, path)
			commit(t, db, 4)
			require.Equal(t, "4 entries", more())
			require.NoError(t, c.stdin.Close())
			require.Contains(t, c.line(t), "opened for reading only")
			require.NoError(t, c.Wait())
		})
	}
}
