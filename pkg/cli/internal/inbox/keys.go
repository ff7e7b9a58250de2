package inbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"
)

// keyName is a key that is no character.
type keyName int

// The keys that are no characters.
const (
	keyRune keyName = iota
	keyEnter
	keyEscape
	keyBackspace
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyInterrupt
)

// key is one key that was pressed, and when it was read.
type key struct {
	name keyName
	r    rune
	at   time.Time
}

// sequences are the keys that a terminal sends as several bytes.
var sequences = []struct {
	text string
	name keyName
}{
	{"\x1b[A", keyUp}, {"\x1bOA", keyUp}, {"\x1b[B", keyDown}, {"\x1bOB", keyDown}, {"\x1b[5~", keyPageUp}, {"\x1b[6~", keyPageDown},
}

// decode splits what a terminal sent at one moment into keys. What is no key of ours, and the rest of an
// escape sequence with it, is left out.
func decode(read []byte, at time.Time) (keys []key) {
	for len(read) > 0 {
		switch c := read[0]; {
		case c == '\r' || c == '\n':
			keys, read = append(keys, key{name: keyEnter, at: at}), read[1:]
		case c == 3 || c == 4: // Ctrl-C, Ctrl-D
			keys, read = append(keys, key{name: keyInterrupt, at: at}), read[1:]
		case c == 127 || c == 8:
			keys, read = append(keys, key{name: keyBackspace, at: at}), read[1:]
		case c == '\x1b':
			var escaped []key
			escaped, read = decodeEscape(read, at)
			keys = append(keys, escaped...)
		case c < ' ':
			read = read[1:]
		default:
			r, size := utf8.DecodeRune(read)
			if r != utf8.RuneError {
				keys = append(keys, key{r: r, at: at})
			}
			read = read[size:]
		}
	}
	return keys
}

// decodeEscape decodes what begins with an escape.
func decodeEscape(read []byte, at time.Time) (keys []key, rest []byte) {
	for _, s := range sequences {
		if after, is := bytes.CutPrefix(read, []byte(s.text)); is {
			return []key{{name: s.name, at: at}}, after
		}
	}
	if len(read) == 1 || read[1] < ' ' {
		return []key{{name: keyEscape, at: at}}, read[1:]
	}
	if read[1] != '[' && read[1] != 'O' { // a letter with Alt
		return nil, read[2:]
	}
	end := 2
	for end < len(read) && (read[end] < '@' || read[end] > '~') {
		end++
	}
	return nil, read[min(end+1, len(read)):]
}

// errLeft says that the person went away.
var errLeft = errors.New("left")

// reader reads keys of a terminal. Between two calls of next nothing is read, so that an editor gets what
// is typed for it.
type reader struct {
	in  io.Reader
	now func() time.Time
}

// next waits for keys. Where ctx ends first the read is left behind; the process ends with it.
func (r *reader) next(ctx context.Context) ([]key, error) {
	type chunk struct {
		keys []key
		err  error
	}
	chunks := make(chan chunk, 1)
	go func() {
		buffer := make([]byte, 4096)
		n, err := r.in.Read(buffer)
		chunks <- chunk{decode(buffer[:n], r.now()), err}
	}()
	select {
	case <-ctx.Done():
		return nil, errLeft
	case c := <-chunks:
		if c.err != nil && len(c.keys) == 0 {
			return nil, errLeft
		}
		return c.keys, nil
	}
}
