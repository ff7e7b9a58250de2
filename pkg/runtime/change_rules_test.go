package runtime_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// withRules resumes a session and changes what its task is held to.
func (w *world) withRules(p *process, rules session.TaskRules, message ...llm.Part) (runtime.Resumed, error) {
	params := runtime.ResumeParams{Key: w.key, Rules: rules, Caller: people, IdempotencyKey: newID()}
	if len(message) > 0 {
		params.Mode, params.Message = runtime.ResumeWithMessage, message
	}
	return p.Resume(context.Background(), params)
}

// interrupted is a session that was interrupted while it waits for two approvals.
func interrupted(t *testing.T, change ...func(*agent.Agent)) (*world, *effects) {
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript(), change...))
	stopPlaces["interrupted"](t, w)
	return w, made
}

// What a task is held to changes with the entry that goes on after an interruption, and stays.
func TestChangeRules(t *testing.T) {
	t.Parallel()
	w, made := interrupted(t)
	before := w.session().Rules
	out, err := w.withRules(w.process(), session.TaskRules{Limits: session.AskedLimits{Steps: 4}, CancelAfterMillis: time.Hour.Milliseconds()})
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationWaiting, out.Continuation)
	entries := w.journal()
	newest := entries[len(entries)-1]
	require.Equal(t, session.KindSuspended, newest.Kind)
	require.EqualValues(t, 4, newest.Rules.Limits.Steps)
	require.Equal(t, w.clock.Now().Add(time.Hour), *w.head().Head.CancelAt)
	require.Equal(t, *w.head().Head.CancelAt, *newest.Rules.CancelAt)
	require.Contains(t, newest.Rules.Needs, session.NeedsCancelAt)
	require.Equal(t, newest.Seq, w.session().RulesAt)
	require.Equal(t, before.Tools, w.session().Rules.Tools)
	require.Equal(t, before.Digest, w.session().Rules.Digest)

	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	w.clock.advance(time.Minute)
	_, err = w.withRules(w.process(), session.TaskRules{AllowedTools: []string{"line"}})
	require.NoError(t, err)
	rules := w.session().Rules
	require.EqualValues(t, 4, rules.Limits.Steps, "what is left out stays")
	require.Equal(t, *newest.Rules.CancelAt, *rules.CancelAt)
	require.Equal(t, []string{"line"}, rules.Tools)
	for i := range 2 {
		_, err := w.answer(w.process(), i)
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, map[string]int{"line 1": 1}, made.all(), "what was approved is a call of a tool that is not there any more")
	w.checkNothingForgotten()
}

// With a message, and where nothing is open, the entry is the one that resumes.
func TestChangeRules_with_a_message(t *testing.T) {
	t.Parallel()
	w, _ := interrupted(t)
	_, err := w.withRules(w.process(), session.TaskRules{Limits: session.AskedLimits{Steps: 2}}, llm.TextParts("more")...)
	require.NoError(t, err)
	entries := w.journal()
	require.Equal(t, session.KindResumed, entries[len(entries)-1].Kind)
	require.EqualValues(t, 2, entries[len(entries)-1].Rules.Limits.Steps)
	require.NoError(t, w.process().settle())
	require.Equal(t, "limit_reached", w.session().Failure.Type, "what was used counts on")
}

// Where no entry could say so the rules do not change, nor do they go beyond what callers may have.
func TestChangeRules_refused(t *testing.T) {
	t.Parallel()
	asked := session.TaskRules{Limits: session.AskedLimits{Steps: 3}}
	for name, place := range stopPlaces {
		if name == "interrupted" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			place(t, w)
			before := len(w.journal())
			_, err := w.withRules(w.process(), asked)
			require.Equal(t, runtime.CodeNotResumable, codeOf(err))
			require.ErrorContains(t, err, "interrupt it")
			require.Len(t, w.journal(), before)
		})
	}
	w, _ := interrupted(t)
	_, err := w.withRules(w.process(), session.TaskRules{Limits: session.AskedLimits{Steps: 1000}})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	_, err = w.withRules(w.process(), session.TaskRules{AllowedTools: []string{"rm"}}, llm.TextParts("more")...)
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	_, err = w.process().Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithConfirmation, Rules: asked, Caller: people})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	require.Equal(t, session.StatusInterrupted, w.session().Status)
}

// A resume that changes rules dies at any of its writes; who asked asks again.
func TestChangeRules_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"", "more"} {
		made := newEffects()
		world := newWorld(t, made, helper(made, stopScript()))
		for at, blown := 1, true; blown; at++ {
			for _, after := range []bool{false, true} {
				world = world.another()
				w := world
				stopPlaces["interrupted"](t, w)
				params := runtime.ResumeParams{
					Key: w.key, Rules: session.TaskRules{Limits: session.AskedLimits{Steps: 4}}, Caller: people, IdempotencyKey: newID(),
				}
				if message != "" {
					params.Mode, params.Message = runtime.ResumeWithMessage, llm.TextParts(message)
				}
				f := &fuse{at: at, after: after}
				_, _ = w.fusedProcess(f, true, 1).Resume(context.Background(), params)
				w.clock.advance(time.Minute)
				_, err := w.process().Resume(context.Background(), params)
				require.NoError(t, err, "%v", f.ops)
				require.NoError(t, w.process().settle(), "%v", f.ops)
				require.EqualValues(t, 4, w.session().Rules.Limits.Steps, "%v", f.ops)
				changes := 0
				for _, e := range w.journal()[1:] {
					if e.Rules != nil {
						changes++
					}
				}
				require.Equal(t, 1, changes, "%v", f.ops)
				w.checkNothingForgotten()
				blown = f.blown()
			}
		}
	}
}

// scripted is a model that asks for one deployment, and ends.
type scripted struct{}

func (scripted) Stream(_ context.Context, request llm.Request) iter.Seq2[llm.Event, error] {
	call := llm.ToolCall{ID: "1", Name: "deploy", Arguments: []byte(`{"text":"1"}`)}
	reply := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Kind: llm.PartToolCall, ToolCall: &call}}}}
	if request.Messages[len(request.Messages)-1].Role == llm.RoleTool {
		reply.Message.Parts = llm.TextParts("bye")
	}
	return func(yield func(llm.Event, error) bool) {
		for event := range llm.Events(reply) {
			if !yield(event, nil) {
				return
			}
		}
	}
}

// Another model is another agent: what was approved before is asked anew.
func TestChangeRules_of_the_model(t *testing.T) {
	t.Parallel()
	made := newEffects()
	open := func(context.Context, string, func(string) string) (llm.Model, error) { return scripted{}, nil }
	registry, err := agent.NewRegistry(agent.Config{Models: agent.Models{"some": open}, Agents: []agent.Agent{helper(made, nil, func(a *agent.Agent) {
		a.Planner, a.Model, a.Callers.Models = nil, "some:one", []string{"some:two"}
	})}})
	require.NoError(t, err)
	w := newWorldOf(t, made, registry)
	w.run(w.process(), "go")
	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	_, err = w.withRules(w.process(), session.TaskRules{Model: "some:three"})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	_, err = w.withRules(w.process(), session.TaskRules{Model: "some:two"})
	require.NoError(t, err)
	require.Equal(t, "some:two", w.session().Rules.Model)
	for range 2 {
		require.Empty(t, made.all())
		_, err = w.submit(w.process(), session.WaitApproval, yes())
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
	}
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, map[string]int{"deploy 1": 1}, made.all())
}

// Only what is asked for changes, also where the agent's definition has another limit by now, holds no
// batch any more, or has no tool or ceiling for what was asked before.
func TestChangeRules_of_a_changed_agent(t *testing.T) {
	t.Parallel()
	w, made := interrupted(t, func(a *agent.Agent) { a.Limits.Steps, a.Limits.ToolCalls, a.Policy.HoldBatch = 50, 40, true })
	_, err := w.withRules(w.process(), session.TaskRules{Limits: session.AskedLimits{Tokens: 5000}, AllowedTools: []string{"deploy", "line"}})
	require.NoError(t, err)
	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	before := w.session().Rules
	changed, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, stopScript(), func(a *agent.Agent) {
		a.Limits.Steps, a.Limits.Tokens, a.Limits.ToolCalls = 500, 1000, 400
		a.Tools = slices.DeleteFunc(a.Tools, func(t tool.Tool) bool { return t.Name() == "line" })
	})}})
	require.NoError(t, err)
	p := w.process(func(cfg *runtime.Config) { cfg.Registry = changed })
	_, err = w.withRules(p, session.TaskRules{Limits: session.AskedLimits{ToolCalls: 300}, CancelAfterMillis: time.Hour.Milliseconds()})
	require.NoError(t, err)
	after := w.session().Rules
	require.Equal(t, w.clock.Now().Add(time.Hour), *after.CancelAt)
	require.Equal(t, session.TaskRules{
		Limits: session.AskedLimits{Tokens: 5000, ToolCalls: 300}, AllowedTools: before.Tools, CancelAfterMillis: time.Hour.Milliseconds(),
	}, *after.Asked)
	before.Limits.ToolCalls = 300
	require.Equal(t, before.Limits, after.Limits)
	require.Equal(t, before.Policy, after.Policy)
	require.Equal(t, before.Tools, after.Tools)
}

// Of a limit that was raised in the middle of its task is warned anew.
func TestChangeRules_warns_anew(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var lines []turn
	for range 4 {
		lines = append(lines, calls("line", `{"text":"1"}`))
	}
	lines = append(lines, calls("deploy", `{"text":"1"}`))
	for range 4 {
		lines = append(lines, calls("line", `{"text":"1"}`))
	}
	lines = append(lines, says("bye"))
	w := newWorld(t, made, helper(made, script{"go": lines}, func(a *agent.Agent) { a.Limits.Steps = 6; a.Callers.RaiseLimits.Steps = 100 }))
	w.run(w.process(), "go")
	require.Equal(t, []session.LimitUse{{Limit: "steps", Used: 5, Of: 6}}, w.session().Counts.Warnings)
	_, err := w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	_, err = w.withRules(w.process(), session.TaskRules{Limits: session.AskedLimits{Steps: 11}})
	require.NoError(t, err)
	view, err := w.process().View(context.Background(), w.key)
	require.NoError(t, err)
	_, err = w.submit(w.process(), session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	warned := 0
	for _, e := range w.journal() {
		for _, event := range e.Events {
			if event.Name == session.EventLimitWarning {
				warned++
			}
		}
	}
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Empty(t, view.Warnings, "5 of 11 steps are no four fifths")
	require.Equal(t, 2, warned)
}
