//go:build linux

package main_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// A window of docs/design/README.md lies between two calls that change something,
// so that killing before and after every such call goes through all of them:
//
//	(1) committed, not sent             Commit after, of start; Update after and Send before, of the answer
//	(2) sent, response lost             Send after; Commit after (here the wake goes with it)
//	(3) received, nothing done          Receive after; Claim before and after
//	(4) model answered, not committed   Model after; Commit before
//	(5) effect done, not committed      Tool after; Update before, of the ledger; Commit before
//	(6) committed, next not sent        Commit after
//	(7) sent, not acknowledged          Acknowledge before
//	(8) retries exhausted               TestKillExhausted
//	(9) nobody answers                  all of the above, in the story of the deadline

// point is one place of one phase of a story.
type point struct {
	story []phase
	phase int
	at    string
}

func (p point) String() string { return p.story[p.phase].name + " " + p.at }

// calm tells a story undisturbed and returns the places it passes.
func calm(t *testing.T, told []phase, approved string) []point {
	t.Helper()
	return calmIn(t, trapWorld(t, "undisturbed", approved), told)
}

// calmIn is calm in a trial of its own.
func calmIn(t *testing.T, w *world, told []phase) []point {
	t.Helper()
	var points []point
	try(t, w, func(w *world) {
		for i, p := range told {
			w.passDeadline(p)
			record := w.path("places-" + p.name)
			r := w.start([]string{trapRecord + "=" + record}, p.args...).wait()
			require.Equal(w, p.code, r.code)
			require.Equal(w, p.after, w.stands())
			text, err := os.ReadFile(record)
			require.NoError(w, err)
			passed := map[string]bool{}
			for at := range strings.FieldsSeq(string(text)) {
				passed[at] = true
			}
			for _, at := range slices.Sorted(maps.Keys(passed)) {
				points = append(points, point{told, i, at})
			}
		}
		w.finish(told)
		require.Zero(w, w.check())
	})
	if t.Failed() {
		t.FailNow()
	}
	return points
}

// trapWorld is a trial of the program with traps.
func trapWorld(t *testing.T, name, approved string) *world {
	t.Helper()
	return &world{Trial: labtest.Trial{Name: name}, program: self(t), env: []string{asChild + "=1"}, script: labtest.Fixed(approved)}
}

// passDeadline has the approvals of the story of the deadline expire.
func (w *world) passDeadline(p phase) {
	if p.name != "expire" {
		return
	}
	w.moveClock(2 * expireAfter)
}

// moveClock has the processes that are started from now on find the clock ahead.
func (w *world) moveClock(ahead time.Duration) {
	w.ahead = ahead
	w.env = append(w.env, trapAhead+"="+ahead.String())
}

// some returns all points when the longer tests run, else a part of them that
// has each kind of place in it.
func some(t *testing.T, points []point, one int) []point {
	t.Helper()
	if labtest.Number(t, "ADJOURN_CRASH_TRIALS", 0) > 0 {
		return points
	}
	var out []point
	for i, p := range points {
		if i%one == 0 {
			out = append(out, p)
		}
	}
	return out
}

// TestKillWindows kills the program at every place where its work can be cut.
func TestKillWindows(t *testing.T) {
	t.Parallel()
	points := slices.Concat(
		some(t, calm(t, story(), "deploy"), 3),
		some(t, calm(t, unanswered(), "release"), 7),
	)
	var reached atomic.Int64
	worlds := make([]*world, len(points))
	at := map[*world]int{}
	for i, p := range points {
		approved := "deploy"
		if p.story[1].name == "expire" {
			approved = "release"
		}
		worlds[i] = trapWorld(t, "kill at "+p.String(), approved)
		at[worlds[i]] = i
	}
	all(t, 6, worlds, func(w *world) {
		point := points[at[w]]
		for i, p := range point.story {
			w.passDeadline(p)
			if i != point.phase {
				require.Equal(w, p.code, w.run(p.args...).code)
				continue
			}
			r := w.startTrapped(point.at, "KILL", p.args...).wait()
			if !r.killed() {
				require.Equal(w, p.code, r.code, "the place was not reached")
				continue
			}
			w.Hit()
			reached.Add(1)
			w.recover(p, restart(at[w]%restarts))
		}
		w.finish(point.story)
		w.check()
	})
	t.Logf("%d places, %d of them reached", len(points), reached.Load())
	require.Greater(t, int(reached.Load()), len(points)*3/4, "most places are reached")
}

// TestKillExhausted kills every try of one step until its message goes to the
// dead letters (window 8). A step that dies under its worker again and again is
// given up with a reason; one whose workers died before they tried is not.
func TestKillExhausted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at    string
		fails bool
	}{{"Model-1-after", true}, {"Receive-1-after", false}} {
		t.Run(c.at, func(t *testing.T) {
			t.Parallel()
			w := trapWorld(t, "exhausted by "+c.at, "deploy")
			try(t, w, func(w *world) { w.exhaust(c.at, c.fails) })
		})
	}
}

// receives is how often a message is received before it counts as dead.
const receives = 20

func (w *world) exhaust(at string, fails bool) {
	p := begin()
	require.True(w, w.startTrapped(at, "KILL", p.args...).wait().killed())
	for range receives + 2 {
		if r := w.startTrapped(at, "KILL", "work").wait(); !r.killed() {
			require.Zero(w, r.code) // it came to bury the dead letter instead
			break
		}
	}
	// A step that is tried afresh waits half a minute, and the sweep may send for it by
	// then too. Past both times, whoever works takes both, and none is left for later.
	require.Contains(w, []int{0, 124}, w.run("work", "--wait", "1s").code)
	w.moveClock(time.Minute)
	require.Zero(w, w.run("work").code)
	if !fails {
		require.Equal(w, paused, w.stands())
		require.Zero(w, w.run(story()[1].args...).code)
		w.finish(story())
		w.check()
		return
	}
	db := w.open()
	defer db.close()
	db.records().CheckDied(w)
	w.checkNothingLeft(db)
	r := w.run("resume", sessionID, "--output", "json")
	require.Equal(w, 5, r.code)
	require.Contains(w, r.stderr, "step_died")
	require.Equal(w, "not_resumable", w.manifest(r).Error.Code)
}
