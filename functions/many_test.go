//go:build aws && linux

package functions_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestMany races 64 sessions through one queue with ten steps at a time. One
// tenant has more than half of them. All end, and no tenant gets less than its
// share of the steps because another one has more to do.
func TestMany(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{concurrency: 10, visibility: time.Minute})
	try(t, w, "many", nil, func(t *trial) {
		const big, small, each, steps = 40, 8, 3, 10
		tenants := map[string][]*drive{}
		for n := range big + small*each {
			s := &labtest.Script{}
			for range steps {
				s.Add(s.Echo())
			}
			d := t.add(s)
			if n < big {
				d.key.Tenant = "big"
			} else {
				d.key.Tenant = fmt.Sprintf("small-%d", (n-big)%small)
			}
			d.client = t.client(t, d.key.Tenant)
			tenants[d.key.Tenant] = append(tenants[d.key.Tenant], d)
		}
		// Nobody works before all have been started: shares can be compared only
		// where all have had the same time.
		started := make(chan struct{})
		begin := sync.OnceFunc(func() { close(started) })
		defer begin()
		t.setDeliveries(func(types.Message) []time.Duration { <-started; return []time.Duration{0} })
		var wg sync.WaitGroup
		for _, d := range t.sessions {
			wg.Go(func() { d.start(t.patient()) })
		}
		wg.Wait()
		began := time.Now()
		begin()
		t.run()
		outer(t).Logf("%d sessions of %d steps in %s; %d processes", len(t.sessions), steps+1, time.Since(began).Round(time.Millisecond), len(t.functions["step"].Workers()))
		require.LessOrEqual(t, len(t.functions["step"].Workers()), 10)

		// The share of a tenant while all of them had work: its steps by the moment
		// the first session ended, for each of its sessions.
		first, journals := time.Time{}, map[*drive][]journal.Entry{}
		for _, d := range t.sessions {
			entries := d.records().Entries
			journals[d] = entries
			require.Equal(t, session.KindCompleted, entries[len(entries)-1].Kind)
			if at := entries[len(entries)-1].At; first.IsZero() || at.Before(first) {
				first = at
			}
		}
		share := map[string]float64{}
		for tenant, sessions := range tenants {
			for _, d := range sessions {
				for _, e := range journals[d] {
					if e.At.Before(first) {
						share[tenant] += 1 / float64(len(sessions))
					}
				}
			}
		}
		outer(t).Logf("steps of a session by the time the first one ended: %v", share)
		for tenant := range tenants {
			require.Greater(t, share[tenant], share["big"]/2, "%s is starved by big", tenant)
		}
	})
}
