package main

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestMain makes the codec's encoder and decoder before any bubble of synctest
// does: their channels would belong to that bubble.
func TestMain(m *testing.M) {
	e := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindStarted, Token: strings.Repeat("x", 4096)}
	raw, err := journal.Encode(&e)
	if err == nil {
		_, err = journal.Decode(raw)
	}
	if err != nil {
		panic(err)
	}
	m.Run()
}

// day is a day in which everything happens: half of the huge tenant's sessions come
// within a minute, later the queue is gone for an hour, and now and then workers die,
// requests fail and messages come twice.
func day(sessions int) scenario {
	return scenario{
		seed: 1, sessions: sessions, tenants: 100, over: 24 * time.Hour,
		surgeAt: 3 * time.Hour, surge: sessions / 4,
		step: 4 * time.Second, thinks: 2 * time.Hour, concurrency: max(40, sessions/250), sweepAtOnce: 4,
		outageAt: 12 * time.Hour, outage: time.Hour,
		crash: 0.0001, fail: 0.0005, twice: 0.001,
		limit: 48 * time.Hour,
	}
}

// simulate runs a scenario in a time of its own.
func simulate(t *testing.T, s scenario) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, s)
		w.run()
	})
	return w
}

// mostResent is how often the sweep sends for one entry while the queue is gone for
// an hour: after one minute, two and four more, then every five.
const mostResent = 3 + 60/5

// TestDay is the simulation: SIMULATE says of how many sessions. It prints the table
// that docs/scale.md shows.
func TestDay(t *testing.T) {
	t.Parallel()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("SIMULATE"), "200"))
	require.NoError(t, err, "SIMULATE: use a number of sessions")
	w := simulate(t, day(n))
	t.Logf("a day of %d sessions\n%s", n, w.lines())
	r := w.report
	require.Empty(t, r.faults)
	require.Less(t, percentile(r.hops["small"], 99), time.Second)
	require.Less(t, percentile(r.hops["small in the surge"], 99), time.Second, "no tenant starves beside the huge one")
	require.NotEmpty(t, r.recovered)
	require.Less(t, percentile(r.recovered, 100), 15*time.Minute, "after the hour without a queue")
	require.LessOrEqual(t, w.resentMost(), mostResent, "no storm")
	require.Less(t, percentile(r.sweepTook, 100), sweepTimeout-sweepMargin+time.Second, "a sweep that has too much to do ends by itself, and the next one goes on")
	require.Zero(t, w.steps.dead)
	require.Equal(t, n/4 >= 250, percentile(r.hops["huge in the surge"], 50) > 5*time.Second, "the surge is one")
}

// TestSameSeed: two runs are alike to the last request, and another seed is another day.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	s := outage()
	s.sessions, s.crash, s.fail, s.twice = 40, 0.001, 0.005, 0.01
	first := simulate(t, s).lines()
	require.Equal(t, first, simulate(t, s).lines())
	s.seed = 2
	require.NotEqual(t, first, simulate(t, s).lines())
}

// surge is an hour in which the huge tenant asks for more than can be done.
func surge() scenario {
	return scenario{
		seed: 1, sessions: 240, tenants: 20, over: 40 * time.Minute, surgeAt: 10 * time.Minute, surge: 120,
		step: 8 * time.Second, thinks: 4 * time.Hour, concurrency: 40, sweepAtOnce: 4, limit: 30 * time.Minute,
	}
}

// TestSurge: while one tenant's messages pile up, those of the others are received at
// once, because the message group is the tenant.
func TestSurge(t *testing.T) {
	t.Parallel()
	waits := func(s scenario) (huge, small time.Duration) {
		r := simulate(t, s).report
		return percentile(r.hops["huge in the surge"], 50), percentile(r.hops["small in the surge"], 99)
	}
	huge, small := waits(surge())
	require.Greater(t, huge, 5*time.Second)
	require.Less(t, small, huge/4)

	s := surge()
	s.unfair = true
	huge, small = waits(s)
	require.Greater(t, small, huge, "without groups everybody waits")
}

// outage is a day whose queue is gone for an hour.
func outage() scenario {
	return scenario{
		seed: 1, sessions: 80, tenants: 20, over: 4 * time.Hour,
		step: 4 * time.Second, thinks: 20 * time.Minute, concurrency: 40, sweepAtOnce: 4,
		outageAt: 2 * time.Hour, outage: time.Hour, limit: 12 * time.Hour,
	}
}

// TestOutage: after an hour without a queue everything goes on by itself, and nobody
// sends more than the back-off lets him, whether requests failed or hung.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"requests fail": false, "requests hang": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := outage()
			s.hangs = hangs
			w := simulate(t, s)
			require.Empty(t, w.report.faults)
			require.NotEmpty(t, w.report.recovered)
			require.Less(t, percentile(w.report.recovered, 100), 15*time.Minute)
			require.LessOrEqual(t, w.resentMost(), mostResent)
		})
	}
	t.Run("without a sweep they never go on", func(t *testing.T) {
		t.Parallel()
		s := outage()
		s.noSweep = true
		require.NotEmpty(t, simulate(t, s).report.faults)
	})
	t.Run("without a back-off it is a storm", func(t *testing.T) {
		t.Parallel()
		s := outage()
		s.noBackoff = true
		require.Greater(t, simulate(t, s).resentMost(), 2*mostResent)
	})
}

// TestFaults: workers die, requests fail and messages come twice a hundred times as
// often as in a day, and callers do not try again. Without a sweep that would be the
// end of some.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := scenario{
		seed: 8, sessions: 60, tenants: 20, over: time.Hour, impatient: true,
		step: 4 * time.Second, thinks: 10 * time.Minute, concurrency: 40, sweepAtOnce: 4,
		crash: 0.01, fail: 0.02, twice: 0.05, limit: 12 * time.Hour,
	}
	w := simulate(t, s)
	for _, fault := range w.report.faults { // a start that was refused is none
		require.Contains(t, fault, "sessions began")
	}
	require.Equal(t, w.started, w.ended)
	require.Greater(t, w.report.counts["processes that died"], 50)
	require.Greater(t, w.steps.receives, w.steps.sends)

	s.noSweep = true
	w = simulate(t, s)
	require.Less(t, w.ended, w.started)
}

// TestSweepKeepsUp: sessions wait in the queue for longer than the sweep waits for a
// sign of life, so that it owes each a message every five minutes. Side by side it
// sends them; one by one it would take longer than a function may. The requests take
// twenty times as long as usual, which is as if there were so many more sessions.
func TestSweepKeepsUp(t *testing.T) {
	t.Parallel()
	s := scenario{
		seed: 1, sessions: 200, tenants: 20, over: 2 * time.Minute, surge: 100, slow: 20,
		step: time.Minute, thinks: time.Hour, concurrency: 5, sweepAtOnce: 4, limit: 10 * time.Minute,
	}
	r := simulate(t, s).report
	require.Zero(t, r.sweepsFailed)
	require.Less(t, percentile(r.sweepTook, 100), sweepTimeout-sweepMargin)

	s.sweepAtOnce = 1
	require.NotZero(t, simulate(t, s).report.sweepsFailed)
}

// TestBackPressure: an index partition that is asked for more than it takes refuses
// the writes of the table; what was refused is done later, and nothing twice. Spread
// over eight partitions the same load is refused nowhere.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	s := surge()
	s.sessions, s.surge, s.thinks, s.step, s.limit = 60, 30, 10*time.Minute, time.Second, 12*time.Hour
	s.partitionWrites, s.listShards = 3, 1
	w := simulate(t, s)
	require.Empty(t, w.report.faults)
	require.NotZero(t, w.table.throttled["sessions index"])

	s.partitionWrites, s.listShards = 12, 8
	require.Zero(t, simulate(t, s).table.refused)
}
