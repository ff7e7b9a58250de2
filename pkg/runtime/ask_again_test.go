package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// program is what a deployment may change of an agent that asks people.
type program struct {
	system, text, label string
	who, asked          []string // of the tools, of the question itself
	onChange            session.ChangePolicy
}

// agent deletes once somebody said yes, has a tool of the client and one whose outcome
// a person is asked about.
func (d program) agent(made *effects) agent.Agent {
	lines := script{
		"question": {calls("delete", `{"text":"1"}`), says("bye")}, "client": {calls("device", `{"text":"1"}`), says("bye")},
		"verdict": {calls("cut", `{"text":"1"}`), says("bye")}, "two clients": {calls("device", `{"text":"1"}`, "device", `{"text":"2"}`), says("bye")},
		"message": {says("heard")},
	}
	return agent.Agent{Name: "a", System: d.system, Planner: lines, Policy: session.Policy{OnChange: d.onChange, AbandonOnMessage: true}, Tools: []tool.Tool{
		tool.Define(tool.Spec[textIn]{Name: "delete", Who: d.who}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
			reply, err := c.Ask(ctx, tool.Question{ID: "confirm", Text: d.text, Who: d.asked, Choices: []session.Choice{{ID: "yes", Label: d.label}, {ID: "no"}}})
			if err != nil {
				return "", err
			}
			made.add(d.text + " " + reply.Selected[0])
			return reply.Selected[0], nil
		}),
		tool.DefineClient(tool.Spec[textIn]{Name: "device", Who: d.who}),
		tool.Define(tool.Spec[textIn]{Name: "cut", Who: d.who, OnUnknown: session.UnknownAsk, Timeout: time.Millisecond}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
			made.add("cut")
			<-ctx.Done()
			return "", ctx.Err()
		}),
	}}
}

// deploys is a worker of another program.
func (w *world) deploys(d program) *process {
	w.t.Helper()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{d.agent(w.effects)}})
	require.NoError(w.t, err)
	return w.process(func(cfg *runtime.Config) { cfg.Registry = registry })
}

var (
	delete3 = program{system: "One.", text: "Delete 3 files?", label: "Yes"}
	carol   = runtime.Caller{Who: "carol", From: "test"}
)

// moments are when another program is deployed: after an answer was stored, or while
// the wait was open.
var moments = map[string]func(w *world, p *process, changed program, a runtime.SubmitParams) *process{
	"stored": func(w *world, p *process, changed program, a runtime.SubmitParams) *process {
		a.HoldResume = true
		_, err := p.Submit(context.Background(), a)
		require.NoError(w.t, err)
		other := w.deploys(changed)
		_, err = resume(w, other, runtime.ResumeContinue)
		require.NoError(w.t, err)
		return other
	},
	"open": func(w *world, _ *process, changed program, a runtime.SubmitParams) *process {
		other := w.deploys(changed)
		_, err := other.Submit(context.Background(), a)
		require.NoError(w.t, err)
		return other
	},
}

// TestReasked_questions: a reply counts for the question that was shown, to those who
// may answer it now. Otherwise it is asked anew, and what the first yes was for never happens.
func TestReasked_questions(t *testing.T) {
	t.Parallel()
	change := func(f func(*program)) program { d := delete3; f(&d); return d }
	for name, c := range map[string]struct {
		before, after program
	}{
		"text":                     {delete3, change(func(d *program) { d.text = "Delete ALL 90000 files?" })},
		"label":                    {delete3, change(func(d *program) { d.label = "Yes, all of them" })},
		"who, of the tool":         {delete3, change(func(d *program) { d.who = []string{"carol"} })},
		"who, of the question":     {delete3, change(func(d *program) { d.asked = []string{"carol"} })},
		"the agent":                {delete3, change(func(d *program) { d.system = "Two." })},
		"text, though it goes on":  {change(func(d *program) { d.onChange = session.ChangeGoOn }), change(func(d *program) { d.text, d.onChange = "Delete ALL 90000 files?", session.ChangeGoOn })},
		"who, though it goes on":   {change(func(d *program) { d.onChange = session.ChangeGoOn }), change(func(d *program) { d.who, d.onChange = []string{"carol"}, session.ChangeGoOn })},
		"text, and it is to reask": {change(func(d *program) { d.onChange = session.ChangeReask }), change(func(d *program) { d.text, d.onChange = "Delete 4 files?", session.ChangeReask })},
	} {
		for moment, deploy := range moments {
			t.Run(name+"/"+moment, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, c.before.agent(made))
				p := w.process()
				w.run(p, "question")
				first := w.open(session.WaitQuestion).Wait
				require.NotEmpty(t, first.Policy)
				answer := runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(first, session.Answer{Selected: []string{"yes"}})}
				other := deploy(w, p, c.after, answer)
				require.NoError(t, other.settle())
				require.Empty(t, made.all(), "nobody said yes to this question")
				second := w.open(session.WaitQuestion)
				require.Equal(t, session.WaitOpen, second.State)
				require.NotEqual(t, first.ID, second.Wait.ID)
				require.Equal(t, c.after.text, second.Wait.Question.Text)

				_, err := other.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(second.Wait, session.Answer{Selected: []string{"yes"}})})
				require.NoError(t, err)
				require.NoError(t, other.settle())
				require.Equal(t, map[string]int{c.after.text + " yes": 1}, made.all())
				w.checkAtRest()
			})
		}
	}
}

// TestReasked_never_for_bytes_that_are_no_text: what a person reads may hold them, and
// an id that does is refused, for no answer could name it.
func TestReasked_never_for_bytes_that_are_no_text(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id, result string
	}{"label": {"a", `"a"`}, "id": {"caf\xe9.txt", "is not UTF-8"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), agent.Agent{Name: "a", Planner: script{"go": {calls("pick", `{"text":"1"}`), says("bye")}}, Tools: []tool.Tool{
				tool.Define(tool.Spec[textIn]{Name: "pick"}, func(ctx context.Context, call *tool.Call, _ textIn) (string, error) {
					r, err := call.Ask(ctx, tool.Question{ID: "q", Text: "Which\xff?", Choices: []session.Choice{{ID: c.id, Label: "caf\xe9"}, {ID: "b"}}})
					if err != nil {
						return "", err
					}
					return r.Selected[0], nil
				}),
			}})
			p := w.process()
			w.run(p, "go")
			if w.session().Status == session.StatusSuspended {
				_, err := w.submit(p, session.WaitQuestion, session.Answer{Selected: []string{w.open(session.WaitQuestion).Wait.Question.Choices[0].ID}})
				require.NoError(t, err)
				require.NoError(t, p.work())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Contains(t, string(results(w.session())["c2-1"].Output), c.result)
		})
	}
}

// TestReasked_questions_by_policy: what a change of the agent alone means.
func TestReasked_questions_by_policy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[session.ChangePolicy]session.Status{
		session.ChangeGoOn: session.StatusCompleted, session.ChangeFail: session.StatusFailed,
	} {
		made := newEffects()
		before, after := delete3, delete3
		before.onChange, after.onChange, after.system = policy, policy, "Two."
		w := newWorld(t, made, before.agent(made))
		p := w.process()
		w.run(p, "question")
		_, err := w.submit(p, session.WaitQuestion, session.Answer{Selected: []string{"yes"}})
		require.NoError(t, err)
		require.NoError(t, w.deploys(after).settle())
		require.Equal(t, want, w.session().Status)
		if want == session.StatusFailed {
			require.Equal(t, "agent_changed", w.session().Failure.Type)
			require.Empty(t, made.all())
		}
		w.checkAtRest()
	}
}

// TestReasked_reports: what a client or a person reported counts from those who may
// report it now; the client's work is not asked for twice because of any other change.
func TestReasked_reports(t *testing.T) {
	t.Parallel()
	for _, kind := range []session.WaitKind{session.WaitClientTool, session.WaitUnknown} {
		report := session.Answer{Result: json.RawMessage(`"root's"`)}
		input := map[session.WaitKind]string{session.WaitClientTool: "client", session.WaitUnknown: "verdict"}[kind]
		if kind == session.WaitUnknown {
			report.Verdict = session.VerdictHappened
		}
		for moment, deploy := range moments {
			for who, asked := range map[string]bool{"carol": true, "ann": false} {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, moment, who), func(t *testing.T) {
					t.Parallel()
					made := newEffects()
					w := newWorld(t, made, delete3.agent(made))
					p := w.process()
					w.run(p, input)
					first := w.open(kind).Wait
					require.NotEmpty(t, first.Policy)
					changed := delete3
					changed.who = []string{who}
					other := deploy(w, p, changed, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(first, report)})
					require.NoError(t, other.settle())
					want := `"root's"`
					if asked {
						second := w.open(kind)
						require.Equal(t, session.WaitOpen, second.State)
						require.NotEqual(t, first.ID, second.Wait.ID)
						require.Equal(t, []string{who}, second.Wait.Who)
						report := report
						report.Result, want = json.RawMessage(`"carol's"`), `"carol's"`
						_, err := other.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(second.Wait, report)})
						require.NoError(t, err)
						require.NoError(t, other.settle())
					}
					require.Equal(t, session.StatusCompleted, w.session().Status)
					require.JSONEq(t, want, string(results(w.session())["c2-1"].Output))
					require.LessOrEqual(t, made.count("cut"), 1, "what may have happened is not done again")
					w.checkAtRest()
				})
			}
		}
	}
}

// TestReasked_ends: no limit of a task counts questions, so one that is another one on
// every run ends by itself, and the model is told.
func TestReasked_ends(t *testing.T) {
	t.Parallel()
	made := newEffects()
	runs := 0
	w := newWorld(t, made, agent.Agent{Name: "a", Planner: script{"go": {calls("clock", `{"text":"1"}`), says("bye")}}, Tools: []tool.Tool{
		tool.Define(tool.Spec[textIn]{Name: "clock"}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
			runs++
			if _, err := c.Ask(ctx, tool.Question{ID: "q", Text: fmt.Sprintf("It is %d o'clock. Go on?", runs)}); err != nil {
				return "", err
			}
			made.add("went on")
			return "", nil
		}),
	}})
	p := w.process()
	w.run(p, "go")
	seen := map[string]bool{}
	for range 10 {
		record := w.open(session.WaitQuestion)
		require.Equal(t, session.WaitOpen, record.State)
		require.False(t, seen[record.Wait.ID], "each time a wait of its own")
		seen[record.Wait.ID] = true
		_, err := w.submit(p, session.WaitQuestion, text("yes"))
		require.NoError(t, err)
		require.NoError(t, p.work())
	}
	s := w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	r := results(s)["c2-1"]
	require.Equal(t, llm.ResultError, r.Status)
	require.Contains(t, string(r.Output), "another question 10 times")
	require.Empty(t, made.all())
	require.NoError(t, p.settle())
	w.checkAtRest()
}

// TestReasked_report_on_what_was_approved: a client's call that needed a yes needs it
// anew, too; that it was handed over before does not cancel it.
func TestReasked_report_on_what_was_approved(t *testing.T) {
	t.Parallel()
	as := func(made *effects, who ...string) agent.Agent {
		return helper(made, script{"go": {calls("device", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
			a.Tools = append(a.Tools, tool.DefineClient(tool.Spec[textIn]{Name: "device", Who: who, Approve: tool.Always[textIn]}))
		})
	}
	made := newEffects()
	w := newWorld(t, made, as(made))
	p := w.process()
	w.run(p, "go")
	give := func(p *process, caller runtime.Caller, kind session.WaitKind, a session.Answer) {
		record := w.open(kind)
		require.Equal(t, session.WaitOpen, record.State)
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: caller, Answer: fill(record.Wait, a)})
		require.NoError(t, err)
		require.NoError(t, p.settle())
	}
	give(p, person, session.WaitApproval, yes())
	other := w.process(withAgents(t, as(made, "carol")))
	give(other, person, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"root's"`)})
	give(other, carol, session.WaitApproval, yes())
	give(other, carol, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"carol's"`)})
	require.JSONEq(t, `"carol's"`, string(results(w.session())["c2-1"].Output))
	w.checkAtRest()
}

// TestReasked_reports_of_what_ends: a report that was taken in stays what is known of
// its call, also when the wait was opened under a later definition than that of the
// task's start, and nobody is asked anew because the task ends or goes elsewhere.
func TestReasked_reports_of_what_ends(t *testing.T) {
	t.Parallel()
	taken := func(w *world, p *process, hold bool, a session.Answer, kind session.WaitKind) {
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: hold, Answer: fill(w.open(kind).Wait, a)})
		require.NoError(w.t, err)
		if hold {
			_, err = w.goOn(p)
			require.NoError(w.t, err)
			w.flush()
		}
	}
	cancelled := func(w *world, p *process) {
		w.signal(journal.SignalCancel)
		require.NoError(w.t, p.settle())
		require.Equal(w.t, session.StatusCancelled, w.session().Status)
	}
	result := session.Answer{Result: json.RawMessage(`"root's"`)}
	for _, policy := range []session.ChangePolicy{session.ChangeReask, session.ChangeFail, session.ChangeGoOn} {
		for name, c := range map[string]struct {
			input, call, says string
			ends              func(*world, *process)
		}{
			"result, a message": {"two clients", "c2-2", "root's", func(w *world, p *process) {
				taken(w, p, false, result, session.WaitClientTool)
				_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("message"), Caller: person})
				require.NoError(w.t, err)
				require.NoError(w.t, p.settle())
			}},
			"result, a cancellation": {"client", "c2-1", "root's", func(w *world, p *process) {
				taken(w, p, true, result, session.WaitClientTool)
				cancelled(w, p)
			}},
			"verdict, a cancellation": {"verdict", "c2-1", "A person checked", func(w *world, p *process) {
				taken(w, p, true, session.Answer{Verdict: session.VerdictNotHappened}, session.WaitUnknown)
				cancelled(w, p)
			}},
		} {
			t.Run(fmt.Sprintf("%s/%s", policy, name), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				before, after := delete3, delete3
				before.onChange, after.onChange, after.system = policy, policy, "Two."
				w := newWorld(t, made, before.agent(made))
				w.start(w.process(), c.input)
				p := w.deploys(after) // whose worker opens the wait
				require.NoError(t, p.settle())
				c.ends(w, p)
				require.Contains(t, string(results(w.session())[c.call].Output), c.says)
				w.checkAtRest()
			})
		}
	}
}

// TestReasked_client_becomes_server: what was handed to a client never runs here, whether
// its ledger was closed for that or not. What the client told counts, whoever may tell it
// now, for nobody can ask the client again; else nobody knows.
func TestReasked_client_becomes_server(t *testing.T) {
	t.Parallel()
	spec := tool.Spec[textIn]{Name: "device", Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireReask}}
	agentOf := func(made *effects, tools ...tool.Tool) agent.Agent {
		return helper(made, script{"go": {calls("device", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, tools...) })
	}
	server := func(made *effects, change func(*tool.Spec[textIn])) tool.Tool {
		s := tool.Spec[textIn]{Name: "device"}
		change(&s)
		return tool.Define(s, func(context.Context, *tool.Call, textIn) (string, error) {
			made.add("device")
			return "ran here", nil
		})
	}
	for name, tools := range map[string]func(*effects) []tool.Tool{
		"the server's": func(made *effects) []tool.Tool { return []tool.Tool{server(made, func(*tool.Spec[textIn]) {})} },
		"carol's": func(made *effects) []tool.Tool {
			return []tool.Tool{server(made, func(s *tool.Spec[textIn]) { s.Who = []string{"carol"} })}
		},
		"to be approved": func(made *effects) []tool.Tool {
			return []tool.Tool{server(made, func(s *tool.Spec[textIn]) { s.Approve = tool.Always[textIn] })}
		},
		"done again": func(made *effects) []tool.Tool {
			return []tool.Tool{server(made, func(s *tool.Spec[textIn]) { s.OnUnknown = session.UnknownRetry })}
		},
		"asked about": func(made *effects) []tool.Tool {
			return []tool.Tool{server(made, func(s *tool.Spec[textIn]) { s.OnUnknown = session.UnknownAsk })}
		},
		"read only": func(made *effects) []tool.Tool {
			return []tool.Tool{server(made, func(s *tool.Spec[textIn]) { s.Effect = session.ReadOnly })}
		},
		"of other arguments": func(*effects) []tool.Tool {
			return []tool.Tool{tool.Define(tool.Spec[moreIn]{Name: "device"}, func(context.Context, *tool.Call, moreIn) (string, error) { return "", nil })}
		},
		"gone": func(*effects) []tool.Tool { return nil },
	} {
		for _, approved := range []bool{false, true} {
			for _, told := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/approved=%v/told=%v", name, approved, told), func(t *testing.T) {
					t.Parallel()
					made, spec := newEffects(), spec
					if approved { // its ledger is closed when it is handed over
						spec.Approve = tool.Always[textIn]
					}
					w := newWorld(t, made, agentOf(made, tool.DefineClient(spec)))
					p := w.process()
					w.run(p, "go")
					if approved {
						_, err := w.submit(p, session.WaitApproval, yes())
						require.NoError(t, err)
						require.NoError(t, p.work())
						require.Equal(t, journal.ToolClosed, w.items(store.KindTool)[0].Tool.State)
					}
					record := w.open(session.WaitClientTool)
					require.Equal(t, session.WaitOpen, record.State)
					want, output := llm.ResultUnknown, ""
					if told {
						want, output = llm.ResultSuccess, `"did it"`
						_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: true, Answer: fill(record.Wait, session.Answer{Result: json.RawMessage(output)})})
						require.NoError(t, err)
					}
					other := w.process(withAgents(t, agentOf(made, tools(made)...)))
					w.clock.advance(time.Hour) // and nobody may tell any more
					_, err := w.goOn(other)
					require.NoError(t, err)
					require.NoError(t, other.settle())
					if name == "asked about" && !told {
						want = llm.ResultSuccess
						_, err := w.submit(other, session.WaitUnknown, session.Answer{Verdict: session.VerdictHappened})
						require.NoError(t, err)
						require.NoError(t, other.settle())
					}
					require.Equal(t, session.StatusCompleted, w.session().Status)
					r := results(w.session())["c2-1"]
					require.Equal(t, want, r.Status, string(r.Output))
					if output != "" {
						require.JSONEq(t, output, string(r.Output))
					}
					require.Empty(t, made.all(), "it may have been done elsewhere")
					w.checkAtRest()
				})
			}
		}
	}
}
