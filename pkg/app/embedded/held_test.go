//go:build linux

package embedded_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// Who waits for another process that holds the file says so, to whom the caller names
// or to the log, and gives up when it was told to.
func TestOpenHeld(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"to the log": false, "to whom the caller names": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			var told []sqlite.Holder
			cfg := embedded.Config{
				Registry: registry, Data: filepath.Join(t.TempDir(), "a.db"), Env: none, Wait: time.Millisecond,
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			}
			if named {
				cfg.OnLocked = func(h sqlite.Holder) { told = append(told, h) }
			}
			a, err := embedded.Open(t.Context(), cfg)
			require.NoError(t, err)
			release := hold(t, cfg.Data)
			_, err = start(t, a)
			require.ErrorIs(t, err, store.ErrLocked)
			require.ErrorContains(t, err, "waited 1ms")
			release()
			_, err = start(t, a)
			require.NoError(t, err)
			require.NoError(t, a.Close())
			require.Equal(t, !named, strings.Contains(log.String(), "code="+string(runtime.CodeStoreLocked)), log.String())
			if named {
				require.Len(t, told, 1)
				require.Equal(t, cfg.Data, told[0].Path)
			}
		})
	}
}

// hold takes the lock of who writes to a data file, as another process would: it
// belongs to an open file and is therefore in the way of this process too.
func hold(t *testing.T, data string) (release func()) {
	t.Helper()
	const setLock = 37 // F_OFD_SETLK
	f, err := os.OpenFile(data+"-shm", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) }) // not before: it would drop SQLite's own locks
	lock := func(kind int16) {
		require.NoError(t, syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: 120, Len: 1}))
	}
	lock(syscall.F_WRLCK)
	return func() { lock(syscall.F_UNLCK) }
}
