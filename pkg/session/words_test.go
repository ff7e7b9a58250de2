package session_test

import (
	"encoding/base64"
	"go/parser"
	gotoken "go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

func TestKey_Validate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 128)
	for _, id := range []string{"a", "S-1_b", "0", "-", long} {
		require.NoError(t, session.Key{Tenant: id, ID: id}.Validate())
	}
	for _, id := range []string{"", "a b", "a.b", "a/b", "a#b", "ü", "a\n", long + "a"} {
		err := session.Key{Tenant: "default", ID: id}.Validate()
		require.ErrorIs(t, err, session.ErrInvalidID)
		require.ErrorContains(t, err, "session id")
		err = session.Key{Tenant: id, ID: "s1"}.Validate()
		require.ErrorIs(t, err, session.ErrInvalidID)
		require.ErrorContains(t, err, "tenant")
	}
	require.Equal(t, "acme/s1", session.Key{Tenant: "acme", ID: "s1"}.String())
}

func TestParseCheckpoint_refuses(t *testing.T) {
	t.Parallel()
	enc := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, id := range map[string]string{
		"empty": "", "not_base64": "!!", "padded": enc("s1.4.tok") + "=", "two_parts": enc("s1.4"), "four_parts": enc("s1.4.t.u"),
		"no_token": enc("s1.4."), "no_session": enc(".4.tok"), "bad_session": enc("s 1.4.tok"), "no_number": enc("s1.x.tok"), "zero": enc("s1.0.tok"),
		"negative": enc("s1.-4.tok"), "too_large": enc("s1.99999999999999999999.tok"), "leading_zero": enc("s1.04.tok"), "plus": enc("s1.+4.tok"),
		"line_break_inside": enc("s1.4.tok")[:4] + "\n" + enc("s1.4.tok")[4:],
	} {
		_, err := session.ParseCheckpoint(id)
		require.ErrorIs(t, err, session.ErrInvalidCheckpoint, name)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(session.Checkpoint{Session: "s1", Seq: 4, Token: "t"}.String())
	f.Add("czEuNC50b2s")
	f.Fuzz(func(t *testing.T, id string) {
		c, err := session.ParseCheckpoint(id)
		if err != nil {
			require.ErrorIs(t, err, session.ErrInvalidCheckpoint)
			return
		}
		require.Equal(t, id, c.String(), "one checkpoint has one id")
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	d := session.DefaultLimits()
	require.Equal(t, d, session.Limits{}.Or(d))
	own := session.Limits{Steps: 3, Tokens: session.Unlimited, CostMicros: 7}
	filled := own.Or(d)
	require.Equal(t, session.Limits{
		Steps: 3, Tokens: session.Unlimited, ActiveMillis: d.ActiveMillis, CostMicros: 7, Depth: d.Depth, Children: d.Children,
	}, filled)

	used := session.Amounts{Steps: 1, Tokens: 1 << 40, ActiveMillis: 1, CostMicros: 100}
	left := filled.Left(used)
	require.Equal(t, session.Limits{
		Steps: 2, Tokens: session.Unlimited, ActiveMillis: d.ActiveMillis - 1, CostMicros: 0, Depth: d.Depth, Children: d.Children,
	}, left)
	require.Equal(t, "costMicros", left.Exhausted())
	require.Equal(t, session.Amounts{Steps: 2, Tokens: 1 << 41, ActiveMillis: 2, CostMicros: 200}, used.Add(used))
}

// What is left is worked out from what was used: a limit the rules do not name is
// no limit, and one that is added or raised counts from what was used before.
func TestLimits_that_come_later(t *testing.T) {
	t.Parallel()
	used := session.Amounts{Steps: 4, Tokens: 500, CostMicros: 30}
	before := session.Limits{Steps: 4, Tokens: session.Unlimited}
	left := before.Left(used)
	require.Equal(t, session.Limits{
		Steps: 0, Tokens: session.Unlimited, ActiveMillis: session.Unlimited, CostMicros: session.Unlimited, Depth: session.Unlimited, Children: session.Unlimited,
	}, left)
	require.Equal(t, "steps", left.Exhausted())

	after := session.Limits{Steps: 10, Tokens: 400, CostMicros: 100}
	left = after.Left(used)
	require.Equal(t, int64(6), left.Steps, "raised")
	require.Zero(t, left.Tokens, "set below what was used")
	require.Equal(t, int64(70), left.CostMicros, "added")
	require.Equal(t, "tokens", left.Exhausted())
}

func TestLimits_Exhausted(t *testing.T) {
	t.Parallel()
	full := session.Limits{Steps: 1, Tokens: 1, ActiveMillis: 1, CostMicros: 1}
	require.Empty(t, full.Exhausted(), "depth and children bound new sub-agents only")
	for want, change := range map[string]func(*session.Limits){
		"steps":        func(l *session.Limits) { l.Steps, l.CostMicros = 0, 0 },
		"tokens":       func(l *session.Limits) { l.Tokens = 0 },
		"activeMillis": func(l *session.Limits) { l.ActiveMillis = 0 },
		"costMicros":   func(l *session.Limits) { l.CostMicros = 0 },
	} {
		l := full
		change(&l)
		require.Equal(t, want, l.Exhausted())
	}
	none := session.Limits{Steps: -1, Tokens: -1, ActiveMillis: -1, CostMicros: -1}
	require.Empty(t, none.Left(session.Amounts{Steps: 1, Tokens: 1, ActiveMillis: 1, CostMicros: 1}).Exhausted())
}

// The drawing in the package comment is the table.
func TestStatus_drawing(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(gotoken.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	drawn := map[session.Status]map[session.Status]bool{}
	for line := range strings.Lines(file.Doc.Text()) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), "->")
		if !ok {
			continue
		}
		status := session.Status(strings.TrimSpace(from))
		if status == "(none)" {
			status = ""
		}
		require.NotContains(t, drawn, status, "drawn twice")
		drawn[status] = map[session.Status]bool{}
		for _, next := range strings.Fields(to) {
			require.Contains(t, session.Statuses(), session.Status(next))
			drawn[status][session.Status(next)] = true
		}
	}
	all := append([]session.Status{""}, session.Statuses()...)
	require.Len(t, drawn, len(all))
	for _, from := range all {
		for _, to := range all {
			require.Equal(t, drawn[from][to], from.CanBecome(to), "from %q to %q", from, to)
		}
	}
}

func TestStatus_ends_and_rests(t *testing.T) {
	t.Parallel()
	for status, want := range map[session.Status][2]bool{
		session.StatusRunning: {false, false}, session.StatusSuspended: {false, true}, session.StatusInterrupted: {false, true},
		session.StatusCompleted: {true, true}, session.StatusFailed: {true, true}, session.StatusCancelled: {true, true},
	} {
		require.Equal(t, want, [2]bool{status.Ended(), status.Resting()}, status)
	}
}
