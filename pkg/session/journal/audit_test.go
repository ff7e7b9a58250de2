package journal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// home is the session of the waits here.
var home = session.Key{Tenant: "acme", ID: "s1"}

func chain(t *testing.T, record *journal.WaitRecord, n int) []journal.Audit {
	t.Helper()
	var lines []journal.Audit
	for i := range n {
		line, ok := record.AddAudit(home, journal.Audit{Kind: journal.AuditRefused, Who: "bob", At: at.Add(-time.Duration(i) * time.Hour), From: "cli", Data: raw(`{"code":"not_allowed"}`)})
		if ok {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAudit_chain(t *testing.T) {
	t.Parallel()
	record := journal.WaitRecord{Wait: session.Wait{ID: "w12-3"}}
	require.NoError(t, journal.CheckAudit(home, "w12-3", nil, record.Audit), "no lines are a chain")
	lines := chain(t, &record, 3)
	require.NoError(t, journal.CheckAudit(home, "w12-3", lines, record.Audit))
	require.Equal(t, "0000000012-03-0001", lines[0].ID)
	require.Equal(t, journal.AuditPrefix("w12-3")+"0003", lines[2].ID)
	require.Equal(t, lines[1].Hash(), lines[2].Prev)
	require.Equal(t, journal.AuditTip{Count: 3, Hash: lines[2].Hash()}, record.Audit)
	require.True(t, slices.IsSortedFunc(lines, func(a, b journal.Audit) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) }), "whatever the clocks say")
	require.Less(t, journal.AuditPrefix("w9-1"), journal.AuditPrefix("w10-1"))

	elsewhere := session.Key{Tenant: "acme", ID: "s2"}
	require.ErrorIs(t, journal.CheckAudit(elsewhere, "w12-3", lines, record.Audit), journal.ErrBrokenAudit, "lines of another session")

	for name, spoil := range map[string]func([]journal.Audit, *journal.AuditTip) []journal.Audit{
		"changed":    func(l []journal.Audit, _ *journal.AuditTip) []journal.Audit { l[1].Who = "eve"; return l },
		"last":       func(l []journal.Audit, _ *journal.AuditTip) []journal.Audit { l[2].Data = raw(`{}`); return l },
		"left out":   func(l []journal.Audit, _ *journal.AuditTip) []journal.Audit { return slices.Delete(l, 1, 2) },
		"cut off":    func(l []journal.Audit, _ *journal.AuditTip) []journal.Audit { return l[:2] },
		"swapped":    func(l []journal.Audit, _ *journal.AuditTip) []journal.Audit { l[0], l[1] = l[1], l[0]; return l },
		"other wait": func(l []journal.Audit, _ *journal.AuditTip) []journal.Audit { l[0].Wait = "w12-4"; return l },
		"other tip":  func(l []journal.Audit, tip *journal.AuditTip) []journal.Audit { tip.Hash = l[1].Hash(); return l },
	} {
		tip := record.Audit
		require.ErrorIs(t, journal.CheckAudit(home, "w12-3", spoil(slices.Clone(lines), &tip), tip), journal.ErrBrokenAudit, name)
	}
}

// A line that went through the store has the hash it had, also one of a newer program.
func TestAudit_hash_is_that_of_what_is_stored(t *testing.T) {
	t.Parallel()
	record := journal.WaitRecord{Wait: session.Wait{ID: "w2-1"}}
	line := chain(t, &record, 1)[0]
	stored, err := journal.MarshalRecord(&line)
	require.NoError(t, err)
	var got journal.Audit
	require.NoError(t, journal.UnmarshalRecord(stored, &got))
	require.NoError(t, journal.CheckAudit(home, "w2-1", []journal.Audit{got}, record.Audit))

	newer := withUnknown(t, &line)
	require.NoError(t, journal.UnmarshalRecord(newer, &got))
	require.Equal(t, journal.Digest(newer), got.Hash())
	require.NotEqual(t, line.Hash(), got.Hash())
}

func TestAudit_is_bounded(t *testing.T) {
	t.Parallel()
	record := journal.WaitRecord{Wait: session.Wait{ID: "w2-1"}}
	lines := chain(t, &record, journal.MaxAudit+20)
	require.Len(t, lines, journal.MaxAudit)
	require.Equal(t, journal.AuditRefused, lines[journal.MaxAudit-2].Kind)
	require.Equal(t, journal.AuditFull, lines[journal.MaxAudit-1].Kind, "the last one says that there were more")
	require.Nil(t, lines[journal.MaxAudit-1].Data)
	require.NoError(t, journal.CheckAudit(home, "w2-1", lines, record.Audit))
}

// Lines that were written again from the first one on, so that each follows the one
// before and the tip is theirs, are still those of one wait in one place.
func TestAudit_chain_that_was_forged(t *testing.T) {
	t.Parallel()
	record, other := journal.WaitRecord{Wait: session.Wait{ID: "w12-3"}}, journal.WaitRecord{Wait: session.Wait{ID: "w12-4"}}
	lines, others := chain(t, &record, 3), chain(t, &other, 3)
	require.Equal(t, time.UTC, lines[0].At.Location())
	forge := func(spoil func(line *journal.Audit)) ([]journal.Audit, journal.AuditTip) {
		forged, prev := slices.Clone(lines), lines[0].Prev
		for i := range forged {
			forged[i].Prev = prev
			spoil(&forged[i])
			prev = forged[i].Hash()
		}
		return forged, journal.AuditTip{Count: int64(len(forged)), Hash: prev}
	}
	for name, spoil := range map[string]func(line *journal.Audit){
		"as it was":     func(*journal.Audit) {},
		"another wait":  func(line *journal.Audit) { line.Wait = "w12-4" },
		"other numbers": func(line *journal.Audit) { line.N++ },
		"other ids":     func(line *journal.Audit) { line.ID = journal.AuditPrefix("w12-4") + line.ID[len(line.ID)-4:] },
		"begun at another's place": func(line *journal.Audit) {
			if line.N == 1 {
				line.Prev = others[0].Prev
			}
		},
	} {
		forged, tip := forge(spoil)
		err := journal.CheckAudit(home, "w12-3", forged, tip)
		if name == "as it was" {
			require.NoError(t, err)
			require.Equal(t, record.Audit, tip)
			continue
		}
		require.ErrorIs(t, err, journal.ErrBrokenAudit, name)
	}
	require.ErrorIs(t, journal.CheckAudit(home, "w12-3", nil, record.Audit), journal.ErrBrokenAudit, "all left out")
	require.ErrorIs(t, journal.CheckAudit(home, "w12-3", lines, journal.AuditTip{Count: 4, Hash: record.Audit.Hash}), journal.ErrBrokenAudit, "another count")
	require.ErrorIs(t, journal.CheckAudit(home, "w12-4", lines, record.Audit), journal.ErrBrokenAudit, "lines of another wait")
}

func TestAudit_line_is_in_UTC(t *testing.T) {
	t.Parallel()
	record := journal.WaitRecord{Wait: session.Wait{ID: "w2-1"}}
	line, ok := record.AddAudit(home, journal.Audit{Kind: journal.AuditRefused, At: at.In(time.FixedZone("there", 3600))})
	require.True(t, ok)
	require.Equal(t, at.UTC(), line.At)
}
