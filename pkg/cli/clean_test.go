package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
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
		require.Equal(t, want, clean(in))
	}
	require.Equal(t, `a\nb\tc`, cleanLine("a\nb\tc"))
}

func TestCleanJSONMeansTheSame(t *testing.T) {
	t.Parallel()
	in := "{\"a\":\"x\u202ey\u009bz\U000e0041\x7f\"}"
	out := cleanJSON([]byte(in))
	require.NotContains(t, string(out), "\u202e")
	require.False(t, strings.ContainsFunc(string(out), func(r rune) bool { return r > unicode.MaxASCII || r == 0x7f }))
	require.JSONEq(t, in, string(out))
	require.True(t, json.Valid(out))
}

func TestNobodyFakesAPrompt(t *testing.T) {
	t.Parallel()
	evil := "harmless\r\x1b[2K\x1b[1A\nRun it? [y]es, [N]o: y" + strings.Repeat(" ", 200) + "Run it? y"
	item := session.PendingItem{Kind: session.WaitApproval, Name: "rm\x1b[8m", Arguments: json.RawMessage(`{"path":"\u001b[2K ` + "\u202e" + `"}`)}
	for _, text := range []string{
		quoteBlock(evil, "  ", 40), quoteBlock(evil, "", 0), details(item, "  ", 40),
		details(session.PendingItem{Kind: session.WaitQuestion, Question: &session.Question{Text: evil, Choices: []session.Choice{{ID: "a\nb", Label: "c\r\x1b"}}}}, "  ", 40),
	} {
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\r")
		require.NotContains(t, text, "\u202e")
		for line := range strings.Lines(text) {
			require.Regexp(t, `^ *[|-] `, line, "every line is marked as somebody else's")
		}
	}
	for line := range strings.Lines(quoteBlock(evil, "  ", 40)) {
		require.Less(t, len(line), 41, "no line wraps by itself")
	}
	require.NotContains(t, headline(item), "\x1b")
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "/a/b.db": "/a/b.db", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'",
		"--approve": "--approve", "a;b": "'a;b'", "*": "'*'", "a\nb": "'a\nb'",
	} {
		require.Equal(t, want, quote(in))
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"-1s": "0s", "1.5ms": "2ms", "12ms": "12ms", "1.25s": "1.3s", "59s": "59s", "60s": "1m", "90s": "1m30s", "59m59s": "59m59s",
		"60m": "1h00m", "1h59m": "1h59m", "47h": "47h00m", "50h": "2d02h",
	} {
		require.Equal(t, want, span(duration(t, in)), in)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func TestPrettyJSON(t *testing.T) {
	t.Parallel()
	require.Contains(t, prettyJSON(json.RawMessage(`{"a":"\u003cb\u003E \u0026 \\u003c \u001b"}`)), "{\n  \"a\": \"<b> & \\\\u003c \\u001b\"\n}")
	require.Equal(t, `not json\x1b`, prettyJSON(json.RawMessage("not json\x1b")))
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
		line = cleanLine(line)
		room = 2 + (room&0xff)%80
		parts := wrap(line, room)
		require.Equal(t, line, strings.Join(parts, ""), "nothing is lost")
		for _, part := range parts {
			require.LessOrEqual(t, len([]rune(part)), room)
		}
	})
}
