package journal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	e := entry(42, session.KindStepped, session.StatusRunning)
	c := e.Checkpoint("s_1-a")
	require.Equal(t, session.Checkpoint{Session: "s_1-a", Seq: 42, Token: e.Token}, c)
	got, err := session.ParseCheckpoint(c.String())
	require.NoError(t, err)
	require.Equal(t, c, got)
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, c.String())

	s := session.Session{Key: session.Key{ID: "s_1-a"}, Version: 42, CheckpointSeq: 42, CheckpointToken: e.Token}
	require.Equal(t, c, s.Checkpoint())
	require.EqualValues(t, 43, s.Next())
}

func TestLease_Live(t *testing.T) {
	t.Parallel()
	lease := journal.Lease{Owner: "w", Seq: 5, N: 1, Until: at.Add(20 * time.Second)}
	for name, c := range map[string]struct {
		lease      journal.Lease
		now        time.Time
		newest     int64
		keepsLease bool
		want       bool
	}{
		"nobody_wrote_it_yet":              {lease, at, 4, false, true},
		"goes_on_before_it":                {lease, at, 4, true, true},
		"its_entry_closed_it":              {lease, at, 5, false, false},
		"its_entry_goes_on":                {lease, at, 5, true, true},
		"a_later_entry_closed_it":          {lease, at, 6, false, false},
		"a_later_entry_goes_on":            {lease, at, 6, true, true},
		"a_moment_before_its_time":         {lease, lease.Until.Add(-1), 4, false, true},
		"at_its_time":                      {lease, lease.Until, 4, false, false},
		"after_its_time_though_it_goes_on": {lease, lease.Until.Add(1), 5, true, false},
		"nobody_has_it":                    {journal.Lease{Seq: 5, Until: lease.Until}, at, 4, false, false},
		"released":                         {journal.Lease{Owner: "w", Seq: 5}, at, 4, false, false},
	} {
		require.Equal(t, c.want, c.lease.Live(c.now, c.newest, c.keepsLease), name)
	}
}

func TestSignal_Strength(t *testing.T) {
	t.Parallel()
	order := []journal.SignalKind{"", journal.SignalInterrupt, journal.SignalCancel, journal.SignalAbort}
	for i := range order[1:] {
		require.Less(t, order[i].Strength(), order[i+1].Strength())
	}
}

func TestWake(t *testing.T) {
	t.Parallel()
	key := session.Key{Tenant: "acme", ID: "s1"}
	require.Equal(t, key, journal.NewWake(key, 3, journal.WakeStep).Key())
}
