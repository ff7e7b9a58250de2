package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// FuzzMoves lets bytes choose moves of the engine's own and holds that each is
// one that can be folded, and that what is promised of sessions holds after it.
func FuzzMoves(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{0x11, 0x20, 5, 0x31, 5, 0, 6, 0x12, 7, 5, 8, 9})
	f.Add([]byte("suspend, resume, cancel, start again; interrupt, go on"))
	f.Fuzz(func(t *testing.T, data []byte) {
		st := begin(t)
		for _, b := range data[:min(len(data), 60)] {
			before := *st.s
			m, ok := move(st, b&15, int(b>>4))
			if !ok {
				continue
			}
			st.do(m)
			requireInvariants(t, &before, st.s)
			requireMove(t, &before, st.s, m)
		}
		requireFolds(t, st)
		again, err := engine.Fold(key, st.entries)
		require.NoError(t, err)
		require.Equal(t, view(t, st.s), view(t, again))
	})
}

// move builds the move that two numbers choose, if there is one from here.
func move(st *story, what byte, n int) (engine.Move, bool) {
	s := st.s
	switch {
	case s.Status.Ended():
		return engine.Start(s, taskRules(), llm.User("more"), st.stamp()), true
	case what == 0:
		kind := []journal.SignalKind{journal.SignalInterrupt, journal.SignalCancel, journal.SignalAbort}[n%3]
		out := engine.StepOutcome{Results: someResults(s, n)}
		if s.Status == session.StatusRunning && len(s.Calls) == 0 && n%2 > 0 {
			out.Reply = st.reply(slices.Repeat([]llm.Part{toolCall("echo")}, n%4)...)
			for _, c := range out.Reply.ToolCalls()[:n%4/2] {
				if kind != journal.SignalInterrupt {
					out.Results = append(out.Results, success(c.ID, c.Name, `1`))
				}
			}
		}
		return engine.Stopped(s, st.signal(kind), out, st.stamp()), s.Status != session.StatusInterrupted || n%3 > 0
	case s.Status != session.StatusRunning:
		var answers []session.Answer
		for i := range s.Waits {
			kinds := session.AnswerKinds()
			answers = append(answers, st.answer(i, kinds[(n+i)%len(kinds)], func(a *session.Answer) { a.Outcome, a.Result = session.ExpireDefault, json.RawMessage(`"x"`) }))
		}
		if what > 8 {
			message := llm.User("instead")
			var closed []llm.ToolResult
			for _, c := range s.Calls {
				closed = append(closed, engine.Result(c, llm.ResultCancelled, ""))
			}
			return engine.Resumed(s, answers, &message, closed, st.stamp()), true
		}
		return engine.Resumed(s, answers, nil, nil, st.stamp()), true
	case what == 1:
		return engine.Close(s, engine.StepOutcome{Failure: &session.Failure{Type: "x"}, Results: someResults(s, n)}, st.stamp()), true
	}
	out := engine.StepOutcome{Used: engine.Used{Usage: llm.Usage{Input: int64(n) * 50}, Active: time.Duration(n) * time.Second}}
	out.StateOps = []session.StateOp{{Op: session.StateAppend, Key: string(rune('a' + n%3)), Value: json.RawMessage(`1`)}}
	if what&4 > 0 {
		out.LateMail, out.LateMailMessages = []string{st.stamp().Token}, []llm.Message{llm.User("late")}
	}
	if len(s.Calls) > 0 {
		out.Results = someResults(s, n|1)
		for _, c := range s.Calls[len(out.Results):] {
			out.Waits = append(out.Waits, session.Wait{Kind: session.WaitKinds()[int(what)%6], Call: c.ID})
		}
		return engine.Close(s, out, st.stamp()), true
	}
	if what == 2 {
		return engine.Delayed(s, session.Failure{Type: "x"}, t0, out.Used, st.stamp()), true
	}
	var parts []llm.Part
	for range n % 4 {
		parts = append(parts, toolCall("echo"))
	}
	out.Reply, out.NeedsInput = st.reply(append(parts, llm.Text("hm"))...), what&1 > 0
	if what&8 > 0 {
		return engine.Replied(s, engine.StepOutcome{Reply: out.Reply, StateOps: out.StateOps, Used: out.Used}, st.stamp()), true
	}
	for i, c := range out.Reply.ToolCalls() {
		if (n+i)%2 == 0 {
			out.Results = append(out.Results, success(c.ID, c.Name, `1`))
			continue
		}
		out.Waits = append(out.Waits, session.Wait{Kind: session.WaitKinds()[(n+i)%6], Call: c.ID})
	}
	return engine.Close(s, out, st.stamp()), true
}

func someResults(s *session.Session, n int) []llm.ToolResult {
	var out []llm.ToolResult
	for _, c := range s.Calls[:min(n%4, len(s.Calls))] {
		out = append(out, success(c.ID, c.Name, `1`))
	}
	return out
}

func requireInvariants(t *testing.T, before, after *session.Session) {
	t.Helper()
	require.Equal(t, before.Version+1, after.Version)
	require.True(t, before.Status.CanBecome(after.Status) || after.Newest.Kind == session.KindDeleted)
	if before.Status.Ended() && after.Newest.Kind != session.KindDeleted {
		require.Equal(t, before.Task+1, after.Task, "ended stays ended unless a new task begins")
	}
	a, b := before.Used, after.Used
	for _, used := range [][2]int64{{a.Steps, b.Steps}, {a.Tokens, b.Tokens}, {a.ActiveMillis, b.ActiveMillis}, {a.CostMicros, b.CostMicros}} {
		require.GreaterOrEqual(t, used[1], int64(0))
		require.True(t, before.Task != after.Task || used[1] >= used[0], "what was used never shrinks inside a task")
	}
	open := map[string]bool{}
	for i, m := range after.Messages {
		if m.Role == llm.RoleAssistant {
			require.Empty(t, open, "a call without a result before message %d", i)
		}
		for _, c := range m.ToolCalls() {
			open[c.ID] = true
		}
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				require.True(t, open[p.ToolResult.CallID], "exactly one result per call")
				delete(open, p.ToolResult.CallID)
			}
		}
	}
	require.Len(t, open, len(after.Calls))
	if after.Status.Ended() {
		require.Empty(t, after.Calls)
		require.Empty(t, after.Held)
		require.True(t, len(after.Waits) == 0 || after.Newest.Kind == session.KindDeleted)
	}
}

func requireMove(t *testing.T, before, after *session.Session, m engine.Move) {
	t.Helper()
	require.Equal(t, after.Status == session.StatusRunning && !m.Entry.KeepsLease, m.Wake != nil)
	require.Equal(t, before.Run != after.Run, m.RunIsNew)
	require.True(t, m.MovesHead || before.Status == after.Status && before.Task == after.Task)
	require.Len(t, m.Waits, len(m.Entry.Waits))
	if m.Run != nil {
		folded := after.RunRecord
		folded.Used = after.RunUsed
		require.Equal(t, folded, *m.Run, "the record that is written is the one that is folded")
	}
}

// FuzzFold folds journals of arbitrary entries, one per line: it never panics,
// and an entry that is refused changes nothing.
func FuzzFold(f *testing.F) {
	files, err := filepath.Glob("testdata/v1/*.jsonl")
	require.NoError(f, err)
	for _, file := range files {
		written, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(written, uint8(0), uint8(0))
		f.Add(written, uint8(2), uint8(len(file)))
	}
	f.Fuzz(func(t *testing.T, written []byte, from, to uint8) {
		var entries []journal.Entry
		s, hash := &session.Session{Key: key}, ""
		for i, line := range lines(written) {
			e, err := journal.Decode(line)
			if err != nil {
				continue
			}
			if i > int(from) { // from here on the chain is made to fit, so that other checks are reached
				e.Prev, e.Hash, e.Seq = hash, hash+"x", s.Version+1
			}
			if i == int(to) {
				e.Kind = session.Kinds()[int(from)%len(session.Kinds())]
			}
			before, err := json.Marshal(s)
			require.NoError(t, err)
			old := *s
			if err := engine.Apply(s, &e); err != nil {
				after, marshalErr := json.Marshal(s)
				require.NoError(t, marshalErr)
				require.Equal(t, string(before), string(after), "%v", err)
				if _, err = engine.Fold(key, append(entries, e)); err != nil {
					continue
				}
				s, err = engine.Fold(key, append(entries, e))
				require.NoError(t, err)
			}
			entries, hash = append(entries, e), e.Hash
			requireInvariants(t, &old, s)
		}
		whole, err := engine.Fold(key, entries)
		require.NoError(t, err)
		again, err := engine.Fold(key, entries)
		require.NoError(t, err)
		require.Equal(t, view(t, whole), view(t, again))
		require.Equal(t, view(t, whole), view(t, s))
	})
}

func lines(written []byte) [][]byte {
	var out [][]byte
	start := 0
	for i, b := range written {
		if b == '\n' {
			out, start = append(out, written[start:i]), i+1
		}
	}
	return append(out[:min(len(out), 40)], written[start:])
}
