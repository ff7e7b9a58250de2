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
	"github.com/adjourn/adjourn/pkg/tool"
)

// expiring waits for one thing of a kind until a deadline in an hour.
func expiring(t *testing.T, kind session.WaitKind, outcome session.DeadlineOutcome, value any) (*world, *process) {
	t.Helper()
	return expiringBy(t, kind, &tool.Expiry{After: time.Hour, Outcome: outcome, Value: value})
}

// expiringBy waits for one thing of a kind, which those may answer who are named.
func expiringBy(t *testing.T, kind session.WaitKind, expiry *tool.Expiry, who ...string) (*world, *process) {
	t.Helper()
	made := newEffects()
	effect := func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
		made.add("ran " + in.Text)
		return "ran", nil
	}
	w := newWorld(t, made, helper(made, script{
		"approval": {calls("guarded", `{"text":"1"}`), says("bye")}, "client_tool": {calls("far", `{"text":"1"}`), says("bye")},
		"question": {calls("asks", `{"text":"1"}`), says("bye")}, "input": {needs("where?"), says("bye")},
		"unknown": {calls("lost", `{"text":"1"}`), says("bye")},
	}, func(a *agent.Agent) {
		switch kind {
		case session.WaitApproval:
			a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn], Expiry: expiry, Who: who}, effect))
		case session.WaitClientTool:
			a.Tools = append(a.Tools, tool.DefineClient(tool.Spec[textIn]{Name: "far", Expiry: expiry, Who: who}))
		case session.WaitQuestion:
			a.Tools = append(a.Tools, asking("asks", tool.Question{ID: "q", Text: "What?", Expiry: expiry, Who: who}))
		case session.WaitInput:
			a.InputExpiry = expiry
		case session.WaitUnknown:
			a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "lost", OnUnknown: session.UnknownAsk, Expiry: expiry, Who: who}, effect))
		case session.WaitChild:
		}
	}))
	p := w.process()
	if kind == session.WaitUnknown {
		w.start(p, "unknown")
		f := &fuse{at: 5} // started, not finished
		_, _ = w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
		w.clock.advance(time.Minute)
		_, err := p.Sweep(context.Background())
		require.NoError(t, err)
		require.NoError(t, p.work())
	} else {
		w.run(p, string(kind))
	}
	require.Equal(t, session.StatusSuspended, w.session().Status)
	require.NotNil(t, w.open(kind).Wait.Deadline)
	w.flush()
	return w, p
}

// TestDeadline is every outcome of every kind of wait.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    session.WaitKind
		outcome session.DeadlineOutcome
		value   any
		want    llm.ResultStatus // "" when the task fails
		output  string
	}{
		{session.WaitApproval, session.ExpireDeny, nil, llm.ResultTimedOut, `"Nobody decided on this call before its deadline"`},
		{session.WaitApproval, session.ExpireDefault, true, llm.ResultSuccess, `"ran"`},
		{session.WaitApproval, session.ExpireDefault, false, llm.ResultTimedOut, `"Nobody decided on this call before its deadline"`},
		{session.WaitApproval, session.ExpireFail, nil, "", ""},
		{session.WaitClientTool, session.ExpireDeny, nil, llm.ResultTimedOut, `"Nobody decided on this call before its deadline"`},
		{session.WaitClientTool, session.ExpireDefault, map[string]int{"lat": 1}, llm.ResultSuccess, `{"lat":1}`},
		{session.WaitClientTool, session.ExpireFail, nil, "", ""},
		{session.WaitQuestion, session.ExpireDeny, nil, llm.ResultError, `"ask \"q\": nobody answered in time"`},
		{session.WaitQuestion, session.ExpireDefault, "Ann", llm.ResultSuccess, `{"Selected":null,"Text":"Ann"}`},
		{session.WaitQuestion, session.ExpireFail, nil, "", ""},
		{session.WaitUnknown, session.ExpireDeny, nil, llm.ResultUnknown, ""},
		{session.WaitUnknown, session.ExpireFail, nil, "", ""},
		{session.WaitInput, session.ExpireDeny, nil, "", ""},
		{session.WaitInput, session.ExpireDefault, "there", "said", "there"},
		{session.WaitInput, session.ExpireFail, nil, "", ""},
	} {
		t.Run(string(c.kind)+"/"+string(c.outcome), func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, c.kind, c.outcome, c.value)
			wait := w.open(c.kind).Wait
			w.clock.advance(wait.Deadline.At.Sub(w.clock.Now()) - time.Second)
			require.Zero(t, sweepOf(t, p), "not before its time")
			w.clock.advance(time.Second)
			require.Equal(t, 1, sweepOf(t, p).Expired)
			require.Zero(t, sweepOf(t, p).Expired, "once")
			require.NoError(t, p.work(), "the expiry sends the resume itself")

			record := w.waits()[0]
			require.Equal(t, session.AnswerExpiry, record.Answer.Kind, "recorded as an expiry, never as a person's no")
			require.Equal(t, "deadline", record.Answer.Who)
			require.Nil(t, record.Answer.Approved)
			require.Equal(t, c.outcome, record.Answer.Outcome)
			require.Equal(t, session.WaitTaken, record.State)
			s := w.session()
			failed, said := c.want == "", c.want == "said"
			switch {
			case failed:
				require.Equal(t, session.StatusFailed, s.Status)
				require.Equal(t, "wait_expired", s.Failure.Type)
				require.True(t, s.Failure.Retryable)
			case said:
				require.Equal(t, c.output, s.Messages[2].Text())
			default:
				for _, r := range results(s) {
					require.Equal(t, c.want, r.Status, string(r.Output))
					if c.output != "" {
						require.JSONEq(t, c.output, string(r.Output))
					}
				}
				require.Equal(t, session.StatusCompleted, s.Status)
				require.Equal(t, session.TriggerExpiry, s.RunRecord.Trigger)
			}
			w.checkAtRest()
		})
	}
}

func TestDeadline_asking_again_opens_a_new_wait(t *testing.T) {
	t.Parallel()
	for kind, a := range map[session.WaitKind]session.Answer{
		session.WaitApproval: yes(), session.WaitClientTool: {Result: json.RawMessage(`1`)}, session.WaitQuestion: text("x"),
		session.WaitInput: {Message: llm.TextParts("here")}, session.WaitUnknown: {Verdict: session.VerdictHappened},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, kind, session.ExpireReask, nil)
			first := w.open(kind).Wait
			w.clock.advance(time.Hour)
			require.Equal(t, 1, sweepOf(t, p).Expired)
			require.NoError(t, p.work())
			second := w.open(kind).Wait
			require.NotEqual(t, first.ID, second.ID, "ids are never reused")
			require.Equal(t, w.clock.Now().Add(time.Hour), second.Deadline.At, "with a deadline of its own")
			require.Equal(t, first.Text, second.Text)
			_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(first, a)})
			require.Equal(t, runtime.CodeExpired, codeOf(err))
			_, err = w.submit(p, kind, a)
			require.NoError(t, err)
			require.NoError(t, p.work())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			w.checkAtRest()
		})
	}
}

func TestDeadline_an_answer_that_comes_too_late(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	w.clock.advance(time.Hour)
	_, err := w.submit(p, session.WaitApproval, yes()) // before any sweep
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	require.Equal(t, runtime.ClassGone, codeOf(err).Class())
	require.Equal(t, session.WaitExpired, w.waits()[0].State, "whoever finds it expired says so")
	require.NoError(t, p.work(), "and what its deadline declared follows at once")
	require.Equal(t, session.StatusCompleted, w.session().Status)
	_, err = w.submit(p, session.WaitApproval, yes())
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	require.Zero(t, w.effects.count("ran 1"))
}

func viewOf(t *testing.T, w *world, p *process) runtime.View {
	t.Helper()
	s, err := p.View(context.Background(), w.key)
	require.NoError(t, err)
	return s
}

// TestDeadline_resume: who goes on with a session whose deadline has passed lets it
// expire. Before, and where something else is open, it still waits.
func TestDeadline_resume(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	w.clock.advance(time.Hour - time.Second)
	_, err := resume(w, p, runtime.ResumeContinue)
	require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
	require.Equal(t, runtime.CodeStillWaiting, codeOf(viewOf(t, w, p).Resume))
	w.clock.advance(time.Second)
	require.Nil(t, viewOf(t, w, p).Resume, "whoever looks is told that it can go on")
	_, err = resume(w, p, runtime.ResumeContinue)
	require.NoError(t, err)
	require.Equal(t, session.WaitExpired, w.waits()[0].State)
	require.Equal(t, "deadline", w.waits()[0].Answer.Who, "nobody's answer")
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Zero(t, w.effects.count("ran 1"))

	w, p = oneOfThreeExpires(t)
	w.clock.advance(2 * time.Hour)
	_, err = resume(w, p, runtime.ResumeContinue)
	require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
	require.ErrorContains(t, err, "it still waits for 2 answers, the first is w2-1 (approval of deploy). Answer them first")
	require.Equal(t, session.WaitExpired, w.waits()[1].State)
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
	require.NoError(t, err, "what nobody decided on is not decided differently")
}

// TestDeadline_interrupted: what nobody may answer any more stands in nobody's way, and a
// person need not wait for the sweep to be told what it would tell.
func TestDeadline_interrupted(t *testing.T) {
	t.Parallel()
	message := func(p *runtime.ResumeParams) { p.Caller, p.Message = people, llm.TextParts("message") }
	for name, c := range map[string]struct {
		input string
		want  llm.ResultStatus // once its time is over
	}{
		"hers":            {"hers", llm.ResultTimedOut},
		"asked":           {"asked", llm.ResultCancelled}, // nobody's yes: its default is not one either
		"hers and asked":  {"both", llm.ResultTimedOut},
		"what to do next": {"what", ""},
	} {
		for _, swept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/swept=%v", name, swept), func(t *testing.T) {
				t.Parallel()
				interrupted := func() (*world, *process) {
					w, p := soonOver(t)
					w.run(p, c.input)
					w.interrupt()
					w.clock.advance(time.Hour)
					if swept {
						sweepOf(t, p)
					}
					return w, p
				}
				w, p := interrupted()
				_, err := resume(w, p, runtime.ResumeWithMessage, message)
				require.NoError(t, err)
				for _, record := range w.waits() {
					require.Equal(t, session.WaitTaken, record.State)
					require.Equal(t, "deadline", record.Answer.Who)
				}
				require.NoError(t, p.settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
				require.Equal(t, "heard", w.session().Messages[len(w.session().Messages)-1].Text())
				require.Equal(t, c.want, results(w.session())["c2-1"].Status)
				w.checkAtRest()

				w, p = interrupted()
				out, err := w.goOn(p)
				require.NoError(t, err)
				require.Equal(t, runtime.Resumed{Continuation: runtime.ContinuationResumed}, out)
				require.Equal(t, session.KindResumed, w.session().Newest.Kind, "it goes on, and does not go back to waiting")
				require.NoError(t, p.settle())
				require.True(t, w.session().Status.Ended())
				w.checkAtRest()
			})
		}
	}
}

// TestDeadline_a_message_over_it: a message to a session that waits lets it expire, too,
// and by that go on.
func TestDeadline_a_message_over_it(t *testing.T) {
	t.Parallel()
	w, p := soonOver(t)
	w.run(p, "hers")
	message := func(p *runtime.ResumeParams) { p.Caller, p.Message = people, llm.TextParts("message") }
	w.clock.advance(time.Hour - time.Second)
	_, err := resume(w, p, runtime.ResumeWithMessage, message)
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
	w.clock.advance(time.Second)
	_, err = resume(w, p, runtime.ResumeWithMessage, message)
	require.Equal(t, runtime.CodeAlreadyRunning, codeOf(err))
	require.ErrorContains(t, err, "it goes on with that")
	require.NoError(t, p.work(), "without a sweep")
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkAtRest()
}

// soonOver waits until in an hour for what carol alone may approve, what a tool asks and
// what a person says; a message may abandon it.
func soonOver(t *testing.T) (*world, *process) {
	t.Helper()
	made := newEffects()
	spec := tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn], Who: []string{"carol"}, Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny}}
	w := newWorld(t, made, helper(made, script{
		"hers": {calls("guarded", `{"text":"1"}`), says("bye")}, "asked": {calls("asks", `{"text":"1"}`), says("bye")},
		"both": {calls("guarded", `{"text":"1"}`, "asks", `{"text":"2"}`), says("bye")}, "what": {needs("what?"), says("bye")},
		"message": {says("heard")},
	}, func(a *agent.Agent) {
		a.Policy.AbandonOnMessage = true
		a.InputExpiry = &tool.Expiry{After: time.Hour, Outcome: session.ExpireFail}
		a.Tools = append(a.Tools,
			tool.Define(spec, func(context.Context, *tool.Call, textIn) (string, error) { return "", nil }),
			asking("asks", tool.Question{ID: "q", Text: "What?", Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDefault, Value: "Ann"}}))
	}))
	return w, w.process()
}

func TestDeadline_an_answer_that_comes_in_time_counts(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	w.clock.advance(time.Hour - time.Second)
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	w.drain()
	w.clock.advance(time.Hour)
	require.Zero(t, sweepOf(t, p).Expired)
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("ran 1"))
}

func TestUnknown_verdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer session.Answer
		status llm.ResultStatus
	}{
		"happened":                 {session.Answer{Verdict: session.VerdictHappened}, llm.ResultSuccess},
		"happened, with a result":  {session.Answer{Verdict: session.VerdictHappened, Result: json.RawMessage(`{"id":7}`)}, llm.ResultSuccess},
		"not happened":             {session.Answer{Verdict: session.VerdictNotHappened}, llm.ResultError},
		"not happened, and why":    {session.Answer{Verdict: session.VerdictNotHappened, Reason: "The log has no line of it."}, llm.ResultError},
		"no verdict":               {session.Answer{}, ""},
		"a result that is no JSON": {session.Answer{Verdict: session.VerdictHappened, Result: json.RawMessage(`{`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, session.WaitUnknown, session.ExpireDeny, nil)
			_, err := w.submit(p, session.WaitUnknown, c.answer)
			if c.status == "" {
				require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
				return
			}
			require.NoError(t, err)
			require.NoError(t, p.settle())
			r := results(w.session())["c2-1"]
			require.Equal(t, c.status, r.Status)
			if c.answer.Result != nil {
				require.JSONEq(t, string(c.answer.Result), string(r.Output))
			}
			require.Contains(t, string(r.Output), c.answer.Reason)
			require.Equal(t, 1, w.effects.count("ran 1"), "it is not run again either way")
		})
	}
}
