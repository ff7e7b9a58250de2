//go:build aws && linux

package functions_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/internal/lambdatest"
)

// trials is how many random trials of a kind there are when nobody says otherwise.
const trials = 20

// dice decides, from many goroutines at once.
type dice struct {
	mu   sync.Mutex
	rng  *rand.Rand
	left int // faults still to come
	wait int // halves of requests until the next one
	gap  int
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// strikes reports whether a fault comes now.
func (d *dice) strikes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return false
	}
	if d.wait--; d.wait > 0 {
		return false
	}
	d.left--
	d.wait = 1 + d.rng.IntN(d.gap)
	return true
}

// throw returns dice for a number of faults, with up to gap halves of requests between two.
func throw(rng *rand.Rand, left, gap int) *dice {
	return &dice{rng: rand.New(rand.NewPCG(rng.Uint64(), 2)), left: left, wait: 1 + rng.IntN(gap), gap: gap}
}

// randomly runs trials of one to three sessions with random scripts, side by side.
func randomly(t *testing.T, what string, n int, faults func(t *trial)) {
	t.Helper()
	begin := labtest.Seed(t)
	var struck, unknown atomic.Int64
	all(t, cap(seats), n, settings{}, func(w *world, i int) {
		rng := rand.New(rand.NewPCG(begin, uint64(i)+1))
		one := try(t, w, fmt.Sprintf("%s-%d-%d", what, begin, i), rng, func(t *trial) {
			for range 1 + t.rng.IntN(3) {
				t.add(labtest.Random(t.rng, labtest.Mix{Ask: true, Deny: true, Later: true}))
			}
			faults(t)
			t.run()
			for _, d := range t.sessions {
				unknown.Add(int64(d.unknown))
			}
		})
		struck.Add(int64(one.Struck()))
	})
	t.Logf("%d trials of %s, %d faults, %d outcomes unknown", n, what, struck.Load(), unknown.Load())
}

// TestKillRandom kills functions with SIGKILL before or after any request they
// make, several times a trial.
func TestKillRandom(t *testing.T) {
	t.Parallel()
	randomly(t, "kill", labtest.Number(t, "ADJOURN_CRASH_TRIALS", trials), func(t *trial) {
		dice := throw(t.rng, 1+t.rng.IntN(6), 90)
		t.setFaults(func(p *lambdatest.Passage) lambdatest.Fate {
			if !dice.strikes() {
				return lambdatest.Fate{}
			}
			t.Hit()
			return lambdatest.Fate{Deed: lambdatest.Kill}
		})
	})
}

// TestFrozenRandom stops functions for longer than their lease, then lets them go on.
func TestFrozenRandom(t *testing.T) {
	t.Parallel()
	randomly(t, "freeze", (labtest.Number(t, "ADJOURN_CRASH_TRIALS", trials)+7)/8, func(t *trial) {
		dice := throw(t.rng, 1+t.rng.IntN(3), 90)
		t.setFaults(func(p *lambdatest.Passage) lambdatest.Fate {
			if !dice.strikes() {
				return lambdatest.Fate{}
			}
			t.Hit()
			return lambdatest.Fate{Deed: lambdatest.Freeze, For: lease + time.Duration(dice.n(2000))*time.Millisecond}
		})
	})
}

// TestFaultsRandom makes what emulators do not: conflicts of transactions,
// throttling, errors, lost answers, slow ones, and deliveries that come twice,
// late, out of order or not at all; and kills among them.
func TestFaultsRandom(t *testing.T) {
	t.Parallel()
	deeds := []lambdatest.Deed{
		lambdatest.Conflict, lambdatest.Conflict, lambdatest.Conflict, lambdatest.Throttle, lambdatest.Throttle,
		lambdatest.Fail, lambdatest.Fail, lambdatest.Lose, lambdatest.Lose, lambdatest.Lose, lambdatest.Delay, lambdatest.Kill,
	}
	randomly(t, "faults", (labtest.Number(t, "ADJOURN_CRASH_TRIALS", trials)+3)/4, func(t *trial) {
		dice := throw(t.rng, 5+t.rng.IntN(30), 25)
		t.setFaults(func(p *lambdatest.Passage) lambdatest.Fate {
			if !dice.strikes() {
				return lambdatest.Fate{}
			}
			t.Hit()
			return lambdatest.Fate{Deed: deeds[dice.n(len(deeds))], For: time.Duration(dice.n(300)) * time.Millisecond}
		})
		t.setDeliveries(func(types.Message) []time.Duration {
			late := func() time.Duration { return time.Duration(dice.n(400)) * time.Millisecond }
			switch dice.n(12) {
			case 0:
				return []time.Duration{0, 0}
			case 1:
				return []time.Duration{0, late()}
			case 2:
				return []time.Duration{late()}
			case 3:
				return []time.Duration{late(), late(), 3 * lease}
			case 4:
				if dice.n(3) == 0 {
					return nil
				}
			}
			return []time.Duration{0}
		})
	})
}
