package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestProgressSaysWhyAStepIsPutOff: whoever shows it need not read the journal.
func TestProgressSaysWhyAStepIsPutOff(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := runtime.NewProgress(&journal.Entry{
		Kind: session.KindDelayed, Status: session.StatusRunning, Until: &until,
		Failure: &session.Failure{Type: "model_rate_limited", Message: "model call: rate_limited"},
	})
	require.Equal(t, "model call: rate_limited", p.Reason)
	require.Equal(t, until, p.Until)
	require.Empty(t, p.Failure, "the task has not failed")
}
