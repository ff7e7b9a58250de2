package stored

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// An entry that is there is our own only if it holds the very token this write made:
// another try of the same attempt wrote something else.
func TestOurs(t *testing.T) {
	t.Parallel()
	e := journal.Entry{Attempt: session.Attempt{ID: "a"}, Token: "x"}
	other := e
	other.Token = "y"
	foreign := e
	foreign.Attempt.ID = "b"
	require.True(t, ours(&store.ConflictError{Entry: &e}, &e))
	require.False(t, ours(&store.ConflictError{Entry: &other}, &e))
	require.False(t, ours(&store.ConflictError{Entry: &foreign}, &e))
	require.False(t, ours(&store.ConflictError{}, &e))
}
