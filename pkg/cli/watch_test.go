package cli_test

import (
	"encoding/json"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// stopsWatching ends the question that Ctrl-C brings while a server works on a session.
const stopsWatching = "[S]top watching: "

// At a terminal Ctrl-C asks whether the session is to stop, too; nothing but a clear yes stops it.
func TestCtrlC_watching(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed  []string
		status session.Status
		says   string
	}{
		"interrupt":        {[]string{"i\n"}, session.StatusInterrupted, "Session s was interrupted"},
		"in full":          {[]string{"what?\n", "Interrupt\n"}, session.StatusInterrupted, "Session s was interrupted"},
		"enter":            {[]string{"\n"}, session.StatusRunning, "To stop the session itself: "},
		"stop watching":    {[]string{"s\n"}, session.StatusRunning, "To stop the session itself: "},
		"end of the input": {[]string{"\x04"}, session.StatusRunning, "To stop the session itself: "},
		"Ctrl-C again":     {[]string{"\x03"}, session.StatusRunning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, verb := range []string{"run", "resume"} {
				t.Run(verb, func(t *testing.T) {
					t.Parallel()
					b := setup(t)
					b.serve()
					words := []string{"run", "--agent", "toy", "--session", "s", "[{call: hang}, {say: ok}]"}
					if verb == "resume" {
						b.start("s", "[{call: deploy, with: {service: web}}, {call: hang}, {say: ok}]", 10)
						words = []string{"resume", "s"}
					}
					p := b.sit(nil, words...)
					if verb == "resume" {
						p.Sees(prompt).Types("y\n")
					}
					p.Sees("…").Types("\x03")
					for _, typed := range c.typed {
						p.Sees(stopsWatching).Types(typed)
					}
					require.Equal(t, 130, p.Leaves(), p.All())
					require.Contains(t, p.All(), c.says)
					require.Equal(t, c.status, b.status("s"))
				})
			}
		})
	}
}

// Who terminates a command is not the person at its terminal: nobody is asked.
func TestCtrlC_terminated_while_watching(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	p := b.sit(nil, "run", "--agent", "toy", "--session", "s", "[{call: hang}, {say: ok}]")
	p.Sees("…").Signal(syscall.SIGTERM)
	require.Equal(t, 130, p.Leaves(), p.All())
	require.NotContains(t, p.All(), stopsWatching)
	require.Contains(t, p.All(), "To stop the session itself: ")
	require.Equal(t, session.StatusRunning, b.status("s"))
}

// status is where a session stands, by the list of sessions.
func (b *bench) status(id string) session.Status {
	b.t.Helper()
	var found struct {
		Sessions []struct {
			ID     string         `json:"session"`
			Status session.Status `json:"status"`
		} `json:"sessions"`
	}
	out := b.run("sessions", "-o", "json").ends(0).stdout
	require.NoError(b.t, json.Unmarshal([]byte(out), &found), out)
	for _, s := range found.Sessions {
		if s.ID == id {
			return s.Status
		}
	}
	require.Fail(b.t, "no such session", out)
	return ""
}
