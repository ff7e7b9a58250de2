package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// deciding waits for three approvals and a client's result at once, and for a
// further approval after them.
func deciding(t *testing.T) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {
		calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), calls("deploy", `{"text":"4"}`), says("bye"),
	}, "mixed": {calls("deploy", `{"text":"1"}`, "locate", `{"text":"2"}`)}}))
	p := w.process()
	w.run(p, "go")
	w.flush()
	return w, p
}

// decide decides. All of what was not bound to a checkpoint is all of what is shown now.
func decide(w *world, p *process, params runtime.DecideParams) (runtime.Resumed, error) {
	params.Key, params.Caller = w.key, person
	if params.ApproveAll && params.Checkpoint == "" && len(params.Approve)+len(params.Reject) == 0 {
		if s, err := w.reader.Session(context.Background(), w.key); err == nil {
			params.Checkpoint = s.Checkpoint().String()
		}
	}
	return p.Decide(context.Background(), params)
}

func statuses(w *world) []llm.ResultStatus {
	var out []llm.ResultStatus
	for _, id := range []string{"c2-1", "c2-2", "c2-3"} {
		out = append(out, results(w.session())[id].Status)
	}
	return out
}

func TestDecide(t *testing.T) {
	t.Parallel()
	yes, no := llm.ResultSuccess, llm.ResultDenied
	for name, c := range map[string]struct {
		params runtime.DecideParams
		want   []llm.ResultStatus
	}{
		"unlisted ones are rejected":     {runtime.DecideParams{Approve: []string{"w2-2"}}, []llm.ResultStatus{no, yes, no}},
		"also next to a rejection":       {runtime.DecideParams{Reject: []string{"w2-2"}}, []llm.ResultStatus{no, no, no}},
		"named by their wait":            {runtime.DecideParams{Approve: []string{"w2-1", "w2-3"}}, []llm.ResultStatus{yes, no, yes}},
		"all":                            {runtime.DecideParams{ApproveAll: true}, []llm.ResultStatus{yes, yes, yes}},
		"all but one":                    {runtime.DecideParams{ApproveAll: true, Reject: []string{"w2-1"}}, []llm.ResultStatus{no, yes, yes}},
		"none":                           {runtime.DecideParams{RejectAll: true}, []llm.ResultStatus{no, no, no}},
		"none but one":                   {runtime.DecideParams{RejectAll: true, Approve: []string{"w2-1"}}, []llm.ResultStatus{yes, no, no}},
		"the same one twice":             {runtime.DecideParams{Approve: []string{"w2-1", "w2-1", "w2-1"}}, []llm.ResultStatus{yes, no, no}},
		"with edited input and a reason": {runtime.DecideParams{Approve: []string{"w2-1"}, EditedInput: map[string]json.RawMessage{"w2-1": json.RawMessage(`{"text":"e"}`)}, Reason: " because "}, []llm.ResultStatus{yes, no, no}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := deciding(t)
			out, err := decide(w, p, c.params)
			require.NoError(t, err)
			require.Equal(t, runtime.ContinuationResumed, out.Continuation)
			require.False(t, out.Repeated)
			require.Len(t, w.drain(), 1, "one resume, from the last of them")

			again, err := decide(w, w.process(), c.params)
			require.NoError(t, err, "the same decisions pasted again")
			require.True(t, again.Repeated)
			require.NoError(t, p.settle())
			require.Equal(t, c.want, statuses(w))
			if c.params.Reason != "" {
				require.Equal(t, 1, w.effects.count("deploy e"))
			}
			require.Equal(t, session.StatusSuspended, w.session().Status, "the next approval waits")

			// Pasted once more, now that a newer approval waits: nothing happens to it.
			before := len(w.journal())
			if !c.params.ApproveAll && !c.params.RejectAll {
				again, err = decide(w, p, c.params)
				require.NoError(t, err)
				require.True(t, again.Repeated)
				require.Equal(t, runtime.ContinuationWaiting, again.Continuation, "what was decided long ago does not resume it now")
				require.Len(t, again.Open, 1)
			}
			require.NoError(t, p.settle())
			require.Len(t, w.journal(), before)
			require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
		})
	}
}

func TestDecide_pasted_with_its_checkpoint(t *testing.T) {
	t.Parallel()
	w, p := deciding(t)
	shown := w.session().Checkpoint().String()
	params := runtime.DecideParams{Checkpoint: shown, ApproveAll: true}
	_, err := decide(w, p, params)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	again, err := decide(w, p, params)
	require.NoError(t, err)
	require.True(t, again.Repeated, "all of what was shown there, which is settled; not what waits now")
	require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	require.Zero(t, w.effects.count("deploy 4"))

	_, err = decide(w, p, runtime.DecideParams{Checkpoint: shown, RejectAll: true})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "a different decision")
	_, err = decide(w, p, runtime.DecideParams{Checkpoint: shown, Approve: []string{w.open(session.WaitApproval).Wait.ID}})
	require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err), "the checkpoint must be the newest for a fresh decision")

	// to the end, and after it
	newest := w.session().Checkpoint().String()
	_, err = decide(w, p, runtime.DecideParams{Checkpoint: newest, ApproveAll: true})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	for _, checkpoint := range []string{shown, newest} {
		again, err = decide(w, p, runtime.DecideParams{Checkpoint: checkpoint, ApproveAll: true})
		require.NoError(t, err)
		require.True(t, again.Repeated)
	}
	again, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1", "w2-2", "w2-3"}})
	require.NoError(t, err)
	require.True(t, again.Repeated)
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "it rejects the others, which ran")
}

// TestDecide_that_contradicts_what_was_done is refused, also by an approval that it
// does not name.
func TestDecide_that_contradicts_what_was_done(t *testing.T) {
	t.Parallel()
	answer := func(w *world, p *process, i int, a session.Answer) {
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: people, Answer: fill(w.waits()[i].Wait, a)})
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		done   func(w *world, p *process)
		params runtime.DecideParams
	}{
		"one, after all": {func(w *world, p *process) {
			_, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
			require.NoError(t, err)
		}, runtime.DecideParams{Approve: []string{"w2-1"}}},
		"none, after one was approved": {func(w *world, p *process) {
			answer(w, p, 0, no())
			answer(w, p, 1, yes())
		}, runtime.DecideParams{RejectAll: true}},
		"all, after one was rejected": {func(w *world, p *process) {
			answer(w, p, 0, no())
			answer(w, p, 1, yes())
		}, runtime.DecideParams{ApproveAll: true}},
		"one that is open, after another was approved": {func(w *world, p *process) {
			answer(w, p, 0, yes())
		}, runtime.DecideParams{Approve: []string{"w2-2"}}},
		"with another reason": {func(w *world, p *process) {
			_, err := decide(w, p, runtime.DecideParams{RejectAll: true, Reason: "too late"})
			require.NoError(t, err)
		}, runtime.DecideParams{RejectAll: true, Reason: "too early"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := deciding(t)
			shown := w.session().Checkpoint().String()
			c.done(w, p)
			for _, when := range []string{"at once", "later"} {
				before := withAnswer(w.items(store.KindWait))
				for _, checkpoint := range []string{shown, ""} {
					if checkpoint == "" && (c.params.RejectAll || c.params.ApproveAll) && when == "later" {
						continue // it is about what waits now
					}
					c.params.Checkpoint = checkpoint
					_, err := decide(w, p, c.params)
					require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "%s: %v", when, err)
				}
				require.Equal(t, before, withAnswer(w.items(store.KindWait)))
				require.NoError(t, p.settle())
			}
		})
	}
}

func TestDecide_refusals(t *testing.T) {
	t.Parallel()
	w, p := deciding(t)
	for name, c := range map[string]struct {
		params runtime.DecideParams
		code   runtime.Code
	}{
		"approve all and reject all":  {runtime.DecideParams{ApproveAll: true, RejectAll: true}, runtime.CodeInvalidInput},
		"the same one both ways":      {runtime.DecideParams{Approve: []string{"w2-1"}, Reject: []string{"w2-1"}}, runtime.CodeInvalidInput},
		"nothing":                     {runtime.DecideParams{}, runtime.CodeNothingToDecide},
		"no such wait":                {runtime.DecideParams{Approve: []string{"w9-1"}}, runtime.CodeWaitNotFound},
		"a call":                      {runtime.DecideParams{Approve: []string{"c2-1"}}, runtime.CodeWaitNotFound},
		"a call's other arguments":    {runtime.DecideParams{Approve: []string{"w2-1"}, EditedInput: map[string]json.RawMessage{"c2-1": json.RawMessage(`{"text":"9"}`)}}, runtime.CodeInvalidInput},
		"edited input of a rejection": {runtime.DecideParams{Reject: []string{"w2-1"}, EditedInput: map[string]json.RawMessage{"w2-1": json.RawMessage(`{}`)}}, runtime.CodeInvalidInput},
		"edited input that is wrong":  {runtime.DecideParams{Approve: []string{"w2-1"}, EditedInput: map[string]json.RawMessage{"w2-1": json.RawMessage(`{}`)}}, runtime.CodeInvalidAnswer},
		"no checkpoint of ours":       {runtime.DecideParams{ApproveAll: true, Checkpoint: "x"}, runtime.CodeInvalidCheckpoint},
		"another session's":           {runtime.DecideParams{ApproveAll: true, Checkpoint: session.Checkpoint{Session: "s9", Seq: 2, Token: "t"}.String()}, runtime.CodeInvalidCheckpoint},
		"a guessed one":               {runtime.DecideParams{ApproveAll: true, Checkpoint: session.Checkpoint{Session: w.key.ID, Seq: 1, Token: "t"}.String()}, runtime.CodeInvalidCheckpoint},
	} {
		_, err := decide(w, p, c.params)
		require.Equal(t, c.code, codeOf(err), "%s: %v", name, err)
		for _, record := range w.waits() {
			require.Equal(t, session.WaitOpen, record.State, "%s: all are refused before any is written", name)
		}
	}
	_, err := p.Decide(context.Background(), runtime.DecideParams{Key: session.Key{Tenant: "default", ID: "none"}, RejectAll: true})
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
}

func TestDecide_leaves_other_waits_open(t *testing.T) {
	t.Parallel()
	w, _ := deciding(t)
	w = w.another()
	p := w.process()
	w.run(p, "mixed")
	out, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationWaiting, out.Continuation)
	require.Len(t, out.Open, 1)
	require.Equal(t, session.WaitClientTool, out.Open[0].Wait.Kind)
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-2"}})
	require.Equal(t, runtime.CodeWrongKind, codeOf(err))
	_, err = w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`1`)})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

func TestDecide_an_earlier_name_does_not_reject_what_waits_now(t *testing.T) {
	t.Parallel()
	w, p := deciding(t)
	_, err := decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	_, err = decide(w, p, runtime.DecideParams{Reject: []string{"w2-1"}})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	newest := w.open(session.WaitApproval).Wait.ID
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1", newest}})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err), "they were not asked together")
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{newest}})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, w.effects.count("deploy 4"))
	_, err = decide(w, p, runtime.DecideParams{Reject: []string{newest}})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
}

// TestDecide_answers_as_submit_does: who, when, from where, and when the sweep goes on.
func TestDecide_answers_as_submit_does(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]session.Answer{"yes": yes(), "no": no()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := in(t, "approve")
			params := runtime.DecideParams{ApproveAll: *answer.Approved, RejectAll: !*answer.Approved, Reason: "because"}
			answer.Reason = "because"
			_, err := w.submit(p, session.WaitApproval, answer)
			require.NoError(t, err)
			submitted, sent := w.waits()[0], w.drain()
			w = w.another()
			p = w.process()
			w.run(p, "approve")
			_, err = decide(w, p, params)
			require.NoError(t, err)
			decided := w.waits()[0]
			require.Equal(t, decided.Wait.Nonce, decided.Answer.ApprovalID)
			decided.Wait.Nonce, decided.Answer.ApprovalID = submitted.Wait.Nonce, submitted.Answer.ApprovalID
			require.Equal(t, submitted, decided)
			resumes := w.drain()
			require.Len(t, resumes, 1)
			resumes[0].ID = sent[0].ID
			require.Equal(t, sent, resumes)
		})
	}
}

// TestDecide_is_one_moment: what is decided together was decided at one time, so
// that a different decision on all of it is known for one.
func TestDecide_is_one_moment(t *testing.T) {
	t.Parallel()
	w, _ := deciding(t)
	ticking := w.process(func(cfg *runtime.Config) {
		cfg.Now = func() time.Time { w.clock.advance(time.Millisecond); return w.clock.Now() }
	})
	_, err := decide(w, ticking, runtime.DecideParams{Approve: []string{"w2-3"}})
	require.NoError(t, err)
	first := w.waits()[0]
	for _, record := range w.waits() {
		require.Equal(t, first.Answer.When, record.Answer.When)
		require.Equal(t, first.Answer.When.Add(engine.AnsweredGrace), *record.Due)
	}
	_, err = decide(w, ticking, runtime.DecideParams{ApproveAll: true})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "two of them were rejected")
}

// TestDecide_on_as_many_as_one_suspension_opens in one write.
func TestDecide_on_as_many_as_one_suspension_opens(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range session.MaxWaits + 5 {
		many = append(many, "deploy", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls(many...)}}))
	var n atomic.Int64
	p := w.process(func(cfg *runtime.Config) { cfg.Store = updates(cfg.Store, &n) })
	w.run(p, "go")
	require.Len(t, w.waits(), session.MaxWaits)
	n.Store(0)
	out, err := decide(w, p, runtime.DecideParams{ApproveAll: true, Reject: []string{"w2-7"}})
	require.NoError(t, err)
	require.Equal(t, runtime.ContinuationResumed, out.Continuation)
	require.EqualValues(t, 1, n.Load())
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusSuspended, w.session().Status, "for the others")
	_, err = decide(w, p, runtime.DecideParams{RejectAll: true})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Len(t, made.all(), session.MaxWaits-1)
}

// oneOfThreeExpires waits for three approvals, the second of which ends in an hour.
func oneOfThreeExpires(t *testing.T) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "guarded", `{"text":"2"}`, "deploy", `{"text":"3"}`)}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{
			Name: "guarded", Approve: tool.Always[textIn], Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny},
		}, func(context.Context, *tool.Call, textIn) (string, error) { return "", nil }))
	}))
	p := w.process()
	w.run(p, "go")
	return w, p
}

// TestDecide_too_late_for_one_of_several answers none of them.
func TestDecide_too_late_for_one_of_several(t *testing.T) {
	t.Parallel()
	w, p := oneOfThreeExpires(t)
	w.clock.advance(2 * time.Hour)
	_, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	waits := w.waits()
	require.Equal(t, []session.WaitState{session.WaitOpen, session.WaitExpired, session.WaitOpen}, []session.WaitState{waits[0].State, waits[1].State, waits[2].State})
	_, err = decide(w, p, runtime.DecideParams{ApproveAll: true})
	require.Equal(t, runtime.CodeExpired, codeOf(err), "all cannot be approved any more")
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1", "w2-3"}})
	require.NoError(t, err, "the others, once this is known")
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, w.effects.count("deploy 1"))
}

// TestDecide_that_dies leaves all approvals answered or none.
func TestDecide_that_dies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fuse *fuse
		want session.WaitState
	}{
		"before its write":           {&fuse{at: 1}, session.WaitOpen},
		"after its write":            {&fuse{at: 1, after: true}, session.WaitAnswered},
		"before it sends":            {&fuse{at: 2}, session.WaitAnswered},
		"after it sent":              {&fuse{at: 2, after: true}, session.WaitAnswered},
		"not, and there are no more": {&fuse{at: 3}, session.WaitAnswered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := deciding(t)
			params := runtime.DecideParams{Approve: []string{"w2-1", "w2-3"}}
			_, err := decide(w, w.fusedProcess(c.fuse, true, 1), params)
			require.Equal(t, c.fuse.blown(), err != nil)
			for _, record := range w.waits() {
				require.Equal(t, c.want, record.State, record.Wait.ID)
			}
			p := w.process()
			require.NoError(t, p.settle(), "the sweep goes on with what is answered")
			again, err := decide(w, p, params)
			require.NoError(t, err)
			require.Equal(t, c.want == session.WaitAnswered, again.Repeated)
			require.NoError(t, p.settle())
			require.Equal(t, []llm.ResultStatus{llm.ResultSuccess, llm.ResultDenied, llm.ResultSuccess}, statuses(w))
			require.Equal(t, 1, w.effects.count("deploy 1"))
		})
	}
}

// TestDecide_beside_an_expired_default: a no that nobody gave does not contradict the
// rejection of what is not named, for nothing has run; a yes does.
func TestDecide_beside_an_expired_default(t *testing.T) {
	t.Parallel()
	for value, code := range map[bool]runtime.Code{true: runtime.CodeExpired, false: ""} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "guarded", `{"text":"2"}`)}}, func(a *agent.Agent) {
			a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{
				Name: "guarded", Approve: tool.Always[textIn], Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDefault, Value: value},
			}, func(context.Context, *tool.Call, textIn) (string, error) { return "", nil }))
		}))
		p := w.process()
		w.run(p, "go")
		w.clock.advance(2 * time.Hour)
		_, err := decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
		require.Equal(t, runtime.CodeExpired, codeOf(err), "the default is %t", value)
		_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
		require.Equal(t, code, codeOf(err), "the default is %t", value)
	}
}

// TestDecide_again_by_who_may_not: who may not decide is told so, also after the decision.
func TestDecide_again_by_who_may_not(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "guarded")
	wait := w.open(session.WaitApproval).Wait
	require.NotEmpty(t, wait.Who)
	boss := runtime.Caller{Who: wait.Who[0]}
	_, err := p.Decide(t.Context(), runtime.DecideParams{Key: w.key, Caller: boss, Approve: []string{wait.ID}})
	require.NoError(t, err)
	eve := runtime.Caller{Who: "eve"}
	_, err = p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: eve, Answer: fill(wait, yes())})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "submit")
	out, err := p.Decide(t.Context(), runtime.DecideParams{Key: w.key, Caller: eve, Approve: []string{wait.ID}, IdempotencyKey: "k"})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "decide: %+v", out)
}
