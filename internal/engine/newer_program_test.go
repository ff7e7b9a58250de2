package engine_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// newer adds a field that only a later program knows to an entry, its rules, waits
// and answers, and the objects in them.
func newer(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch name {
			case "arguments", "output", "value": // anything may stand there
			default:
				v[name] = newer(value)
			}
		}
		v["zzNew"] = map[string]any{"of": "a later program"}
	case []any:
		for i := range v {
			v[i] = newer(v[i])
		}
	}
	return v
}

// rewritten is a journal as a newer program writes it, its chain of hashes whole.
func rewritten(t *testing.T, entries []journal.Entry, change func(i int, e map[string]any)) []byte {
	t.Helper()
	var written bytes.Buffer
	prev := ""
	for i, e := range entries {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		if prev != "" {
			fields["prev"] = prev
		}
		change(i, fields)
		text, err = json.Marshal(fields)
		require.NoError(t, err)
		written.Write(append(text, '\n'))
		if read, err := journal.Decode(text); err == nil {
			prev = read.Hash
		}
	}
	return written.Bytes()
}

// A journal with fields this program does not know folds to the session it is
// without them, but for the hash of its newest entry.
func TestGoldenJournals_with_unknown_fields(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.asks(session.WaitApproval, "refund", "refund").resumed(st.approval(0, true), st.approval(1, false))
	stored := goldentest.File(t, "testdata/newer/fields.jsonl", rewritten(t, st.entries, func(_ int, e map[string]any) { newer(e) }))
	require.Contains(t, string(stored), "a later program")
	var entries []journal.Entry
	for line := range bytes.Lines(stored) {
		e, err := journal.Decode(bytes.TrimSpace(line))
		require.NoError(t, err)
		entries = append(entries, e)
	}
	folded, err := engine.Fold(key, entries)
	require.NoError(t, err)
	require.NotEqual(t, st.s.Newest.Hash, folded.Newest.Hash)
	folded.Newest.Hash = st.s.Newest.Hash
	require.Equal(t, view(t, st.s), view(t, folded))
}

// A journal that needs what this program does not know is refused at the entry that does.
func TestGoldenJournals_with_an_unknown_need(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.asks(session.WaitApproval, "refund")
	stored := goldentest.File(t, "testdata/newer/needs.jsonl", rewritten(t, st.entries, func(i int, e map[string]any) {
		if i == 1 {
			wait, _ := e["waits"].([]any)[0].(map[string]any)
			wait["needs"], wait["votes"] = []string{"quorum"}, 2
		}
	}))
	lines := bytes.Split(bytes.TrimSpace(stored), []byte("\n"))
	require.Len(t, lines, 2)
	_, err := journal.Decode(lines[0])
	require.NoError(t, err)
	_, err = journal.Decode(lines[1])
	require.ErrorIs(t, err, journal.ErrNeeds)
	require.ErrorContains(t, err, `wait w2-1 needs "quorum"`)
}
