package screen

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// on returns a screen without a terminal, and what is printed on it.
func on() (s *Screen, stdout, stderr *strings.Builder) {
	stdout, stderr = &strings.Builder{}, &strings.Builder{}
	return New(Config{Name: "it's\x1b shop", Stdout: stdout, Stderr: stderr, Env: func(string) string { return "" }}), stdout, stderr
}

func TestWhatGoesWhere(t *testing.T) {
	t.Parallel()
	s, stdout, stderr := on()
	s.Say("data %d", 1)
	s.JSON(map[string]string{"a": "<\u202e>"})
	s.Table([][]string{{"A", "B"}, {"long", ""}})
	require.Equal(t, "data 1\n{\n  \"a\": \"<\\u202e>\"\n}\nA     B\nlong\n", stdout.String())
	require.Empty(t, stderr.String())

	stdout.Reset()
	s.Talk("talk\x1b")
	s.Complain("two\nlines")
	s.Quiet = true
	s.Talk("more talk")
	s.Suggest("%s", "still said")
	require.Equal(t, `talk\x1b`+"\n"+`it's\x1b shop: two`+"\n  | lines\n"+`it's\x1b shop: still said`+"\n", stderr.String())
	require.Empty(t, stdout.String())
	require.Equal(t, "plain", s.Bold(stdout, "plain"), "no terminal, no colours")
	require.Zero(t, Width(stdout))
	require.NoError(t, s.Unwritten())
}

func TestNoJSON(t *testing.T) {
	t.Parallel()
	s, stdout, stderr := on()
	s.JSON(math.NaN())
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "print JSON: ")
}

type full struct{ error }

func (f full) Write([]byte) (int, error) { return 0, f.error }

func TestUnwritten(t *testing.T) {
	t.Parallel()
	s, _, _ := on()
	s.Stderr = full{errors.New("no stderr")}
	s.Complain("nobody hears this")
	require.NoError(t, s.Unwritten(), "talk that is lost is no reason to fail")
	s.Stdout = full{errors.New("no space")}
	s.Say("data")
	require.EqualError(t, s.Unwritten(), "no space")
}

// TestProgress: a line for each step, and the bottom line is gone before anything
// else is printed.
func TestProgress(t *testing.T) {
	t.Parallel()
	s, stdout, stderr := on()
	s.Entry(runtime.Progress{Kind: session.KindStarted}) // before there is any
	s.ShowProgress()
	s.Entry(runtime.Progress{Kind: session.KindStarted})
	require.Empty(t, stderr.String(), "no terminal, no progress")

	s.progress.on, s.progress.smart, s.progress.width = true, true, 40
	const gone = "\r\x1b[2K"
	s.Entry(runtime.Progress{Kind: session.KindStarted})
	s.Delta(llm.Event{Kind: llm.EventTextDelta, Text: "hello\x1b"})
	s.Entry(runtime.Progress{Kind: session.KindReplied, Step: 1, Calls: []string{"deploy", "ask", "deploy"}})
	s.Entry(runtime.Progress{Kind: session.KindStepped, Step: 1, Calls: []string{"deploy", "pay"}, Failed: []string{"pay"}})
	s.Say("data")
	require.Equal(t, "working …"+gone+`… hello\x1b`+gone+"step 1: deploy ×2, ask …"+gone+"step 1: deploy, pay\nstep 1: failed: pay\nstep 2 …"+gone, stderr.String())
	require.Equal(t, "data\n", stdout.String())

	stderr.Reset()
	_, err := s.Lines().Write([]byte("a log line\n"))
	require.NoError(t, err)
	s.NoProgress()
	s.Entry(runtime.Progress{Kind: session.KindStepped, Step: 2})
	require.Equal(t, "a log line\n", stderr.String())
}
