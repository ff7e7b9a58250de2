//go:build linux

package main_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// frozenLease is the shortest lease the program takes.
const frozenLease = "1s"

// TestFrozen stops the program at every place where its work can be cut, for
// longer than its lease; another process takes over and brings the session to
// rest; then the first one goes on and must find at its next write that it lost.
func TestFrozen(t *testing.T) {
	t.Parallel()
	points := slices.Concat(
		some(t, calm(t, story(), "deploy"), 7),
		some(t, calm(t, unanswered(), "release"), 15),
	)
	var reached, held, unknown atomic.Int64
	at := map[*world]int{}
	worlds := make([]*world, len(points))
	for i, p := range points {
		approved := "deploy"
		if p.story[1].name == "expire" {
			approved = "release"
		}
		worlds[i] = trapWorld(t, "stop at "+p.String(), approved)
		worlds[i].env = append(worlds[i].env, "ADJOURN_LEASE="+frozenLease)
		at[worlds[i]] = i
	}
	all(t, 16, worlds, func(w *world) { // they mostly wait
		point := points[at[w]]
		for i, p := range point.story {
			w.passDeadline(p)
			if i != point.phase {
				require.Equal(w, p.code, w.run(p.args...).code)
				continue
			}
			frozen := w.startTrapped(point.at, "STOP", p.args...)
			defer frozen.signal(syscall.SIGKILL) // should the trial end early
			if !frozen.stopped() {
				require.Equal(w, p.code, frozen.wait().code, "the place was not reached")
				continue
			}
			reached.Add(1)
			if !w.overtake(frozen, p, restart(at[w]%restarts)) {
				held.Add(1)
			}
		}
		w.finish(point.story)
		unknown.Add(int64(w.check()))
	})
	t.Logf("%d places, %d of them reached, at %d of them the data file was held; %d outcomes unknown", len(points), reached.Load(), held.Load(), unknown.Load())
	require.Greater(t, int(reached.Load()), len(points)*3/4, "most places are reached")
}

// TestFrozenRandom stops the real program at random moments, also in the middle
// of its transactions: then it keeps everybody out of the data file until it goes on.
func TestFrozenRandom(t *testing.T) {
	t.Parallel()
	trials, begin := (labtest.Number(t, "ADJOURN_CRASH_TRIALS", 12)+3)/4, labtest.Seed(t)
	program := binary(t)
	worlds := make([]*world, trials)
	for i := range worlds {
		rng := rand.New(rand.NewPCG(begin, uint64(i)+1))
		worlds[i] = &world{
			Trial: labtest.Trial{Name: fmt.Sprintf("frozen trial %d of seed %d", i, begin)}, program: program, rng: rng, script: labtest.Random(rng, labtest.Mix{}),
			env: []string{"ADJOURN_LEASE=" + frozenLease},
		}
	}
	stopAnywhere(t, worlds)
}

// stopAnywhere tells the story in each world, stops each of its processes at a time of
// chance, and lets another one take over.
func stopAnywhere(t *testing.T, worlds []*world) {
	t.Helper()
	var stops, held, unknown atomic.Int64
	all(t, 8, worlds, func(w *world) {
		for _, p := range story() {
			frozen := w.start(nil, p.args...)
			defer frozen.signal(syscall.SIGKILL)
			select {
			case <-time.After(time.Duration(w.rng.Int64N(int64(120 * time.Millisecond)))):
				frozen.signal(syscall.SIGSTOP)
			case <-frozen.ended:
			}
			if !frozen.stopped() {
				require.Equal(w, p.code, frozen.wait().code)
				continue
			}
			stops.Add(1)
			w.Note("    SIGSTOP")
			if !w.overtake(frozen, p, restart(w.rng.IntN(restarts))) {
				held.Add(1)
			}
		}
		w.finish(story())
		unknown.Add(int64(w.check()))
	})
	t.Logf("%d trials, %d stops, at %d of them the data file was held; %d outcomes unknown", len(worlds), stops.Load(), held.Load(), unknown.Load())
}

// overtake has somebody else do what a stopped process was about to, and lets
// that go on. It reports false if nobody can, because who is stopped holds the data file.
func (w *world) overtake(frozen *process, p phase, how restart) bool {
	w.Hit()
	free := w.takeOver(p, how)
	w.thaw(frozen, p)
	return free
}

// takeOver brings a phase to its end while somebody else is stopped in it. It
// reports false if that cannot be, because who is stopped holds the data file.
func (w *world) takeOver(p phase, how restart) bool {
	for range 20 {
		r := w.run(p.restart(how)...)
		if strings.Contains(r.stderr, "another process holds it") {
			require.Equal(w, 1, r.code)
			return false
		}
		switch now := w.stands(); {
		case now == p.after:
			return true
		case now == p.before && (how != work || r.code == 0):
			how = again // the one that is stopped has not done anything yet
		case r.code == 5:
			// Refused while the lease is live: a user tries again, or lets work wait for it.
			require.Contains(w, r.stderr, "a worker is working on it now")
			how = work
		}
	}
	w.Errorf("nobody could take over")
	w.FailNow()
	return false
}

// thaw lets a stopped process go on, and wants it to end as one that lost.
func (w *world) thaw(frozen *process, p phase) {
	w.Note("    SIGCONT")
	frozen.signal(syscall.SIGCONT)
	r := frozen.wait()
	require.Contains(w, []int{p.code, 5}, r.code, "exit code of who was stopped")
	require.NotContains(w, r.stderr, "panic")
	require.NotContains(w, r.stderr, "internal")
	require.Equal(w, p.after, w.stands(), "after who was stopped has ended")
}
