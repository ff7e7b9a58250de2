package journal

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/adjourn/adjourn/pkg/session"
)

// Digest returns the base64url SHA-256 of JSON in a canonical form (object keys
// sorted, no spaces), so that the same arguments have the same digest however
// they were written. What is not valid JSON is hashed as it is.
func Digest(raw json.RawMessage) string {
	if !json.Valid(raw) {
		return hash(raw) // a decoder would stop after the first value and miss the rest
	}
	if isCanonical(raw) {
		return hash(raw)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return hash(raw)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return hash(raw)
	}
	return hash(text)
}

// ShownDigest returns the digest of what a person is shown of a wait beside its arguments; "" where
// there is nothing.
func ShownDigest(w session.Wait) string {
	if w.Preview == nil && w.Claim == "" {
		return ""
	}
	raw, err := json.Marshal(struct {
		Preview *session.Preview
		Claim   string
	}{w.Preview, w.Claim})
	if err != nil {
		return "" // of texts; an approval with none counts for nothing
	}
	return Digest(raw)
}

// isCanonical reports whether valid JSON is in the canonical form already, as the arguments of
// most calls are: every call that runs has a digest. If it is not sure, it returns false.
func isCanonical(raw []byte) bool { return len(raw) > 0 && canonicalValue(raw, 0) == len(raw) }

// canonicalValue returns where the value ends that begins at i, or -1 when it is not known to be
// canonical. The caller checks what follows, which is never white space.
func canonicalValue(raw []byte, i int) int {
	switch raw[i] {
	case '{':
		return canonicalObject(raw, i+1)
	case '[':
		return canonicalArray(raw, i+1)
	case '"':
		return canonicalText(raw, i+1)
	}
	for ; i < len(raw); i++ { // a number stays as it was written
		if c := raw[i]; c == ',' || c == ']' || c == '}' || c <= ' ' {
			break
		}
	}
	return i
}

func canonicalObject(raw []byte, i int) int {
	if raw[i] == '}' {
		return i + 1
	}
	var last []byte
	for first := true; ; first = false {
		if raw[i] != '"' {
			return -1
		}
		end := canonicalText(raw, i+1)
		if end < 0 || raw[end] != ':' {
			return -1
		}
		key := raw[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 || !first && bytes.Compare(last, key) >= 0 {
			return -1 // keys are sorted by what they mean, and the last of two stays
		}
		last = key
		i = canonicalValue(raw, end+1)
		switch {
		case i < 0 || raw[i] != ',' && raw[i] != '}':
			return -1
		case raw[i] == '}':
			return i + 1
		}
		i++
	}
}

func canonicalArray(raw []byte, i int) int {
	if raw[i] == ']' {
		return i + 1
	}
	for {
		i = canonicalValue(raw, i)
		switch {
		case i < 0 || raw[i] != ',' && raw[i] != ']':
			return -1
		case raw[i] == ']':
			return i + 1
		}
		i++
	}
}

// canonicalText returns where the text ends whose first character is at i. Which
// characters are escaped, and how, is what [json.Marshal] does.
func canonicalText(raw []byte, i int) int {
	for {
		switch c := raw[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if bytes.IndexByte([]byte(`"\bfnrt`), raw[i+1]) < 0 {
				return -1
			}
			i += 2
		case c == '<' || c == '>' || c == '&':
			return -1
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
				return -1
			}
			i += size
		}
	}
}
