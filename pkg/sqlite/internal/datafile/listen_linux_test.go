package datafile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The system tells of each thing that matters, and of nothing after Close.
func TestListener(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "a.db")
	open := func() *File {
		f, err := Open(t.Context(), Config{Path: path, Wait: WaitFor, Closing: make(chan struct{})})
		require.NoError(t, err)
		return f
	}
	f, other := open(), open()
	write := func(f *File) {
		require.NoError(t, f.Begin())
		require.NoError(t, f.writer.Script("CREATE TABLE IF NOT EXISTS extra (n); INSERT INTO extra VALUES (1)"))
		require.NoError(t, f.Commit())
	}
	var l Listener
	l.Close() // it does not listen yet
	told := make(chan struct{}, 1)
	require.NoError(t, f.Listen(&l, told))
	for range 3 {
		write(other)
		<-told
		write(f)
		<-told
	}
	require.NoError(t, other.Close())
	<-told
	log, err := os.OpenFile(path+"-wal", os.O_WRONLY, 0) // as a process that dies has it open
	require.NoError(t, err)
	require.NoError(t, log.Close())
	<-told
	require.NoError(t, os.Rename(path, path+".moved"))
	<-told
	l.Close()
	l.Close()
	select {
	case <-told: // of what went before
	default:
	}
	require.NoError(t, os.Rename(path+".moved", path))
	select {
	case <-told:
		require.Fail(t, "it does not listen any more")
	default:
	}
	require.NoError(t, f.Close())

	memory, err := Open(t.Context(), Config{Path: Memory, Closing: make(chan struct{})})
	require.NoError(t, err)
	require.ErrorIs(t, memory.Listen(&l, told), errNoListening)
	require.NoError(t, memory.Close())
}
