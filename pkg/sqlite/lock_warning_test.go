//go:build linux

package sqlite

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
)

// hold takes the lock of who writes to a data file, as another process would: it
// belongs to an open file and is therefore in the way of this process too.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	const setLock, toWrite = 37, 120 // F_OFD_SETLK; SQLite's lock of who writes
	f, err := os.OpenFile(path+"-shm", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) }) // not before: it would drop SQLite's own locks
	lock := func(kind int16) {
		require.NoError(t, syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: toWrite, Len: 1}))
	}
	lock(syscall.F_WRLCK)
	return func() { lock(syscall.F_UNLCK) }
}

// A transaction that waits for long tells once for whom, and the next one again.
func TestHeldFile_is_told_once(t *testing.T) {
	t.Parallel()
	var told []Holder
	db := openConfig(t, Config{Path: file(t), OnLocked: func(h Holder) { told = append(told, h) }})
	w := byHand(t, db)
	release := hold(t, db.path)
	defer release()
	require.NoError(t, w.c.Script("PRAGMA busy_timeout=1")) // instead of LockWait, which counts all the same
	for n := range 2 {
		_, batch := counted()
		w.commit(batch)
		var held *LockedError
		require.ErrorAs(t, batch[0].base().err, &held)
		require.ErrorIs(t, held, store.ErrLocked)
		require.Equal(t, WaitFor, held.Waited, "it goes on waiting")
		require.Equal(t, db.path, held.Holder.Path)
		require.Len(t, told, n+1)
		require.Equal(t, db.path, told[n].Path)
	}
}
