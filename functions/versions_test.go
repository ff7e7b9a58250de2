//go:build aws && linux && versions

package functions_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/client"
)

// TestVersions has functions of an earlier commit and of this one at work on one
// queue and one table: each function is deployed, rolled back and deployed again at a
// time of its own, as a deployment under load does it, while some are killed. Nothing
// is lost and nothing happens twice, and the lists of the new version show what the old
// one wrote. The earlier functions are in the folder that ADJOURN_OLD_FUNCTIONS names;
// make test-versions builds them.
func TestVersions(t *testing.T) {
	old := os.Getenv("ADJOURN_OLD_FUNCTIONS")
	require.NotEmpty(t, old, "run make test-versions")
	begin := labtest.Seed(t)
	t.Parallel()
	// Every function that an API or a queue calls in both versions.
	both := []string{"start", "step", "resume", "submit", "query", "sweep"}
	w := deploy(t, settings{})
	rng := rand.New(rand.NewPCG(begin, 1))
	try(t, w, "versions", rng, func(t *trial) {
		binaries := func(name string) [2]string {
			return [2]string{filepath.Join(old, name), binary(outer(t), name)}
		}
		for _, name := range both {
			require.NoError(t, t.functions[name].Deploy(binaries(name)[0], t.environment(name)))
		}
		for range 12 {
			t.add(labtest.Random(t.rng, labtest.Mix{Ask: true, Deny: true, Later: true}))
		}
		dice := throw(t.rng, 12, 120)
		t.setFaults(func(*lambdatest.Passage) lambdatest.Fate {
			if !dice.strikes() {
				return lambdatest.Fate{}
			}
			t.Hit()
			return lambdatest.Fate{Deed: lambdatest.Kill}
		})
		ctx, stop := context.WithCancel(background)
		flipped := make(chan int)
		go func() {
			n := 0
			defer func() { flipped <- n }()
			version := map[string]int{}
			for {
				select {
				case <-time.After(time.Duration(50+dice.n(250)) * time.Millisecond):
				case <-ctx.Done():
					return
				}
				name := both[dice.n(len(both))]
				version[name] = 1 - version[name]
				if err := t.functions[name].Deploy(binaries(name)[version[name]], t.environment(name)); err != nil {
					t.Note("deploy %s: %v", name, err)
					return
				}
				n++
			}
		}()
		t.run()
		stop()
		n := <-flipped
		outer(t).Logf("%d sessions over %d changes of a function", len(t.sessions), n)
		require.Greater(t, n, 2*len(both), "both versions were at work")

		require.NoError(t, t.functions["query"].Deploy(binaries("query")[1], t.environment("query")))
		for _, d := range t.sessions {
			found := false
			for s, err := range d.client.AllSessions(moment(t), client.SessionsParams{}) {
				require.NoError(t, err)
				found = found || s.ID == d.key.ID
			}
			require.True(t, found, "%s is not in its tenant's list", d.key)
		}
	})
}
