//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func (d *drive) entries() []session.Entry {
	var entries []session.Entry
	for e, err := range d.store.Entries(background, d.key, 0) {
		require.NoError(d, err)
		entries = append(entries, e)
	}
	return entries
}

func (d *drive) items(kind store.ItemKind) []store.Item {
	var items []store.Item
	for item, err := range d.store.Items(background, d.key, kind, "") {
		require.NoError(d, err)
		items = append(items, item)
	}
	return items
}

// outcome is what the journal says of one call.
type outcome struct {
	name, arguments string
	results         []llm.ToolResult
}

// check holds the promises against a session that has ended: nothing lost,
// nothing done twice, the journal whole, and what the client was told true.
func (d *drive) check() {
	entries := d.entries()
	d.checkChain(entries)
	s, err := engine.Fold(d.key, entries)
	require.NoError(d, err)
	require.Equal(d, session.StatusCompleted, s.Status)
	require.EqualValues(d, 1, s.Task)
	require.Empty(d, s.Calls, "calls without a result")
	if d.started.SessionID != "" {
		require.Equal(d, d.started.Entry.CheckpointID, entries[0].Checkpoint(d.key.ID).String(), "the checkpoint the start was answered with")
	}
	d.checkRuns(entries)
	calls := d.checkCalls(entries)
	for _, e := range d.script.effects {
		d.checkEffect(e, calls)
	}
	d.checkWaits(entries)
}

// checkChain: every entry there is, once, each bound to the one before.
func (d *drive) checkChain(entries []session.Entry) {
	tokens := map[string]bool{}
	for i, e := range entries {
		require.EqualValues(d, i+1, e.Seq)
		require.False(d, tokens[e.Token], "the token of entry %d is another's", e.Seq)
		tokens[e.Token] = true
		if i > 0 {
			require.Equal(d, entries[i-1].Hash, e.Prev, "entry %d does not follow entry %d", e.Seq, e.Seq-1)
		}
	}
}

// checkRuns: numbered without gaps, each ended where the next begins.
func (d *drive) checkRuns(entries []session.Entry) {
	runs := map[int64]session.Run{}
	for _, item := range d.items(store.KindRun) {
		runs[item.Run.ID] = *item.Run
	}
	require.Len(d, runs, int(entries[len(entries)-1].Run), "runs")
	first := int64(1)
	for id := int64(1); id <= int64(len(runs)); id++ {
		run, ok := runs[id]
		require.True(d, ok, "run %d is not there", id)
		require.Equal(d, id-1, run.PreviousRun)
		require.Equal(d, first, run.FirstEntry, "run %d", id)
		require.NotNil(d, run.EndedAt, "run %d has not ended", id)
		first = run.LastEntry + 1
	}
	require.EqualValues(d, len(entries)+1, first, "the last run ends with the journal")
}

// checkCalls: what the script asks for was asked for once, and each call has one result.
func (d *drive) checkCalls(entries []session.Entry) map[string]*outcome {
	calls := map[string]*outcome{}
	for _, e := range entries {
		for _, m := range e.Messages {
			for _, p := range m.Parts {
				if c := p.ToolCall; c != nil {
					require.NotContains(d, calls, c.ID, "declared twice")
					calls[c.ID] = &outcome{name: c.Name, arguments: string(c.Arguments)}
				}
				if result := p.ToolResult; result != nil {
					require.Contains(d, calls, result.CallID, "a result without a call")
					calls[result.CallID].results = append(calls[result.CallID].results, *result)
				}
			}
		}
	}
	require.Len(d, calls, d.script.calls, "calls")
	for id, c := range calls {
		require.Len(d, c.results, 1, "results of %s (%s)", id, c.name)
	}
	return calls
}

// checkEffect: at most once, and exactly once unless the journal says that nobody
// knows; not at all where a person refused.
func (d *drive) checkEffect(e effect, calls map[string]*outcome) {
	arguments, err := json.Marshal(e.arguments)
	require.NoError(d, err)
	found := 0
	for id, c := range calls {
		if c.name != e.tool || session.Digest(json.RawMessage(c.arguments)) != session.Digest(arguments) {
			continue
		}
		found++
		result, times := c.results[0], d.count(e)
		switch {
		case d.script.denied[e.line]:
			require.Equal(d, llm.ResultDenied, result.Status, "%s %q was refused", id, e.line)
			require.Zero(d, times, "%s %q was refused", id, e.line)
		case result.Status == llm.ResultSuccess:
			require.Equal(d, 1, times, "%s %q succeeded", id, e.line)
		case result.Status == llm.ResultUnknown && e.tool != "append_once":
			require.LessOrEqual(d, times, 1, "%s %q is unknown", id, e.line)
			require.Positive(d, d.struck, "unknown although nothing happened")
		default:
			d.Errorf("%s %q is %s: %s", id, e.line, result.Status, result.Output)
		}
	}
	require.Equal(d, 1, found, "calls that write %q", e.line)
}

// unknown counts the calls whose outcome nobody knows.
func (d *drive) unknown() int {
	n := 0
	for _, c := range d.checkCalls(d.entries()) {
		if c.results[0].Status == llm.ResultUnknown {
			n++
		}
	}
	return n
}

// count counts a line in its file.
func (d *drive) count(e effect) int {
	text, err := os.ReadFile(filepath.Join(d.dir, e.file))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(d, err)
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return len(slices.DeleteFunc(all, func(line string) bool { return line != e.line }))
}

// checkWaits: each was opened once, answered once, taken in once, and with the
// answer of which the client was told that it counts.
func (d *drive) checkWaits(entries []session.Entry) {
	opened, taken := map[string]int{}, map[string]int{}
	for _, e := range entries {
		for _, wait := range e.Waits {
			opened[wait.ID]++
		}
		for _, answer := range e.Answers {
			taken[answer.Wait]++
		}
	}
	waits := d.items(store.KindWait)
	require.Len(d, opened, len(waits))
	require.Len(d, waits, d.script.waits)
	answers := map[string]session.Answer{}
	for _, item := range waits {
		id := item.Wait.Wait.ID
		require.Equal(d, session.WaitTaken, item.Wait.State, "wait %s", id)
		require.Equal(d, 1, opened[id], "wait %s was opened", id)
		require.Equal(d, 1, taken[id], "wait %s was taken in", id)
		answers[id] = *item.Wait.Answer
	}
	for id, told := range d.told {
		require.Contains(d, answers, id)
		require.Equal(d, told.Kind, answers[id].Kind, "the answer to %s", id)
		require.Equal(d, told.Approved, answers[id].Approved, "the answer to %s", id)
		require.Equal(d, told.Selected, answers[id].Selected, "the answer to %s", id)
	}
}

// checkNothingLeft: nothing is due any more. The queues are empty already.
func (t *trial) checkNothingLeft() {
	due, err := t.store.Find(background, store.FindParams{Kind: store.FindDue, Before: time.Now().Add(24 * time.Hour)})
	require.NoError(t, err)
	for _, found := range due.Found {
		require.False(t, slices.ContainsFunc(t.sessions, func(d *drive) bool { return d.key == found.Key }), "%s is still due: %+v", found.Key, found.Item)
	}
}
