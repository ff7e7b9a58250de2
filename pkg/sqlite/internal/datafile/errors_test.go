package datafile

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/store"
)

// What is no failure of the file is not said to be one.
func TestExplain(t *testing.T) {
	t.Parallel()
	require.NoError(t, Explain(nil, store.ErrUnavailable))
	require.Equal(t, io.EOF, Explain(io.EOF, store.ErrUnavailable))
	require.ErrorIs(t, Explain(ErrClosed, queue.ErrUnavailable), queue.ErrUnavailable)
	ours := errors.Join(store.ErrNotOurs)
	require.Equal(t, ours, Explain(ours, store.ErrUnavailable))
}
