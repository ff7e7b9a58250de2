package report

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestErrorText: what is wrong with a data file is said once, with the file, and without
// the calls through which the error came.
func TestErrorText(t *testing.T) {
	t.Parallel()
	here := place.New(place.Config{Program: "adjourn", Env: func(string) string { return "" }})
	here.UseData("/x/a.db")
	full := fmt.Errorf("%w: the disk is full: free some space (database or disk is full (13))", store.ErrUnavailable)
	postponed := fmt.Errorf("postpone: %w: the disk is full (13)", queue.ErrUnavailable)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"commit":    {fmt.Errorf("session default/f: commit entry 7 (stepped): commit default/f: %w", full), "/x/a.db: the disk is full: free some space (database or disk is full (13))"},
		"twice":     {fmt.Errorf("commit default/f: %w: %w", store.ErrUnavailable, full), "/x/a.db: the disk is full: free some space (database or disk is full (13))"},
		"joined":    {errors.Join(fmt.Errorf("commit default/f: %w", full), postponed), "/x/a.db: the disk is full: free some space (database or disk is full (13))"},
		"in half":   {fmt.Errorf("open /x/a.db: %w: the disk takes no data (disk I/O error (10)\nSQL logic error (1))", store.ErrUnavailable), "/x/a.db: the disk takes no data (disk I/O error (10))"},
		"queue":     {postponed, "/x/a.db: the disk is full (13)"},
		"held":      {fmt.Errorf("update default/f: %w: waited 1s: process 7 holds the data file /x/a.db", store.ErrLocked), "another process holds it: waited 1s: process 7 holds the data file /x/a.db"},
		"gone":      {fmt.Errorf("commit default/f: %w: it was deleted", store.ErrGone), "/x/a.db: the data is gone: it was deleted"},
		"refusal":   {&runtime.Error{Code: runtime.CodeStillWaiting, Session: "f", Message: "store unavailable: is what it waits for"}, "session f: store unavailable: is what it waits for"},
		"no prefix": {&runtime.Error{Code: runtime.CodeStoreUnavailable, Session: "f", Message: "it changed while it was read, each time. Try again"}, "session f: it changed while it was read, each time. Try again"},
		"as it is":  {errors.New("boom"), "boom"},
	} {
		require.Equal(t, c.want, errorText(here, c.err), name)
		require.Equal(t, c.want, errorText(here, fmt.Errorf("%w", runtime.AsError(c.err))), name)
	}
	there := here.At("http://127.0.0.1:1", "")
	require.Equal(t, "the disk is full: free some space (database or disk is full (13))", errorText(there, full))
}
