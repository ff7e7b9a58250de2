//go:build aws && linux

package functions_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/session"
)

// quick is a world whose messages come back soon: deaths take little time there.
var quick = settings{visibility: time.Second}

// TestDeadLetters kills every try of one step (window 8). When its message has
// been received too often the step is given up, with a reason a user can read, if
// workers died at it; one whose workers died before they tried goes on as soon as
// they no longer do.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	t.Run("workers die at the step", func(t *testing.T) {
		t.Parallel()
		w := deploy(t, quick)
		try(t, w, "dead", nil, func(t *trial) {
			s := &labtest.Script{}
			s.Add(s.Echo())
			s.Add(s.Line())
			s.Add(s.Echo())
			d := t.add(s)
			t.functions["step"].SetFaults(killAll(t, func(p *lambdatest.Passage) bool { return op(`"E#0000000003"`, write...)(p) }))
			d.start(moment(t))
			d.rests(t.patient())
			d.records().CheckDied(d)
			require.GreaterOrEqual(t, t.Struck(), 5, "deaths")
			stands, err := d.client.Session(moment(t), d.key.ID, 0)
			require.NoError(t, err)
			require.Equal(t, session.StatusFailed, stands.Status)
			require.Equal(t, "step_died", stands.Failure.Code)
			t.functions["step"].SetFaults(nil)
			t.settle()
			t.checkNothingLeft()
			require.Zero(t, d.script.Effects()[0].Count(t))
		})
	})
	t.Run("workers die before the step", func(t *testing.T) {
		t.Parallel()
		w := deploy(t, quick)
		try(t, w, "alive", nil, func(t *trial) {
			d := t.add(labtest.Fixed("deploy"))
			t.functions["step"].SetFaults(killAll(t, first))
			d.start(moment(t))
			t.buried(1)
			require.Equal(t, session.StatusRunning, d.head().Status)
			t.functions["step"].SetFaults(nil)
			t.run()
		})
	})
}

// TestNeverFits: a step that takes longer than the function may is not tried for
// ever. The function ends each try in time, so that it is never killed.
func TestNeverFits(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{visibility: 15 * time.Second, timeout: 15 * time.Second, maxReceives: 4})
	try(t, w, "long", nil, func(t *trial) {
		s := &labtest.Script{}
		s.Add(s.Echo())
		s.Add(labtest.Call{"call": "sleep", "with": map[string]any{"seconds": 600}})
		d := t.add(s)
		d.start(moment(t))
		d.rests(t.patient())
		d.records().CheckDied(d)
		t.settle()
		t.checkNothingLeft()
		for _, i := range t.functions["step"].Invocations() {
			require.Nil(t, i.Failure(), "no try ends in a killed process")
		}
	})
}

// TestBadDeployment: for as long as a deployment is bad nothing gets on, messages
// die, and nothing is lost once it has been mended.
func TestBadDeployment(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{visibility: time.Second, maxReceives: 3})
	try(t, w, "bad", nil, func(t *trial) {
		step := t.functions["step"]
		bad := t.environment("step")
		bad["ADJOURN_LEASE"] = "for ever"
		require.NoError(t, step.Deploy(binary(outer(t), "step"), bad))
		for range 3 {
			t.add(labtest.Fixed("deploy")).start(moment(t))
		}
		t.buried(3)
		for _, i := range step.Invocations() {
			if failure := i.Failure(); failure != nil {
				require.Equal(t, "Runtime.InitError", failure.Type)
				require.Contains(t, failure.Message, "ADJOURN_LEASE")
			}
		}
		for _, d := range t.sessions {
			require.Equal(t, session.StatusRunning, d.head().Status)
		}
		require.NoError(t, step.Deploy(binary(outer(t), "step"), t.environment("step")))
		t.run()
	})
}

// killAll kills at every place that matches, from both sides.
func killAll(t *trial, matches func(*lambdatest.Passage) bool) lambdatest.Faults {
	return func(p *lambdatest.Passage) lambdatest.Fate {
		if p.Half != lambdatest.Before || !matches(p) {
			return lambdatest.Fate{}
		}
		t.Hit()
		return lambdatest.Fate{Deed: lambdatest.Kill}
	}
}

// buried waits until so many dead letters have been worked on.
func (t *trial) buried(n int) {
	ctx, stop := context.WithTimeout(background, patience)
	defer stop()
	for t.dead.Deleted() < n {
		require.NoError(t, ctx.Err(), "no message dies after %d receipts", sqsqueue.MaxReceives)
		time.Sleep(20 * time.Millisecond)
	}
}
