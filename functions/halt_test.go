//go:build aws && linux

package functions_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestHalt stops 64 sessions between two steps, in all the processes of the real functions, and lets them
// go on: no step begins two seconds after the halt, whatever the sweep and the queue do, and nothing is lost.
func TestHalt(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{
		concurrency: 8, visibility: 10 * time.Second, lease: 3 * time.Second, env: map[string]string{"ADJOURN_STEPS_PER_INVOCATION": "4"},
	})
	try(t, w, "halt", nil, func(t *trial) {
		const sessions, steps = 64, 12
		ctx := t.patient()
		caller := t.client(t, "acme")
		for range sessions {
			s := &labtest.Script{}
			s.Add(s.Line())
			s.Repeat(steps, s.Echo())
			s.Add(s.Once())
			d := t.add(s)
			d.key.Tenant, d.client = "acme", caller
		}
		var wg sync.WaitGroup
		for _, d := range t.sessions {
			wg.Go(func() { d.start(ctx) })
		}
		wg.Wait()
		for _, d := range t.sessions { // each has begun its steps
			for len(d.records().Entries) < 3 {
				require.NoError(t, ctx.Err())
				time.Sleep(10 * time.Millisecond)
			}
		}
		_, err := caller.Halt(ctx, client.HaltRequest{Reason: "it spends too much"})
		require.NoError(t, err)
		over := time.Now().Add(2 * time.Second)
		versions := func() []int {
			all := make([]int, len(t.sessions))
			for i, d := range t.sessions {
				all[i] = len(d.records().Entries)
			}
			return all
		}
		// What had begun is brought to its end.
		for time.Now().Before(over.Add(t.lease)) {
			time.Sleep(50 * time.Millisecond)
		}
		before := versions()
		for _, d := range t.sessions {
			entries := d.records().Entries
			require.Equal(t, session.StatusRunning, entries[len(entries)-1].Status, "between two steps")
		}
		for began, swept := time.Now(), w.invocations("sweep"); time.Since(began) < 2*time.Second || w.invocations("sweep") < swept+3; {
			require.NoError(t, ctx.Err())
			time.Sleep(50 * time.Millisecond)
		}
		require.Equal(t, before, versions(), "something was done while all was to stand still")
		s, err := caller.Session(ctx, t.sessions[0].key.ID, 0)
		require.NoError(t, err)
		require.Equal(t, "it spends too much", s.Halted.Reason)
		outer(t).Logf("%d sessions stand still, with %d to %d entries", sessions, slices.Min(before), slices.Max(before))

		_, err = caller.Go(ctx, client.GoRequest{})
		require.NoError(t, err)
		t.run()
	})
}
