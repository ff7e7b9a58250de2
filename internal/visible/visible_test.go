package visible_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/visible"
)

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext":      "plain\n\ttext",
		"\x1b[2Jgone":        `\x1b[2Jgone`,
		"abc\u202etxt.exe":   `abc\u202etxt.exe`,
		"a\u200bb":           `a\u200bb`,
		"a\u200db":           `a\u200db`,
		"क्\u200dष":          "क्\u200dष",
		"\xff":               `\xff`,
		"\U000e0041hidden":   `\U000e0041hidden`,
		"\rover the line":    `\rover the line`,
		"two\u2028lines":     `two\u2028lines`,
		"<b>&amp;</b>":       "<b>&amp;</b>",
		"an \ufffd as it is": "an \ufffd as it is",
	} {
		require.Equal(t, want, visible.Text(in), "%q", in)
	}
	require.Equal(t, `a\nb\tc`, visible.Line("a\nb\tc"))
}

func TestJSON_means_the_same(t *testing.T) {
	t.Parallel()
	in := "{\"a\u202eb\": \"x\u200by\U000e0041\"}"
	out := visible.JSON([]byte(in))
	require.NotContains(t, string(out), "\u202e")
	require.NotContains(t, string(out), "\U000e0041")
	require.JSONEq(t, in, string(out))
	require.True(t, json.Valid(out))
}
