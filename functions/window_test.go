//go:build aws && linux

package functions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/internal/lambdatest"
)

// write are the operations that change the table.
var write = []string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:TransactWriteItems"}

// commit matches the commit of an entry, send a message sent, ledger a line of the
// ledger, claim a claim.
var (
	commit = op(`"E#`, "dynamodb:PutItem", "dynamodb:TransactWriteItems")
	send   = op("", "sqs:SendMessage")
	ledger = op(`"TOOL#`, write...)
	claim  = op(`"HEAD"`, "dynamodb:UpdateItem")
	answer = op(`"WAIT#`, write...)
	first  = func(p *lambdatest.Passage) bool { return p.N == 1 }
)

// window is a place of docs/design/README.md where a crash comes between.
type window struct {
	name string
	place
}

// windows are all of them, of a session that runs the fixed script. (8), retries
// exhausted, is TestDeadLetters; (9), nobody answers, is every place of the story
// of the deadline.
func windows() []window {
	const before, after = lambdatest.Before, lambdatest.After
	all := []window{
		{"1 start committed, not sent", place{"start", before, send, 1}},
		{"1 start committed, not known", place{"start", after, commit, 1}},
		{"1 answer committed, not sent", place{"submit", before, send, 1}},
		{"1 answer committed, not known", place{"submit", after, answer, 1}},
		{"2 start sent, answer lost", place{"start", after, send, 1}},
		{"2 answer sent, answer lost", place{"submit", after, send, 1}},
		{"3 step received, nothing done", place{"step", before, first, 1}},
		{"3 step received, read", place{"step", after, first, 3}},
		{"3 step claimed", place{"step", after, claim, 2}},
		{"3 resumption received, nothing done", place{"step", before, first, 4}},
		{"5 effect announced, not begun", place{"step", before, ledger, 1}},
		{"7 sent, not acknowledged", place{"step", after, send, 1}},
		{"7 sent, not acknowledged, later", place{"step", after, send, 3}},
	}
	for n := 1; n <= 8; n++ {
		all = append(all,
			window{"4 model answered, nothing committed", place{"step", before, commit, n}},
			window{"6 committed, not sent", place{"step", after, commit, n}},
		)
	}
	for n := 1; n <= 6; n++ {
		all = append(all,
			window{"5 ledger before", place{"step", before, ledger, n}},
			window{"5 ledger after", place{"step", after, ledger, n}},
		)
	}
	for n := 1; n <= 4; n++ {
		all = append(all, window{"6 committed, before the next is sent", place{"step", before, send, n}})
	}
	return all
}

// overdue are the windows of a session whose approval nobody gives (9).
func overdue() []window {
	const before, after = lambdatest.Before, lambdatest.After
	return []window{
		{"9 nobody answers", place{}}, // and nothing else happens
		{"9 the deadline found, nothing done", place{"sweep", before, answer, 1}},
		{"9 expired, not sent", place{"sweep", after, answer, 1}},
		{"9 expired, before it is sent", place{"sweep", before, send, 1}},
		{"9 expired and sent, not known", place{"sweep", after, send, 1}},
		{"9 suspended, not known", place{"step", after, op(`"WAIT#`, "dynamodb:TransactWriteItems"), 1}},
		{"9 expiry taken in, not known", place{"step", after, op(`"WAIT#`, "dynamodb:TransactWriteItems"), 2}},
		{"9 expiry not taken in", place{"step", before, op(`"WAIT#`, "dynamodb:TransactWriteItems"), 2}},
	}
}

// TestKillWindows kills the real functions in each window of docs/design/README.md.
func TestKillWindows(t *testing.T) {
	t.Parallel()
	strike(t, "kill", windows(), settings{}, "deploy", lambdatest.Fate{Deed: lambdatest.Kill})
}

// TestKillOverdue does so where nobody answers before the deadline.
func TestKillOverdue(t *testing.T) {
	t.Parallel()
	strike(t, "kill", overdue(), settings{binary: "expiring"}, "release", lambdatest.Fate{Deed: lambdatest.Kill})
}

// TestFrozenWindows stops the functions there for longer than their lease. Others
// take over meanwhile; who was stopped finds at its next write that it lost.
func TestFrozenWindows(t *testing.T) {
	t.Parallel()
	strike(t, "freeze", windows(), settings{}, "deploy", lambdatest.Fate{Deed: lambdatest.Freeze, For: 4 * lease})
}

// TestFrozenOverdue does so where nobody answers before the deadline.
func TestFrozenOverdue(t *testing.T) {
	t.Parallel()
	strike(t, "freeze", overdue(), settings{binary: "expiring"}, "release", lambdatest.Fate{Deed: lambdatest.Freeze, For: 4 * lease})
}

// strike tells the fixed story once for each window.
func strike(t *testing.T, what string, at []window, s settings, approved string, fate lambdatest.Fate) {
	t.Helper()
	if labtest.Number(t, "ADJOURN_CRASH_TRIALS", 0) < 100 && fate.Deed == lambdatest.Freeze {
		at = some(at, 3)
	}
	reached := make([]bool, len(at))
	all(t, 4, len(at), s, func(w *world, n int) {
		one := try(t, w, what+"-"+at[n].id(n), nil, func(t *trial) {
			t.Note("%s at: %s", what, at[n].name)
			t.add(labtest.Fixed(approved)).impatient = true
			if at[n].function != "" {
				t.at(at[n].place, fate)
			}
			if approved == "release" {
				t.sessions[0].nobody = true
			}
			t.run()
		})
		reached[n] = one.Struck() > 0 || at[n].function == ""
	})
	if t.Failed() {
		return
	}
	for n, yes := range reached {
		require.True(t, yes, "not reached: %s (%d)", at[n].name, at[n].n)
	}
	t.Logf("%d windows, all reached", len(at))
}

// id names a trial: part of a session's id.
func (w window) id(n int) string {
	return time.Unix(int64(n), 0).UTC().Format("0405") + "-" + w.function
}

// some returns each n-th window.
func some(at []window, n int) []window {
	var out []window
	for i := 0; i < len(at); i += n {
		out = append(out, at[i])
	}
	return out
}
