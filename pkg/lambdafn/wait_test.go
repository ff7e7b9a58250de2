package lambdafn_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestHTTP_nobody_waits_longer_than_it_is_set: each request that waits holds one
// of the account's invocations.
func TestHTTP_nobody_waits_longer_than_it_is_set(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wake := w.start("- say: hi")
	deliver(t, step(t, w), wakeMessage(t, "m", wake))
	require.Equal(t, session.OutcomeCompleted, w.stands(wake.Key()).Outcome, "nothing here has to wait")
	for longest, want := range map[time.Duration]string{0: "", -time.Second: "", time.Second: "wait=1", 5 * time.Second: "wait=5", 20 * time.Second: "wait=9"} {
		w.cfg.MaxWait = longest
		e := jwt("GET", "/sessions/"+wake.Key().ID, map[string]string{"tenant": session.DefaultTenant, "sub": "ann"})
		e.Headers["prefer"] = "wait=9"
		got := ask(t, query(t, w), e)
		require.Equal(t, http.StatusOK, got.StatusCode, got.Body)
		require.Equal(t, want, got.Headers["Preference-Applied"], longest)
	}
}
