package screen

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/visible"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":                     "plain\ttext\n",
		"\x1b[2J\x1b[H":                     `\x1b[2J\x1b[H`,
		"a\rb\x00\x07\x7f":                  `a\rb\x00\x07\x7f`,
		"\u009b31m":                         `\x9b31m`,
		"rm \u202egpj.exe":                  `rm \u202egpj.exe`,
		"\u2066x\u2069\u200e":               `\u2066x\u2069\u200e`,
		"a\u2028b\ufeff\u00ad":              `a\u2028b\ufeff\xad`,
		"\U000e0041":                        `\U000e0041`,
		"bad \xff byte":                     `bad \xff byte`,
		"naïve 日本 \u0915\u094d\u200d\u0937": "naïve 日本 \u0915\u094d\u200d\u0937",
		"👩\u200d🔧":                          "👩\u200d🔧",
	} {
		require.Equal(t, want, Clean(in))
	}
	require.Equal(t, `a\nb\tc`, CleanLine("a\nb\tc"))
}

func TestCleanJSONMeansTheSame(t *testing.T) {
	t.Parallel()
	in := "{\"a\":\"x\u202ey\u009bz\U000e0041\x7f\"}"
	out := visible.JSON([]byte(in))
	require.NotContains(t, string(out), "\u202e")
	require.False(t, strings.ContainsFunc(string(out), func(r rune) bool { return r > unicode.MaxASCII || r == 0x7f }))
	require.JSONEq(t, in, string(out))
	require.True(t, json.Valid(out))
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		room int
		want []string
	}{
		{"as long as it is", 0, []string{"as long as it is"}},
		{"", 10, []string{""}},
		{"exactly 10", 10, []string{"exactly 10"}},
		{"some words to wrap", 10, []string{"some ", "words to ", "wrap"}},
		{"averyveryverylongword", 10, []string{"averyveryv", "erylongwor", "d"}},
		{"a averyverylongword", 10, []string{"a averyver", "ylongword"}},
		{"日本日本日本", 4, []string{"日本", "日本", "日本"}},
	} {
		require.Equal(t, c.want, wrap(c.line, c.room))
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("some words  to wrap\x1b", 7)
	f.Fuzz(func(t *testing.T, line string, room int) {
		line = CleanLine(line)
		room = 2 + (room&0xff)%80
		parts := wrap(line, room)
		require.Equal(t, line, strings.Join(parts, ""), "nothing is lost")
		for _, part := range parts {
			require.LessOrEqual(t, len([]rune(part)), room)
		}
	})
}
