package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestSeal(t *testing.T) {
	t.Parallel()
	record := []byte(`{"a":"x","b":{"seal":"y"}}`)
	sealed := journal.AddSeal(record, 7, journal.SealWhole)
	got, seal := journal.TakeSeal(sealed, 7)
	require.Equal(t, string(record), string(got))
	require.Equal(t, journal.SealWhole, seal)

	for i := range sealed {
		for _, bit := range []byte{1, 0x20, 0x80} {
			other := append([]byte{}, sealed...)
			other[i] ^= bit
			_, seal := journal.TakeSeal(other, 7)
			require.NotEqual(t, journal.SealWhole, seal, "byte %d: %s", i, other)
		}
	}
	_, seal = journal.TakeSeal(sealed, 8)
	require.Equal(t, journal.SealNone, seal, "another program wrote it since")
	got, seal = journal.TakeSeal(record, 7)
	require.Equal(t, journal.SealNone, seal)
	require.Equal(t, string(record), string(got))
	require.Equal(t, string(record), string(journal.AddSeal(record, 8, journal.SealNone)), "writing it again vouches for nothing")
	_, seal = journal.TakeSeal(journal.AddSeal(record, 8, journal.SealBroken), 8)
	require.Equal(t, journal.SealBroken, seal, "it stays broken")
}

// TestSeal_of_a_record: a copy of a record has what was found out about it, beside the fields that it keeps.
func TestSeal_of_a_record(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"wait":{"id":"w1-1"},"state":"open"}`, `{"wait":{"id":"w1-1"},"state":"open","new":1}`} {
		var r journal.WaitRecord
		require.NoError(t, journal.UnmarshalRecord([]byte(text), &r))
		require.Equal(t, journal.SealWhole, journal.SealOf(&r))
		journal.SetSeal(&r, journal.SealBroken)
		again := r
		again.State = session.WaitClosed
		require.Equal(t, journal.SealBroken, journal.SealOf(&again))
		raw, err := journal.MarshalRecord(&again)
		require.NoError(t, err)
		require.Equal(t, journal.HasUnknown(&r), len(text) > 40)
		require.Contains(t, string(raw), `"closed"`)
	}
	run := new(session.Run)
	journal.SetSeal(run, journal.SealNone)
	require.Equal(t, journal.SealNone, journal.SealOf(run))
}

// TestHashOf: it is the hash that the entry has when it is stored.
func TestHashOf(t *testing.T) {
	t.Parallel()
	e := journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindStarted, Token: "t"}
	hash, err := journal.HashOf(&e)
	require.NoError(t, err)
	_, err = journal.Encode(&e)
	require.NoError(t, err)
	require.Equal(t, e.Hash, hash)
}
