package row

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
)

// A time comes back as it was, or as the nearest that can be kept; the zero time is 0.
func TestNanos(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	require.Equal(t, at, Time(Nanos(at)))
	require.Zero(t, Nanos(time.Time{}))
	require.True(t, Time(0).IsZero())
	require.EqualValues(t, math.MinInt64, Nanos(time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)))
	late := Nanos(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Less(t, late, int64(never), "a wait with a deadline comes before those without")
	require.Less(t, Bound(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), late)
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	for _, r := range []Receipt{{Message: 1, Receives: 1}, {Dead: true, Message: math.MaxInt64, Receives: 40}} {
		back, err := ParseReceipt(r.String())
		require.NoError(t, err)
		require.Equal(t, r, back)
	}
}

// A cursor is that of one search.
func TestCursor(t *testing.T) {
	t.Parallel()
	p := store.FindParams{Kind: store.FindWaits, Tenant: "t", Limit: 5}
	at := Position{1, -2, 3}
	p.Cursor = Cursor(&p, at)
	back, err := ParseCursor(&p)
	require.NoError(t, err)
	require.Equal(t, at, back)
	p.Tenant = "another"
	_, err = ParseCursor(&p)
	require.ErrorIs(t, err, store.ErrInvalidCursor)
}
