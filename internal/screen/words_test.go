package screen

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"-1s": "0s", "1.5ms": "2ms", "12ms": "12ms", "1.25s": "1.3s", "59s": "59s", "60s": "1m", "90s": "1m30s", "59m59s": "59m59s",
		"60m": "1h00m", "1h59m": "1h59m", "47h": "47h00m", "50h": "2d02h",
	} {
		require.Equal(t, want, Span(duration(t, in)), in)
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
	require.Contains(t, PrettyJSON(json.RawMessage(`{"a":"\u003cb\u003E \u0026 \\u003c \u001b"}`)), "{\n  \"a\": \"<b> & \\\\u003c \\u001b\"\n}")
	require.Equal(t, `not json\x1b`, PrettyJSON(json.RawMessage("not json\x1b")))
}

func TestFit(t *testing.T) {
	t.Parallel()
	for text, fits := range map[string]string{"short": "short", "exactly10!": "exactly10!", "longer than ten": "longer t…", "世界世界世": "世界世界世", "世界世界世界": "世界世界…"} {
		require.Equal(t, fits, Fit(text, 10))
		require.LessOrEqual(t, Columns(Fit(text, 10)), 10)
	}
}
