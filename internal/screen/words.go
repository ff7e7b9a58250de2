package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Count says how many things there are.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Span says a duration as people do, in its one or two largest units.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		text := d.Round(time.Second).String()
		if minutes, whole := strings.CutSuffix(text, "m0s"); whole {
			return minutes + "m"
		}
		return text
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Compact returns JSON on one line of at most n characters.
func Compact(raw json.RawMessage, n int) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return Short(string(raw), n)
	}
	return Short(plainAngles(b.String()), n)
}

// Short returns one clean line of at most n characters.
func Short(s string, n int) string {
	s = CleanLine(strings.TrimSpace(s))
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}

// Fit returns one clean line that takes at most so many columns of a terminal.
func Fit(s string, columns int) string {
	s = CleanLine(strings.TrimSpace(s))
	if Columns(s) <= columns {
		return s
	}
	columns -= columnsOf('…')
	for i, r := range s {
		if columns -= columnsOf(r); columns < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// PrettyJSON returns JSON as people read it, safe to print.
func PrettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return Clean(string(raw))
	}
	return Clean(plainAngles(b.String()))
}

// escapedAngle is what Go's encoder writes for <, > and & for the sake of web
// pages; the pair of backslashes is matched so that a literal one is left alone.
var escapedAngle = regexp.MustCompile(`\\\\|\\u003[ceCE]|\\u0026`)

func plainAngles(text string) string {
	return escapedAngle.ReplaceAllStringFunc(text, func(escape string) string {
		switch strings.ToLower(escape) {
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		case `\u0026`:
			return "&"
		}
		return escape
	})
}
