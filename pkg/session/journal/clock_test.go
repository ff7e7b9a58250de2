package journal_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestCome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		ahead, longest time.Duration
		want           bool
	}{
		"past":                          {-time.Nanosecond, time.Hour, true},
		"now":                           {0, time.Hour, true},
		"soon":                          {time.Nanosecond, time.Hour, false},
		"as far as it may be":           {time.Hour, time.Hour, false},
		"by a clock a little ahead":     {time.Hour + journal.Skew, time.Hour, false},
		"by a clock that is wrong":      {time.Hour + journal.Skew + 1, time.Hour, true},
		"a day ahead":                   {24 * time.Hour, time.Hour, true},
		"no bound is known":             {journal.Skew, 0, false},
		"further than a duration holds": {math.MaxInt64, time.Hour, true},
		"as long as a duration holds":   {math.MaxInt64, math.MaxInt64, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, journal.Come(now.Add(c.ahead), now, c.longest))
		})
	}
	require.True(t, journal.Come(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), now, time.Hour))
}

func TestPutOff(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	until := func(d time.Duration) *time.Time { at := now.Add(d); return &at }
	require.Zero(t, journal.PutOff(now, nil, now))
	require.Zero(t, journal.PutOff(now.Add(-time.Minute), until(0), now))
	require.Equal(t, 5*time.Second, journal.PutOff(now.Add(-time.Minute), until(5*time.Second), now))
	require.Equal(t, 48*time.Hour, journal.PutOff(now, until(48*time.Hour), now), "a long delay is one that was asked for")
	require.Equal(t, 25*time.Second, journal.PutOff(now.Add(20*time.Second), until(25*time.Second), now), "its writer's clock is a little ahead")
	require.Zero(t, journal.PutOff(now.Add(time.Hour), until(time.Hour+5*time.Second), now), "its writer's clock was an hour ahead")
}

func TestLease_Live_whatever_the_clocks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(ahead, lasts time.Duration) journal.Lease {
		return journal.Lease{Owner: "w", Seq: 6, N: 1, Until: now.Add(ahead), For: lasts}
	}
	const tool = 15*time.Minute + 25*time.Second // a tool's timeout with its graces
	require.True(t, lease(20*time.Second, 20*time.Second).Live(now, 5, false))
	require.True(t, lease(tool, tool).Live(now, 5, false))
	require.True(t, lease(tool+time.Second, tool).Live(now, 5, false), "its owner's clock is a second ahead")
	require.False(t, lease(tool, 20*time.Second).Live(now, 5, false), "its owner's clock was ahead")
	require.False(t, lease(time.Hour+tool, tool).Live(now, 5, false), "likewise, of a long one")
	require.False(t, lease(0, tool).Live(now, 5, false))
	require.False(t, lease(time.Second, tool).Live(now, 6, false), "an entry closed it")
	require.True(t, lease(time.Second, tool).Live(now, 6, true), "whose writer goes on")
	require.False(t, journal.Lease{}.Live(now, 0, true), "nobody's")
}

// TestLease_Dead: only a lease that somebody has can be that of a dead owner.
func TestLease_Dead(t *testing.T) {
	t.Parallel()
	require.True(t, journal.Lease{Owner: "w"}.Dead())
	require.False(t, journal.Lease{}.Dead())
	require.False(t, journal.Lease{Owner: "w", Until: time.Unix(1, 0)}.Dead())
}
