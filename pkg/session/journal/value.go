package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxNesting is how deeply a value that goes into an entry may be nested. A decoder reads 10,000
// levels and SQLite, whose indexes find open waits by their tool, 1,000. Both have to read the whole entry or
// record, in which the value is nested again.
const MaxNesting = 900

// ErrUnfitValue says that a value cannot go into an entry.
var ErrUnfitValue = errors.New("cannot be kept")

// CheckValue returns an error that wraps [ErrUnfitValue] unless raw is JSON that
// is text in UTF-8 and nested no deeper than [MaxNesting]: what comes from
// tools, models and people is checked before it is committed, because an
// entry that cannot be read again loses its session.
func CheckValue(raw json.RawMessage) error {
	switch {
	case !json.Valid(raw):
		return fmt.Errorf("%w: it is not valid JSON", ErrUnfitValue)
	case !utf8.Valid(raw):
		return fmt.Errorf("%w: it is not text in UTF-8", ErrUnfitValue)
	case nesting(raw) > MaxNesting:
		return fmt.Errorf("%w: it is nested more than %d levels deep", ErrUnfitValue, MaxNesting)
	}
	return nil
}

// nesting returns how deep valid JSON is nested. Each entry that is written is
// looked through, so texts, which are most of it, are passed over as a whole.
func nesting(raw []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = textEnd(raw, i+1)
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	return deepest
}

// textEnd returns where the quote is that ends the text which begins at i: the
// first with an even number of backslashes before it.
func textEnd(raw []byte, i int) int {
	for {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return len(raw)
		}
		end, escapes := i+n, 0
		for escapes < n && raw[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		i = end + 1
	}
}
