package screen

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/visible"
)

// What a model or a tool wrote is printed in front of people who decide over
// it, cleaned by [visible.Text].

// Clean returns text that is safe to print, as [visible.Text] does.
func Clean(s string) string { return visible.Text(s) }

// CleanLine is Clean for one line: newlines and tabs become escapes too.
func CleanLine(s string) string { return visible.Line(s) }

// Sprintf is [fmt.Sprintf] of which no argument leaves its line: what others wrote
// cannot begin one of ours. Of the escapes those of [Screen.Bold] stay.
func Sprintf(format string, args ...any) string {
	clean := make([]any, len(args))
	for i, arg := range args {
		clean[i] = arg
		switch v := arg.(type) {
		case error:
			clean[i] = keepBold(v.Error(), CleanLine)
		case fmt.Stringer:
			clean[i] = keepBold(v.String(), CleanLine)
		default:
			if text := reflect.ValueOf(arg); text.Kind() == reflect.String {
				clean[i] = keepBold(text.String(), CleanLine)
			}
		}
	}
	return fmt.Sprintf(format, clean...)
}

const (
	boldOn  = "\x1b[1m"
	boldOff = "\x1b[0m"
)

var boldEscape = regexp.MustCompile(`\x1b\[[01]m`)

// keepBold cleans what stands around the escapes of bold text.
func keepBold(text string, clean func(string) string) string {
	if !strings.Contains(text, "\x1b") {
		return clean(text)
	}
	var b strings.Builder
	for {
		at := boldEscape.FindStringIndex(text)
		if at == nil {
			break
		}
		b.WriteString(clean(text[:at[0]]) + text[at[0]:at[1]])
		text = text[at[1]:]
	}
	return b.String() + clean(text)
}

// harmless cleans a text for a stream. Where bold can be shown it stays, and ends
// with the text.
func harmless(text string, bold bool) string {
	if !bold {
		return Clean(text)
	}
	text = keepBold(text, Clean)
	if strings.LastIndex(text, boldOn) > strings.LastIndex(text, boldOff) {
		text += boldOff
	}
	return text
}

// QuoteBlock returns text with a bar before every line, and lines wrapped at
// width (0: not at all), so that no line of it can pass for one of ours.
func QuoteBlock(s, indent string, width int) string {
	bar := indent + "| "
	room := 0
	if width > 0 {
		room = max(width-len(bar)-1, 20)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(Clean(s), "\n"), "\n") {
		line = strings.ReplaceAll(line, "\t", "    ")
		for _, part := range wrap(line, room) {
			b.WriteString(bar + part + "\n")
		}
	}
	return b.String()
}

// Hang wraps a line at width (0: not at all), and indents all of it but its first line.
func Hang(line string, indent, width int) string {
	if width == 0 || Columns(line) < width {
		return line
	}
	indent = min(indent, len(line))
	parts := wrap(line[indent:], max(width-indent-1, 20))
	return line[:indent] + strings.Join(parts, "\n"+strings.Repeat(" ", indent))
}

// HangLines is [Hang] for each line of a text, indented as the line is.
func HangLines(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Hang(line, len(line)-len(strings.TrimLeft(line, " ")), width)
	}
	return strings.Join(lines, "\n")
}

// Columns says how wide a line is at most: too wide a guess only wraps early.
func Columns(line string) (n int) {
	for _, r := range line {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r >= 0x1100 { // as wide as anything gets
		return 2
	}
	return 1
}

// wrap cuts a line into parts of at most room columns, behind a space where
// there is one in the second half; 0 means that it may be as long as it is.
func wrap(line string, room int) []string {
	if room == 0 {
		return []string{line}
	}
	var parts []string
	start, columns := 0, 0
	space, after := 0, 0 // where a word could begin the next part, and the columns up to there
	for i, r := range line {
		w := columnsOf(r)
		if columns+w > room {
			if space > start && after >= room/2 {
				parts, start, columns = append(parts, line[start:space]), space, columns-after
			} else {
				parts, start, columns = append(parts, line[start:i]), i, 0
			}
		}
		columns += w
		if r == ' ' {
			space, after = i+1, columns
		}
	}
	return append(parts, line[start:])
}

// wrapWords cuts a line behind spaces into parts of at most room characters, as far
// as its words allow: a path or a URL stays whole. 0 means no cuts.
func wrapWords(line string, room int) []string {
	if room == 0 {
		return []string{line}
	}
	parts, columns := []string{""}, 0
	for word := range strings.SplitAfterSeq(line, " ") {
		wide := utf8.RuneCountInString(strings.TrimSuffix(word, " "))
		if columns > 0 && columns+wide > room {
			parts, columns = append(parts, ""), 0
		}
		parts[len(parts)-1] += word
		columns += utf8.RuneCountInString(word)
	}
	return parts
}
