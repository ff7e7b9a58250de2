package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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

type payIn struct {
	Order string `json:"order"`
	Cents int64  `json:"cents"`
}

// payAgent has tools with a default, which people are asked about, by the number they get.
func payAgent(made *effects, fallback int) agent.Agent {
	schema := json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"order":{"type":"string"},"cents":{"type":"integer","default":%d}},"required":["order"]}`, fallback))
	pay := func(_ context.Context, _ *tool.Call, in payIn) (string, error) {
		made.add(fmt.Sprintf("pay %s %d", in.Order, in.Cents))
		return "paid", nil
	}
	return helper(made, script{
		"pay": {func(context.Context, agent.View) (agent.Reply, error) {
			return agent.Reply{Text: "The customer is angry.", Calls: []agent.Call{{Name: "pay", Arguments: json.RawMessage(`{"order":"A"}`)}}}, nil
		}, says("bye")},
		"two":    {calls("pay", `{"order":"A"}`, "pay", `{"order":"B"}`), says("bye")},
		"client": {calls("terminal", `{"order":"A"}`), says("bye")},
		"lost":   {calls("lost", `{"order":"A"}`), says("bye")},
	}, func(a *agent.Agent) {
		a.Policy.OnChange = session.ChangeGoOn
		a.Tools = append(
			a.Tools,
			// The gate sees what the tool would get: without the default nobody would be asked.
			tool.Define(tool.Spec[payIn]{Name: "pay", Schema: schema, Approve: func(in payIn) bool { return in.Cents > 0 }, Show: showPay}, pay),
			tool.Define(tool.Spec[payIn]{Name: "lost", Schema: schema, OnUnknown: tool.UnknownAsk}, pay),
			tool.DefineClient(tool.Spec[payIn]{Name: "terminal", Schema: schema}),
		)
	})
}

// showPay previews what the function gets.
func showPay(in payIn) tool.Preview {
	return tool.Preview{Title: "Pay " + in.Order, Risk: tool.RiskMedium, Money: &tool.Money{Amount: fmt.Sprintf("%d.%02d", in.Cents/100, in.Cents%100), Currency: "EUR"}}
}

// payProgram is a process whose registry fills in another default.
func (w *world) payProgram(fallback int, change ...func(*runtime.Config)) *process {
	w.t.Helper()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{payAgent(w.effects, fallback)}})
	require.NoError(w.t, err)
	return w.process(append([]func(*runtime.Config){func(cfg *runtime.Config) { cfg.Registry = registry }}, change...)...)
}

// changedWaits reads the records of waits with a change, as if somebody had written it.
func changedWaits(change func(*journal.WaitRecord)) func(*runtime.Config) {
	return func(cfg *runtime.Config) {
		h := &hook{Store: cfg.Store}
		h.items = func(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
			return func(yield func(store.Item, error) bool) {
				for item, err := range h.Store.Items(ctx, key, kind, id) {
					if item.Wait != nil {
						record := *item.Wait
						change(&record)
						item.Wait = &record
					}
					if !yield(item, err) {
						return
					}
				}
			}
		}
		cfg.Store = h
	}
}

// changedEntries reads the journal with a change.
func changedEntries(change func(*journal.Entry)) func(*runtime.Config) {
	return func(cfg *runtime.Config) {
		h := &hook{Store: cfg.Store}
		h.entries = func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
			return func(yield func(journal.Entry, error) bool) {
				for e, err := range h.Store.Entries(ctx, key, after) {
					change(&e)
					if !yield(e, err) {
						return
					}
				}
			}
		}
		cfg.Store = h
	}
}

// inMemory changes the arguments of a call where the worker holds them, at the moment its ledger says
// that it is started: after the plan, before the tool is called.
func inMemory(cfg *runtime.Config) {
	h := &hook{Store: cfg.Store}
	var shared []json.RawMessage
	h.entries = func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
		return func(yield func(journal.Entry, error) bool) {
			for e, err := range h.Store.Entries(ctx, key, after) {
				for _, a := range e.Answers {
					shared = append(shared, a.EditedInput)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
	h.items = func(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
		return func(yield func(store.Item, error) bool) {
			for item, err := range h.Store.Items(ctx, key, kind, id) {
				if item.Wait != nil && item.Wait.Answer != nil {
					shared = append(shared, item.Wait.Answer.EditedInput)
				}
				if !yield(item, err) {
					return
				}
			}
		}
	}
	h.update = func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
		for _, item := range items {
			if item.Tool != nil && item.Tool.State == journal.ToolStarted {
				for _, raw := range shared {
					for i := range raw {
						if raw[i] == '5' {
							raw[i] = '9'
						}
					}
				}
			}
		}
		return h.Store.Update(ctx, key, items...)
	}
	cfg.Store = h
}

const (
	payA  = `{"cents":5,"order":"A"}`
	pay99 = `{"cents":99,"order":"A"}`
)

// TestShown_is_what_runs: a row for each fault of this kind that others have had.
func TestShown_is_what_runs(t *testing.T) {
	t.Parallel()
	otherCall := changedEntries(func(e *journal.Entry) {
		for _, m := range e.Messages {
			for _, part := range m.Parts {
				if part.ToolCall != nil {
					part.ToolCall.Arguments = json.RawMessage(`{"order":"B"}`)
				}
			}
		}
	})
	edited := func(input string) session.Answer {
		a := yes()
		a.EditedInput = json.RawMessage(input)
		return a
	}
	for name, c := range map[string]struct {
		answer session.Answer
		door   func(*runtime.Config) // how the door reads what is stored
		worker func(*runtime.Config) // how the worker does
		later  int                   // the default in the worker's program
		code   runtime.Code          // of the refusal
		ran    string
		status llm.ResultStatus
		// corrupt says that the records do not fit each other any more: nothing goes on with them.
		corrupt bool
		// again says that it is asked again.
		again bool
	}{
		"prepared arguments are shown, and the gate sees them": {answer: yes(), ran: "pay A 5", status: llm.ResultSuccess},
		"edited arguments, as the tool gets them":              {answer: edited(pay99), ran: "pay A 99", status: llm.ResultSuccess},
		"edited arguments to which something would be added":   {answer: edited(`{"order":"A"}`), code: runtime.CodeInvalidAnswer},
		"edited arguments from which something would be taken": {answer: edited(`{"cents":5,"order":"A","dry_run":true}`), code: runtime.CodeInvalidAnswer},
		"edited arguments of other types":                      {answer: edited(`{"cents":"5","order":"A"}`), code: runtime.CodeInvalidAnswer},
		"the program fills in something else by now":           {answer: yes(), later: 500, status: llm.ResultError},
		"edited arguments, whatever the program fills in":      {answer: edited(pay99), later: 500, ran: "pay A 99", status: llm.ResultSuccess},
		"the call's arguments are changed in the journal":      {answer: yes(), worker: otherCall, status: llm.ResultError},
		"they are changed between the plan and the call":       {answer: edited(payA), worker: inMemory, status: llm.ResultError},
		"the door shows other arguments":                       {answer: yes(), door: changedWaits(func(r *journal.WaitRecord) { r.Wait.Arguments = json.RawMessage(pay99) }), code: runtime.CodeApprovalMismatch},
		"a no needs nothing to be whole":                       {answer: no(), door: changedWaits(func(r *journal.WaitRecord) { r.Wait.Arguments = json.RawMessage(pay99) }), corrupt: true},
		"the door shows other arguments, with their own digest": {answer: yes(), door: changedWaits(func(r *journal.WaitRecord) {
			r.Wait.Arguments, r.Wait.Digest = json.RawMessage(pay99), journal.Digest([]byte(pay99))
		}), corrupt: true},
		"the door shows another claim":     {answer: yes(), door: changedWaits(func(r *journal.WaitRecord) { r.Wait.Claim = "ask nobody" }), code: runtime.CodeApprovalMismatch},
		"the door shows another preview":   {answer: yes(), door: changedWaits(otherPreview), code: runtime.CodeApprovalMismatch},
		"the door shows no preview":        {answer: yes(), door: changedWaits(func(r *journal.WaitRecord) { r.Wait.Preview = nil }), code: runtime.CodeApprovalMismatch},
		"another preview, with its digest": {answer: yes(), door: changedWaits(func(r *journal.WaitRecord) { otherPreview(r); r.Wait.ShownDigest = journal.ShownDigest(r.Wait) }), corrupt: true},
		"the preview in the journal is not": {answer: yes(), worker: changedEntries(func(e *journal.Entry) {
			for i := range e.Waits {
				e.Waits[i].Preview = nil
			}
		}), corrupt: true},
		"nothing of what was shown is in the answer": {answer: yes(), worker: changedWaits(func(r *journal.WaitRecord) {
			if r.Answer != nil {
				a := *r.Answer
				a.ShownDigest = ""
				r.Answer = &a
			}
		}), again: true},
		"the answer is changed on its way into the journal":    {answer: yes(), worker: changedWaits(func(r *journal.WaitRecord) { edit(r, pay99, "") }), status: llm.ResultError},
		"the answer and its digest are those of nobody's edit": {answer: yes(), worker: changedWaits(func(r *journal.WaitRecord) { edit(r, `{"order":"A"}`, journal.Digest([]byte(`{"order":"A"}`))) }), status: llm.ResultError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, payAgent(made, 5))
			w.run(w.process(), "pay")
			shown := w.open(session.WaitApproval).Wait
			require.JSONEq(t, payA, string(shown.Arguments))
			require.JSONEq(t, `{"order":"A"}`, string(w.session().Calls[0].Arguments), "what the model proposed stays as it was")
			require.Equal(t, &session.Preview{Title: "Pay A", Risk: session.RiskMedium, Money: &session.Money{Amount: "0.05", Currency: "EUR"}}, shown.Preview)
			require.Equal(t, "The customer is angry.", shown.Claim)
			var door []func(*runtime.Config)
			if c.door != nil {
				door = append(door, c.door)
			}
			submitted, err := w.submit(w.process(door...), session.WaitApproval, c.answer)
			require.Equal(t, c.code, codeOf(err))
			if c.code == "" && c.answer.EditedInput != nil {
				var cents struct{ Cents int }
				require.NoError(t, json.Unmarshal(c.answer.EditedInput, &cents))
				require.Equal(t, fmt.Sprintf("0.%02d", cents.Cents), submitted.Answer.Preview.Money.Amount, "of what was edited")
			}
			if c.code != "" {
				require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
				require.Empty(t, made.all())
				return
			}
			change := []func(*runtime.Config){}
			if c.worker != nil {
				change = append(change, c.worker)
			}
			program := w.payProgram(max(c.later, 5), change...)
			if c.corrupt {
				w.checkStands(program, made)
				return
			}
			require.NoError(t, program.settle())
			s := w.session()
			if c.again {
				require.Equal(t, session.StatusSuspended, s.Status)
				require.NotEqual(t, shown.ID, w.open(session.WaitApproval).Wait.ID)
				require.Empty(t, made.all())
				return
			}
			require.Equal(t, session.StatusCompleted, s.Status)
			require.Equal(t, c.status, results(s)["c2-1"].Status)
			told := 0
			for _, e := range w.journal() {
				for _, event := range e.Events {
					if event.Name == session.EventApprovalMismatch && event.Call == "" {
						require.JSONEq(t, `{"call":"c2-1","tool":"pay"}`, string(event.Data))
						told++
					}
				}
			}
			if c.ran != "" {
				require.Equal(t, map[string]int{c.ran: 1}, made.all())
			} else {
				require.Empty(t, made.all())
			}
			if c.status == llm.ResultError {
				require.Contains(t, string(results(s)["c2-1"].Output), "approval_mismatch")
				require.Equal(t, 1, told)
			} else {
				require.Zero(t, told)
			}
		})
	}
}

// checkStands holds that a session whose records do not fit each other stays where it is, that the audit of
// a program which reads them so finds it, and that it can be ended.
func (w *world) checkStands(p *process, made *effects) {
	t := w.t
	t.Helper()
	before := made.all()
	require.Error(t, p.settle())
	require.Equal(t, before, made.all(), "nothing has run")
	require.Equal(t, session.StatusSuspended, w.session().Status)
	_, check, err := p.VerifyAudit(t.Context(), w.key)
	require.NoError(t, err)
	require.NotEmpty(t, check.Faults)
	_, err = w.stop(w.process(), runtime.SignalCancel)
	require.NoError(t, err)
	require.Equal(t, session.StatusCancelled, w.session().Status)
}

func otherPreview(r *journal.WaitRecord) {
	p := *r.Wait.Preview
	p.Risk, p.Money = session.RiskLow, nil
	r.Wait.Preview = &p
}

// edit puts an edit in the place of what was answered.
func edit(r *journal.WaitRecord, input, digest string) {
	if r.Answer == nil {
		return
	}
	a := *r.Answer
	a.EditedInput = json.RawMessage(input)
	if digest != "" {
		a.Digest = digest
	}
	r.Answer = &a
}

// TestShown_is_what_was_reported: a client's result and a verdict are about the arguments that were shown.
func TestShown_is_what_was_reported(t *testing.T) {
	t.Parallel()
	other := func(r *journal.WaitRecord) { r.Wait.Arguments = json.RawMessage(pay99) }
	whole := func(r *journal.WaitRecord) {
		other(r)
		r.Wait.Digest = journal.Digest(r.Wait.Arguments)
	}
	for name, c := range map[string]struct {
		door, worker func(*runtime.Config)
		later        int
		code         runtime.Code
		corrupt      bool
	}{
		"as shown":                       {},
		"under another definition":       {later: 500},
		"shown with other arguments":     {door: changedWaits(other), code: runtime.CodeApprovalMismatch},
		"shown with others, and digest":  {door: changedWaits(whole), corrupt: true},
		"the wait in the journal is not": {worker: changedEntries(func(e *journal.Entry) { changeWaits(e, pay99) }), corrupt: true},
	} {
		for kind, answer := range map[session.WaitKind]session.Answer{
			session.WaitClientTool: {Result: json.RawMessage(`"done"`)},
			session.WaitUnknown:    {Verdict: session.VerdictHappened, Result: json.RawMessage(`"done"`)},
		} {
			t.Run(fmt.Sprint(kind, " ", name), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, payAgent(made, 5))
				if kind == session.WaitUnknown {
					w.start(w.process(), "lost")
					_, err := w.fusedProcess(&fuse{at: 5}, true, 1).deliverOne(context.Background())
					require.ErrorIs(t, err, errDied)
					w.clock.advance(2 * time.Minute)
					require.NoError(t, w.process().settle())
				} else {
					w.run(w.process(), "client")
				}
				require.JSONEq(t, payA, string(w.open(kind).Wait.Arguments))
				var door, worker []func(*runtime.Config)
				if c.door != nil {
					door = append(door, c.door)
				}
				if c.worker != nil {
					worker = append(worker, c.worker)
				}
				_, err := w.submit(w.process(door...), kind, answer)
				require.Equal(t, c.code, codeOf(err))
				if c.code != "" {
					return
				}
				program := w.payProgram(max(c.later, 5), worker...)
				if c.corrupt {
					w.checkStands(program, made)
					return
				}
				require.NoError(t, program.settle())
				result := results(w.session())["c2-1"]
				require.Equal(t, llm.ResultSuccess, result.Status)
				require.JSONEq(t, `"done"`, string(result.Output))
			})
		}
	}
}

func changeWaits(e *journal.Entry, arguments string) {
	for i := range e.Waits {
		e.Waits[i].Arguments = json.RawMessage(arguments)
	}
}

// TestMissing_is_never_yes: a row for each answer that others have taken for a yes.
func TestMissing_is_never_yes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world, a *session.Answer)
		code   runtime.Code
	}{
		"no decision": {func(_ *world, a *session.Answer) { a.Approved = nil }, runtime.CodeInvalidAnswer},
		"a result of a client": {func(_ *world, a *session.Answer) {
			*a = session.Answer{Kind: session.AnswerClientTool, Wait: a.Wait, Result: json.RawMessage(`true`)}
		}, runtime.CodeWrongKind},
		"a reply": {func(_ *world, a *session.Answer) {
			*a = session.Answer{Kind: session.AnswerReply, Wait: a.Wait, Text: new("yes")}
		}, runtime.CodeWrongKind},
		"another approval's nonce":  {func(_ *world, a *session.Answer) { a.ApprovalID = "w2-1_AAAAAAAAAAAAAAAAAAAAAA" }, runtime.CodeInvalidAnswer},
		"another call":              {func(_ *world, a *session.Answer) { a.ToolCallID = "c2-2" }, runtime.CodeWaitNotFound},
		"another wait":              {func(_ *world, a *session.Answer) { a.Wait, a.ApprovalID, a.ToolCallID = "w1-1", "", "" }, runtime.CodeWaitNotFound},
		"null for edited arguments": {func(_ *world, a *session.Answer) { a.EditedInput = json.RawMessage(`null`) }, runtime.CodeInvalidAnswer},
		"no kind":                   {func(_ *world, a *session.Answer) { a.Kind = "" }, runtime.CodeWrongKind},
		"a cancelled session": {func(w *world, _ *session.Answer) {
			_, err := w.process().Stop(context.Background(), runtime.StopParams{Key: w.key, Kind: journal.SignalCancel, Caller: person})
			require.NoError(w.t, err)
		}, runtime.CodeSessionEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, payAgent(made, 5))
			p := w.process()
			w.run(p, "pay")
			a := fill(w.open(session.WaitApproval).Wait, yes())
			c.change(w, &a)
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
			require.Equal(t, c.code, codeOf(err), "%v", err)
			require.NoError(t, p.settle())
			require.Empty(t, made.all())
		})
	}
}

// TestPosition_in_the_batch: each of several calls runs by its own answer, whoever works on it when, and
// what was declined does not run when the history is read again.
func TestPosition_in_the_batch(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, payAgent(made, 5))
	w.run(w.process(), "two")
	waits := w.waits()
	require.Len(t, waits, 2)
	for i, a := range []session.Answer{yes(), no()} { // the second first
		wait := waits[1-i].Wait
		require.Equal(t, []string{"c2-2", "c2-1"}[i], wait.Call)
		_, err := w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait, a)})
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	require.Equal(t, map[string]int{"pay B 5": 1}, made.all())
	require.Equal(t, llm.ResultDenied, results(w.session())["c2-1"].Status)
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-2"].Status)
	_, err := w.process().Start(context.Background(), runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts("again"), Caller: person})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, map[string]int{"pay B 5": 1}, made.all())
}
