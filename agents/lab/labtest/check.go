package labtest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// once is the tool whose outcome is never unknown: it is run again.
const once = "append_once"

// Ended is a session whose script should have run to its end.
type Ended struct {
	Records
	Script *Script
	// Disturbed says that something was killed, frozen or failed meanwhile. Then,
	// and only then, may nobody know whether a call had its effect.
	Disturbed bool
	// OldDoors says that an older program took answers too. An approval that it wrote into a record that a
	// newer one had written proves nothing: it is closed, and asked again.
	OldDoors bool
	// Told are the answers, by their waits, of which a client was told that they count.
	Told map[string]session.Answer
}

// outcome is what the journal says of one call.
type outcome struct {
	llm.ToolCall
	results []llm.ToolResult
}

// Check checks what is promised of a session: nothing is lost, nothing is done twice,
// the journal is whole, and what a client was told is true. It returns how many outcomes
// are unknown.
func (e Ended) Check(t require.TestingT) (unknown int) {
	e.CheckChain(t)
	e.checkEnd(t)
	e.checkRuns(t)
	unknown = e.checkEffects(t, e.checkCalls(t))
	e.checkWaits(t)
	return unknown
}

// CheckChain checks that every entry is there once, with the hash of the one before.
func (r Records) CheckChain(t require.TestingT) {
	tokens := map[string]bool{}
	for i, e := range r.Entries {
		require.EqualValues(t, i+1, e.Seq, "one entry a number")
		require.False(t, tokens[e.Token], "the token of entry %d is another's", e.Seq)
		tokens[e.Token] = true
		if i > 0 {
			require.Equal(t, r.Entries[i-1].Hash, e.Prev, "entry %d does not follow entry %d", e.Seq, e.Seq-1)
		}
	}
}

// CheckDied checks that the session failed because workers died again and again at its
// step, and that no call which never ran is recorded as started.
func (r Records) CheckDied(t require.TestingT) {
	r.CheckChain(t)
	require.NotEmpty(t, r.Entries, "%s does not exist", r.Key)
	newest := r.Entries[len(r.Entries)-1]
	require.Equal(t, session.KindFailed, newest.Kind)
	require.Equal(t, "step_died", newest.Failure.Type)
	require.True(t, newest.Failure.Retryable, "it may be tried again")
	require.Empty(t, r.Ledger, "what never ran is not in the ledger as begun")
}

// checkEnd: the journal folds to one task that is completed, after every reply of the script.
func (e Ended) checkEnd(t require.TestingT) {
	s := e.Fold(t)
	require.NotNil(t, s, "%s does not exist", e.Key)
	require.Equal(t, session.StatusCompleted, s.Status)
	require.EqualValues(t, 1, s.Task, "tasks")
	require.Empty(t, s.Calls, "calls without a result")
	require.EqualValues(t, e.Script.replies+1, s.Step, "steps")
}

// checkRuns: numbered without gaps, each ended where the next begins.
func (e Ended) checkRuns(t require.TestingT) {
	runs := map[int64]session.Run{}
	for _, run := range e.Runs {
		runs[run.ID] = run
	}
	require.Len(t, runs, int(e.Entries[len(e.Entries)-1].Run), "runs")
	first := int64(1)
	for id := int64(1); id <= int64(len(runs)); id++ {
		run, ok := runs[id]
		require.True(t, ok, "run %d is not there", id)
		require.Equal(t, id-1, run.PreviousRun, "before run %d", id)
		require.Equal(t, first, run.FirstEntry, "run %d", id)
		require.NotNil(t, run.EndedAt, "run %d has not ended", id)
		first = run.LastEntry + 1
	}
	require.EqualValues(t, len(e.Entries)+1, first, "the last run ends with the journal")
}

// checkCalls: what the script asks for was asked for once, and each call has one result.
func (e Ended) checkCalls(t require.TestingT) map[string]*outcome {
	calls := map[string]*outcome{}
	for _, entry := range e.Entries {
		for _, m := range entry.Messages {
			for _, p := range m.Parts {
				if c := p.ToolCall; c != nil {
					require.NotContains(t, calls, c.ID, "declared twice")
					calls[c.ID] = &outcome{ToolCall: *c}
				}
				if result := p.ToolResult; result != nil {
					require.Contains(t, calls, result.CallID, "a result without a call")
					calls[result.CallID].results = append(calls[result.CallID].results, *result)
				}
			}
		}
	}
	require.Len(t, calls, e.Script.calls, "calls")
	for id, c := range calls {
		require.Len(t, c.results, 1, "results of %s (%s)", id, c.Name)
	}
	return calls
}

// checkEffects: each effect belongs to one call, and what has none succeeded.
func (e Ended) checkEffects(t require.TestingT, calls map[string]*outcome) (unknown int) {
	ledger := map[string]journal.ToolState{}
	for _, record := range e.Ledger {
		ledger[record.Call] = record.State
	}
	with := map[string]bool{}
	for _, effect := range e.Script.effects {
		found, digest := 0, effect.digest(t)
		for id, c := range calls {
			if c.Name != effect.Tool || journal.Digest(c.Arguments) != digest {
				continue
			}
			found++
			with[id] = true
			if e.checkEffect(t, effect, c, ledger[id]) {
				unknown++
			}
		}
		require.Equal(t, 1, found, "calls that write %q", effect.Line)
	}
	for id, c := range calls {
		require.True(t, with[id] || c.results[0].Status == llm.ResultSuccess, "%s (%s) is %s: %s", id, c.Name, c.results[0].Status, c.results[0].Output)
	}
	return unknown
}

// checkEffect: at most once, and exactly once unless the journal says that nobody
// knows; not at all where a person refused.
func (e Ended) checkEffect(t require.TestingT, effect Effect, c *outcome, ledger journal.ToolState) (unknown bool) {
	result, times := c.results[0], effect.Count(t)
	if effect.Denied {
		require.Equal(t, llm.ResultDenied, result.Status, "%s %q was refused", c.ID, effect.Line)
		require.Zero(t, times, "%s %q was refused", c.ID, effect.Line)
		require.NotContains(t, []journal.ToolState{journal.ToolStarted, journal.ToolFinished}, ledger, "the ledger of %s, which was refused", c.ID)
		return false
	}
	switch {
	case result.Status == llm.ResultSuccess:
		require.Equal(t, 1, times, "%s %q succeeded", c.ID, effect.Line)
	case result.Status == llm.ResultUnknown && effect.Tool != once:
		require.LessOrEqual(t, times, 1, "%s %q is unknown", c.ID, effect.Line)
		require.True(t, e.Disturbed, "%s %q is unknown although nothing happened", c.ID, effect.Line)
		unknown = true
	default:
		t.Errorf("%s %q is %s: %s", c.ID, effect.Line, result.Status, result.Output)
		t.FailNow()
	}
	if effect.Tool != once && !e.Disturbed {
		require.Equal(t, journal.ToolFinished, ledger, "the ledger of %s", c.ID)
	}
	return unknown
}

// checkWaits: each was opened once, answered once, taken in once, and with the
// answer of which the client was told that it counts.
func (e Ended) checkWaits(t require.TestingT) {
	opened, taken := map[string]int{}, map[string]int{}
	for _, entry := range e.Entries {
		for _, wait := range entry.Waits {
			opened[wait.ID]++
		}
		for _, answer := range entry.Answers {
			taken[answer.Wait]++
		}
	}
	require.Equal(t, e.Script.waits, e.asked(), "waits")
	require.Len(t, opened, len(e.Waits), "waits that entries opened")
	answers := map[string]session.Answer{}
	for _, record := range e.Waits {
		id := record.Wait.ID
		require.Equal(t, 1, opened[id], "wait %s was opened", id)
		if e.unproven(record) {
			require.Zero(t, taken[id], "wait %s was taken in", id)
			continue
		}
		require.Equal(t, session.WaitTaken, record.State, "wait %s", id)
		require.Equal(t, 1, taken[id], "wait %s was taken in", id)
		require.NotNil(t, record.Answer, "wait %s has no answer", id)
		answers[id] = *record.Answer
	}
	for id, told := range e.Told {
		if slices.ContainsFunc(e.Waits, func(r journal.WaitRecord) bool { return r.Wait.ID == id && e.unproven(r) }) {
			continue
		}
		require.Contains(t, answers, id)
		require.Equal(t, told.Kind, answers[id].Kind, "the answer to %s", id)
		require.Equal(t, told.Approved, answers[id].Approved, "the answer to %s", id)
		require.Equal(t, told.Selected, answers[id].Selected, "the answer to %s", id)
	}
}

// unproven reports whether a record is of an approval that an older program answered, and that was closed.
func (e Ended) unproven(r journal.WaitRecord) bool {
	return e.OldDoors && r.Wait.Kind == session.WaitApproval && r.State == session.WaitClosed && r.Answer != nil
}

// asked counts the waits that the script asks for. What was answered under one
// definition of the agent is asked again under another one, and so is an approval by a door that does not
// know what was shown; either counts once.
func (e Ended) asked() (n int) {
	type asked struct {
		call, question string
		kind           session.WaitKind
	}
	earlier := map[asked]journal.WaitRecord{}
	for _, record := range slices.SortedFunc(slices.Values(e.Waits), func(a, b journal.WaitRecord) int {
		return a.Wait.OpenedAt.Compare(b.Wait.OpenedAt)
	}) {
		w := record.Wait
		what := asked{call: w.Call, kind: w.Kind}
		if w.Question != nil {
			what.question = w.Question.ID
		}
		before, again := earlier[what]
		unseen := before.Answer != nil && w.Kind == session.WaitApproval && before.Answer.ShownDigest == "" && before.Wait.ShownDigest != ""
		if !again || w.Call == "" || before.Wait.Policy == w.Policy && !unseen && !e.unproven(before) {
			n++
		}
		earlier[what] = record
	}
	return n
}
