package runtime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// in brings a session to a status.
func in(t *testing.T, status string, change ...func(*agent.Agent)) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{
		"approve": {calls("deploy", `{"text":"1"}`), says("bye")}, "two": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`)},
		"client": {calls("locate", `{"text":"1"}`), says("bye")}, "input": {needs("where?"), says("bye")}, "say": {says("bye")},
		"broken": {fails(errDied)}, "line": {calls("line", `{"text":"1"}`), says("bye")}, "message": {says("heard")},
	}, change...))
	p := w.process()
	w.start(p, map[string]string{
		"running": "say", "dead": "say", "leased": "say", "completed": "say", "failed": "broken", "cancelled": "say", "interrupted": "line",
		"answered": "approve",
	}[status]+map[string]string{"approve": "approve", "two": "two", "client": "client", "input": "input"}[status])
	switch status {
	case "running":
		return w, p
	case "dead":
		w.drain()
		w.claimAs("dead", 2)
		w.clock.advance(20 * time.Second)
		return w, p
	case "leased":
		w.drain()
		w.claimAs("elsewhere", 2)
		return w, p
	case "cancelled":
		w.signal(journal.SignalCancel)
	case "interrupted":
		f := &fuse{at: 4} // replied, nothing started
		_, _ = w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
		w.drain()
		w.signal(journal.SignalInterrupt)
		require.NoError(t, p.settle())
		require.Equal(t, session.StatusInterrupted, w.session().Status)
	}
	require.NoError(t, p.work())
	if status == "answered" {
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		w.drain()
	}
	w.flush()
	return w, p
}

func resume(w *world, p *process, mode runtime.ResumeMode, change ...func(*runtime.ResumeParams)) (runtime.Resumed, error) {
	params := runtime.ResumeParams{Key: w.key, Mode: mode, Caller: person}
	for _, c := range change {
		c(&params)
	}
	return p.Resume(context.Background(), params)
}

// TestResume_from_every_status is the rows of resume in the table in docs/design/README.md.
func TestResume_from_every_status(t *testing.T) {
	t.Parallel()
	message := func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") }
	for _, c := range []struct {
		status string
		mode   runtime.ResumeMode
		code   runtime.Code
	}{
		{"running", runtime.ResumeContinue, ""}, // no worker is at it
		{"dead", runtime.ResumeContinue, ""},
		{"leased", runtime.ResumeContinue, runtime.CodeAlreadyRunning},
		{"approve", runtime.ResumeContinue, runtime.CodeStillWaiting},
		{"answered", runtime.ResumeContinue, ""},
		{"interrupted", runtime.ResumeContinue, ""},
		{"completed", runtime.ResumeContinue, runtime.CodeNotResumable},
		{"failed", runtime.ResumeContinue, runtime.CodeNotResumable},
		{"cancelled", runtime.ResumeContinue, runtime.CodeNotResumable},
		{"running", runtime.ResumeWithMessage, runtime.CodeAlreadyRunning},
		{"approve", runtime.ResumeWithMessage, runtime.CodeStillWaiting},
		{"answered", runtime.ResumeWithMessage, runtime.CodeAlreadyRunning},
		{"input", runtime.ResumeWithMessage, ""},
		{"interrupted", runtime.ResumeWithMessage, ""},
		{"completed", runtime.ResumeWithMessage, runtime.CodeNotResumable},
		{"failed", runtime.ResumeWithMessage, runtime.CodeNotResumable},
		{"cancelled", runtime.ResumeWithMessage, runtime.CodeNotResumable},
		{"running", runtime.ResumeWithConfirmation, runtime.CodeNothingToDecide},
		{"approve", runtime.ResumeWithConfirmation, ""},
		{"two", runtime.ResumeWithConfirmation, runtime.CodeNothingToDecide},
		{"input", runtime.ResumeWithConfirmation, runtime.CodeNothingToDecide},
		{"interrupted", runtime.ResumeWithConfirmation, runtime.CodeNothingToDecide},
		{"completed", runtime.ResumeWithConfirmation, runtime.CodeNothingToDecide},
		{"approve", "sideways", runtime.CodeInvalidInput},
	} {
		t.Run(c.status+"/"+string(c.mode), func(t *testing.T) {
			t.Parallel()
			w, p := in(t, c.status)
			before := w.journal()
			_, err := resume(w, p, c.mode, message, func(p *runtime.ResumeParams) {
				p.Confirmation.Approved = true
				if c.mode == runtime.ResumeWithConfirmation {
					p.Checkpoint = w.session().Checkpoint().String()
				}
			})
			require.Equal(t, c.code, codeOf(err), "%v", err)
			if c.code != "" {
				require.Len(t, w.journal(), len(before))
				if c.code == runtime.CodeStillWaiting && c.mode == runtime.ResumeContinue {
					require.ErrorContains(t, err, "it still waits for w2-1 (approval of deploy). Answer that first")
				}
				return
			}
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			w.checkAtRest()
		})
	}
}

func TestResume_checkpoint(t *testing.T) {
	t.Parallel()
	w, p := in(t, "answered")
	old := w.journal()[0]
	at := func(id string) func(*runtime.ResumeParams) {
		return func(p *runtime.ResumeParams) { p.Checkpoint = id }
	}
	_, err := resume(w, p, runtime.ResumeContinue, at(old.Checkpoint(w.key.ID).String()))
	require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err))
	_, err = resume(w, p, runtime.ResumeContinue, at("nonsense"))
	require.Equal(t, runtime.CodeInvalidCheckpoint, codeOf(err))
	_, err = resume(w, p, runtime.ResumeContinue, at(w.session().Checkpoint().String()))
	require.NoError(t, err)
}

func TestResume_with_message_after_an_interruption(t *testing.T) {
	t.Parallel()
	w, p := in(t, "interrupted")
	_, err := resume(w, p, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
	require.NoError(t, err)
	require.NoError(t, p.settle())
	s := w.session()
	r := results(s)["c2-1"]
	require.Equal(t, llm.ResultCancelled, r.Status, "calls that have not run are closed")
	require.JSONEq(t, `"Tool execution cancelled"`, string(r.Output))
	require.Equal(t, "message", s.Messages[len(s.Messages)-2].Text())
	require.Equal(t, "heard", s.Messages[len(s.Messages)-1].Text())
	require.Empty(t, w.effects.all())
}

// TestResume_a_verb_that_dies_closes_nothing: a call is closed in the transaction of
// the message that gives it up.
func TestResume_a_verb_that_dies_closes_nothing(t *testing.T) {
	t.Parallel()
	w, p := in(t, "interrupted")
	f := &fuse{at: 1}
	_, err := resume(w, w.fusedProcess(f, true, 1), runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
	require.Error(t, err)
	require.Equal(t, []string{"commit resumed"}, f.ops)
	_, err = resume(w, p, runtime.ResumeContinue)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
	require.Equal(t, 1, w.effects.count("line 1"))
}

func TestResume_abandons_waits_when_the_policy_says_so(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"approve", "two", "client"} {
		w, p := in(t, status, func(a *agent.Agent) { a.Policy.AbandonOnMessage = true })
		waits := w.waits()
		_, err := resume(w, p, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, []session.Kind{session.KindStarted, session.KindSuspended, session.KindResumed, session.KindCompleted}, w.kinds(), "one recorded move")
		require.Equal(t, session.WaitClosed, w.waits()[0].State)
		require.Equal(t, session.TriggerMessage, w.session().RunRecord.Trigger)
		_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(waits[0].Wait, map[string]session.Answer{
			"approve": yes(), "two": yes(), "client": {Result: json.RawMessage(`1`)},
		}[status])})
		require.Equal(t, runtime.CodeSessionEnded, codeOf(err), "a late answer is told so")
		for id, r := range results(w.session()) {
			require.Equal(t, llm.ResultCancelled, r.Status, id)
		}
		w.checkAtRest()
	}
}

func TestResume_keeps_answers_that_were_accepted(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`, "deploy", `{"text":"2"}`)}, "message": {says("heard")}}, func(a *agent.Agent) { a.Policy.AbandonOnMessage = true }))
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"here"`)})
	require.NoError(t, err)
	_, err = resume(w, p, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
	require.NoError(t, err)
	require.NoError(t, p.settle())
	r := results(w.session())
	require.JSONEq(t, `"here"`, string(r["c2-1"].Output), "what the client had done counts: it was accepted with 200")
	require.Equal(t, llm.ResultSuccess, r["c2-1"].Status)
	require.Equal(t, llm.ResultCancelled, r["c2-2"].Status)
}

func TestResume_with_confirmation(t *testing.T) {
	t.Parallel()
	w, p := in(t, "approve")
	_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Reason = "not today" })
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, llm.ResultDenied, results(w.session())["c2-1"].Status)

	w, p = in(t, "approve")
	_, err = resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) {
		p.Confirmation = runtime.Confirmation{Wait: "w2-1", Approved: true, EditedInput: json.RawMessage(`{"text":"e"}`)}
	})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("deploy e"))
}

// TestResume_with_confirmation_pasted_again: with its checkpoint it is known for
// what was said before, whatever the session does by then; a different one is refused.
func TestResume_with_confirmation_pasted_again(t *testing.T) {
	t.Parallel()
	w, p := in(t, "approve")
	shown := w.session().Checkpoint().String()
	confirm := func(approved bool) (runtime.Resumed, error) {
		return resume(w, w.process(), runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) {
			p.Checkpoint, p.Confirmation.Approved = shown, approved
		})
	}
	out, err := confirm(true)
	require.NoError(t, err)
	require.False(t, out.Repeated)
	for _, when := range []string{"at once", "when it has gone on"} {
		out, err = confirm(true)
		require.NoError(t, err, when)
		require.True(t, out.Repeated, when)
		_, err = confirm(false)
		require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), when)
		require.NoError(t, p.settle())
	}
	require.Equal(t, 1, w.effects.count("deploy 1"))

	// A checkpoint at which no approval, or more than one, was opened repeats nothing.
	w, p = in(t, "two")
	shown = w.session().Checkpoint().String()
	_, err = confirm(true)
	require.Equal(t, runtime.CodeNothingToDecide, codeOf(err))
	_, err = decide(w, p, runtime.DecideParams{ApproveAll: true})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	_, err = confirm(true)
	require.Equal(t, runtime.CodeNothingToDecide, codeOf(err))
}

// TestResume_with_confirmation_of_what_was_seen: somebody else decides, and the
// next approval is open, before the confirmation looks: it is not for that one.
func TestResume_with_confirmation_of_what_was_seen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	b := &storeHook{when: readOf(store.KindWait)}
	late := w.process(func(cfg *runtime.Config) { b.Store = cfg.Store; cfg.Store = b })
	b.happens = func() {
		_, err := decide(w, p, runtime.DecideParams{ApproveAll: true})
		require.NoError(t, err)
		require.NoError(t, p.settle())
	}
	_, err := resume(w, late, runtime.ResumeWithConfirmation)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State, "nobody has seen the second one")
}

func TestResume_races_for_an_interrupted_session(t *testing.T) {
	t.Parallel()
	w, p := in(t, "interrupted")
	for _, process := range []*process{p, w.process(), w.process()} {
		_, err := resume(w, process, runtime.ResumeContinue)
		require.NoError(t, err)
	}
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("line 1"), "three wakes, one of them wins")
	// and two messages at once: one of them is told who was first
	w, p = in(t, "interrupted")
	_, err := resume(w, p, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
	require.NoError(t, err)
	_, err = resume(w, w.process(), runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("other") })
	require.Equal(t, runtime.CodeAlreadyRunning, codeOf(err))
	require.NotContains(t, asJSON(t, w.session().Messages), engine.TextClosing)
}
