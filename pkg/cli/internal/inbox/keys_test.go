package inbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDecode: what a terminal sends is read as keys, and no part of a sequence that is not known as a
// letter.
func TestDecode(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	char := func(r rune) key { return key{r: r, at: at} }
	name := func(n keyName) key { return key{name: n, at: at} }
	for text, want := range map[string][]key{
		"ja":                {char('j'), char('a')},
		"\x1b[A\x1b[Bk":     {name(keyUp), name(keyDown), char('k')},
		"\x1bOA\x1bOB":      {name(keyUp), name(keyDown)},
		"\x1b[5~\x1b[6~":    {name(keyPageUp), name(keyPageDown)},
		"\x1b":              {name(keyEscape)},
		"\x1b\x03":          {name(keyEscape), name(keyInterrupt)},
		"\x1b\x1b":          {name(keyEscape), name(keyEscape)},
		"\x1b[3~a":          {char('a')},
		"\x1b[1;5Aa":        {char('a')},
		"\x1ba":             nil, // Alt-a is not a
		"\x1b[200~a":        {char('a')},
		"\r\n":              {name(keyEnter), name(keyEnter)},
		"\x7f\b":            {name(keyBackspace), name(keyBackspace)},
		"\x03\x04":          {name(keyInterrupt), name(keyInterrupt)},
		"\x01\x1ax":         {char('x')},
		"ä":                 {char('ä')},
		"\xffa":             {char('a')},
		"\x1b[":             nil,
		"\x1b[1;2;3;4;5;6;": nil,
	} {
		require.Equal(t, want, decode([]byte(text), at), "%q", text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x1b[A"))
	f.Fuzz(func(t *testing.T, read []byte) {
		require.LessOrEqual(t, len(decode(read, time.Time{})), len(read))
	})
}
