package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// While messages wait long the sweep sends for their session again. The copies are
// for nothing once the step is done: each is acknowledged, and none brings a copy of
// the message that follows, or there would be more of them with every step.
func TestCopies_bring_no_copies(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {
		calls("echo", `{"text":"1"}`), calls("line", `{"text":"2"}`), calls("deploy", `{"text":"3"}`), calls("echo", `{"text":"4"}`), says("bye"),
	}}))
	p := w.process()
	w.start(p, "go")
	for step := 0; ; step++ {
		for range 3 { // as often as a queue that is minutes behind lets it
			w.clock.advance(5 * time.Minute)
			sweepOf(t, p)
		}
		deliveries, err := p.queue.Receive(t.Context(), queue.ReceiveParams{Max: 64, Visibility: time.Minute})
		require.NoError(t, err)
		require.LessOrEqual(t, len(deliveries), 4, "step %d: its message, and a copy of each sweep", step)
		for _, d := range deliveries {
			kept, err := p.Deliver(t.Context(), d.Named())
			require.NoError(t, err)
			require.Zero(t, kept.Keep)
			require.NoError(t, p.queue.Acknowledge(t.Context(), d))
		}
		if w.session().Status == session.StatusSuspended {
			break
		}
	}
	require.Equal(t, 1, made.count("line 2"))
}

// Of several messages for one entry the one it was written for sends for the next, when
// it comes again; the others leave that to it.
func TestCopies_leave_sending_to_the_message_that_was_worked_for(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.drain()
	named := func(name string) journal.Wake {
		wake := w.wake(2, journal.WakeStep)
		wake.Message = name
		return wake
	}
	_, err := p.Deliver(t.Context(), named("worked-for"))
	require.NoError(t, err)
	require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain(), "and dies before the message is acknowledged")
	require.Equal(t, "worked-for", w.session().Newest.Attempt.Message)
	w.clock.advance(time.Minute)
	for name, sends := range map[string]bool{"a copy": false, "worked-for": true, "": true} {
		kept, err := p.Deliver(t.Context(), named(name))
		require.NoError(t, err)
		require.Zero(t, kept.Keep)
		require.Equal(t, sends, len(w.drain()) == 1, "message %q", name)
	}
}
