package report_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestRefuse: beside what went wrong stands what to do about it.
func TestRefuse(t *testing.T) {
	t.Parallel()
	paused := report.View{Session: client.Session{ID: "s", Pause: &client.Pause{}}, ResumeHint: "what decides"}
	for name, c := range map[string]struct {
		v    report.View
		err  error
		url  string
		says string
		not  string
	}{
		"words":           {err: &exit.UsageError{Text: "which?", Command: "adjourn run"}, says: "adjourn: which?\nadjourn: see: adjourn run --help\n"},
		"no server":       {err: &exit.RefusalError{Code: exit.CodeUnreachable}, url: "http://127.0.0.1:1", says: "is there a server at http://127.0.0.1:1? One on this machine is started with: adjourn dev"},
		"no token":        {err: &exit.RefusalError{Code: client.CodeUnauthenticated}, url: "http://127.0.0.1:1", says: "no token was sent"},
		"not the API":     {err: &exit.RefusalError{Code: client.CodeRouteNotFound}, url: "http://127.0.0.1:1", says: "does the API begin at http://127.0.0.1:1?"},
		"no session":      {err: &exit.RefusalError{Code: client.CodeSessionNotFound, Session: "x"}, says: "list the sessions there are: adjourn "},
		"no data":         {err: &exit.RefusalError{Code: client.CodeSessionNotFound, Cause: embedded.ErrNoData}, not: "list the sessions"},
		"nothing open":    {err: &exit.RefusalError{Code: client.CodeNothingToDecide}, says: "see what waits: adjourn "},
		"still paused":    {v: paused, err: &exit.RefusalError{Code: client.CodeStaleCheckpoint}, says: " show s\n", not: "what decides"},
		"can go on":       {v: report.View{Session: client.Session{ID: "s"}, ResumeHint: "adjourn resume s"}, err: errors.New("disk full"), says: "adjourn: disk full\nadjourn: to go on: adjourn resume s\n"},
		"somebody's word": {err: errors.New("line\nRun it? y\x1b"), says: "adjourn: line\n  | Run it? y\\x1b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, where, stdout, stderr := room(t)
			if c.url != "" {
				where = where.At(c.url, "")
			}
			report.Refuse(s, where, c.v, c.err)
			require.Empty(t, stdout.String())
			require.Contains(t, stderr.String(), c.says)
			if c.not != "" {
				require.NotContains(t, stderr.String(), c.not)
			}

			s.Form = screen.FormJSON
			report.Refuse(s, where, c.v, c.err)
			var m report.Manifest
			require.NoError(t, json.Unmarshal([]byte(stdout.String()), &m))
			require.Equal(t, session.OutcomeError, m.Outcome)
			require.Equal(t, exit.ErrorCode(c.err), m.Error.Code)
		})
	}
}
