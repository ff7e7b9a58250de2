//go:build linux

package main_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// crossing is a race of verbs: commands that begin at random offsets on one session. Whoever wins,
// nothing is lost (see whole), and what each process told its user is so.
type crossing struct {
	script *labtest.Script
	// begin brings the session to where the race begins; nil begins it and leaves its steps to others.
	begin    func(w *world)
	commands func(w *world) [][]string
	// holds what the race has for rules of its own, and says who won. The session is nil once it is deleted.
	holds func(w *world, results []result, r labtest.Records, s *session.Session) (who string)
	// then is the command that brings what the race left to its end, where holds says the same again.
	then func(s *session.Session) []string
}

// toldOf returns what was told of a command that succeeded, "" where it was refused in words.
func (w *world) toldOf(r result, codes ...string) string {
	m := w.manifest(r)
	if m.Outcome == "error" {
		w.refused(r, codes...)
		return ""
	}
	return m.Outcome
}

// whole holds what must be true of a session at rest whoever won a race for it: its journal is
// unbroken, each call has one result or is open, each effect happened once for each call that ran,
// and an answer that was accepted is in the history or still to be taken in.
func (w *world) whole() (labtest.Records, *session.Session) {
	db := w.open()
	defer db.close()
	r := db.records()
	if len(r.Entries) == 0 || r.Entries[len(r.Entries)-1].Kind == session.KindDeleted {
		return r, nil
	}
	r.CheckChain(w)
	s := r.Fold(w)
	require.NotEqual(w, session.StatusRunning, s.Status, "nobody works on it any more")
	ledger := map[string]journal.ToolState{}
	for _, record := range r.Ledger {
		ledger[record.Call] = record.State
	}
	open, results := map[string]bool{}, map[string]llm.ResultStatus{}
	for _, m := range s.Messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				require.NotContains(w, open, p.ToolCall.ID, "made twice")
				open[p.ToolCall.ID] = true
			}
			if p.ToolResult != nil {
				require.True(w, open[p.ToolResult.CallID], "a second result of %s, or one of no call", p.ToolResult.CallID)
				open[p.ToolResult.CallID] = false
				results[p.ToolResult.CallID] = p.ToolResult.Status
			}
		}
	}
	for _, c := range s.Calls {
		require.True(w, open[c.ID], "%s is open, and has a result", c.ID)
		delete(open, c.ID)
		require.False(w, s.Status.Ended(), "%s dangles: the task has ended", c.ID)
	}
	require.NotContains(w, slices.Collect(maps.Values(open)), true, "a call dangles")
	for id, status := range results {
		if status == llm.ResultCancelled {
			require.NotContains(w, []journal.ToolState{journal.ToolStarted, journal.ToolFinished}, ledger[id], "%s is told as cancelled", id)
		}
	}
	w.onceEach(r)

	taken := map[string]bool{}
	for _, e := range r.Entries {
		for _, a := range e.Answers {
			require.False(w, taken[a.Wait], "the answer to %s is taken in twice", a.Wait)
			taken[a.Wait] = true
		}
	}
	for _, record := range r.Waits {
		if record.Answer != nil {
			rests := s.Status == session.StatusInterrupted && record.State == session.WaitAnswered
			require.True(w, rests || taken[record.Wait.ID], "the answer to %s is forgotten", record.Wait.ID)
		}
		if record.State == session.WaitOpen {
			require.False(w, s.Status.Ended(), "%s is open, and the task has ended", record.Wait.ID)
		}
	}
	return r, s
}

// onceEach: a line is in its file once for each call that has run, of whatever timeline.
func (w *world) onceEach(r labtest.Records) {
	calls := map[string]string{} // with what they say
	for _, e := range r.Entries {
		for _, m := range e.Messages {
			for _, p := range m.Parts {
				if p.ToolCall != nil && p.ToolCall.Name != "echo" && p.ToolCall.Name != "sleep" {
					calls[p.ToolCall.ID] = w.script.EffectOf(w, p.ToolCall.Arguments).Line
				}
			}
		}
	}
	finished, begun := map[string]int{}, map[string]int{}
	for _, record := range r.Ledger {
		line := calls[record.Call]
		if line == "" { // asked anew after going back, under an id of its own: of the one deploy there is
			line = w.script.Effects()[0].Line
		}
		if record.State == journal.ToolFinished {
			finished[line]++
		}
		if record.State == journal.ToolStarted {
			begun[line]++
		}
	}
	for _, effect := range w.script.Effects() {
		n := effect.Count(w)
		require.GreaterOrEqual(w, n, finished[effect.Line], effect.Line)
		require.LessOrEqual(w, n, finished[effect.Line]+begun[effect.Line], "%s has happened more often than it was called", effect.Line)
	}
}

// crossings is how often each race of verbs is run: 200 times where the longer tests run, else a few.
func crossings(t *testing.T) int {
	t.Helper()
	n := labtest.Number(t, "ADJOURN_CRASH_TRIALS", 8)
	if n >= 200 {
		return 200
	}
	return max(n/4, 1)
}

// cross runs a race at random offsets.
func cross(t *testing.T, name string, c func() crossing) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		trials, seed := crossings(t), labtest.Seed(t)
		worlds, crossed := make([]*world, trials), make(map[*world]crossing)
		for i := range worlds {
			w := trapWorld(t, fmt.Sprintf("%s, trial %d of seed %d", name, i, seed), "deploy")
			crossed[w] = c()
			w.script, w.rng = crossed[w].script, rand.New(rand.NewPCG(seed, uint64(i)))
			worlds[i] = w
		}
		var mu sync.Mutex
		won := map[string]int{}
		all(t, 2, worlds, func(w *world) {
			who := w.cross(crossed[w])
			mu.Lock()
			defer mu.Unlock()
			won[who]++
		})
		t.Logf("%d trials: %v", trials, won)
	})
}

func (w *world) cross(c crossing) (who string) {
	if c.begin != nil {
		c.begin(w)
	} else {
		require.Zero(w, w.run("run", "--agent", "lab", "--session", sessionID, "--wait", "0s", "--input-file", "script.yaml").code)
	}
	most := 500 << w.rng.IntN(7) // microseconds: many begin at nearly the same moment, some after the other has ended
	results := w.raceApart(func() time.Duration { return time.Duration(w.rng.IntN(most)) * time.Microsecond }, c.commands(w)...)
	require.Zero(w, w.run("work").code)
	r, s := w.whole()
	who = c.holds(w, results, r, s)
	if s != nil && c.then != nil {
		if command := c.then(s); command != nil {
			require.Zero(w, w.run(command...).code, "what was raced for can be brought to its end")
			r, s = w.whole()
			require.Equal(w, session.StatusCompleted, s.Status)
			require.Equal(w, who, c.holds(w, results, r, s))
		}
	}
	// A message that came beside a lease is put off until that would end, and comes to nothing then.
	w.moveClock(time.Hour)
	require.Zero(w, w.run("work").code)
	db := w.open()
	defer db.close()
	w.checkNothingLeft(db)
	return who
}

// to writes a command on the session of a trial.
func to(words ...string) []string {
	return append(words, "--output", "json")
}

// began counts the tasks that a verb has begun.
func began(r labtest.Records, kind session.Kind) (n int) {
	for _, e := range r.Entries {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// said is how often a text was said to the agent, by entries and by answers.
func said(r labtest.Records, text string) (n int) {
	for _, e := range r.Entries {
		here := 0
		for _, m := range e.Messages {
			if m.Role == llm.RoleUser && strings.Contains(m.Text(), text) {
				here++
			}
		}
		if here == 0 && slices.ContainsFunc(e.Answers, func(a session.Answer) bool {
			return strings.Contains((llm.Message{Parts: a.Message}).Text(), text)
		}) {
			here++
		}
		n += here
	}
	return n
}

// accepted wants the answer of which a process was told that it counts to be in the journal.
func (w *world) accepted(r result, records labtest.Records, wait string) bool {
	outcome := w.toldOf(r, "already_answered", "session_ended", "wait_not_found", "not_resumable", "already_running")
	if outcome == "" {
		return false
	}
	for _, record := range records.Waits {
		if record.Wait.ID == wait {
			require.NotNil(w, record.Answer, "an answer was taken with success, and is forgotten")
			return true
		}
	}
	w.Errorf("the wait %s is not there", wait)
	return false
}

// nap is a call that takes a moment, in which the other command comes.
func nap() labtest.Call {
	return labtest.Call{"call": "sleep", "with": map[string]any{"seconds": 0.003}}
}

func approvalThenLines() *labtest.Script {
	s := approval()
	for range 3 {
		s.Add(s.Line(), nap())
	}
	return s
}

// Verbs that stop a task, against what would end it or take it on.
func TestRaceVerbs_stop(t *testing.T) {
	t.Parallel()
	cross(t, "cancel against the last answer", func() crossing {
		return crossing{
			script: approvalThenLines(), begin: (*world).begin,
			commands: func(*world) [][]string {
				return [][]string{to("cancel", sessionID), to("resume", sessionID, "--approve", "w2-1")}
			},
			holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
				answered := w.accepted(results[1], r, "w2-1")
				require.Zero(w, results[0].code, "to cancel what has ended does nothing")
				if s.Status == session.StatusCompleted {
					require.True(w, answered)
					require.Equal(w, "completed", w.manifest(results[0]).Outcome)
					return "the answer"
				}
				require.Equal(w, session.StatusCancelled, s.Status)
				require.Equal(w, 1, began(r, session.KindCancelled))
				if answered {
					return "both: cancelled after the answer"
				}
				require.Zero(w, w.script.Effects()[0].Count(w))
				return "cancel"
			},
		}
	})
	cross(t, "interrupt against completion", func() crossing {
		return crossing{
			script: approvalThenLines(), begin: (*world).begin,
			commands: func(*world) [][]string {
				return [][]string{to("interrupt", sessionID), to("resume", sessionID, "--approve", "w2-1")}
			},
			holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
				require.True(w, w.accepted(results[1], r, "w2-1"), "nothing closes the wait")
				if outcome := w.toldOf(results[0], "session_ended"); outcome == "" {
					require.Equal(w, session.StatusCompleted, s.Status)
					return "completion"
				}
				require.Equal(w, 1, began(r, session.KindInterrupted))
				require.Contains(w, []session.Status{session.StatusInterrupted, session.StatusCompleted}, s.Status)
				return "interrupt"
			},
			then: func(s *session.Session) []string {
				if s.Status == session.StatusCompleted {
					return nil
				}
				return []string{"resume", sessionID}
			},
		}
	})
	for _, verb := range []string{"abort", "cancel"} {
		cross(t, verb+" against commit", func() crossing {
			s := &labtest.Script{}
			for range 4 {
				s.Add(s.Line(), nap())
			}
			return crossing{
				script: s,
				commands: func(*world) [][]string {
					return [][]string{to(verb, sessionID), {"work"}}
				},
				holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
					require.Zero(w, results[1].code)
					outcome := w.manifest(results[0]).Outcome
					if s.Status == session.StatusCompleted {
						require.Equal(w, "completed", outcome, "there was nothing to stop")
						return "the worker"
					}
					want := map[string]session.Status{"abort": session.StatusFailed, "cancel": session.StatusCancelled}[verb]
					require.Equal(w, want, s.Status)
					require.Equal(w, string(want), outcome)
					ends := began(r, session.KindFailed) + began(r, session.KindCancelled) + began(r, session.KindCompleted)
					require.Equal(w, 1, ends, "one end of one task")
					return verb
				},
			}
		})
	}
	// Task 1 waits, or has ended; task 2 begins while task 1 is cancelled.
	cross(t, "a signal of the old task against a new one", func() crossing {
		return crossing{
			script: approval(),
			begin: func(w *world) {
				w.begin()
				require.Zero(w, w.run("resume", sessionID, "--approve", "w2-1").code)
			},
			commands: func(*world) [][]string {
				return [][]string{
					to("cancel", sessionID, "--task", "1"),
					to("run", "--agent", "lab", "--session", sessionID, "[{repeat: 3, call: echo, with: {text: x}}, {say: second}]"),
					to("abort", sessionID, "--task", "1"),
				}
			},
			holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
				for _, r := range results {
					require.Zero(w, r.code, r.args)
				}
				require.EqualValues(w, 2, s.Task)
				require.Equal(w, session.StatusCompleted, s.Status, "task 2 was not meant")
				require.False(w, slices.ContainsFunc(r.Entries, func(e journal.Entry) bool { return e.Signal != nil }))
				return "the new task"
			},
		}
	})
	cross(t, "a signal of the old task against a way back", func() crossing {
		return crossing{
			script: approval(), begin: (*world).begin,
			commands: func(*world) [][]string {
				return [][]string{to("cancel", sessionID, "--task", "1"), to("resume", sessionID, "--from-checkpoint", "2")}
			},
			holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
				require.Zero(w, results[0].code)
				require.Equal(w, 10, results[1].code, "it may be gone back to from a session that waits, and from one that is cancelled")
				require.EqualValues(w, 2, s.Task)
				require.Equal(w, session.StatusSuspended, s.Status, "task 2 was not meant")
				if began(r, session.KindCancelled) == 1 {
					return "both: back after cancel"
				}
				return "the way back"
			},
		}
	})
}

// What begins a task anew, against itself, and against delete.
func TestRaceVerbs_begin(t *testing.T) {
	t.Parallel()
	backs := func(w *world, results []result, r labtest.Records, s *session.Session) string {
		won := 0
		for _, r := range results {
			if outcome := w.toldOf(r, "already_running", "effects_changed", "effects_not_acknowledged", "not_resumable", "still_waiting"); outcome != "" {
				require.Equal(w, "paused", outcome)
				won++
			}
		}
		require.Positive(w, won, "nobody won")
		require.Equal(w, won, began(r, session.KindRestored), "who was told so went back")
		require.EqualValues(w, 1+won, s.Task)
		require.Equal(w, session.StatusSuspended, s.Status)
		open := slices.DeleteFunc(slices.Clone(r.Waits), func(record journal.WaitRecord) bool { return record.State != session.WaitOpen })
		require.Len(w, open, 1, "of all that was asked one is open")
		return fmt.Sprint(won, " went back")
	}
	cross(t, "two restores", func() crossing {
		return crossing{script: approval(), begin: (*world).begin, holds: backs, commands: func(*world) [][]string {
			return [][]string{to("resume", sessionID, "--from-checkpoint", "2"), to("resume", sessionID, "--from-checkpoint", "2")}
		}}
	})
	cross(t, "two restores over effects", func() crossing {
		return crossing{
			script: approval(), holds: backs,
			begin: func(w *world) {
				w.begin()
				require.Zero(w, w.run("resume", sessionID, "--approve", "w2-1").code)
			},
			commands: func(w *world) [][]string {
				listed := w.run(to("resume", sessionID, "--from-checkpoint", "1")...)
				w.refused(listed, "effects_not_acknowledged")
				back := to("resume", sessionID, "--from-checkpoint", "1", "--acknowledge", w.manifest(listed).Error.Effects.Digest)
				return [][]string{back, back}
			},
		}
	})
	for _, place := range []string{"waiting", "cancelled"} {
		cross(t, "restore against delete, "+place, func() crossing {
			return crossing{
				script: approval(),
				begin: func(w *world) {
					w.begin()
					if place == "cancelled" {
						require.Zero(w, w.run("cancel", sessionID).code)
					}
				},
				commands: func(*world) [][]string {
					return [][]string{to("delete", sessionID, "--yes"), to("resume", sessionID, "--from-checkpoint", "2")}
				},
				holds: func(w *world, results []result, _ labtest.Records, s *session.Session) string {
					require.Zero(w, results[0].code)
					require.Nil(w, s, "what is deleted stays deleted")
					require.Equal(w, 3, w.run("show", sessionID).code)
					require.Equal(w, 5, w.run("run", "--agent", "lab", "--session", sessionID, "more").code, "its id is never used again")
					require.Contains(w, []int{3, 5, 10}, results[1].code)
					if results[1].code == 10 {
						return "both: deleted after the way back"
					}
					return "delete"
				},
			}
		})
	}
	cross(t, "retry against retry", func() crossing {
		s := &labtest.Script{}
		lines := []labtest.Call{s.Line(), s.Line()}
		tries := func(w *world) [][]string {
			commands := make([][]string, len(lines))
			for i, call := range lines {
				arguments := call["with"].(map[string]any)
				commands[i] = to("retry", sessionID, fmt.Sprintf("[{call: append_line, with: {path: %s, text: %s}}, {say: try %d}]", arguments["path"], arguments["text"], i))
			}
			return commands
		}
		return crossing{
			script: s, commands: tries,
			begin: func(w *world) {
				require.Equal(w, 1, w.run("run", "--agent", "lab", "--session", sessionID, "[{fail: invalid}]").code)
			},
			holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
				won := slices.IndexFunc(results, func(r result) bool { return r.code == 0 })
				require.GreaterOrEqual(w, won, 0, "nobody won")
				require.Equal(w, "completed", w.toldOf(results[won]))
				w.refused(results[1-won], "already_running", "not_resumable", "session_ended")
				require.EqualValues(w, 2, s.Task)
				require.Equal(w, session.StatusCompleted, s.Status)
				for i, effect := range w.script.Effects() {
					want := 0
					if i == won {
						want = 1
					}
					require.Equal(w, want, effect.Count(w), effect.Line)
					require.Equal(w, want, said(r, effect.Line))
				}
				return fmt.Sprint("process ", won)
			},
		}
	})
}

// A message that is sent while a worker suspends, asks for it, or completes is taken in once, or refused.
func TestRaceVerbs_send(t *testing.T) {
	t.Parallel()
	scripts := map[string]func(s *labtest.Script){
		"suspending for an approval": func(s *labtest.Script) { s.Add(s.Deploy("deploy")) },
		"asking for a message":       func(s *labtest.Script) { s.Need("which color?") },
		"completing":                 func(s *labtest.Script) { s.Add(nap()) },
	}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		for _, words := range [][]string{{"send", sessionID, "steer"}, {"send", sessionID, "steer", "--start"}} {
			cross(t, strings.Join(append([]string{name, "against send"}, words[3:]...), " "), func() crossing {
				s := &labtest.Script{}
				scripts[name](s)
				return crossing{
					script:   s,
					commands: func(*world) [][]string { return [][]string{{"work"}, to(words...)} },
					holds: func(w *world, results []result, r labtest.Records, s *session.Session) string {
						// The message may begin what the worker finds at its end.
						require.Contains(w, []int{0, 124}, results[0].code)
						outcome, want := w.toldOf(results[1], "still_waiting", "session_ended", "not_resumable", "already_running"), 0
						if outcome != "" {
							want = 1
						}
						require.Equal(w, want, said(r, "steer"), "told %q", outcome)
						if want == 0 {
							return "the worker: refused"
						}
						return fmt.Sprint("taken in by task ", s.Task)
					},
					then: func(s *session.Session) []string {
						switch {
						case s.Status == session.StatusCompleted:
							return nil
						case s.Waits[0].Kind == session.WaitInput:
							return []string{"resume", sessionID, "blue"}
						}
						return []string{"resume", sessionID, "--approve", s.Waits[0].ID}
					},
				}
			})
		}
	}
}
