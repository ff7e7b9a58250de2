package runtime_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampledOneIn is how few cases of an exhaustive sweep run under the race detector,
// which makes each of them ten times slower. Without it all run.
const sampledOneIn = 8

// sampler reports for one case after the other whether it runs. It may be used by one
// goroutine. ADJOURN_SWEEPS=all runs all of them under the race detector too;
// ADJOURN_SWEEP_SEED repeats a choice.
func sampler(t testing.TB) (runs func() bool) {
	t.Helper()
	if !raceEnabled || os.Getenv("ADJOURN_SWEEPS") == "all" {
		return func() bool { return true }
	}
	seed := sweepSeed()
	t.Logf("ADJOURN_SWEEP_SEED=%d: one case of %d", seed, sampledOneIn)
	h := rand.New(rand.NewPCG(seed, nameHash(t.Name())))
	return func() bool { return h.IntN(sampledOneIn) == 0 }
}

// nameHash keeps each sweep's choice the same whichever order the tests run in.
func nameHash(name string) uint64 {
	var n uint64 = 14695981039346656037
	for _, b := range []byte(name) {
		n = (n ^ uint64(b)) * 1099511628211
	}
	return n
}

var sweepSeed = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("ADJOURN_SWEEP_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano() % 1e9)
})

// TestSampler: without the race detector, and where all are asked for, no case is left out.
func TestSampler(t *testing.T) {
	all := func(runs func() bool) (n int) {
		for range 800 {
			if runs() {
				n++
			}
		}
		return n
	}
	if raceEnabled && os.Getenv("ADJOURN_SWEEPS") != "all" {
		some := all(sampler(t))
		require.InDelta(t, 100, some, 60)
		require.Equal(t, some, all(sampler(t)), "the same seed chooses the same")
	}
	t.Setenv("ADJOURN_SWEEPS", "all")
	require.Equal(t, 800, all(sampler(t)))
}
