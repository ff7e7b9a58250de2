package prompt_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// window is the size of a terminal.
type window struct{ rows, columns int }

// sitAt is sit, at a terminal of a size.
func sitAt(t *testing.T, w window) (*prompt.Person, *os.File) {
	t.Helper()
	p, far := sit(t, map[string]string{"NO_COLOR": "1"})
	require.NoError(t, pty.Setsize(far, &pty.Winsize{Rows: uint16(w.rows), Cols: uint16(w.columns)}))
	return p, far
}

// more is what stands below a page.
var more = regexp.MustCompile(`-- (\d+) of (\d+) lines: Enter for more, q for no more: $`)

// turn is what a person types at the next prompt that is no page's.
type turn struct{ prompt, types string }

// leaf reads on, Enter at each page, and types what the turns say. It returns what
// stood on the screen below each prompt before, and how many pages there were.
func leaf(t *testing.T, far *os.File, turns ...turn) (shown []string, pages int) {
	t.Helper()
	seen, buffer := "", make([]byte, 64<<10)
	for len(turns) > 0 {
		n, err := far.Read(buffer)
		seen += strings.ReplaceAll(string(buffer[:n]), "\r", "")
		require.NoError(t, err, "waiting for %q, saw: %s", turns[0].prompt, seen)
		types := ""
		switch {
		case strings.HasSuffix(seen, turns[0].prompt):
			types, turns = turns[0].types, turns[1:]
		case more.MatchString(seen):
			types = "\n"
			pages++
		default:
			continue
		}
		shown, seen = append(shown, seen), ""
		_, err = far.WriteString(types)
		require.NoError(t, err)
	}
	return shown, pages
}

// fits asserts that what was printed between two prompts is on the window whole.
func (w window) fits(t *testing.T, shown []string) {
	t.Helper()
	rows, columns := w.rows, w.columns
	if rows == 0 {
		rows, columns = 24, 80
	}
	for _, text := range shown {
		n := 0
		for line := range strings.SplitSeq(text, "\n") {
			n += max(1, (screen.Columns(line)+columns-1)/columns)
		}
		require.LessOrEqual(t, n, rows+1, "the echo of what was typed before is its first row: %s", text)
	}
}

func long(lines int, word string) string {
	list := make([]string, lines)
	for i := range list {
		list[i] = word
	}
	raw, _ := json.Marshal(map[string][]string{"files": list})
	return string(raw)
}

func person(t *testing.T, p *prompt.Person, w client.Wait) (*engine, <-chan error) {
	t.Helper()
	e, done := &engine{waits: []client.Wait{open(w)}}, make(chan error, 1)
	go func() {
		_, err := p.Ask(t.Context(), e, client.Session{ID: id, Agent: "toy"})
		done <- err
	}()
	return e, done
}

const (
	runIt   = "Run it? [y]es, [N]o, [e]dit, [v]iew, [?] help: "
	notAll  = "Not all of it was shown. [v]iew it, [N]o, [e]dit, [?] help: "
	lastRow = "LAST"
)

// TestLongArguments: page by page, in windows of every size, and the question stands
// below them with what it is about.
func TestLongArguments(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]window{"common": {24, 80}, "small": {8, 60}, "tiny": {6, 60}, "unknown": {0, 0}} {
		for word, text := range map[string]string{"short": "a", "wide": strings.Repeat("日本", 60), "spaces": strings.Repeat("some words ", 20), "one long word": strings.Repeat("x", 500)} {
			t.Run(name+", "+word, func(t *testing.T) {
				t.Parallel()
				p, far := sitAt(t, w)
				arguments := strings.TrimSuffix(long(100, text), "]}") + `,"` + lastRow + `"]}`
				e, done := person(t, p, approval(arguments))
				shown, pages := leaf(t, far, turn{runIt, "y\n"})
				require.NoError(t, <-done)
				require.Greater(t, pages, 3)
				require.Len(t, e.answers, 1)
				require.True(t, *e.answers[0].Approved)
				w.fits(t, shown)
				last := shown[len(shown)-1]
				require.Contains(t, last, "toy wants to run deploy  (w2-1) with the arguments above")
				require.Contains(t, strings.Join(shown, ""), lastRow)
			})
		}
	}
}

// TestNobodyApprovesWhatTheyDidNotSee: who leaves before the end is not taken at their yes.
func TestNobodyApprovesWhatTheyDidNotSee(t *testing.T) {
	t.Parallel()
	w := window{10, 60}
	leave := func(t *testing.T, far *os.File) { atPage(t, far, "q\n") }
	t.Run("yes", func(t *testing.T) {
		t.Parallel()
		p, far := sitAt(t, w)
		e, done := person(t, p, approval(long(100, "a")))
		leave(t, far)
		shown, _ := leaf(t, far, turn{notAll, "y\n"}, turn{notAll, "yes\n"}, turn{notAll, "v\n"}, turn{runIt, "y\n"})
		require.NoError(t, <-done)
		require.Contains(t, strings.Join(shown, ""), "Nobody approves what they did not see")
		require.Len(t, e.answers, 1)
		require.True(t, *e.answers[0].Approved)
	})
	t.Run("no", func(t *testing.T) {
		t.Parallel()
		p, far := sitAt(t, w)
		e, done := person(t, p, approval(long(100, "a")))
		leave(t, far)
		leaf(t, far, turn{notAll, "n\n"})
		require.NoError(t, <-done)
		require.False(t, *e.answers[0].Approved, "a no needs no reading")
	})
	t.Run("edited", func(t *testing.T) {
		t.Parallel()
		p, far := sitAt(t, w)
		e, done := person(t, p, approval(long(100, "a")))
		leave(t, far)
		leaf(t, far, turn{notAll, "e {\"a\": 1}\n"}, turn{runIt, "y\n"})
		require.NoError(t, <-done)
		require.JSONEq(t, `{"a": 1}`, string(e.answers[0].EditedInput))
	})
	t.Run("left", func(t *testing.T) {
		t.Parallel()
		p, far := sitAt(t, w)
		e, done := person(t, p, approval(long(100, "a")))
		atPage(t, far, "\x04")
		require.NoError(t, <-done)
		require.Empty(t, e.answers)
	})
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		for types, want := range map[string]bool{"q\n": false, "\n": true} {
			p, far := sitAt(t, w)
			wait := open(approval(long(20, "a")))
			done := make(chan bool, 1)
			go func() {
				yes, err := p.AgreesToAll(context.WithoutCancel(t.Context()), "s", []client.Wait{wait, wait}, nil)
				done <- yes && err == nil
			}()
			atPage(t, far, types)
			if want {
				shown, pages := leaf(t, far, turn{"Approve all 2? [y]es, [N]o: ", "y\n"})
				require.Positive(t, pages)
				require.Contains(t, shown[len(shown)-1], "deploy ×2")
			}
			require.Equal(t, want, <-done)
		}
	})
}

// atPage types something at the first page.
func atPage(t *testing.T, far *os.File, types string) {
	t.Helper()
	seen, buffer := "", make([]byte, 4096)
	for !more.MatchString(seen) {
		n, err := far.Read(buffer)
		require.NoError(t, err)
		seen += string(buffer[:n])
	}
	_, err := far.WriteString(types)
	require.NoError(t, err)
}

// TestLongQuestions: choices do not scroll away what is asked.
func TestLongQuestions(t *testing.T) {
	t.Parallel()
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = "choice-" + strings.Repeat("x", i)
	}
	w := window{10, 60}
	p, far := sitAt(t, w)
	e, done := person(t, p, question(session.QuestionChoice, ids...))
	shown, pages := leaf(t, far, turn{"leaves it for later): ", "100\n"})
	require.NoError(t, <-done)
	require.Greater(t, pages, 10)
	w.fits(t, shown)
	require.Contains(t, shown[len(shown)-1], "pick asks: Which?")
	require.Equal(t, []string{ids[99]}, e.answers[0].Selected)
}
