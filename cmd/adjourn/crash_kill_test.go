//go:build linux

package main_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// TestKillRandom kills the real program at random moments, restarts it as a user
// would, kills that too, until the session has ended.
func TestKillRandom(t *testing.T) {
	t.Parallel()
	trials, begin := labtest.Number(t, "ADJOURN_CRASH_TRIALS", 12), labtest.Seed(t)
	program := binary(t)

	// How long the commands take undisturbed says when to kill them.
	took := map[string]time.Duration{}
	calm := &world{Trial: labtest.Trial{Name: "undisturbed"}, program: program, script: labtest.Random(rand.New(rand.NewPCG(begin, 0)), labtest.Mix{})}
	try(t, calm, func(w *world) {
		for _, p := range story() {
			r := w.run(p.args...)
			require.Equal(w, p.code, r.code)
			require.Equal(w, p.after, w.stands())
			took[p.name] = r.took
		}
		w.finish(story())
		require.Zero(w, w.check())
	})
	if t.Failed() {
		return
	}

	worlds := make([]*world, trials)
	for i := range worlds {
		rng := rand.New(rand.NewPCG(begin, uint64(i)+1))
		worlds[i] = &world{
			Trial: labtest.Trial{Name: fmt.Sprintf("trial %d of seed %d", i, begin)}, program: program, rng: rng, script: labtest.Random(rng, labtest.Mix{}),
		}
	}
	var kills, unknown atomic.Int64
	all(t, 6, worlds, func(w *world) {
		w.killRandomly(took)
		w.finish(story())
		unknown.Add(int64(w.check()))
		kills.Add(int64(w.Struck()))
	})
	t.Logf("%d trials, %d kills, %d outcomes unknown", trials, kills.Load(), unknown.Load())
}

// killRandomly goes through the story with one to three kills.
func (w *world) killRandomly(took map[string]time.Duration) {
	left := 1 + w.rng.IntN(3)
	for i, p := range story() {
		args, first := p.args, true
		for left > 0 && (i == 1 || w.rng.IntN(3) > 0) {
			left--
			// Others share the machine: what is killed late has ended, which is a trial too.
			delay := time.Duration(w.rng.Int64N(int64(took[p.name]) * 5 / 4))
			r := w.runKilled(delay, args...)
			if !r.killed() && first {
				require.Equal(w, p.code, r.code)
				break
			}
			args, first = p.restart(restart(w.rng.IntN(restarts))), false
		}
		if first && w.stands() == p.before {
			r := w.run(p.args...)
			require.Equal(w, p.code, r.code)
			continue
		}
		w.recover(p, restart(w.rng.IntN(restarts)))
	}
}
