package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func find(t *testing.T, name string) tool.Tool {
	t.Helper()
	tools := Tools()
	i := slices.IndexFunc(tools, func(tl tool.Tool) bool { return tl.Name() == name })
	require.GreaterOrEqual(t, i, 0, name)
	return tools[i]
}

// run runs a tool as the runtime does: validated arguments first.
func run(t *testing.T, name, args string, cfg toolcall.Config[tool.Files]) (string, toolcall.Taken[tool.Question], error) {
	t.Helper()
	return runIn(t.Context(), t, name, args, cfg)
}

func runIn(ctx context.Context, t *testing.T, name, args string, cfg toolcall.Config[tool.Files]) (string, toolcall.Taken[tool.Question], error) {
	t.Helper()
	tl := find(t, name)
	require.NoError(t, tl.Validate(json.RawMessage(args)))
	cfg.Name = name
	c := toolcall.New[tool.Call](cfg)
	raw, err := tl.Run(ctx, c, json.RawMessage(args))
	return string(raw), toolcall.Take[tool.Question](c), err
}

func TestTools(t *testing.T) {
	t.Parallel()
	want := map[string]session.Effect{
		"echo": session.ReadOnly, "sleep": session.ReadOnly, "append_line": session.SideEffect, "append_once": session.Idempotent,
		"add_note": session.ReadOnly, "set_note": session.ReadOnly, "boom": session.ReadOnly, "fault": session.ReadOnly,
		"deploy": session.SideEffect, "refund": session.SideEffect, "pick_color": session.ReadOnly, "pick_toppings": session.ReadOnly,
		"get_name": session.ReadOnly, "locate": session.ReadOnly, "finish": session.ReadOnly,
	}
	got := map[string]session.Effect{}
	for _, tl := range Tools() {
		require.NoError(t, tl.Err())
		require.NotEmpty(t, tl.Description(), "a real model has to know what %s does", tl.Name())
		require.Equal(t, tl.Name() == "locate", tl.Client())
		require.Equal(t, tl.Name() == "finish", tl.Finish())
		got[tl.Name()] = tl.Effect()
	}
	require.Equal(t, want, got)
}

func TestTools_refuse_arguments(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"echo":        `{"size": -1}`,
		"sleep":       `{"seconds": 901}`,
		"append_line": `{"path": "x"}`,
		"append_once": `{"text": "x"}`,
		"refund":      `{"order": "A-1", "amount": "12"}`,
		"deploy":      `{}`,
		"pick_color":  `{"color": "red"}`,
	} {
		var wrong *tool.ArgumentError
		require.ErrorAs(t, find(t, name).Validate(json.RawMessage(args)), &wrong, name)
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"text": "hello"}`: `"hello"`,
		`{}`:                `""`,
		`{"size": 0}`:       `""`,
	} {
		got, _, err := run(t, "echo", args, toolcall.Config[tool.Files]{})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, size := range []int{1, 2, 3, 1024, 100_000} {
		text := madeUp(size)
		require.Len(t, text, size)
		require.Equal(t, text, madeUp(size), "the same every time")
		require.Equal(t, text, strings.TrimSpace(text))
		require.Regexp(t, `^[a-z ]+$`, text)
	}
	got, _, err := run(t, "echo", `{"size": 2048}`, toolcall.Config[tool.Files]{})
	require.NoError(t, err)
	require.Len(t, got, 2048+len(`""`))
	_, _, err = run(t, "echo", `{"text": "a", "size": 1}`, toolcall.Config[tool.Files]{})
	require.ErrorContains(t, err, "text or size, not both")
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got, _, err := run(t, "sleep", `{"seconds": 1.5}`, toolcall.Config[tool.Files]{})
		require.NoError(t, err)
		require.Equal(t, `"slept for 1.5s"`, got)
		require.Equal(t, 1500*time.Millisecond, time.Since(begin))

		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("interrupted by ada")
		time.AfterFunc(time.Second, func() { cancel(reason) })
		begin = time.Now()
		_, _, err = runIn(ctx, t, "sleep", `{"seconds": 900}`, toolcall.Config[tool.Files]{})
		require.ErrorIs(t, err, reason)
		require.Equal(t, time.Second, time.Since(begin))
	})
	require.Greater(t, find(t, "sleep").Timeout(), longest)
}

func TestNotes(t *testing.T) {
	t.Parallel()
	var state session.State
	require.NoError(t, state.Apply(session.StateOp{Op: session.StateAppend, Key: "notes", Value: json.RawMessage(`"a"`)}))
	got, taken, err := run(t, "add_note", `{"text": "b"}`, toolcall.Config[tool.Files]{State: &state})
	require.NoError(t, err)
	require.JSONEq(t, `{"key": "notes", "count": 2}`, got)
	require.Equal(t, []session.StateOp{{Op: session.StateAppend, Key: "notes", Value: json.RawMessage(`"b"`)}}, taken.StateOps)

	got, taken, err = run(t, "set_note", `{"text": "c"}`, toolcall.Config[tool.Files]{State: &state})
	require.NoError(t, err)
	require.JSONEq(t, `{"key": "note"}`, got)
	require.Equal(t, []session.StateOp{{Op: session.StateReplace, Key: "note", Value: json.RawMessage(`"c"`)}}, taken.StateOps)

	_, taken, err = run(t, "set_note", `{"text": "c", "key": "notes"}`, toolcall.Config[tool.Files]{State: &state})
	require.NoError(t, err)
	require.Equal(t, "notes", taken.StateOps[0].Key)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	var panicked *tool.PanicError
	_, _, err := run(t, "boom", `{}`, toolcall.Config[tool.Files]{})
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "boom", panicked.Value)
	_, _, err = run(t, "fault", `{"text": "no such order"}`, toolcall.Config[tool.Files]{})
	require.EqualError(t, err, "no such order")
	_, _, err = run(t, "fault", `{}`, toolcall.Config[tool.Files]{})
	require.Error(t, err)
}

func TestFinish(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{}`, `{"answer": 42, "why": ["a", null]}`} {
		got, _, err := run(t, "finish", args, toolcall.Config[tool.Files]{})
		require.NoError(t, err)
		require.JSONEq(t, args, got)
	}
}

// The task returns exactly what came in, also a number that no float64 can hold.
func TestFinish_keeps_numbers(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		`{"n":12345678901234567890}`, `{"m":{"x":[0.1000000000000000055511151231257827,1e400]},"n":-9223372036854775809}`, `{"n":1.0}`,
	} {
		got, _, err := run(t, "finish", args, toolcall.Config[tool.Files]{})
		require.NoError(t, err)
		require.Equal(t, args, got)
	}
}

// Each tool that takes a path refuses what it cannot do and leaves no trace of it.
func TestLines_that_cannot_be_written(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"append_line", "append_once"} {
		for path, says := range map[string]string{dir: "is a directory", filepath.Join(dir, "none", "x"): "no such file or directory"} {
			_, _, err := run(t, name, fmt.Sprintf(`{"path": %q, "text": "a"}`, path), toolcall.Config[tool.Files]{IdempotencyKey: "k", Files: tool.Files{Folder: dir}})
			require.ErrorContains(t, err, name+": ")
			require.ErrorContains(t, err, says)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What is in the state already and is no list becomes the first of one.
func TestNotes_beside_other_state(t *testing.T) {
	t.Parallel()
	var state session.State
	require.NoError(t, state.Apply(session.StateOp{Op: session.StateReplace, Key: "notes", Value: json.RawMessage(`"a text"`)}))
	got, _, err := run(t, "add_note", `{"text": "b"}`, toolcall.Config[tool.Files]{State: &state})
	require.NoError(t, err)
	require.JSONEq(t, `{"key": "notes", "count": 2}`, got)

	got, taken, err := run(t, "add_note", `{"text": "b", "key": "mine"}`, toolcall.Config[tool.Files]{State: &state})
	require.NoError(t, err)
	require.JSONEq(t, `{"key": "mine", "count": 1}`, got)
	require.Len(t, taken.StateOps, 1)
}

// A question whose answer does not fit it is asked again; the tool does not guess.
func TestQuestions_other_replies_count_for_nothing(t *testing.T) {
	t.Parallel()
	reply := session.Answer{Kind: session.AnswerReply, QuestionID: "something else", Selected: []string{"red"}}
	_, taken, err := run(t, "pick_color", `{}`, toolcall.Config[tool.Files]{Replies: []session.Answer{reply}})
	require.ErrorIs(t, err, tool.ErrWaiting)
	require.Len(t, taken.Questions, 1)
}

func TestLocate_runs_at_the_client(t *testing.T) {
	t.Parallel()
	require.True(t, find(t, "locate").Client())
	_, err := find(t, "locate").Run(t.Context(), toolcall.New[tool.Call](toolcall.Config[tool.Files]{Name: "locate"}), json.RawMessage(`{}`))
	require.Error(t, err)
}

func TestApproval(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		`{"order": "A-1", "amount": 100}`:    false,
		`{"order": "A-1", "amount": 100.01}`: true,
		`{"order": "A-1", "amount": "many"}`: true, // what cannot be read is asked about
	} {
		require.Equal(t, want, find(t, "refund").NeedsApproval(json.RawMessage(args)), args)
	}
	require.True(t, find(t, "deploy").NeedsApproval(json.RawMessage(`{"service": "web"}`)))

	log := filepath.Join(t.TempDir(), "log")
	got, _, err := run(t, "deploy", `{"service": "web", "version": "v2", "log": "`+log+`"}`, toolcall.Config[tool.Files]{IdempotencyKey: "k1", Files: beside(log)})
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "k1", "done": "deployed web v2"}`, got)
	got, _, err = run(t, "refund", `{"order": "A-1", "amount": 12.5, "log": "`+log+`"}`, toolcall.Config[tool.Files]{IdempotencyKey: "k2", Files: beside(log)})
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "k2", "done": "refunded 12.5 for order A-1"}`, got)
	_, _, err = run(t, "refund", `{"order": "A-1", "amount": 1}`, toolcall.Config[tool.Files]{IdempotencyKey: "k3"})
	require.NoError(t, err)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "deployed web v2\nrefunded 12.5 for order A-1\n", string(text))
	_, _, err = run(t, "deploy", `{"service": "web", "log": "none/x"}`, toolcall.Config[tool.Files]{Files: beside(log)})
	require.ErrorContains(t, err, "deploy: log: ")
	require.ErrorContains(t, err, "no such file or directory")
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	text := "Ada"
	for name, c := range map[string]struct {
		kind   session.QuestionKind
		answer session.Answer
		want   string
	}{
		"pick_color":    {session.QuestionChoice, session.Answer{QuestionID: "color", Selected: []string{"green"}}, `{"color": "green"}`},
		"pick_toppings": {session.QuestionMultiChoice, session.Answer{QuestionID: "toppings", Selected: []string{"olives", "cheese"}}, `{"toppings": ["olives", "cheese"]}`},
		"get_name":      {session.QuestionText, session.Answer{QuestionID: "name", Text: &text}, `{"name": "Ada"}`},
	} {
		_, taken, err := run(t, name, `{}`, toolcall.Config[tool.Files]{})
		require.ErrorIs(t, err, tool.ErrWaiting)
		require.Len(t, taken.Questions, 1)
		require.Equal(t, c.kind, taken.Questions[0].Kind())

		c.answer.Kind = session.AnswerReply
		asked := []session.Wait{{Question: toolcall.Shown(taken.Questions[0])}}
		got, taken, err := run(t, name, `{}`, toolcall.Config[tool.Files]{Asked: asked, Replies: []session.Answer{c.answer}})
		require.NoError(t, err)
		require.Empty(t, taken.Questions)
		require.JSONEq(t, c.want, got)
	}
	_, taken, _ := run(t, "pick_toppings", `{}`, toolcall.Config[tool.Files]{})
	asked := []session.Wait{{Question: toolcall.Shown(taken.Questions[0])}}
	got, _, err := run(t, "pick_toppings", `{}`, toolcall.Config[tool.Files]{Asked: asked, Replies: []session.Answer{{Kind: session.AnswerReply, QuestionID: "toppings", Selected: []string{}}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"toppings": []}`, got, "none is an answer")
}

func TestAgent(t *testing.T) {
	t.Parallel()
	r, err := agent.NewRegistry(agent.Config{Models: agent.Models{"scripted": Open}, Agents: []agent.Agent{Agent()}})
	require.NoError(t, err)
	rules, err := r.Rules("lab", nil)
	require.NoError(t, err)
	require.Equal(t, ModelName, rules.Model)
	p, err := r.Planner(t.Context(), rules, nil)
	require.NoError(t, err)
	reply, err := p.Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("- call: echo\n  with: {text: hello}\n- say: bye")}})
	require.NoError(t, err)
	m, err := reply.Message()
	require.NoError(t, err)
	require.Equal(t, "echo", m.ToolCalls()[0].Name)
	require.JSONEq(t, `{"text": "hello"}`, string(m.ToolCalls()[0].Arguments))

	reply, err = p.Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("- call: finish\n  with: {n: 123456789012345678901234, x: 0.1}")}})
	require.NoError(t, err)
	m, err = reply.Message()
	require.NoError(t, err)
	require.Equal(t, `{"n":123456789012345678901234,"x":0.1}`, string(m.ToolCalls()[0].Arguments))
}
