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
	"github.com/adjourn/adjourn/pkg/client"
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
		{exit.Refusef(client.CodeWaitNotFound, "s", "x"), 3, "wait_not_found"},
		{&exit.RefusalError{Code: client.CodeSessionNotFound, Cause: embedded.ErrNoData}, 3, "session_not_found"},
		{answered(client.CodeUnauthenticated), 4, "unauthenticated"},
		{answered(client.CodeUnknownField), 2, "unknown_field"},
		{answered(client.CodeStoreGone), 3, "store_gone"},
		{answered(client.CodeThrottled), 1, "throttled"},
		{client.ErrUnreachable, 1, "unreachable"},
		{client.ErrNotAdjourn, 1, "unexpected_answer"},
		{client.ErrTooLarge, 1, "unexpected_answer"},
		{session.ErrInvalidID, 2, "invalid_id"},
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

func answered(code client.Code) error {
	return &client.Error{Problem: client.Problem{Code: string(code), SessionID: "s", Answer: &session.Answer{Wait: "w2-1"}}}
}

// TestAbout: an error says which session it is about, wherever it comes from.
func TestAbout(t *testing.T) {
	t.Parallel()
	for _, err := range []error{exit.Refusef(client.CodeWaitNotFound, "s", "x"), answered(client.CodeAlreadyAnswered), &runtime.Error{Session: "s"}} {
		id, answer := exit.About(fmt.Errorf("somewhere: %w", err))
		require.Equal(t, "s", id)
		require.Equal(t, exit.CodeOf(err) == client.CodeAlreadyAnswered, answer != nil)
	}
	id, _ := exit.About(errors.New("surprise"))
	require.Empty(t, id)
	require.Empty(t, exit.CodeOf(nil))
}
