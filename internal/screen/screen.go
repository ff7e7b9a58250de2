// Package screen is what a command prints on: two streams, with the terminal that may be behind them.
//
// Data goes to stdout, talk to stderr. What a model or a tool wrote reaches
// neither before it was made harmless.
package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/adjourn/adjourn/internal/visible"
)

// The forms of what is printed on stdout.
const (
	FormText = "text"
	FormJSON = "json"
	// FormJSONLines is of commands that print one object a line.
	FormJSONLines = "jsonl"
)

// Config says what to print on.
type Config struct {
	// Name begins what is said about mistakes.
	Name string
	// Stdout and Stderr; both required. Where stderr is a terminal it shows progress.
	Stdout, Stderr io.Writer
	// Env reads a variable of the environment; required.
	Env func(string) string
}

// Screen prints. Once it shows progress, several goroutines may print.
type Screen struct {
	Config

	// Form of what is printed on stdout.
	Form string
	// Quiet says nothing on stderr but errors.
	Quiet bool

	// unwritten is the error of the last write to stdout that failed.
	unwritten error
	progress  *progress
}

// New returns a screen for text.
func New(cfg Config) *Screen { return &Screen{Config: cfg, Form: FormText} }

// Unwritten returns the error of the last write to stdout that failed.
func (s *Screen) Unwritten() error { return s.unwritten }

// JSON prints one value on stdout, safe on a terminal and the same to a program.
func (s *Screen) JSON(v any) {
	text, err := EncodeJSON(v)
	if err != nil {
		s.Complain("print JSON: %v", err)
		return
	}
	s.Write(s.Stdout, string(text))
}

// EncodeJSON returns one value as JSON prints it.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return visible.JSON(b.Bytes()), nil
}

// Say prints a line of data on stdout. What is put into the format stays on its line;
// a text of several is for [Screen.Write].
func (s *Screen) Say(format string, args ...any) {
	s.Write(s.Stdout, Sprintf(format, args...)+"\n")
}

// Talk prints a line for people on stderr, unless they asked for quiet.
func (s *Screen) Talk(format string, args ...any) {
	if !s.Quiet {
		s.Write(s.Stderr, Sprintf(format, args...)+"\n")
	}
}

// Complain prints an error on stderr, always.
func (s *Screen) Complain(format string, args ...any) {
	s.grumble(Width(s.Stderr), fmt.Sprintf(format, args...))
}

// Suggest prints what to do about an error. It is not wrapped: a command in it is
// there to be pasted.
func (s *Screen) Suggest(format string, args ...any) {
	s.grumble(0, fmt.Sprintf(format, args...))
}

// grumble prints lines that begin as ours do, wrapped at width (0: not at all).
// Only the first line does: the rest may be somebody else's words.
func (s *Screen) grumble(width int, text string) {
	name, room := CleanLine(s.Name)+": ", 0
	if width > 0 {
		room = max(width-len(name)-1, 20)
	}
	var b strings.Builder
	indent := name
	further := "    "
	for line := range strings.SplitSeq(strings.TrimRight(Clean(text), "\n"), "\n") {
		for _, part := range wrapWords(line, room) {
			b.WriteString(indent + part + "\n")
			indent = further
		}
		indent, further = "  | ", "  | "
	}
	s.Write(s.Stderr, b.String())
}

// Write prints text, and is the one door to both streams: what of it could move the
// cursor or hide something is made harmless, whoever wrote it. That it cannot be printed is no reason to fail the work, but
// what was asked for on stdout and did not get there is told in the end.
func (s *Screen) Write(w io.Writer, text string) {
	text = harmless(text, s.smart(w))
	s.progress.pause(func() {
		if _, err := io.WriteString(w, text); err != nil && w == s.Stdout {
			s.unwritten = err
		}
	})
}

// Lines lets a log share stderr with the progress.
func (s *Screen) Lines() io.Writer { return lineWriter{s} }

type lineWriter struct{ s *Screen }

func (w lineWriter) Write(p []byte) (int, error) {
	w.s.Write(w.s.Stderr, string(p))
	return len(p), nil
}

// Terminal returns the file descriptor of a stream that is a terminal.
func Terminal(stream any) (fd int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// smart says that a stream is a terminal that can move its cursor.
func (s *Screen) smart(stream any) bool {
	_, ok := Terminal(stream)
	return ok && s.Env("TERM") != "dumb"
}

// Width of the terminal behind a stream, 0 if there is none.
func Width(stream any) int {
	fd, ok := Terminal(stream)
	if !ok {
		return 0
	}
	if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
		return columns
	}
	return 80
}

// Height of the terminal behind a stream in rows, 0 if there is none.
func Height(stream any) int {
	fd, ok := Terminal(stream)
	if !ok {
		return 0
	}
	if _, rows, err := term.GetSize(fd); err == nil && rows > 0 {
		return rows
	}
	return 24
}

// Bold returns text that stands out where the stream can show it.
func (s *Screen) Bold(stream any, text string) string {
	if !s.smart(stream) || s.Env("NO_COLOR") != "" {
		return text
	}
	return boldOn + CleanLine(text) + boldOff
}

// Table prints rows in columns on stdout.
func (s *Screen) Table(rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = CleanLine(cell)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // a strings.Builder takes everything
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		s.Write(s.Stdout, strings.TrimRight(line, " \n")+"\n")
	}
}
