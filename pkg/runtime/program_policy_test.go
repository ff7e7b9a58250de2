package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// lenient adds the tool ship to an agent, whose approvals a policy may allow.
func lenient(made *effects) func(*agent.Agent) {
	ship := tool.Define(tool.Spec[textIn]{Name: "ship", Approve: tool.Always[textIn], PolicyMayAllow: true},
		func(_ context.Context, c *tool.Call, in textIn) (string, error) {
			made.add(c.Name() + " " + in.Text)
			return "did " + in.Text, nil
		})
	return func(a *agent.Agent) { a.Tools = append(a.Tools, ship) }
}

// held is a process of a program with a policy.
func (w *world) held(policy *session.ToolPolicy) *process {
	return w.process(func(cfg *runtime.Config) { cfg.ToolPolicy = policy })
}

func auto(tools ...string) *session.ToolPolicy {
	p := &session.ToolPolicy{Tools: map[string]session.ToolMode{}}
	for _, t := range tools {
		p.Tools[t] = session.ToolAuto
	}
	return p
}

// TestPolicy_allows: a call runs without the approval its tool asks for where the tool says that a policy
// may allow it, and the policy of the program says auto of that very tool. Nothing else does it.
func TestPolicy_allows(t *testing.T) {
	t.Parallel()
	mode := func(m session.ToolMode) *session.ToolPolicy {
		return &session.ToolPolicy{Tools: map[string]session.ToolMode{"ship": m, "deploy": m}}
	}
	for name, c := range map[string]struct {
		tool           string
		program, asked *session.ToolPolicy
		runs           bool
	}{
		"named by the program":               {"ship", auto("ship"), nil, true},
		"the caller says auto too":           {"ship", auto("ship"), auto("ship"), true},
		"the tool does not say so":           {"deploy", auto("deploy"), nil, false},
		"no policy":                          {"ship", nil, nil, false},
		"an empty policy":                    {"ship", &session.ToolPolicy{}, nil, false},
		"by the default":                     {"ship", &session.ToolPolicy{Default: session.ToolAuto}, nil, false},
		"another tool is named":              {"ship", auto("deploy", "Ship", "ship "), nil, false},
		"the caller alone":                   {"ship", nil, auto("ship"), false},
		"the caller's default":               {"ship", nil, &session.ToolPolicy{Default: session.ToolAuto}, false},
		"the program prompts, caller auto":   {"ship", mode(session.ToolPrompt), auto("ship"), false},
		"the program's default, caller auto": {"ship", &session.ToolPolicy{Default: session.ToolPrompt}, auto("ship"), false},
		"the caller prompts":                 {"ship", auto("ship"), mode(session.ToolPrompt), false},
		"the caller prompts by default":      {"ship", auto("ship"), &session.ToolPolicy{Default: session.ToolPrompt}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls(c.tool, `{"text":"1"}`), says("bye")}}, lenient(made)))
			w.rules = session.TaskRules{Policy: c.asked}
			w.run(w.held(c.program), "go")
			lines, err := w.process().Audit(t.Context(), w.key)
			require.NoError(t, err)
			if !c.runs {
				require.Equal(t, session.StatusSuspended, w.session().Status)
				require.Empty(t, made.all())
				require.Equal(t, session.AuditAsked, lines[0].Kind)
				return
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Equal(t, map[string]int{"ship 1": 1}, made.all())
			require.Contains(t, w.session().Rules.Needs, session.NeedsProgramPolicy)
			require.Empty(t, w.waits())
			require.Len(t, lines, 1)
			require.Equal(t, session.AuditAllowed, lines[0].Kind)
			require.Equal(t, []string{"ship", "c2-1", "policy", journal.FromRules}, []string{lines[0].Tool, lines[0].Call, lines[0].Who, lines[0].From})
			require.Contains(t, string(lines[0].Data), `"byPolicy":true`)
			w.checkAtRest()
		})
	}
}

// TestPolicy_of_a_tool_that_is_not_there: no policy makes a tool run that the program does not define.
func TestPolicy_of_a_tool_that_is_not_there(t *testing.T) {
	t.Parallel()
	for _, mode := range []session.ToolMode{session.ToolAuto, session.ToolPrompt, session.ToolNever} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("gone", `{"text":"1"}`), says("bye")}}))
		w.rules = session.TaskRules{Policy: &session.ToolPolicy{Default: mode}}
		w.run(w.held(&session.ToolPolicy{Tools: map[string]session.ToolMode{"gone": mode}}), "go")
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Equal(t, llm.ResultError, results(w.session())["c2-1"].Status, mode)
		require.Empty(t, made.all())
		w.checkAtRest()
	}
}

// TestPolicy_of_the_program_binds: the stricter of both policies wins, and it stays that of the program that
// began the task, whatever program goes on with it.
func TestPolicy_of_the_program_binds(t *testing.T) {
	t.Parallel()
	for _, mode := range []session.ToolMode{session.ToolPrompt, session.ToolNever} {
		for _, other := range []*session.ToolPolicy{nil, auto("line"), {Default: session.ToolAuto}} {
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"0"}`), calls("line", `{"text":"1"}`), says("bye")}}))
			w.rules = session.TaskRules{Policy: auto("line")}
			w.run(w.held(&session.ToolPolicy{Tools: map[string]session.ToolMode{"line": mode}}), "go")
			_, err := w.submit(w.held(other), session.WaitApproval, yes())
			require.NoError(t, err)
			require.NoError(t, w.held(other).settle())
			require.Equal(t, map[string]int{"deploy 0": 1}, made.all(), "%s %v", mode, other)
			if mode == session.ToolPrompt {
				require.Equal(t, "line", w.open(session.WaitApproval).Wait.Tool)
				lines, err := w.process().Audit(t.Context(), w.key)
				require.NoError(t, err)
				require.Contains(t, string(lines[len(lines)-1].Data), `"byPolicy":true`)
				continue
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Equal(t, llm.ResultDenied, results(w.session())["c5-1"].Status, asJSON(t, results(w.session())))
			w.checkAtRest()
		}
	}
}

// TestPolicy_of_the_program_is_kept: a task that begins from a checkpoint, is tried again or is a fork is held
// to the stricter of the policy of the task before and that of the program that begins it.
func TestPolicy_of_the_program_is_kept(t *testing.T) {
	t.Parallel()
	never := &session.ToolPolicy{Tools: map[string]session.ToolMode{"ship": session.ToolNever}}
	prompt := &session.ToolPolicy{Default: session.ToolPrompt}
	for name, c := range map[string]struct {
		before, now *session.ToolPolicy
		end         session.Status
		runs        bool
	}{
		"allowed by both":            {auto("ship"), auto("ship"), session.StatusCompleted, true},
		"allowed by the first alone": {auto("ship"), nil, session.StatusSuspended, false},
		"allowed by the second":      {nil, auto("ship"), session.StatusSuspended, false},
		"denied by the first":        {never, nil, session.StatusCompleted, false},
		"denied by the first, named": {never, auto("ship"), session.StatusCompleted, false},
		"denied by the second":       {auto("ship"), never, session.StatusCompleted, false},
		"prompted by the first":      {prompt, auto("ship"), session.StatusSuspended, false},
		"prompted by the second":     {auto("ship"), prompt, session.StatusSuspended, false},
		"none":                       {nil, nil, session.StatusSuspended, false},
	} {
		for _, verb := range []string{"back", "fork"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("ship", `{"text":"1"}`), says("bye")}}, lenient(made)))
				w.run(w.held(c.before), "go")
				before := made.all()["ship 1"]
				p := w.held(c.now)
				if verb == "back" {
					_, err := acknowledging(p, &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: people})
					require.NoError(t, err)
				} else {
					_, err := p.Fork(t.Context(), runtime.ForkParams{Origin: w.key, ID: "copy", Checkpoint: checkpointAt(w, 1), Message: llm.TextParts("go"), Caller: people})
					require.NoError(t, err)
					w.key.ID = "copy"
				}
				require.NoError(t, w.process().settle())
				require.Equal(t, c.end, w.session().Status, asJSON(t, w.session().Rules))
				ran := made.all()["ship 1"] > before
				require.Equal(t, c.runs, ran)
				w.checkAtRest()
			})
		}
	}
}

// TestPolicy_allows_nothing_by_a_record: an entry that says that a policy allowed a call, under rules that
// have no such policy, is told by the verification.
func TestPolicy_allows_nothing_by_a_record(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]*session.ToolPolicy{"no policy": nil, "another tool": auto("deploy"), "a default": {Default: session.ToolAuto}} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("ship", `{"text":"1"}`), says("bye")}}, lenient(made)))
		forged := &forgedRuns{Store: w.store}
		p := w.process(func(cfg *runtime.Config) { cfg.ToolPolicy, cfg.Store = program, forged })
		w.run(p, "go")
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, 1, made.all()["ship 1"])
		_, check, err := p.VerifyAudit(t.Context(), w.key)
		require.NoError(t, err)
		require.Len(t, check.Faults, 1, name)
		require.Contains(t, check.Faults[0].Fault, "says that a policy allowed it")
	}
}

// forgedRuns is the store of a program that says of every run that a policy allowed it.
type forgedRuns struct{ store.Store }

func (s *forgedRuns) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	for i := range p.Entry.Calls {
		p.Entry.Calls[i].ByPolicy = true
	}
	return s.Store.Commit(ctx, p)
}

// TestPolicy_pauses: a call that the policy denies leaves the task waiting for a message. It has its result by
// then, so that no answer makes it run.
func TestPolicy_pauses(t *testing.T) {
	t.Parallel()
	pause := &session.ToolPolicy{Tools: map[string]session.ToolMode{"line": session.ToolNever, "ship": session.ToolNever}, Never: session.NeverPause}
	for name, c := range map[string]struct {
		calls []string
		texts []string // of what has run when the task waits
	}{
		"alone":                    {[]string{"line", `{"text":"1"}`}, nil},
		"a tool that asks anyway":  {[]string{"ship", `{"text":"1"}`}, nil},
		"twice":                    {[]string{"line", `{"text":"1"}`, "line", `{"text":"2"}`}, nil},
		"beside others":            {[]string{"retry", `{"text":"0"}`, "line", `{"text":"1"}`}, []string{"retry 0"}},
		"beside an approval":       {[]string{"deploy", `{"text":"0"}`, "line", `{"text":"1"}`}, nil},
		"beside one that finishes": {[]string{"line", `{"text":"1"}`, "end", `{"text":"2"}`}, nil},
	} {
		for by, asked := range map[string]bool{"caller": true, "program": false} {
			t.Run(name+"/"+by, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls(c.calls...), says("bye")}}, lenient(made)))
				p := w.held(pause)
				if asked {
					w.rules, p = session.TaskRules{Policy: pause}, w.process()
				}
				w.run(p, "go")
				s := w.session()
				require.Equal(t, session.StatusSuspended, s.Status)
				require.Contains(t, s.Rules.Needs, session.NeedsPolicyPause)
				wait := w.open(session.WaitInput).Wait
				require.Contains(t, wait.Text, "never allows "+map[bool]string{true: "ship", false: "line"}[c.calls[0] == "ship"])
				require.Empty(t, wait.Call)
				ran := 0
				for _, n := range made.all() {
					ran += n
				}
				require.Equal(t, len(c.texts), ran, "%v", made.all())
				for _, answer := range []session.Answer{yes(), {Kind: session.AnswerDismissal, Reason: "no"}} {
					answer.Wait = wait.ID
					_, err := p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: answer})
					require.NotEqual(t, runtime.Code(""), codeOf(err), "%s is no answer", answer.Kind)
				}
				if name == "beside an approval" {
					_, err := w.submit(w.process(), session.WaitApproval, yes())
					require.NoError(t, err)
				}
				_, err := w.submit(w.process(), session.WaitInput, session.Answer{Message: llm.TextParts("leave it")})
				require.NoError(t, err)
				require.NoError(t, w.process().settle())
				s = w.session()
				require.Equal(t, session.StatusCompleted, s.Status)
				require.Zero(t, made.count("line 1")+made.count("line 2")+made.count("ship 1"))
				require.Equal(t, "leave it", s.Messages[len(s.Messages)-2].Text(), "the agent has read it: %s", asJSON(t, s.Messages))
				lines, err := p.Audit(t.Context(), w.key)
				require.NoError(t, err)
				require.Equal(t, session.AuditDenied, lines[len(lines)-1].Kind)
				w.checkAtRest()
			})
		}
	}
}

// TestPolicy_pauses_not: without a person, or with reject, a denied call stops nobody.
func TestPolicy_pauses_not(t *testing.T) {
	t.Parallel()
	never := map[string]session.ToolMode{"line": session.ToolNever}
	for name, rules := range map[string]session.TaskRules{
		"left out":        {Policy: &session.ToolPolicy{Tools: never}},
		"reject":          {Policy: &session.ToolPolicy{Tools: never, Never: session.NeverReject}},
		"nobody attends":  {Policy: &session.ToolPolicy{Tools: never, Never: session.NeverPause}, PauseOnApproval: new(false)},
		"no policy of it": {Policy: &session.ToolPolicy{Never: session.NeverPause}, AllowedTools: []string{}},
	} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
		w.rules = rules
		w.run(w.process(), "go")
		require.Equal(t, session.StatusCompleted, w.session().Status, name)
		require.Empty(t, made.all())
		w.checkAtRest()
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{}))
	_, err := w.process().Start(t.Context(), runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts("go"), Caller: person, Rules: session.TaskRules{Policy: &session.ToolPolicy{Never: "ask"}}})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	require.ErrorContains(t, err, "reject or pause")
}

// TestPolicy_pause_is_kept: what the task waits for is asked again after a way back and in a fork, and the
// call runs in none of them.
func TestPolicy_pause_is_kept(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"back", "fork"} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
		w.rules = session.TaskRules{Policy: &session.ToolPolicy{Default: session.ToolNever, Never: session.NeverPause}}
		w.run(w.process(), "go")
		text := w.open(session.WaitInput).Wait.Text
		if verb == "back" {
			_, err := acknowledging(w.process(), &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people})
			require.NoError(t, err)
		} else {
			_, err := w.process().Fork(t.Context(), runtime.ForkParams{Origin: w.key, ID: "copy", Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people})
			require.NoError(t, err)
			w.key.ID = "copy"
		}
		require.Equal(t, text, w.open(session.WaitInput).Wait.Text)
		_, err := w.submit(w.process(), session.WaitInput, session.Answer{Message: llm.TextParts("leave it")})
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Empty(t, made.all())
		w.checkAtRest()
	}
}

// TestPolicy_pause_of_what_has_run: a call that took effect while it was allowed has the outcome it had, and
// the task does not wait for it.
func TestPolicy_pause_of_what_has_run(t *testing.T) {
	t.Parallel()
	for at, want := range map[int]llm.ResultStatus{4: llm.ResultUnknown, 5: llm.ResultSuccess} { // started, finished
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, stopScript()))
			w.start(w.process(), "go")
			w.drain()
			w.dies(at)
			w.clock.advance(70e9)
			_, err := w.stop(w.process(), runtime.SignalInterrupt)
			require.NoError(t, err)
			effects := made.all()
			_, err = w.withRules(w.process(), session.TaskRules{Policy: &session.ToolPolicy{Tools: map[string]session.ToolMode{"line": session.ToolNever}, Never: session.NeverPause}})
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			require.Equal(t, want, results(w.session())["c2-1"].Status)
			require.Equal(t, effects, made.all())
			for _, record := range w.waits() {
				require.NotEqual(t, session.WaitInput, record.Wait.Kind)
			}
		})
	}
}

// TestPolicy_of_the_program_is_valid: a program does not begin with words that mean nothing.
func TestPolicy_of_the_program_is_valid(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{}))
	for _, policy := range []session.ToolPolicy{{Default: "yes"}, {Never: "ask"}, {Tools: map[string]session.ToolMode{"ship": ""}}} {
		cfg := w.cfg
		cfg.Owner, cfg.ToolPolicy = "o", &policy
		_, err := runtime.New(cfg)
		require.ErrorContains(t, err, "ToolPolicy", string(mustJSON(policy)))
	}
}

// TestPolicy_names_that_no_tool_has: a name that is misspelt denies nothing, so it is told.
func TestPolicy_names_that_no_tool_has(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{}))
	var log bytes.Buffer
	w.process(func(cfg *runtime.Config) {
		cfg.ToolPolicy = &session.ToolPolicy{Tools: map[string]session.ToolMode{"line": session.ToolNever, "lime": session.ToolNever}}
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	require.Contains(t, log.String(), "tool=lime")
	require.NotContains(t, log.String(), "tool=line")
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
