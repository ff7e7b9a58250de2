//go:build linux

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// records reads the data file of a trial.
type records struct {
	w  *world
	db *sqlite.DB
}

var key = session.Key{Tenant: session.DefaultTenant, ID: sessionID}

func (w *world) open() *records {
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: w.path("adjourn.db")})
	require.NoError(w, err)
	return &records{w, db}
}

func (r *records) close() { require.NoError(r.w, r.db.Close()) }

func (r *records) entries() []session.Entry {
	var entries []session.Entry
	for e, err := range r.db.Store().Entries(context.Background(), key, 0) {
		require.NoError(r.w, err)
		entries = append(entries, e)
	}
	return entries
}

// fold returns the session, nil if there is none.
func (r *records) fold() *session.Session {
	entries := r.entries()
	if len(entries) == 0 {
		return nil
	}
	s, err := engine.Fold(key, entries)
	require.NoError(r.w, err)
	return s
}

func (r *records) items(kind store.ItemKind) []store.Item {
	var items []store.Item
	for item, err := range r.db.Store().Items(context.Background(), key, kind, "") {
		require.NoError(r.w, err)
		items = append(items, item)
	}
	return items
}

func (r *records) waits() []session.WaitRecord {
	var waits []session.WaitRecord
	for _, item := range r.items(store.KindWait) {
		waits = append(waits, *item.Wait)
	}
	return waits
}

// outcome is what the journal says of one call.
type outcome struct {
	name, arguments string
	results         []llm.ToolResult
}

// check holds the promises against a trial that has ended: nothing lost, nothing
// done twice, and the journal whole. It returns how many outcomes are unknown.
func (w *world) check() (unknown int) {
	r := w.open()
	defer r.close()
	entries := r.entries()
	w.checkChain(entries)
	s := r.fold()
	require.Equal(w, session.StatusCompleted, s.Status)
	require.EqualValues(w, 1, s.Task)
	require.Empty(w, s.Calls, "calls without a result")
	require.EqualValues(w, w.script.replies+1, s.Step, "steps")
	w.checkRuns(r, entries)
	calls := w.checkCalls(entries)
	ledger := map[string]session.ToolState{}
	for _, item := range r.items(store.KindTool) {
		ledger[item.Tool.Call] = item.Tool.State
	}
	for _, e := range w.script.effects {
		unknown += w.checkEffect(e, calls, ledger)
	}
	w.checkWaits(r, entries)
	w.checkNothingLeft(r)
	return unknown
}

// checkChain: every entry there is, once, each bound to the one before.
func (w *world) checkChain(entries []session.Entry) {
	tokens := map[string]bool{}
	for i, e := range entries {
		require.EqualValues(w, i+1, e.Seq)
		require.False(w, tokens[e.Token], "the token of entry %d is another's", e.Seq)
		tokens[e.Token] = true
		if i > 0 {
			require.Equal(w, entries[i-1].Hash, e.Prev, "entry %d does not follow entry %d", e.Seq, e.Seq-1)
		}
	}
}

// checkRuns: numbered without gaps, each ended where the next begins.
func (w *world) checkRuns(r *records, entries []session.Entry) {
	runs := map[int64]session.Run{}
	for _, item := range r.items(store.KindRun) {
		runs[item.Run.ID] = *item.Run
	}
	require.Len(w, runs, int(entries[len(entries)-1].Run), "runs")
	first := int64(1)
	for id := int64(1); id <= int64(len(runs)); id++ {
		run, ok := runs[id]
		require.True(w, ok, "run %d is not there", id)
		require.Equal(w, id-1, run.PreviousRun)
		require.Equal(w, first, run.FirstEntry, "run %d", id)
		require.NotNil(w, run.EndedAt, "run %d has not ended", id)
		first = run.LastEntry + 1
	}
	require.EqualValues(w, len(entries)+1, first, "the last run ends with the journal")
}

// checkCalls: what the script asks for was asked for once, and each call has one result.
func (w *world) checkCalls(entries []session.Entry) map[string]*outcome {
	calls := map[string]*outcome{}
	for _, e := range entries {
		for _, m := range e.Messages {
			for _, p := range m.Parts {
				if c := p.ToolCall; c != nil {
					require.NotContains(w, calls, c.ID, "declared twice")
					calls[c.ID] = &outcome{name: c.Name, arguments: string(c.Arguments)}
				}
				if result := p.ToolResult; result != nil {
					require.Contains(w, calls, result.CallID, "a result without a call")
					calls[result.CallID].results = append(calls[result.CallID].results, *result)
				}
			}
		}
	}
	require.Len(w, calls, w.script.calls, "calls")
	for id, c := range calls {
		require.Len(w, c.results, 1, "results of %s (%s)", id, c.name)
	}
	return calls
}

// checkEffect: at most once, and exactly once unless the journal says that nobody knows.
func (w *world) checkEffect(e effect, calls map[string]*outcome, ledger map[string]session.ToolState) (unknown int) {
	arguments, err := json.Marshal(e.arguments)
	require.NoError(w, err)
	found := 0
	for id, c := range calls {
		if c.name != e.tool || session.Digest(json.RawMessage(c.arguments)) != session.Digest(arguments) {
			continue
		}
		found++
		result, times := c.results[0], w.count(e)
		switch {
		case result.Status == llm.ResultSuccess:
			require.Equal(w, 1, times, "%s %q succeeded", id, e.line)
		case result.Status == llm.ResultUnknown && e.tool != "append_once":
			require.LessOrEqual(w, times, 1, "%s %q is unknown", id, e.line)
			unknown++
		default:
			w.Errorf("%s %q is %s: %s", id, e.line, result.Status, result.Output)
		}
		if e.tool != "append_once" && w.kills == 0 {
			require.Equal(w, session.ToolFinished, ledger[id], "the ledger of %s", id)
		}
	}
	require.Equal(w, 1, found, "calls that write %q", e.line)
	return unknown
}

// count counts a line in its file.
func (w *world) count(e effect) int {
	text, err := os.ReadFile(w.path(e.file))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(w, err)
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return len(slices.DeleteFunc(all, func(line string) bool { return line != e.line }))
}

// checkWaits: each was opened once, answered once, and taken in once.
func (w *world) checkWaits(r *records, entries []session.Entry) {
	opened, taken := map[string]int{}, map[string]int{}
	for _, e := range entries {
		for _, wait := range e.Waits {
			opened[wait.ID]++
		}
		for _, answer := range e.Answers {
			taken[answer.Wait]++
		}
	}
	waits := r.waits()
	require.Len(w, opened, len(waits))
	for _, record := range waits {
		id := record.Wait.ID
		require.Equal(w, session.WaitTaken, record.State, "wait %s", id)
		require.Equal(w, 1, opened[id], "wait %s was opened", id)
		require.Equal(w, 1, taken[id], "wait %s was taken in", id)
	}
	approvals := 0
	for _, e := range w.script.effects {
		if e.file == deploys {
			approvals++
		}
	}
	require.Len(w, waits, approvals)
}

// checkNothingLeft: no message, no dead letter, nothing due.
func (w *world) checkNothingLeft(r *records) {
	for name, q := range map[string]queue.Queue{"queue": r.db.Queue(), "dead letters": r.db.DeadLetters()} {
		left, err := q.Receive(context.Background(), queue.ReceiveParams{Max: 10, Visibility: time.Minute})
		require.NoError(w, err)
		require.Empty(w, left, name)
	}
	due, err := r.db.Store().Find(context.Background(), store.FindParams{Kind: store.FindDue, Before: time.Now().Add(24 * time.Hour)})
	require.NoError(w, err)
	require.Empty(w, due.Found, "something is still due")
}
