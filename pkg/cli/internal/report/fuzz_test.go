package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// FuzzForeignSession: whatever a server says of a session, it is told without a panic
// and without a character that moves or hides something.
func FuzzForeignSession(f *testing.F) {
	for _, seed := range [][2]string{
		{`{}`, `[]`},
		{`null`, `null`},
		{`{"id":"s","outcome":"paused","pause":{"pending":[{"waitId":"w2-1","kind":"question"},{"kind":"approval"},{"kind":"\u001b"},{}]}}`, `[{"kind":"resumed","answers":[{"kind":"approval"},{"kind":"reply"},{}]}]`},
		{`{"outcome":"failed","failure":{"code":"\u001b[2J","message":"a\nb"},"usage":{"totalTokens":-1},"step":-9}`, `[{"seq":-1,"at":"9999-12-31T23:59:59Z","messages":[{"parts":[{"kind":"tool_call"},{"kind":"tool_result"},{"kind":"file"}]}]},{"at":"0001-01-01T00:00:00Z"}]`},
		{`{"outcome":"completed","text":"\u202e","output":{"\u001b":1}}`, `[{"kind":"suspended","waits":[{"kind":"approval","arguments":1,"deadline":{}}],"failure":{},"until":"9999-12-31T23:59:59Z","events":[{"data":null}]}]`},
		{`{"outcome":"running"}`, `[{"kind":"x"}]`},
		{`{"outcome":"interrupted"}`, `[{}]`},
		{`{"outcome":"\u001b"}`, `[{"kind":"\u001b"}]`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, about, entriesJSON string) {
		var s client.Session
		var entries []journal.Entry
		if json.Unmarshal([]byte(about), &s) != nil || json.Unmarshal([]byte(entriesJSON), &entries) != nil {
			return
		}
		var out strings.Builder
		env := func(string) string { return "" }
		on := screen.New(screen.Config{Name: "adjourn", Stdout: &out, Stderr: &out, Env: env})
		where := place.New(place.Config{Program: "adjourn", Env: env, Screen: on})
		v := report.NewView(where, s)
		var waits []client.Wait
		if s.Pause != nil {
			waits = s.Pause.Pending
		}
		report.Print(on, where, v, report.Stored(waits))
		for _, full := range []bool{true, false} {
			on.Write(&out, report.Timeline(on, s, entries, full))
		}
		bad := func(c rune) bool {
			return c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		}
		require.False(t, strings.ContainsFunc(out.String(), bad), "%q", out.String())
	})
}
