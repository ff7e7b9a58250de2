package session_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// home is the session of the waits here.
var home = session.Key{Tenant: "acme", ID: "s1"}

func chain(t *testing.T, record *session.WaitRecord, n int) []session.Audit {
	t.Helper()
	var lines []session.Audit
	for i := range n {
		line, ok := record.AddAudit(home, session.Audit{Kind: session.AuditRefused, Who: "bob", At: at.Add(-time.Duration(i) * time.Hour), From: "cli", Data: raw(`{"code":"not_allowed"}`)})
		if ok {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAudit_chain(t *testing.T) {
	t.Parallel()
	record := session.WaitRecord{Wait: session.Wait{ID: "w12-3"}}
	require.NoError(t, session.CheckAudit(home, "w12-3", nil, record.Audit), "no lines are a chain")
	lines := chain(t, &record, 3)
	require.NoError(t, session.CheckAudit(home, "w12-3", lines, record.Audit))
	require.Equal(t, "0000000012-03-0001", lines[0].ID)
	require.Equal(t, session.AuditPrefix("w12-3")+"0003", lines[2].ID)
	require.Equal(t, lines[1].Hash(), lines[2].Prev)
	require.Equal(t, session.AuditTip{Count: 3, Hash: lines[2].Hash()}, record.Audit)
	require.True(t, slices.IsSortedFunc(lines, func(a, b session.Audit) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) }), "whatever the clocks say")
	require.Less(t, session.AuditPrefix("w9-1"), session.AuditPrefix("w10-1"))

	elsewhere := session.Key{Tenant: "acme", ID: "s2"}
	require.ErrorIs(t, session.CheckAudit(elsewhere, "w12-3", lines, record.Audit), session.ErrBrokenAudit, "lines of another session")

	for name, spoil := range map[string]func([]session.Audit, *session.AuditTip) []session.Audit{
		"changed":    func(l []session.Audit, _ *session.AuditTip) []session.Audit { l[1].Who = "eve"; return l },
		"last":       func(l []session.Audit, _ *session.AuditTip) []session.Audit { l[2].Data = raw(`{}`); return l },
		"left out":   func(l []session.Audit, _ *session.AuditTip) []session.Audit { return slices.Delete(l, 1, 2) },
		"cut off":    func(l []session.Audit, _ *session.AuditTip) []session.Audit { return l[:2] },
		"swapped":    func(l []session.Audit, _ *session.AuditTip) []session.Audit { l[0], l[1] = l[1], l[0]; return l },
		"other wait": func(l []session.Audit, _ *session.AuditTip) []session.Audit { l[0].Wait = "w12-4"; return l },
		"other tip":  func(l []session.Audit, tip *session.AuditTip) []session.Audit { tip.Hash = l[1].Hash(); return l },
	} {
		tip := record.Audit
		require.ErrorIs(t, session.CheckAudit(home, "w12-3", spoil(slices.Clone(lines), &tip), tip), session.ErrBrokenAudit, name)
	}
}

// A line that went through the store has the hash it had, also one of a newer program.
func TestAudit_hash_is_that_of_what_is_stored(t *testing.T) {
	t.Parallel()
	record := session.WaitRecord{Wait: session.Wait{ID: "w2-1"}}
	line := chain(t, &record, 1)[0]
	stored, err := session.MarshalRecord(&line)
	require.NoError(t, err)
	var got session.Audit
	require.NoError(t, session.UnmarshalRecord(stored, &got))
	require.NoError(t, session.CheckAudit(home, "w2-1", []session.Audit{got}, record.Audit))

	newer := withUnknown(t, &line)
	require.NoError(t, session.UnmarshalRecord(newer, &got))
	require.Equal(t, session.Digest(newer), got.Hash())
	require.NotEqual(t, line.Hash(), got.Hash())
}

func TestAudit_is_bounded(t *testing.T) {
	t.Parallel()
	record := session.WaitRecord{Wait: session.Wait{ID: "w2-1"}}
	lines := chain(t, &record, session.MaxAudit+20)
	require.Len(t, lines, session.MaxAudit)
	require.Equal(t, session.AuditRefused, lines[session.MaxAudit-2].Kind)
	require.Equal(t, session.AuditFull, lines[session.MaxAudit-1].Kind, "the last one says that there were more")
	require.Nil(t, lines[session.MaxAudit-1].Data)
	require.NoError(t, session.CheckAudit(home, "w2-1", lines, record.Audit))
}

// Lines that were written again from the first one on, so that each follows the one
// before and the tip is theirs, are still those of one wait in one place.
func TestAudit_chain_that_was_forged(t *testing.T) {
	t.Parallel()
	record, other := session.WaitRecord{Wait: session.Wait{ID: "w12-3"}}, session.WaitRecord{Wait: session.Wait{ID: "w12-4"}}
	lines, others := chain(t, &record, 3), chain(t, &other, 3)
	require.Equal(t, time.UTC, lines[0].At.Location())
	forge := func(spoil func(line *session.Audit)) ([]session.Audit, session.AuditTip) {
		forged, prev := slices.Clone(lines), lines[0].Prev
		for i := range forged {
			forged[i].Prev = prev
			spoil(&forged[i])
			prev = forged[i].Hash()
		}
		return forged, session.AuditTip{Count: int64(len(forged)), Hash: prev}
	}
	for name, spoil := range map[string]func(line *session.Audit){
		"as it was":     func(*session.Audit) {},
		"another wait":  func(line *session.Audit) { line.Wait = "w12-4" },
		"other numbers": func(line *session.Audit) { line.N++ },
		"other ids":     func(line *session.Audit) { line.ID = session.AuditPrefix("w12-4") + line.ID[len(line.ID)-4:] },
		"begun at another's place": func(line *session.Audit) {
			if line.N == 1 {
				line.Prev = others[0].Prev
			}
		},
	} {
		forged, tip := forge(spoil)
		err := session.CheckAudit(home, "w12-3", forged, tip)
		if name == "as it was" {
			require.NoError(t, err)
			require.Equal(t, record.Audit, tip)
			continue
		}
		require.ErrorIs(t, err, session.ErrBrokenAudit, name)
	}
	require.ErrorIs(t, session.CheckAudit(home, "w12-3", nil, record.Audit), session.ErrBrokenAudit, "all left out")
	require.ErrorIs(t, session.CheckAudit(home, "w12-3", lines, session.AuditTip{Count: 4, Hash: record.Audit.Hash}), session.ErrBrokenAudit, "another count")
	require.ErrorIs(t, session.CheckAudit(home, "w12-4", lines, record.Audit), session.ErrBrokenAudit, "lines of another wait")
}

func TestAudit_line_is_in_UTC(t *testing.T) {
	t.Parallel()
	record := session.WaitRecord{Wait: session.Wait{ID: "w2-1"}}
	line, ok := record.AddAudit(home, session.Audit{Kind: session.AuditRefused, At: at.In(time.FixedZone("there", 3600))})
	require.True(t, ok)
	require.Equal(t, at.UTC(), line.At)
}
