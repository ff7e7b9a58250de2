//go:build linux

package main_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// race starts commands as processes that begin at the same moment.
func (w *world) race(commands ...[]string) []result {
	return w.raceApart(func() time.Duration { return 0 }, commands...)
}

// raceApart starts commands as processes, each of which begins so much later than all are ready.
func (w *world) raceApart(late func() time.Duration, commands ...[]string) []result {
	dir, err := os.MkdirTemp(w.Dir, "barrier-")
	require.NoError(w, err)
	processes := make([]*process, len(commands))
	for i, args := range commands {
		after := late()
		w.Note("    %s after the start:", after)
		processes[i] = w.start([]string{trapBarrier + "=" + dir, trapLate + "=" + after.String()}, args...)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		ready, err := os.ReadDir(dir)
		require.NoError(w, err)
		if len(ready) == len(commands) {
			break
		}
		require.True(w, time.Now().Before(deadline), "the processes do not start")
	}
	require.NoError(w, os.WriteFile(dir+"/go", nil, 0o600))
	results := make([]result, len(commands))
	for i, p := range processes {
		results[i] = p.wait()
	}
	return results
}

// refused wants a result to say in words, in JSON and by its exit code why it lost.
func (w *world) refused(r result, codes ...string) {
	require.Equal(w, 5, r.code, r.args)
	m := w.manifest(r)
	require.Equal(w, "error", m.Outcome)
	require.Equal(w, sessionID, m.SessionID)
	require.NotNil(w, m.Error)
	require.Contains(w, codes, m.Error.Code)
	require.Contains(w, r.stderr, m.Error.Message, "the words are on stderr too")
	require.Contains(w, m.Error.Message, sessionID)
}

// rounds is how often each race is run: as often as the longer tests run it, or some
// times where the many processes would make every run of all tests slow.
func rounds(t *testing.T) int {
	t.Helper()
	if labtest.Number(t, "ADJOURN_CRASH_TRIALS", 0) > 0 {
		return 20
	}
	return 6
}

func races(t *testing.T, name string, s func() *labtest.Script, trial func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		worlds := make([]*world, rounds(t))
		for i := range worlds {
			worlds[i] = trapWorld(t, fmt.Sprintf("%s, round %d", name, i), "deploy")
			worlds[i].script = s()
		}
		all(t, 2, worlds, trial)
	})
}

func approval() *labtest.Script {
	s := &labtest.Script{}
	s.Add(s.Deploy("deploy"))
	return s
}

// start brings a session to its first rest.
func (w *world) begin() { require.Equal(w, 10, w.run(begin().args...).code) }

func TestRaceDecide(t *testing.T) {
	t.Parallel()
	resume := func(flags ...string) []string {
		return append([]string{"resume", sessionID, "--output", "json"}, flags...)
	}
	races(t, "approve and reject", approval, func(w *world) {
		w.begin()
		results := w.race(resume("--approve", "w2-1"), resume("--reject", "w2-1"))
		won := slices.IndexFunc(results, func(r result) bool { return r.code == 0 })
		require.GreaterOrEqual(w, won, 0, "nobody won")
		require.Equal(w, "completed", w.manifest(results[won]).Outcome)
		w.refused(results[1-won], "already_answered")
		require.Contains(w, results[1-won].stderr, "The first answer counts")
		require.Equal(w, 1-won, w.script.Effects()[0].Count(w), "deployed if it was approved")
		require.Equal(w, completed, w.stands())
		// Pasted once more: the winner's changes nothing, the loser's is refused.
		require.Zero(w, w.run(resume([]string{"--approve", "--reject"}[won], "w2-1")...).code)
		w.refused(w.run(resume([]string{"--approve", "--reject"}[1-won], "w2-1")...), "already_answered")
	})
	races(t, "the same decision", approval, func(w *world) {
		w.begin()
		for _, r := range w.race(resume("--approve", "w2-1"), resume("-c", shownCheckpoint, "--approve-all"), resume("--approve", "w2-1")) {
			require.Zero(w, r.code, "%s: %s", r.args, r.stderr)
			require.Equal(w, "completed", w.manifest(r).Outcome)
		}
		w.finish(story())
		require.Zero(w, w.check())
	})
}

func TestRaceContinue(t *testing.T) {
	t.Parallel()
	goOn := story()[0].restart(goOn)
	races(t, "after a crash", func() *labtest.Script { return labtest.Fixed("deploy") }, func(w *world) {
		require.True(w, w.startTrapped("Commit-3-after", "KILL", begin().args...).wait().killed())
		w.Hit()
		results := w.race(goOn, goOn, []string{"work"})
		require.Zero(w, results[2].code)
		for _, r := range results[:2] {
			// Who comes second joins in, or is told that somebody is at it, or that it rests already.
			if r.code != 10 {
				w.refused(r, "already_running", "still_waiting")
			}
		}
		require.Equal(w, paused, w.stands())
		require.Zero(w, w.run(story()[1].args...).code)
		w.finish(story())
		w.check()
	})
	races(t, "with two messages", func() *labtest.Script {
		s := &labtest.Script{}
		s.Need("which color?")
		return s
	}, func(w *world) {
		w.begin()
		words := []string{"red", "blue"}
		results := w.race([]string{"resume", sessionID, "red", "--output", "json"}, []string{"resume", sessionID, "blue", "--output", "json"})
		won := slices.IndexFunc(results, func(r result) bool { return r.code == 0 })
		require.GreaterOrEqual(w, won, 0, "nobody won")
		w.refused(results[1-won], "already_answered", "already_running", "not_resumable", "session_ended")
		db := w.open()
		defer db.close()
		said := []string{}
		for _, m := range db.records().Fold(w).Messages[1:] {
			if m.Role == llm.RoleUser {
				said = append(said, m.Text())
			}
		}
		require.Equal(w, []string{words[won]}, said)
	})
}

func TestRaceStart(t *testing.T) {
	t.Parallel()
	run := func(more ...string) []string {
		return append([]string{"run", "--agent", "lab", "--session", sessionID, "--output", "json"}, more...)
	}
	races(t, "one id", approval, func(w *world) {
		text := w.script.Text()
		results := w.race(run(text), run(text+"# another"), run(text+"# a third"))
		won := slices.IndexFunc(results, func(r result) bool { return r.code == 10 })
		require.GreaterOrEqual(w, won, 0, "nobody won")
		for i, r := range results {
			if i != won {
				w.refused(r, "already_running", "not_resumable")
			}
		}
		db := w.open()
		defer db.close()
		r := db.records()
		r.CheckChain(w)
		require.Equal(w, session.KindStarted, r.Entries[0].Kind)
		started := r.Entries[0].Messages[0].Text()
		require.Equal(w, strings.TrimPrefix(results[won].args, strings.Join(run(""), " ")), started, "the winner's")
		require.Equal(w, paused, w.stands())
	})
	races(t, "the same request", func() *labtest.Script { return labtest.Fixed("deploy") }, func(w *world) {
		for _, r := range w.race(begin().args, begin().args, begin().args) {
			require.Equal(w, 10, r.code, r.stderr)
			require.Equal(w, "paused", w.manifest(r).Outcome)
		}
		require.Equal(w, paused, w.stands())
		require.Zero(w, w.run(story()[1].args...).code)
		w.finish(story())
		require.Zero(w, w.check())
	})
}
