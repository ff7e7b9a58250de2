//go:build linux

package main_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// farApart are clocks hours apart, going back and ahead from one process to the
// next; minutesApart differ by less than what counts as wrong too.
var (
	farApart     = []time.Duration{0, -3 * time.Hour, 5 * time.Hour, 40 * time.Minute}
	minutesApart = []time.Duration{0, 3 * time.Minute, -7 * time.Minute, 13 * time.Minute, -3 * time.Hour, 5 * time.Hour}
)

// clockWorlds are trials each of whose processes has a clock of its own.
func clockWorlds(t *testing.T, name string, trials int, begin uint64, clocks []time.Duration, env ...string) []*world {
	t.Helper()
	worlds := make([]*world, trials)
	for i := range worlds {
		rng := rand.New(rand.NewPCG(begin, uint64(i)+1))
		worlds[i] = &world{
			Trial: labtest.Trial{Name: fmt.Sprintf("%s %d of seed %d", name, i, begin)}, program: self(t), rng: rng, clocks: clocks,
			script: labtest.Random(rng, labtest.Mix{}), env: append([]string{asChild + "=1"}, env...),
		}
	}
	return worlds
}

// TestKillClocks kills processes at random moments, and each has a clock of its own:
// every session ends, and nothing happens twice.
func TestKillClocks(t *testing.T) {
	t.Parallel()
	trials, begin := (labtest.Number(t, "ADJOURN_CRASH_TRIALS", 12)+1)/2, labtest.Seed(t)
	took := map[string]time.Duration{}
	for _, p := range story() {
		took[p.name] = 200 * time.Millisecond
	}
	var kills, unknown atomic.Int64
	all(t, 6, clockWorlds(t, "clocks", trials, begin, minutesApart), func(w *world) {
		w.killRandomly(took)
		w.finish(story())
		unknown.Add(int64(w.check()))
		kills.Add(int64(w.Struck()))
	})
	t.Logf("%d trials, %d kills, %d outcomes unknown", trials, kills.Load(), unknown.Load())
}

// TestFrozenClocks stops processes at random moments for longer than their lease;
// who takes over has a clock that is hours away.
func TestFrozenClocks(t *testing.T) {
	t.Parallel()
	trials, begin := (labtest.Number(t, "ADJOURN_CRASH_TRIALS", 12)+3)/4, labtest.Seed(t)
	stopAnywhere(t, clockWorlds(t, "frozen clocks", trials, begin, farApart, "ADJOURN_LEASE="+frozenLease))
}
