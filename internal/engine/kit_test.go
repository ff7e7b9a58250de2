package engine_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var (
	key = session.Key{Tenant: "default", ID: "s1"}
	t0  = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
)

func taskRules() session.Rules {
	return session.Rules{
		Agent: "support", Digest: "d1", Limits: session.Limits{Steps: 10, Tokens: 1000, ActiveMillis: 60_000, CostMicros: -1, Depth: 5, Children: 3},
		Tools: []string{"echo", "refund"},
	}
}

// story writes a journal move by move, as the runtime does: check, encode, fold.
type story struct {
	t       testing.TB
	s       *session.Session
	entries []journal.Entry
	last    engine.Move
}

func begin(t testing.TB) *story {
	t.Helper()
	st := &story{t: t, s: &session.Session{Key: key}}
	return st.do(engine.Start(st.s, taskRules(), llm.User("refund A-1"), st.stamp()))
}

func (st *story) stamp() engine.Stamp {
	return engine.Stamp{
		Now: t0.Add(time.Duration(st.s.Next()) * time.Second), By: "w", Token: "token" + string(rune('a'+st.s.Next()%26)),
		Attempt: session.Attempt{ID: "a1", N: 1, For: st.s.Next()},
	}
}

func (st *story) do(m engine.Move) *story {
	st.t.Helper()
	require.NoError(st.t, engine.Check(st.s, &m.Entry))
	stored, err := journal.Encode(&m.Entry)
	require.NoError(st.t, err)
	e, err := journal.Decode(stored)
	require.NoError(st.t, err)
	require.NoError(st.t, engine.Apply(st.s, &e))
	st.entries, st.last = append(st.entries, e), m
	return st
}

func (st *story) reply(parts ...llm.Part) *llm.Message {
	m := engine.WithCallIDs(llm.Message{Parts: parts}, st.s.Next())
	return &m
}

// says closes a step with a reply and what came of its calls.
func (st *story) step(out engine.StepOutcome) *story {
	st.t.Helper()
	return st.do(engine.Close(st.s, out, st.stamp()))
}

func (st *story) says(text string) *story {
	st.t.Helper()
	return st.step(engine.StepOutcome{Reply: st.reply(llm.Text(text))})
}

// asks suspends on one wait for each of the named calls.
func (st *story) asks(kind session.WaitKind, names ...string) *story {
	st.t.Helper()
	var parts []llm.Part
	for _, name := range names {
		parts = append(parts, toolCall(name))
	}
	out := engine.StepOutcome{Reply: st.reply(parts...)}
	for _, c := range out.Reply.ToolCalls() {
		out.Waits = append(out.Waits, session.Wait{Kind: kind, Call: c.ID, Tool: c.Name, Arguments: c.Arguments, Policy: "d1"})
	}
	return st.step(out)
}

func (st *story) resumed(answers ...session.Answer) *story {
	st.t.Helper()
	return st.do(engine.Resumed(st.s, answers, nil, nil, st.keepsLease()))
}

func (st *story) keepsLease() engine.Stamp {
	stamp := st.stamp()
	stamp.KeepsLease = true
	return stamp
}

// answer is an answer to the i-th open wait.
func (st *story) answer(i int, kind session.AnswerKind, change func(*session.Answer)) session.Answer {
	w := st.s.Waits[i]
	a := session.Answer{Wait: w.ID, Kind: kind, ToolCallID: w.Call, Who: "ana", When: t0, From: "test"}
	if change != nil {
		change(&a)
	}
	return a
}

func (st *story) approval(i int, approved bool) session.Answer {
	return st.answer(i, session.AnswerApproval, func(a *session.Answer) { a.Approved, a.ApprovalID = &approved, st.s.Waits[i].Nonce })
}

func (st *story) expiry(i int, outcome session.DeadlineOutcome, value string) session.Answer {
	return st.answer(i, session.AnswerExpiry, func(a *session.Answer) {
		a.Outcome = outcome
		if value != "" {
			a.Result = json.RawMessage(value)
		}
	})
}

func (st *story) signal(kind journal.SignalKind) journal.Signal {
	return journal.Signal{ID: "sig-1", Task: st.s.Task, Kind: kind, Who: "ana", At: t0, From: "test"}
}

func (st *story) stopped(kind journal.SignalKind, out engine.StepOutcome) *story {
	st.t.Helper()
	return st.do(engine.Stopped(st.s, st.signal(kind), out, st.stamp()))
}

func toolCall(name string) llm.Part {
	return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ProviderID: "p-" + name, Name: name, Arguments: json.RawMessage(`{"order":"A-1"}`)}}
}

func success(id, name, output string) llm.ToolResult {
	return llm.ToolResult{CallID: id, ProviderID: "p-" + name, Name: name, Status: llm.ResultSuccess, Output: json.RawMessage(output)}
}

// results of a session's newest tool message, as id and status.
func results(s *session.Session) []string {
	var out []string
	for _, m := range s.Messages {
		if m.Role != llm.RoleTool {
			continue
		}
		out = nil
		for _, p := range m.Parts {
			out = append(out, p.ToolResult.CallID+" "+string(p.ToolResult.Status))
		}
	}
	return out
}

func requireFolds(t testing.TB, st *story) {
	t.Helper()
	whole, err := engine.Fold(key, st.entries)
	require.NoError(t, err)
	require.Equal(t, view(t, whole), view(t, st.s), "folding step by step and folding the whole are one")
	size := 0
	for _, m := range slices.Concat(whole.Messages, whole.Held) {
		size += m.Size()
	}
	require.Equal(t, size, st.s.MessagesSize, "every message counts once")
	require.Equal(t, size, whole.MessagesSize)
}

// view is a session as JSON, its custom state included.
func view(t testing.TB, s *session.Session) string {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		*session.Session
		State map[string]json.RawMessage
	}{s, s.State.Snapshot()}, "", "  ")
	require.NoError(t, err)
	return string(text) + "\n"
}
