//go:build aws && linux

package functions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestLongStep has every message delivered three times beside a step of fourteen
// leases, as one of 280 s is at the lease of 20 s: the message comes back while
// somebody is at it, and is no dead letter for that.
func TestLongStep(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{visibility: time.Minute})
	try(t, w, "long", nil, func(t *trial) {
		s := &labtest.Script{}
		s.Add(s.Line())
		s.Add(labtest.Call{"call": "sleep", "with": map[string]any{"seconds": 14}})
		s.Add(s.Line())
		t.add(s)
		t.setDeliveries(func(types.Message) []time.Duration {
			return []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond}
		})
		t.run()
		require.Zero(t, t.dead.Received(), "an alarm would have gone off")
	})
}

// TestOutgrown is a session that has outgrown the step function: each step dies of it.
// Its task fails with words that say what to do, though the sweep, which says them, could
// not hold the session either; and with more memory the step that died is done after all.
func TestOutgrown(t *testing.T) {
	t.Parallel()
	// The sweep needs some 70 MB while it reads, and the session over 110.
	const small, sweeps, large = "72", "96", "512"
	memory := func(t *trial, size string, names ...string) {
		for _, name := range names {
			env := t.environment(name)
			env["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] = size
			require.NoError(t, t.functions[name].Deploy(binary(outer(t), name), env))
		}
	}
	world := func(t *testing.T, s settings) *world {
		s.env = map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": large}
		s.visibility, s.concurrency, s.limitMemory = 3*time.Second, 1, true
		return deploy(t, s)
	}
	// outgrow leaves a session of 54 MB to functions that cannot hold it, within a step.
	outgrow := func(t *trial) *drive {
		s := &labtest.Script{}
		s.Repeat(30, labtest.Call{"call": "echo", "with": map[string]any{"size": 1_800_000}})
		s.Add(labtest.Call{"call": "sleep", "with": map[string]any{"seconds": 14}})
		s.Add(s.Line())
		d := t.add(s)
		d.start(moment(t))
		require.Eventually(outer(t), func() bool { return d.head().Lease.Seq == 32 }, patience, 20*time.Millisecond)
		memory(t, small, "step")
		memory(t, sweeps, "sweep")
		for _, w := range t.functions["step"].Workers() {
			w.Kill()
		}
		return d
	}
	killed := func(t *trial) (n int) {
		for _, i := range t.functions["step"].Invocations() {
			if failure := i.Failure(); failure != nil && strings.Contains(failure.Message, "killed") {
				n++
			}
		}
		return n
	}
	t.Run("fails with words", func(t *testing.T) {
		t.Parallel()
		w := world(t, settings{maxReceives: 6})
		try(t, w, "outgrown", nil, func(t *trial) {
			d := outgrow(t)
			d.ends(t.patient())
			require.GreaterOrEqual(t, killed(t), 5)
			d.records().CheckDied(d)
			head := d.head()
			require.Equal(t, session.StatusFailed, head.Status)
			newest := d.records().Entries[head.StatusSeq-1]
			require.Equal(t, "step_died", newest.Failure.Type)
			require.Contains(t, newest.Failure.Message, "StepMemory")
			for _, i := range t.functions["sweep"].Invocations() {
				require.Nil(t, i.Failure(), "what ends the task has room for it")
			}
			t.settle()
			t.checkNothingLeft()
		})
	})
	t.Run("goes on with more memory", func(t *testing.T) {
		t.Parallel()
		w := world(t, settings{})
		try(t, w, "mended", nil, func(t *trial) {
			d := outgrow(t)
			require.Eventually(outer(t), func() bool { return killed(t) > 1 }, patience, 20*time.Millisecond)
			memory(t, large, "step")
			t.run()
			require.Equal(t, session.StatusCompleted, d.head().Status)
		})
	})
}
