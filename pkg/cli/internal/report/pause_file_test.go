package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// room returns a screen, a place with a data file, and what is printed.
func room(t *testing.T) (s *screen.Screen, where *place.Place, stdout, stderr *strings.Builder) {
	t.Helper()
	stdout, stderr = &strings.Builder{}, &strings.Builder{}
	env := func(string) string { return "" }
	s = screen.New(screen.Config{Name: "adjourn", Stdout: stdout, Stderr: stderr, Env: env})
	where = place.New(place.Config{Program: "adjourn", Env: env, Screen: s})
	where.UseData(filepath.Join(t.TempDir(), "a.db"))
	return s, where, stdout, stderr
}

// TestRecord: the pause file tells of the last session that paused, until that one ends.
func TestRecord(t *testing.T) {
	t.Parallel()
	s, where, _, stderr := room(t)
	path := filepath.Join(filepath.Dir(where.DataPath()), place.PauseFile)
	for _, c := range []struct {
		id      string
		outcome session.Outcome
		tells   string
	}{
		{"a", session.OutcomeCompleted, ""},
		{"a", session.OutcomePaused, "a"},
		{"b", session.OutcomePaused, "b"},
		{"a", session.OutcomeCompleted, "b"},
		{"b", session.OutcomeInterrupted, "b"},
		{"b", session.OutcomeRunning, "b"},
		{"b", session.OutcomeFailed, ""},
		{"c\u202e", session.OutcomePaused, `c\u202e`},
		{"c\u202e", session.OutcomeCancelled, ""},
	} {
		report.Record(s, where, report.View{Session: client.Session{ID: c.id, Outcome: c.outcome}})
		if c.tells == "" {
			require.NoFileExists(t, path, "%s %s", c.id, c.outcome)
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), `"session_id": "`+c.tells+`"`)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "arguments of tools may be secrets")
	}
	require.Empty(t, stderr.String())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left half written")
}

func TestRecordThatFails(t *testing.T) {
	t.Parallel()
	s, where, _, stderr := room(t)
	where.UseData(filepath.Join(t.TempDir(), "no folder", "a.db"))
	report.Record(s, where, report.View{Session: client.Session{ID: "a", Outcome: session.OutcomePaused}})
	require.Contains(t, stderr.String(), "pause.json was not updated: ")

	stderr.Reset()
	report.Record(s, where.At("http://127.0.0.1:1", ""), report.View{Session: client.Session{ID: "a", Outcome: session.OutcomePaused}})
	require.Empty(t, stderr.String(), "behind a server there is no data file for it to be beside")
}
