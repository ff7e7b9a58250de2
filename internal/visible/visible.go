// Package visible shows what a model, a tool or a caller wrote to people who decide over it.
//
// Whatever could move the cursor, hide text, or reverse its order becomes an escape, so that
// nobody can paint a prompt over ours.
package visible

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text that is safe to print: newlines and tabs stay, every other
// control or formatting character becomes a visible escape.
func Text(s string) string {
	if strings.IndexFunc(s, doubtful) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && invalidAt(s, i):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafeRune(r), joiner(r) && !joins(s, i, r):
			b.WriteString(escapeRune(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line is [Text] for one line: newlines and tabs become escapes too.
func Line(s string) string {
	s = Text(s)
	if strings.ContainsAny(s, "\n\t") {
		s = lineEscapes.Replace(s)
	}
	return s
}

var lineEscapes = strings.NewReplacer("\n", `\n`, "\t", `\t`)

func invalidAt(s string, i int) bool {
	r, size := utf8.DecodeRuneInString(s[i:])
	return r == utf8.RuneError && size == 1
}

func unsafeRune(r rune) bool {
	switch r {
	case '\n', '\t', zeroWidthNonJoiner, zeroWidthJoiner:
		return false
	case '\u2028', '\u2029', '\u115f', '\u1160', '\u3164', '\uffa0': // separators, and letters that look like nothing
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Some scripts and emoji cannot be written without joiners.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

func joiner(r rune) bool { return r == zeroWidthNonJoiner || r == zeroWidthJoiner }

// joins reports whether a joiner stands between two characters it could join:
// beside ASCII it joins nothing and only makes two names look the same.
func joins(s string, i int, r rune) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
	return before >= utf8.RuneSelf && before != utf8.RuneError && after >= utf8.RuneSelf && after != utf8.RuneError
}

func doubtful(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false // most of what is printed, and quicker than a look into the tables
	}
	return unsafeRune(r) || joiner(r)
}

func escapeRune(r rune) string {
	switch {
	case r == '\r':
		return `\r`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// JSON returns the same JSON with those characters as escapes of JSON, so
// that it is safe on a terminal and means the same to a program.
func JSON(text []byte) []byte {
	if bytes.IndexFunc(text, doubtful) < 0 && utf8.Valid(text) {
		return text
	}
	var b bytes.Buffer
	for i, r := range string(text) {
		switch {
		case !unsafeRune(r) && (!joiner(r) || joins(string(text), i, r)):
			b.WriteRune(r) // and U+FFFD for what is no UTF-8
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		}
	}
	return b.Bytes()
}
