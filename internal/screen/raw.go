package screen

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// Raw lets a program read each key of a terminal as it is pressed. restore gives the terminal back as it
// was; it may be called more than once.
func Raw(stream any) (restore func() error, err error) {
	fd, ok := Terminal(stream)
	if !ok {
		return nil, fmt.Errorf("not a terminal")
	}
	was, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(fd, was) }, nil
}

// Paint clears a terminal in raw mode and prints text on it, with what could move the cursor made
// harmless, as [Screen.Write] does.
func (s *Screen) Paint(w io.Writer, text string) {
	text = "\x1b[H\x1b[2J" + strings.ReplaceAll(harmless(text, s.smart(w)), "\n", "\r\n")
	s.progress.pause(func() {
		if _, err := io.WriteString(w, text); err != nil && w == s.Stdout {
			s.unwritten = err
		}
	})
}
