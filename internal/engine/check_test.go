package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Each case spoils one thing about an entry that was fine.
func TestCheck_refuses(t *testing.T) {
	t.Parallel()
	stepped := func(st *story) journal.Entry { return st.entry(session.KindStepped, session.StatusRunning) }
	restored := func(st *story) journal.Entry {
		st.says("done")
		e := st.entry(session.KindRestored, session.StatusRunning)
		e.Task, e.Run, e.Trigger, e.Base, e.Used = 2, 2, session.TriggerRetry, &journal.Base{Seq: 1}, journal.Used{}
		return e
	}
	delayed := func(st *story) journal.Entry {
		e := st.entry(session.KindDelayed, session.StatusRunning)
		e.Failure, e.Until = &session.Failure{}, &time.Time{}
		return e
	}
	called := func(st *story) journal.Entry {
		st.do(engine.Replied(st.s, engine.StepOutcome{Reply: st.reply(toolCall("a"), toolCall("b"))}, st.stamp()))
		return st.entry(session.KindStepped, session.StatusRunning)
	}
	suspended := func(st *story) journal.Entry { return st.entry(session.KindSuspended, session.StatusSuspended) }
	tool := func(ids ...string) llm.Message {
		m := llm.Message{Role: llm.RoleTool}
		for _, id := range ids {
			r := success(id, "a", `1`)
			m.Parts = append(m.Parts, llm.Part{Kind: llm.PartToolResult, ToolResult: &r})
		}
		return m
	}
	calls := func(seq int64) llm.Message {
		return engine.WithCallIDs(llm.Message{Parts: []llm.Part{toolCall("a")}}, seq)
	}
	for name, c := range map[string]struct {
		good  func(*story) journal.Entry
		spoil func(*journal.Entry)
		says  string
	}{
		"gap":                      {stepped, func(e *journal.Entry) { e.Seq++ }, "follows entry 1"},
		"chain":                    {stepped, func(e *journal.Entry) { e.Prev = "x" }, "the journal was changed"},
		"status":                   {stepped, func(e *journal.Entry) { e.Status = session.StatusCompleted }, "does not go with it"},
		"kind":                     {stepped, func(e *journal.Entry) { e.Kind = "pondered" }, "does not go with it"},
		"started_while_running":    {stepped, func(e *journal.Entry) { e.Kind = session.KindStarted }, `from "running" to "running"`},
		"resumed_while_running":    {stepped, func(e *journal.Entry) { e.Kind = session.KindResumed }, `from "running" to "running"`},
		"deleted_keeps_the_status": {stepped, func(e *journal.Entry) { e.Kind, e.Status = session.KindDeleted, session.StatusFailed }, `from "running" to "failed"`},
		"task":                     {stepped, func(e *journal.Entry) { e.Task++ }, "task 2 follows task 1"},
		"run":                      {stepped, func(e *journal.Entry) { e.Run++ }, "run 2 follows run 1"},
		"trigger":                  {stepped, func(e *journal.Entry) { e.Trigger = session.TriggerStart }, "what began it"},
		"rules_elsewhere":          {stepped, func(e *journal.Entry) { e.RulesAt = 7 }, "rules are not at entry 7"},
		"rules_not_at_itself":      {stepped, func(e *journal.Entry) { e.Rules = &session.Rules{} }, "rules are not at entry 1"},
		"used_by_nobody":           {stepped, func(e *journal.Entry) { e.Used.Task.Steps++ }, "does not grow by what the entry used"},
		"used_and_not_counted":     {stepped, func(e *journal.Entry) { e.Used.Tokens++ }, "does not grow by what the entry used"},
		"used_shrinks":             {stepped, func(e *journal.Entry) { e.Used.CostMicros, e.Used.Task.CostMicros = -1, -1 }, "shrinks inside a task"},
		"used_is_forgotten":        {called, func(e *journal.Entry) { e.Used = journal.Used{} }, "shrinks inside a task"},
		"state":                    {stepped, func(e *journal.Entry) { e.StateOps = []session.StateOp{{Op: "x"}} }, "unknown operation"},
		"wait_id":                  {suspended, func(e *journal.Entry) { e.Waits = []session.Wait{{ID: "w1-1"}} }, `wait id "w1-1"`},
		"too_many_waits": {suspended, func(e *journal.Entry) {
			e.Waits = make([]session.Wait, 81)
			for i := range e.Waits {
				e.Waits[i].ID = "w2-1"
			}
		}, "opens 81 waits"},
		"waits_while_running":     {stepped, func(e *journal.Entry) { e.Waits = []session.Wait{{ID: "w2-1"}} }, "without suspending"},
		"delayed_without_failure": {delayed, func(e *journal.Entry) { e.Failure = nil }, "what failed"},
		"delayed_without_time":    {delayed, func(e *journal.Entry) { e.Until = nil }, "a retry later"},
		"until_of_another_kind":   {stepped, func(e *journal.Entry) { e.Until = &time.Time{} }, "a retry later"},
		"role":                    {stepped, func(e *journal.Entry) { e.Messages = []llm.Message{{Role: "system"}} }, `role "system"`},
		"result_for_nothing":      {stepped, func(e *journal.Entry) { e.Messages = []llm.Message{tool("c2-1")} }, "which is not open"},
		"call_of_another_entry":   {stepped, func(e *journal.Entry) { e.Messages = []llm.Message{calls(1)} }, `call id "c1-1"`},
		"reply_over_open_calls":   {called, func(e *journal.Entry) { e.Messages = []llm.Message{calls(3)} }, "a reply while calls"},
		"two_results":             {called, func(e *journal.Entry) { e.Messages = []llm.Message{tool("c2-1", "c2-1")} }, "which is not open"},
		"tool_message_without_a_result": {called, func(e *journal.Entry) {
			e.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{llm.Text("x")}}}
		}, "without a result"},
		"end_over_open_calls": {called, func(e *journal.Entry) {
			e.Kind, e.Status, e.Messages = session.KindCompleted, session.StatusCompleted, []llm.Message{tool("c2-1")}
		}, "the task ends while"},
		"restored_without_base":   {restored, func(e *journal.Entry) { e.Base = nil }, "where it goes back to"},
		"restored_to_later":       {restored, func(e *journal.Entry) { e.Base.Seq = 3 }, "not an earlier entry"},
		"restored_to_nothing":     {restored, func(e *journal.Entry) { e.Base.Seq = 0 }, "not an earlier entry"},
		"restored_from_another":   {restored, func(e *journal.Entry) { e.Base.Session = "s2" }, "has no messages"},
		"restored_copies_another": {restored, func(e *journal.Entry) { e.Base = &journal.Base{Session: "s2", Messages: []llm.Message{}} }, "copies another session"},
		"restored_and_replied":    {restored, func(e *journal.Entry) { e.Messages = []llm.Message{llm.Assistant("x")} }, "right after going back"},
		"restored_broken_state": {restored, func(e *journal.Entry) {
			e.Base = &journal.Base{Messages: []llm.Message{}, State: map[string]json.RawMessage{"k": json.RawMessage(`{`)}}
		}, "not valid JSON"},
		"base_with_a_broken_history":  {restored, func(e *journal.Entry) { e.Base = &journal.Base{Messages: []llm.Message{tool("c1-1")}} }, "which is not open"},
		"compaction_over_open_calls":  {called, func(e *journal.Entry) { e.Base = &journal.Base{Messages: []llm.Message{}} }, "history is shortened"},
		"compaction_without_messages": {stepped, func(e *journal.Entry) { e.Base = &journal.Base{Seq: 1} }, "has no messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			e := c.good(st)
			require.NoError(t, engine.Check(st.s, &e))
			c.spoil(&e)
			before := view(t, st.s)
			err := engine.Apply(st.s, &e)
			require.ErrorIs(t, err, engine.ErrBrokenJournal)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, view(t, st.s))
			_, err = engine.Fold(key, append(st.entries, e))
			require.ErrorIs(t, err, engine.ErrBrokenJournal)
		})
	}
}

// The rules of the kinds and the drawing of the statuses are one table.
func TestCheck_kinds_and_statuses_agree(t *testing.T) {
	t.Parallel()
	all := append([]session.Status{""}, session.Statuses()...)
	possible := map[[2]session.Status]bool{}
	for _, from := range all {
		for _, to := range session.Statuses() {
			for _, kind := range session.Kinds() {
				st := &story{t: t, s: &session.Session{Key: key, Status: from}}
				if from != "" {
					st.s.Version, st.s.Task, st.s.Run, st.s.RulesAt = 1, 1, 1, 1
				}
				if allowed(st, kind, to) && kind != session.KindDeleted {
					possible[[2]session.Status{from, to}] = true
				}
			}
			require.Equal(t, from.CanBecome(to), possible[[2]session.Status{from, to}], "from %q to %q", from, to)
		}
	}
}

func allowed(st *story, kind session.Kind, to session.Status) bool {
	e := st.entry(kind, to)
	e.Failure = &session.Failure{}
	begins := kind == session.KindStarted || kind == session.KindForked || kind == session.KindRestored
	if begins || kind == session.KindResumed {
		e.Run, e.Trigger = e.Run+1, session.TriggerStart
		e.Rules, e.RulesAt = &session.Rules{}, e.Seq
	}
	if begins {
		e.Task++
	}
	if kind == session.KindDelayed {
		e.Until = &time.Time{}
	}
	if kind == session.KindForked {
		e.Base = &journal.Base{Session: "s0", Seq: 1, Messages: []llm.Message{}}
	}
	if kind == session.KindRestored {
		e.Base = &journal.Base{Seq: 1}
	}
	return engine.Check(st.s, &e) == nil
}

func TestNothing_follows_deleted(t *testing.T) {
	t.Parallel()
	st := begin(t).says("done")
	st.raw(st.entry(session.KindDeleted, session.StatusCompleted))
	m := engine.Start(st.s, taskRules(), llm.User("again"), st.stamp())
	require.ErrorContains(t, engine.Check(st.s, &m.Entry), "the session was deleted")
}

func TestApply_going_back_needs_the_whole_journal(t *testing.T) {
	t.Parallel()
	st := begin(t).says("done")
	e := st.entry(session.KindRestored, session.StatusRunning)
	e.Task, e.Run, e.Trigger, e.Base, e.Used = 2, 2, session.TriggerRetry, &journal.Base{Seq: 1}, journal.Used{}
	before := view(t, st.s)
	require.ErrorIs(t, engine.Apply(st.s, &e), engine.ErrNeedsHistory)
	require.Equal(t, before, view(t, st.s))
}

// A fork begins with a copy; children are listed once; a journal that goes back
// again and again is folded in no time.
func TestFold_forks_children_and_many_returns(t *testing.T) {
	t.Parallel()
	st := &story{t: t, s: &session.Session{Key: key}}
	e := st.entry(session.KindForked, session.StatusInterrupted)
	r := taskRules()
	e.Task, e.Run, e.Trigger, e.Rules, e.RulesAt, e.Parent = 1, 1, session.TriggerRetry, &r, 1, &session.Parent{Root: "s0"}
	e.Base = &journal.Base{Session: "s0", Seq: 9, State: map[string]json.RawMessage{"k": json.RawMessage(`[1]`)}, Messages: []llm.Message{
		llm.User("hi"), engine.WithCallIDs(llm.Message{Parts: []llm.Part{toolCall("a")}}, 9), llm.User("held"),
	}}
	e.Children = []session.Child{{Session: "x"}, {Session: "y"}, {Session: "x", Status: session.StatusFailed}}
	st.raw(e)
	require.Equal(t, "c1-1", st.s.Calls[0].ID)
	require.Equal(t, []llm.Message{llm.User("held")}, st.s.Held)
	require.Equal(t, []session.Child{{Session: "x", Status: session.StatusFailed}, {Session: "y"}}, st.s.Children)
	require.Equal(t, "s0", st.s.Parent.Root)
	st.resumed().step(engine.StepOutcome{Results: []llm.ToolResult{success("c1-1", "a", `1`)}}).says("done")
	for range 60 { // each return to the one before would double the work
		e := st.entry(session.KindRestored, session.StatusSuspended)
		e.Task, e.Run, e.Trigger, e.Base, e.Used = st.s.Task+1, st.s.Run+1, session.TriggerResume, &journal.Base{Seq: st.s.Version - 1}, journal.Used{}
		st.raw(e)
	}
	require.Len(t, st.s.Messages, 5)
}

func BenchmarkApply(b *testing.B) {
	entries := longJournal(b, 2)
	b.ReportAllocs()
	for b.Loop() {
		s := &session.Session{Key: key}
		for i := range entries {
			if err := engine.Apply(s, &entries[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/entry")
}

func BenchmarkFold1000(b *testing.B) {
	entries := longJournal(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Fold(key, entries); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/entry")
}

func longJournal(tb testing.TB, steps int) []journal.Entry {
	st := &story{t: tb, s: &session.Session{Key: key}}
	r := taskRules()
	r.Limits.Steps, r.Limits.Tokens = -1, -1
	st.do(engine.Start(st.s, r, llm.User("go"), st.stamp()))
	output, err := json.Marshal(fmt.Sprintf("%02000d", 7))
	require.NoError(tb, err)
	for range steps {
		out := engine.StepOutcome{Reply: st.reply(toolCall("echo"))}
		out.Results = []llm.ToolResult{success(out.Reply.ToolCalls()[0].ID, "echo", string(output))}
		out.StateOps = []session.StateOp{{Op: session.StateAppend, Key: "notes", Value: json.RawMessage(`1`)}}
		st.step(out)
	}
	return st.entries
}
