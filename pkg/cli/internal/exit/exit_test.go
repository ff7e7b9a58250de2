package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for outcome, code := range map[session.Outcome]int{
		session.OutcomeCompleted: 0, session.OutcomeFailed: 1, session.OutcomeCancelled: 1, session.OutcomePaused: 10,
		session.OutcomeInterrupted: 130, session.OutcomeRunning: 124, session.OutcomeError: 1, "news": 1,
	} {
		require.Equal(t, code, exit.Code(outcome, nil), outcome)
	}
	for _, c := range []struct {
		err  error
		code int
		name string
	}{
		{exit.Usagef("x"), 2, "usage"},
		{&runtime.Error{Code: runtime.CodeInvalidInput}, 2, "invalid_input"},
		{&runtime.Error{Code: runtime.CodeIdempotencyMismatch}, 5, "idempotency_mismatch"},
		{app.ErrInvalidSetting, 2, "invalid_setting"},
		{&runtime.Error{Code: runtime.CodeUnknownAgent}, 3, "unknown_agent"},
		{embedded.ErrNoData, 3, "session_not_found"},
		{store.ErrNotFound, 3, "session_not_found"},
		{&runtime.Error{Code: runtime.CodeNotAllowed}, 4, "not_allowed"},
		{&runtime.Error{Code: runtime.CodeAlreadyAnswered}, 5, "already_answered"},
		{&runtime.Error{Code: runtime.CodeStaleCheckpoint}, 5, "stale_checkpoint"},
		{&runtime.Error{Code: runtime.CodeExpired}, 5, "expired"},
		{store.ErrUnavailable, 1, "store_unavailable"},
		{store.ErrLocked, 1, "store_locked"},
		{store.ErrGone, 3, "store_gone"},
		{store.ErrNotOurs, 1, "not_an_adjourn_store"},
		{store.ErrCorrupt, 1, "corrupt_journal"},
		{errors.New("surprise"), 1, "internal"},
		{context.Canceled, 130, "interrupted"},
		{context.DeadlineExceeded, 124, "internal"},
		{exit.Said(10), 10, "internal"},
	} {
		wrapped := fmt.Errorf("somewhere: %w", c.err)
		require.Equal(t, c.code, exit.Code("", wrapped), c.err)
		require.Equal(t, c.name, exit.ErrorCode(wrapped), c.err)
	}
	require.NoError(t, exit.Said(0))
}
