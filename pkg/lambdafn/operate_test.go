package lambdafn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestSweep_operator: an operator halts every tenant by invoking the function, and lets them go on.
func TestSweep_operator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, err := lambdafn.NewSweep(w.cfg)
	require.NoError(t, err)
	step, err := lambdafn.NewStep(w.cfg)
	require.NoError(t, err)
	invoke := func(event string) (string, error) {
		out, err := h.Invoke(lambdaContext(t, time.Minute), []byte(event))
		return string(out), err
	}
	out, err := invoke(`{"halt": {"reason": "it spends too much", "who": "ana"}}`)
	require.NoError(t, err)
	require.Contains(t, out, "it spends too much")
	wake := w.start("[{say: done}]")
	require.Empty(t, deliver(t, step, wakeMessage(t, "m1", wake)), "it is acknowledged")
	view := w.stands(wake.Key())
	require.Equal(t, session.StatusRunning, view.Status)
	require.Equal(t, "ana", view.Halted.Who)
	_, err = invoke(`{"halt": {}, "go": {}}`)
	require.ErrorContains(t, err, "which of both")
	_, err = invoke(`{"halt": {"agent": "nobody"}}`)
	require.Error(t, err)
	_, err = invoke(`{"go": {}}`)
	require.NoError(t, err)
	require.Empty(t, deliver(t, step, wakeMessage(t, "m2", wake)))
	require.Equal(t, session.StatusCompleted, w.stands(wake.Key()).Status)
}
