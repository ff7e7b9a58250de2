package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// A checkpoint that is not the newest one any more decides nothing that is open, also
// where what it showed is still what waits: somebody has said since that it rests.
func TestBound_stale_checkpoint_while_approvals_are_open(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, decide := range map[string]func(w *world, p *process, shown string) error{
		"confirmation": func(w *world, p *process, shown string) error {
			_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Approved, p.Checkpoint = true, shown })
			return err
		},
		"confirmation of a wait": func(w *world, p *process, shown string) error {
			_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) {
				p.Confirmation.Approved, p.Confirmation.Wait, p.Checkpoint = true, "w2-1", shown
			})
			return err
		},
		"confirmation that denies": func(w *world, p *process, shown string) error {
			_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Checkpoint = shown })
			return err
		},
		"all": func(w *world, p *process, shown string) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, ApproveAll: true, Checkpoint: shown})
			return err
		},
		"a wait": func(w *world, p *process, shown string) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Approve: []string{"w2-1"}, Checkpoint: shown})
			return err
		},
		"rejecting all": func(w *world, p *process, shown string) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, RejectAll: true, Checkpoint: shown})
			return err
		},
		"continue": func(w *world, p *process, shown string) error {
			_, err := resume(w, p, runtime.ResumeContinue, func(p *runtime.ResumeParams) { p.Checkpoint = shown })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := in(t, "approve")
			shown := w.session().Checkpoint().String()
			w.interrupt()
			refused := func() {
				require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(decide(w, p, shown)))
				require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
			}
			refused()
			_, err := w.goOn(p)
			require.NoError(t, err)
			require.Equal(t, session.StatusSuspended, w.session().Status, "it waits again")
			refused()
			if name == "continue" {
				return
			}
			// The newest checkpoint shows the same approval, though an earlier entry opened it.
			require.NoError(t, decide(w, p, w.session().Checkpoint().String()))
			require.NotEqual(t, session.WaitOpen, w.open(session.WaitApproval).State)
		})
	}
}

// A decision that is bound to a checkpoint names no wait of another suspension.
func TestBound_wait_of_another_checkpoint(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := anew(t, runtime.DecideParams{Approve: []string{"w2-1"}})
	for _, c := range []struct {
		wait string
		seq  int64
	}{{"w4-1", 2}, {"w2-1", 4}} {
		_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) {
			p.Confirmation.Approved, p.Confirmation.Wait, p.Checkpoint = true, c.wait, w.checkpoint(c.seq)
		})
		require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err), "%v", c)
		_, err = p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Approve: []string{c.wait}, Checkpoint: w.checkpoint(c.seq)})
		require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err), "%v", c)
		require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	}
}

// Who rejects what a deadline has settled contradicts it by name, or where the
// declared outcome was that it runs; what never ran is rejected as it is.
func TestBound_rejecting_what_a_deadline_settled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		outcome session.DeadlineOutcome
		value   any
		ran     bool
	}{
		"it ran":         {session.ExpireDefault, true, true},
		"it did not run": {session.ExpireDefault, false, false},
		"denied":         {session.ExpireDeny, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, session.WaitApproval, c.outcome, c.value)
			w.clock.advance(2 * time.Hour)
			_, err := p.Sweep(ctx)
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, map[bool]int{true: 1, false: 0}[c.ran], w.effects.count("ran 1"))
			_, err = decide(w, p, runtime.DecideParams{Reject: []string{"w2-1"}})
			require.Equal(t, runtime.CodeExpired, codeOf(err), "by its name")
			out, err := decide(w, p, runtime.DecideParams{RejectAll: true})
			if c.ran {
				require.Equal(t, runtime.CodeExpired, codeOf(err))
				return
			}
			require.NoError(t, err)
			require.True(t, out.Repeated)
		})
	}
}

// A reason that is left out is none for what is named, and says nothing about the rest.
func TestBound_reason_that_is_left_out(t *testing.T) {
	t.Parallel()
	w, p := in(t, "two")
	first := runtime.DecideParams{Approve: []string{"w2-1"}, Reason: "too late"}
	_, err := decide(w, p, first)
	require.NoError(t, err)
	again := first
	again.Reason = ""
	out, err := decide(w, p, again)
	require.NoError(t, err, "the second approval is rejected as it was")
	require.True(t, out.Repeated)
	again.Reject = []string{"w2-2"}
	_, err = decide(w, p, again)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	again.Reason = first.Reason
	out, err = decide(w, p, again)
	require.NoError(t, err)
	require.True(t, out.Repeated)
}
