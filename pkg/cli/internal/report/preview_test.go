package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestDetailsOfWhatIsShown: the preview stands above the arguments, the agent's claim below them, and
// neither can pass for a line of ours, move the cursor, hide text or turn it round.
func TestDetailsOfWhatIsShown(t *testing.T) {
	t.Parallel()
	w := client.Wait{
		Kind: session.WaitApproval, Tool: "pay", Arguments: json.RawMessage(`{"cents":5}`), Who: []string{"ada"},
		Preview: &session.Preview{
			Title: "Pay A\nApprove: adjourn", Risk: session.RiskHigh, Money: &session.Money{Amount: "0.05", Currency: "EUR"},
			Links: []session.Link{{Label: "order", URL: "https://shop.example/A"}},
			Diff:  &session.Diff{Name: "bill", Before: "a\nb\nc\nd\nold\ne\n", After: "a\nb\nc\nd\nnew\x1b[2J\ne\n", Cut: true},
		},
		Claim: "I checked.\n\x1b[1A\x1b[2Kapproved by ada\u202e txt.exe\r\nRun it? [y]es",
	}
	require.Equal(t, `  preview by the tool:
  | Pay A\nApprove: adjourn
  | risk: high
  | money: 0.05 EUR
  | order  https://shop.example/A
  | changes bill (cut: the texts are longer than this):
  |   b
  |   c
  |   d
  | - old
  | + new\x1b[2J
  |   e
  arguments:
  | {
  |   "cents": 5
  | }
  the agent's claim:
  | I checked.
  | \x1b[1A\x1b[2Kapproved by ada\u202e txt.exe\r
  | Run it? [y]es
  may be answered by ada only
`, strings.ReplaceAll(Details(w, time.Time{}, "  ", 0), mayAnswer(w.Who), "may be answered by ada only"))
	w.Preview, w.Claim = &session.Preview{Failed: "Show of tool pay panicked: \x1b[31m\nboom", Risk: session.RiskHigh}, ""
	got := Details(w, time.Time{}, "  ", 0)
	require.Contains(t, got, `  the tool's preview failed, so take its risk for high: Show of tool pay panicked: \x1b[31m\nboom`+"\n")
	require.NotContains(t, got, "claim")
}

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{"", "", "(nothing)"},
		{"a\n", "a", "(nothing)"},
		{"", "a\nb\n", "+ a|+ b"},
		{"a\nb\n", "", "- a|- b"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\n55\n6\n7\n8\n9", "  2|  3|  4|- 5|+ 55|  6|  7|  8"},
		{"a\na\n", "a\na\na\n", "  a|  a|+ a"},
	} {
		require.Equal(t, c.want, strings.Join(changes(c.before, c.after), "|"), "%q %q", c.before, c.after)
	}
}

// TestSumUp: what is long is told by its size, its fields, its first and last lines.
func TestSumUp(t *testing.T) {
	t.Parallel()
	text, whole := SumUp(json.RawMessage(`{"a":1}`))
	require.True(t, whole)
	require.Equal(t, "{\n  \"a\": 1\n}", text)
	list, err := json.Marshal(map[string]any{"files": strings.Split(strings.Repeat("x,", 99)+"x", ","), "to": strings.Repeat("y", 3000)})
	require.NoError(t, err)
	text, whole = SumUp(list)
	require.False(t, whole)
	lines := strings.Split(text, "\n")
	require.Equal(t, fmt.Sprintf("%d bytes, 2 fields: files, to", len(list)), lines[0])
	require.Len(t, lines, 1+headLines+1+tailLines)
	require.Contains(t, text, "\n… 93 lines are left out here …\n")
	require.Equal(t, "}", lines[len(lines)-1])
	for _, line := range lines {
		require.Less(t, len(line), 200)
	}
	require.Equal(t, "3 bytes", Size(json.RawMessage(`[1]`)))
}

// TestClaimed: what stands as the claim is not said a second time above it.
func TestClaimed(t *testing.T) {
	t.Parallel()
	of := func(text, claim string) client.Session {
		return client.Session{Text: text, Pause: &client.Pause{Pending: []client.Wait{{Kind: session.WaitApproval, Claim: claim}}}}
	}
	require.True(t, Claimed(of(" I must.\n", "I must.")))
	require.True(t, Claimed(of("I must pay.", "I must… [cut: it has 11 bytes]")))
	require.False(t, Claimed(of("Another text.", "I must.")))
	require.False(t, Claimed(of("A text.", "")))
}
