package list

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestRunTable: each kind of token that a run has used has a column; of a run that has not ended nothing is known.
func TestRunTable(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	run := func(usage llm.Usage, micros int64, ended bool) client.Run {
		r := client.Run{Run: session.Run{ID: 1, Task: 1, Usage: usage, Used: session.Amounts{CostMicros: micros}}}
		if ended {
			r.EndedAt = &at
		}
		return r
	}
	for name, c := range map[string]struct {
		runs []client.Run
		head []string
		line []string
	}{
		"no model":  {[]client.Run{run(llm.Usage{}, 0, true)}, nil, nil},
		"plain":     {[]client.Run{run(llm.Usage{Input: 7, Output: 3}, 0, true)}, []string{"IN", "OUT"}, []string{"7", "3"}},
		"all kinds": {[]client.Run{run(llm.Usage{Input: 7, CacheRead: 5, CacheWrite: 1, Output: 3, Reasoning: 2}, 1500, true)}, []string{"IN", "CACHE READ", "CACHE WRITE", "OUT", "REASONING", "COST"}, []string{"7", "5", "1", "3", "2", "0.001500"}},
		"of one of them": {
			[]client.Run{run(llm.Usage{Input: 7, Output: 3}, 0, true), run(llm.Usage{Input: 1, CacheRead: 1}, 0, true)},
			[]string{"IN", "CACHE READ", "OUT"},
			[]string{"7", "0", "3"},
		},
		"at work": {[]client.Run{run(llm.Usage{}, 0, false), run(llm.Usage{Input: 7}, 0, true)}, []string{"IN"}, []string{""}},
	} {
		table := runTable(c.runs)
		const before = 9
		require.Equal(t, c.head, append([]string(nil), table[0][before:]...), name)
		require.Equal(t, c.line, append([]string(nil), table[1][before:]...), name)
	}
}
