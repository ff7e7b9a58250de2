//go:build linux

package main_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
)

// batchScript is one reply with five calls: two run by themselves, one is approved, one denied, and one is
// the client's.
func batchScript() *labtest.Script {
	s := &labtest.Script{}
	s.Add(s.Line(), s.Deploy("deploy"), s.Locate(), s.Deny(), s.Echo())
	return s
}

// batchAnswers are the answers by the place of their waits. Where the batch is held nothing runs before
// the suspension, so its waits have another entry.
var batchAnswers = map[int][]string{1: {"--approve"}, 2: {"--result", `{"place":"here"}`}, 3: {"--reject"}}

// batchStory is a start, and each answer in an order, by a process of its own.
func batchStory(order []int, hold bool) []phase {
	start, entry := begin(), 3
	if hold {
		start.args, entry = append(slices.Clone(start.args), "--hold-batch"), 2
	}
	told := []phase{start}
	for i, at := range order {
		p := phase{name: fmt.Sprintf("answer-%d", i+1), code: 10, before: paused, after: paused}
		if i == len(order)-1 {
			p.code, p.after = 0, completed
		}
		p.args = append([]string{"submit", sessionID, fmt.Sprintf("w%d-%d", entry, at)}, batchAnswers[at]...)
		p.args = append(p.args, "--output", "json")
		told = append(told, p)
	}
	return told
}

func batchWorld(t *testing.T, name string) *world {
	t.Helper()
	w := trapWorld(t, name, "deploy")
	w.script = batchScript()
	return w
}

// endBatch gives each answer once more, which changes nothing, and holds what the batch came to.
func (w *world) endBatch(told []phase) {
	for _, p := range told[1:] {
		r := w.run(p.args...)
		require.Zero(w, r.code)
		require.Equal(w, "completed", w.manifest(r).Outcome)
		require.Contains(w, r.stderr, "Already settled")
	}
	w.finish(told)
	unknown := w.check()
	db := w.open()
	defer db.close()
	var came []string
	for _, m := range db.records().Fold(w).Messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				came = append(came, p.ToolResult.CallID+" "+p.ToolResult.Name)
			}
		}
	}
	require.Equal(w, []string{"c2-1 append_line", "c2-2 deploy", "c2-3 locate", "c2-4 deploy", "c2-5 echo"}, came, "as they were declared")
	approved, denied := w.script.Effects()[1], w.script.Effects()[2]
	require.Zero(w, denied.Count(w), "denied")
	if unknown == 0 {
		require.Equal(w, 1, approved.Count(w), "approved")
	}
	r := w.run("audit", sessionID, "--verify")
	require.Zero(w, r.code, r.stderr)
}

// batchKill is a story in which processes are killed: at a place of one phase, or of each.
type batchKill struct {
	told   []phase
	places map[int]string // by phase
}

// batchKills are the kills of one story: each place alone, and as often as the longest process has places, one
// place of every process.
func batchKills(t *testing.T, told []phase, name string) (kills []batchKill) {
	t.Helper()
	points := calmIn(t, batchWorld(t, name), told)
	places := map[int][]string{}
	for _, p := range points {
		places[p.phase] = append(places[p.phase], p.at)
		kills = append(kills, batchKill{told, map[int]string{p.phase: p.at}})
	}
	for n := range slices.MaxFunc(slices.Collect(maps.Values(places)), func(a, b []string) int { return len(a) - len(b) }) {
		each := batchKill{told, map[int]string{}}
		for phase, all := range places {
			each.places[phase] = all[n%len(all)]
		}
		kills = append(kills, each)
	}
	return kills
}

// tried reports whether a story is told. The longer tests tell nearly all: of a start, which knows no order of
// answers, those of the first order, and where each process is killed, those of every other way. Else the last
// process is killed between its answer and the resume.
func (k batchKill) tried(longer bool, order int, hold bool) bool {
	_, starts := k.places[0]
	each := len(k.places) > 1
	answered := k.places[3] == "Update-1-after" || k.places[3] == "Send-1-before"
	return (longer || answered) && (each || !starts || order == 0) && (!each || (order%2 == 0) != hold)
}

// TestKillBatch: five calls of one reply, three of which wait, are answered in every order, each by a process
// of the real commands on one data file, which is killed at every place where its work can be cut, alone and
// all of them one after the other. The last one may be killed between its answer and the resume.
func TestKillBatch(t *testing.T) {
	t.Parallel()
	longer := labtest.Number(t, "ADJOURN_CRASH_TRIALS", 0) >= 200 // what make test-crash and make nightly ask for
	var kills []batchKill
	for i, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		for _, hold := range []bool{false, true} {
			all := batchKills(t, batchStory(order, hold), fmt.Sprintf("batch %v, hold %v", order, hold))
			all = slices.DeleteFunc(all, func(k batchKill) bool { return !k.tried(longer, i, hold) })
			require.NotEmpty(t, all)
			kills = append(kills, all...)
		}
	}
	var reached atomic.Int64
	worlds := make([]*world, len(kills))
	at := map[*world]int{}
	for i, k := range kills {
		worlds[i] = batchWorld(t, fmt.Sprintf("%v killed at %v", k.told[1].args, k.places))
		at[worlds[i]] = i
	}
	all(t, 6, worlds, func(w *world) {
		k := kills[at[w]]
		for i, p := range k.told {
			place, dies := k.places[i]
			if !dies {
				require.Equal(w, p.code, w.run(p.args...).code)
				continue
			}
			r := w.startTrapped(place, "KILL", p.args...).wait()
			if !r.killed() {
				require.Equal(w, p.code, r.code, "the place was not reached")
				continue
			}
			w.Hit()
			reached.Add(1)
			w.recover(p, restart((at[w]+i)%restarts))
		}
		w.endBatch(k.told)
	})
	t.Logf("%d stories, %d kills", len(kills), reached.Load())
	require.Greater(t, int(reached.Load()), len(kills)*3/4, "most places are reached")
}
