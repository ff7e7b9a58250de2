//go:build aws

package dynamostore_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMovesOfThePage: docs/scale.md reckons with what moves cost here.
func TestMovesOfThePage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../scale/moves.json")
	require.NoError(t, err)
	var page []struct {
		Move                                               string
		Requests, Writes, IndexWrites, Reads, Bytes, Sends float64
	}
	require.NoError(t, json.Unmarshal(raw, &page))
	require.Len(t, page, 7)
	all := map[string]move{}
	for _, mv := range moves(t.TempDir()) {
		all[mv.name] = mv
	}
	for _, want := range page {
		t.Run(want.Move, func(t *testing.T) {
			t.Parallel()
			mv, there := all[want.Move]
			require.True(t, there)
			c, m := metered(t)
			do := mv.do
			if do == nil {
				do = func(c *chain) { c.start(mv.script) }
			} else {
				c.start(mv.script)
				mv.before(c)
			}
			c.now.Add(int64(time.Second))
			sent := c.queue.sends.Load()
			used := m.measure(func() { do(c) })
			const mend = "write what is counted into scale/moves.json, and what make scale prints then into docs/scale.md"
			require.InDelta(t, want.Requests, used.all(), 0, mend)
			require.InDelta(t, want.Writes, used.writes, 0, mend)
			require.InDelta(t, want.IndexWrites, used.indexWrites, 0, mend)
			require.InDelta(t, want.Reads, used.reads, 0, mend)
			require.InDelta(t, want.Sends, c.queue.sends.Load()-sent, 0, mend)
			require.InDelta(t, want.Bytes, used.bytes, want.Bytes/10, mend) // ids and times are not always as long
		})
	}
}
