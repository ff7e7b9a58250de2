package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestError(t *testing.T) {
	t.Parallel()
	key := session.Key{Tenant: "t", ID: "s1"}
	require.EqualError(t, refusal.NoSession(key), "session s1: there is no such session")
	require.EqualError(t, refusal.New(codes.InvalidInput, session.Key{}, "it has %d parts", 3), "it has 3 parts")
	require.Equal(t, "it has failed", refusal.Stands(session.StatusFailed))
	require.Equal(t, "it is cancelled", refusal.Stands(session.StatusCancelled))
	require.Equal(t, session.StatusFailed, refusal.At(codes.NotResumable, key, session.StatusFailed, "no").Status)
	cause := errors.New("because")
	require.ErrorIs(t, &refusal.Error{Message: "no", Cause: cause}, cause)
}

// A refusal is about the wait that was said first, and only a refusal is about one.
func TestAbout(t *testing.T) {
	t.Parallel()
	refused := refusal.New(codes.WrongKind, session.Key{ID: "s1"}, "no")
	require.NoError(t, refusal.About("w1-1", nil))
	require.ErrorIs(t, refusal.About("w1-1", fmt.Errorf("read: %w", refused)), refused)
	require.ErrorIs(t, refusal.About("w1-2", refused), refused)
	require.Equal(t, "w1-1", refused.Wait)
	other := errors.New("no answer")
	require.Equal(t, other, refusal.About("w1-1", other))
}
