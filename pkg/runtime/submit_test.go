package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

var people = runtime.Caller{Who: "bob", From: "phone"}

// waiting returns a world that waits for one thing of each kind, in sessions of their own.
func waiting(t *testing.T, input string) (*world, *process) {
	t.Helper()
	w := asker(t)
	p := w.process()
	w.run(p, input)
	require.Equal(t, session.StatusSuspended, w.session().Status)
	w.flush()
	return w, p
}

// asker is a world whose agent asks for something, whatever it is told.
func asker(t *testing.T) *world {
	t.Helper()
	made := newEffects()
	return newWorld(t, made, helper(made, script{
		"approve":  {calls("deploy", `{"text":"1"}`), says("bye")},
		"two":      {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")},
		"client":   {calls("locate", `{"text":"1"}`), says("bye")},
		"pick":     {calls("choose", `{"text":"1"}`), says("bye")},
		"toppings": {calls("toppings", `{"text":"1"}`), says("bye")},
		"name":     {calls("name", `{"text":"1"}`), says("bye")},
		"input":    {needs("where?"), says("bye")},
		"guarded":  {calls("guarded", `{"text":"1"}`), says("bye")},
		"both":     {calls("locate", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")},
	}, func(a *agent.Agent) {
		a.Tools = append(a.Tools,
			tool.Define(tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn], Who: []string{"carol"}}, func(context.Context, *tool.Call, textIn) (string, error) { return "", nil }),
			asking("toppings", tool.Question{ID: "t", Text: "Which?", Multi: true, Choices: []session.Choice{{ID: "ham"}, {ID: "egg"}}}),
			asking("name", tool.Question{ID: "n", Text: "Who?"}),
		)
	}))
}

func asking(name string, q tool.Question) tool.Tool {
	return tool.Define(tool.Spec[textIn]{Name: name, Effect: session.Idempotent}, func(ctx context.Context, c *tool.Call, _ textIn) (tool.Reply, error) {
		return c.Ask(ctx, q)
	})
}

func TestSubmit_first_answer_wins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input       string
		kind        session.WaitKind
		first, then session.Answer
	}{
		"approval":    {"approve", session.WaitApproval, yes(), no()},
		"denial":      {"approve", session.WaitApproval, no(), yes()},
		"client tool": {"client", session.WaitClientTool, session.Answer{Result: json.RawMessage(`{"a":1}`)}, session.Answer{Error: "no"}},
		"choice":      {"pick", session.WaitQuestion, session.Answer{Selected: []string{"red"}}, session.Answer{Selected: []string{"blue"}}},
		"text":        {"name", session.WaitQuestion, text("Ann"), text("")},
		"input":       {"input", session.WaitInput, session.Answer{Message: llm.TextParts("here")}, session.Answer{Message: llm.TextParts("there")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t, c.input)
			first, err := w.submit(p, c.kind, c.first)
			require.NoError(t, err)
			require.Equal(t, runtime.ContinuationResumed, first.Continuation)
			require.Equal(t, "ann", first.Answer.Who)
			require.Equal(t, "test", first.Answer.From)
			require.Equal(t, w.clock.Now(), first.Answer.When)
			check := func(when string) {
				again, err := w.submit(w.process(), c.kind, c.first)
				require.NoError(t, err, when)
				require.True(t, again.Repeated, when)
				require.Equal(t, first.Answer, again.Answer, "the first reply again, %s", when)
				_, err = w.submit(p, c.kind, c.then)
				require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), when)
				require.NotNil(t, runtime.AsError(err).Answer)
				require.Equal(t, runtime.ClassConflict, codeOf(err).Class())
			}
			check("before it is taken in")
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			check("after the end")
			w.checkAtRest()
		})
	}
}

func TestSubmit_falsy_answers_are_answers(t *testing.T) {
	t.Parallel()
	for _, falsy := range []string{`null`, `false`, `0`, `""`, `[]`} {
		w, p := waiting(t, "client")
		_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(falsy)})
		require.NoError(t, err)
		require.NoError(t, p.settle())
		r := results(w.session())["c2-1"]
		require.Equal(t, llm.ResultSuccess, r.Status)
		require.JSONEq(t, falsy, string(r.Output))
	}
	w, p := waiting(t, "toppings")
	_, err := w.submit(p, session.WaitQuestion, session.Answer{Selected: []string{}})
	require.NoError(t, err, "none of the choices")
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

func TestSubmit_refusals(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, w *world, p *process, code runtime.Code, kind session.WaitKind, change func(*session.Answer)) {
		t.Helper()
		a := fill(w.open(kind).Wait, session.Answer{})
		change(&a)
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
		require.Equal(t, code, codeOf(err), "%v", err)
		require.Equal(t, session.WaitOpen, w.open(kind).State, "nothing is spent by a refusal")
	}
	t.Run("approval", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "approve")
		yes := true
		no := false
		refused(t, w, p, runtime.CodeWrongKind, session.WaitApproval, func(a *session.Answer) { a.Kind, a.ApprovalID = session.AnswerReply, "" })
		refused(t, w, p, runtime.CodeWaitNotFound, session.WaitApproval, func(a *session.Answer) { a.Wait = "w9-9" })
		refused(t, w, p, runtime.CodeWaitNotFound, session.WaitApproval, func(a *session.Answer) { a.Wait, a.ToolCallID = "", "c9-9" })
		refused(t, w, p, runtime.CodeWaitNotFound, session.WaitApproval, func(a *session.Answer) { *a = session.Answer{Kind: session.AnswerMessage} })
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitApproval, func(a *session.Answer) {})
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitApproval, func(a *session.Answer) { a.Approved, a.ApprovalID = &yes, "another" })
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitApproval, func(a *session.Answer) { a.Approved, a.EditedInput = &yes, json.RawMessage(`{"text":1}`) })
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitApproval, func(a *session.Answer) { a.Approved, a.EditedInput = &yes, json.RawMessage(`{`) })
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitApproval, func(a *session.Answer) { a.Approved, a.EditedInput = &no, json.RawMessage(`{"text":"2"}`) })
	})
	t.Run("client tool", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "client")
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitClientTool, func(a *session.Answer) {})
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitClientTool, func(a *session.Answer) { a.Result, a.Error = json.RawMessage(`1`), "both" })
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`{`) })
	})
	t.Run("questions", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "pick")
		for _, selected := range [][]string{nil, {}, {"red", "blue"}, {"green"}} {
			refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitQuestion, func(a *session.Answer) { a.Selected = selected })
		}
		refused(t, w, p, runtime.CodeWrongKind, session.WaitQuestion, func(a *session.Answer) { a.QuestionID, a.Selected = "another", []string{"red"} })
		w, p = waiting(t, "toppings")
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitQuestion, func(a *session.Answer) { a.Selected = []string{"ham", "ham"} })
		w, p = waiting(t, "name")
		refused(t, w, p, runtime.CodeInvalidAnswer, session.WaitQuestion, func(a *session.Answer) { a.Selected = []string{"Ann"} })
	})
	t.Run("input", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "input")
		refused(t, w, p, runtime.CodeInvalidInput, session.WaitInput, func(a *session.Answer) { a.Message = llm.TextParts(" ") })
	})
	t.Run("who may answer", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "guarded")
		yes := true
		refused(t, w, p, runtime.CodeNotAllowed, session.WaitApproval, func(a *session.Answer) { a.Approved = &yes })
		_, err := p.Submit(context.Background(), runtime.SubmitParams{
			Key: w.key, Caller: runtime.Caller{Who: "carol"}, Answer: fill(w.open(session.WaitApproval).Wait, session.Answer{Approved: &yes}),
		})
		require.NoError(t, err)
	})
	t.Run("no session", func(t *testing.T) {
		t.Parallel()
		w, p := waiting(t, "input")
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: session.Key{Tenant: "default", ID: "none"}})
		require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
		_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: session.Key{Tenant: "other", ID: w.key.ID}})
		require.Equal(t, runtime.CodeSessionNotFound, codeOf(err), "another tenant's session")
	})
}

func TestSubmit_edited_input_is_recorded_and_runs(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "approve")
	a := yes()
	a.EditedInput = json.RawMessage(`{"text":"edited"}`)
	_, err := w.submit(p, session.WaitApproval, a)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"deploy edited": 1}, w.effects.all())
	require.JSONEq(t, `{"text":"edited"}`, string(w.journal()[2].Answers[0].EditedInput))
	require.JSONEq(t, `{"text":"1"}`, string(w.waits()[0].Wait.Arguments), "what was shown stays on record")
}

func TestSubmit_denial_tells_the_model_why(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "approve")
	a := no()
	a.Reason = "too late in the week"
	_, err := w.submit(p, session.WaitApproval, a)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	r := results(w.session())["c2-1"]
	require.Equal(t, llm.ResultDenied, r.Status)
	require.JSONEq(t, `"Tool call was not approved by the user: too late in the week"`, string(r.Output))
	require.Empty(t, w.effects.all())
}

func TestSubmit_by_call_and_kind(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "both")
	out, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: people, Answer: session.Answer{
		Kind: session.AnswerClientTool, ToolCallID: "c2-1", Result: json.RawMessage(`1`),
	}})
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationWaiting, out.Continuation)
	require.Len(t, out.Open, 1, "with what is still open")
	require.Equal(t, "c2-2", out.Open[0].Wait.Call)
	require.Empty(t, w.drain())
}

// TestSubmit_by_a_call_nobody_was_told_of: a wait that opens after HEAD was read was not shown
// to any client, so a result that names its call is refused.
func TestSubmit_by_a_call_nobody_was_told_of(t *testing.T) {
	t.Parallel()
	w := asker(t)
	p := w.process()
	w.start(p, "client")
	opens := &storeHook{when: readOfEntries, happens: func() { require.NoError(t, p.settle()) }}
	early := w.process(func(cfg *runtime.Config) { opens.Store = cfg.Store; cfg.Store = opens })
	answer := session.Answer{Kind: session.AnswerClientTool, ToolCallID: "c2-1", Result: json.RawMessage(`1`)}
	_, err := early.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: people, Answer: answer})
	require.ErrorContains(t, err, `no call "c2-1" waits or waited for a client's result`)
	require.Equal(t, runtime.CodeWaitNotFound, codeOf(err))
	require.Nil(t, opens.happens, "the wait was opened before the entries were read")
	require.Equal(t, session.WaitOpen, w.open(session.WaitClientTool).State)
}

func TestSubmit_hold_resume_only_stores(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "approve")
	out, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: true, Answer: fill(w.open(session.WaitApproval).Wait, yes())})
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationStored, out.Continuation)
	require.NoError(t, p.settle())
	w.clock.advance(24 * time.Hour)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusSuspended, w.session().Status, "neither the call nor the sweep drives on")
	_, err = p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, w.effects.count("deploy 1"))
}

func TestSubmit_races(t *testing.T) {
	t.Parallel()
	t.Run("sixty-four different answers", func(t *testing.T) {
		t.Parallel()
		w, _ := waiting(t, "client")
		wait := w.open(session.WaitClientTool).Wait
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[runtime.Code]int{}
		for i := range 64 {
			p := w.process()
			wg.Go(func() {
				raw, _ := json.Marshal(i)
				_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait, session.Answer{Result: raw})})
				mu.Lock()
				defer mu.Unlock()
				codes[codeOf(err)]++
			})
		}
		wg.Wait()
		require.Equal(t, map[runtime.Code]int{"": 1, runtime.CodeAlreadyAnswered: 63}, codes)
		require.NoError(t, w.process().settle())
		require.Len(t, w.journal(), 5)
		w.checkAtRest()
	})
	t.Run("two last answers continue once", func(t *testing.T) {
		t.Parallel()
		for range 10 {
			w, _ := waiting(t, "two")
			var wg sync.WaitGroup
			for _, record := range w.waits() {
				p := w.process()
				wg.Go(func() {
					_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, yes())})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.NoError(t, w.process().work(), "one of them has sent, whoever read last")
			require.Equal(t, []session.Kind{session.KindStarted, session.KindSuspended, session.KindResumed, session.KindStepped, session.KindCompleted}, w.kinds())
			require.Equal(t, map[string]int{"deploy 1": 1, "deploy 2": 1}, w.effects.all())
		}
	})
}

// TestSubmit_names_that_disagree: who names a wait and a call means the wait of that call.
func TestSubmit_names_that_disagree(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "two")
	one, two := w.waits()[0].Wait, w.waits()[1].Wait
	approved := true
	answer := session.Answer{Kind: session.AnswerApproval, Wait: one.ID, ToolCallID: two.Call, ApprovalID: one.Nonce, Approved: &approved}
	_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: answer})
	require.Equal(t, runtime.CodeWaitNotFound, codeOf(err))
	answer.ToolCallID = one.Call
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: answer})
	require.NoError(t, err)
}

// TestSubmit_nested_too_deeply: what a decoder would not read inside an entry
// must not get into one: the session could never be loaded again.
func TestSubmit_nested_too_deeply(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "client")
	nested := func(n int) session.Answer {
		return session.Answer{Kind: session.AnswerClientTool, ToolCallID: w.waits()[0].Wait.Call, Result: []byte(strings.Repeat("[", n) + strings.Repeat("]", n))}
	}
	_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: nested(journal.MaxNesting + 1)})
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: nested(journal.MaxNesting)})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// A client that gives a call up which waits for an approval has said no, and never what the call brought.
func TestSubmit_given_up(t *testing.T) {
	t.Parallel()
	for name, names := range map[string]session.Answer{"by its call": {ToolCallID: "c2-1"}, "by its wait": {Wait: "w2-1"}, "by both": {ToolCallID: "c2-1", Wait: "w2-1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t, "approve")
			answer := names
			answer.Kind, answer.Error = session.AnswerClientTool, "the user closed the window"
			give := func() (runtime.Submitted, error) {
				return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: people, Answer: answer})
			}
			out, err := give()
			require.NoError(t, err)
			require.Equal(t, session.AnswerApproval, out.Answer.Kind)
			require.False(t, *out.Answer.Approved)
			out, err = give()
			require.NoError(t, err)
			require.True(t, out.Repeated)
			require.NoError(t, p.settle())
			result := results(w.session())["c2-1"]
			require.Equal(t, llm.ResultDenied, result.Status)
			require.Contains(t, string(result.Output), "the user closed the window")
			require.Empty(t, w.effects.all())
			out, err = give()
			require.NoError(t, err, "after the end")
			require.True(t, out.Repeated)
		})
	}
	w, p := waiting(t, "approve")
	for name, answer := range map[string]session.Answer{
		"a result":             {Kind: session.AnswerClientTool, ToolCallID: "c2-1", Result: json.RawMessage(`"deployed"`)},
		"a result of its wait": {Kind: session.AnswerClientTool, Wait: "w2-1", Result: json.RawMessage(`"deployed"`)},
		"both":                 {Kind: session.AnswerClientTool, Wait: "w2-1", Result: json.RawMessage(`"deployed"`), Error: "x"},
		"of another call":      {Kind: session.AnswerClientTool, ToolCallID: "c2-2", Error: "x"},
		"of two":               {Kind: session.AnswerClientTool, ToolCallID: "c2-2", Wait: "w2-1", Error: "x"},
	} {
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: people, Answer: answer})
		require.Error(t, err, name)
		require.Contains(t, []runtime.Code{runtime.CodeWrongKind, runtime.CodeWaitNotFound}, codeOf(err), name)
	}
	require.Equal(t, session.StatusSuspended, w.session().Status)
}
