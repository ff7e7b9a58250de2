package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// outage lets time pass while every message is lost, with a sweep each minute, and
// returns after how long the session was sent for.
func (w *world) outage(p *process, lasts time.Duration) (sentAfter []time.Duration) {
	w.t.Helper()
	for passed := time.Minute; passed <= lasts; passed += time.Minute {
		w.clock.advance(time.Minute)
		swept, err := p.Sweep(w.t.Context())
		require.NoError(w.t, err)
		if swept.Resent > 0 {
			sentAfter = append(sentAfter, passed)
		}
		require.Len(w.t, w.drain(), swept.Resent)
	}
	return sentAfter
}

// TestSweep_after_an_outage: an hour in which nothing is delivered multiplies no
// backlog, and when it is over the session goes on within minutes.
func TestSweep_after_an_outage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.drain()
	outages := []time.Duration{1, 24}
	if raceEnabled || overEmulator {
		outages = outages[:1] // a day does the same, minute by minute, and takes minutes
	}
	for _, hours := range outages {
		sent := w.outage(p, hours*time.Hour)
		require.LessOrEqual(t, len(sent), int(hours)*12+3)
		for i := 1; i < len(sent); i++ {
			require.LessOrEqual(t, sent[i]-sent[i-1], 6*time.Minute)
		}
		require.Greater(t, sent[len(sent)-1], hours*time.Hour-6*time.Minute)
	}
}

// TestSweep_progress_resets_the_backoff: what was sent for before the session moved
// on says nothing of where it stands now.
func TestSweep_progress_resets_the_backoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {
		calls("echo", `{"text":"1"}`), calls("echo", `{"text":"2"}`), calls("echo", `{"text":"3"}`), says("bye"),
	}}))
	p := w.process()
	w.start(p, "go")
	w.drain()
	w.outage(p, 20*time.Minute)
	require.Greater(t, w.head().Head.Resent, 4)
	for range 2 {
		w.deliver(p, w.session().Next(), journal.WakeStep)
		require.Equal(t, session.KindStepped, w.session().Newest.Kind)
		w.drain()
		sent := w.outage(p, 20*time.Minute)
		require.GreaterOrEqual(t, len(sent), 4)
		require.LessOrEqual(t, sent[0], 6*time.Minute)
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}, []time.Duration{sent[1] - sent[0], sent[2] - sent[1], sent[3] - sent[2]}, "it begins anew")
	}
	require.NoError(t, p.settle())
	w.checkAtRest()
}

// TestDelayed_begins_on_time: a retry further ahead than a queue delays begins within
// a sweep of its time, whatever was sent for before, and once.
func TestDelayed_begins_on_time(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{
		"a moment": 40 * time.Second, "as long as a queue delays": 15 * time.Minute, "20 minutes": 20 * time.Minute, "31 minutes": 31 * time.Minute, "days": 49 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {
				fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: after}), says("bye"),
			}}))
			p := w.process()
			w.start(p, "go")
			w.drain()
			w.outage(p, 30*time.Minute) // its back-off is at its longest
			w.deliver(p, 2, journal.WakeStep)
			require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
			due := w.head().Head.Due
			require.NotNil(t, due)
			require.LessOrEqual(t, due.Sub(w.clock.Now()), journal.MaxAhead, "never further ahead than what counts as now")
			until := *w.session().Newest.Until
			for w.session().Status == session.StatusRunning {
				every := time.Minute
				if until.Sub(w.clock.Now()) > time.Hour {
					every = 10 * time.Minute // days of minutes take long
				}
				w.clock.advance(every)
				require.EqualValues(t, 2, w.session().Version)
				sweepOf(t, p)
				require.NoError(t, p.work())
			}
			require.WithinRange(t, w.session().Newest.At, until, until.Add(time.Minute))
			require.Zero(t, sweepOf(t, p))
			w.checkAtRest()
		})
	}
}

// A queue's message for a retry that is lost is sent again a moment after its time.
func TestDelayed_whose_message_is_lost(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{
		"a moment": 40 * time.Second, "ten minutes": 10 * time.Minute, "as long as a queue delays": journal.MaxAhead, "twenty": 20 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {
				fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: after}), says("bye"),
			}}))
			p := w.process()
			w.start(p, "go")
			w.deliver(p, 2, journal.WakeStep)
			at := w.clock.Now()
			for w.clock.Now().Sub(at) < after-time.Minute {
				w.clock.advance(time.Minute)
				require.Zero(t, sweepOf(t, p))
				w.drain()
			}
			w.clock.advance(at.Add(after).Sub(w.clock.Now()))
			if after <= journal.MaxAhead {
				require.Zero(t, sweepOf(t, p), "the queue brings it now")
			}
			w.drain()
			w.clock.advance(30 * time.Second)
			require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, p))
			require.NoError(t, p.work())
			require.Equal(t, session.StatusCompleted, w.session().Status)
		})
	}
}

// A provider that asks for years is not believed.
func TestDelayed_has_a_bound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {
		fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: 250 * 365 * 24 * time.Hour}), says("bye"),
	}}))
	p := w.process()
	w.run(p, "go")
	require.Equal(t, w.clock.Now().Add(journal.MaxDelay), *w.session().Newest.Until)
}

// A running session is due a moment after what should have happened by then, not
// before: the sweep finds none that only does what it should.
func TestHead_is_due_a_moment_after_what_should_happen(t *testing.T) {
	t.Parallel()
	const moment = 50 * time.Second
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: 40 * time.Second}), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.SweepAfter = moment })
	w.start(p, "go")
	require.Equal(t, w.clock.Now().Add(moment), *w.head().Head.Due)
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
	require.Equal(t, w.clock.Now().Add(40*time.Second+moment), *w.head().Head.Due)
}
