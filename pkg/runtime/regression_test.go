package runtime_test

import (
	"context"
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

// Each test here is an attack that once succeeded.

func TestDecide_that_lost_a_race_rejects_nothing_nobody_saw(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"one"}`), calls("deploy", `{"text":"two"}`), says("done")}}))
	p := w.process()
	w.run(p, "go")
	same := runtime.DecideParams{Key: w.key, Checkpoint: w.session().Checkpoint().String(), ApproveAll: true, Caller: person}
	racer := w.process(func(c *runtime.Config) {
		c.Store = &storeHook{Store: c.Store, when: readOf(store.KindWait), happens: func() {
			_, err := p.Decide(context.Background(), same)
			require.NoError(t, err)
			require.NoError(t, p.work())
		}}
	})
	out, err := racer.Decide(context.Background(), same)
	require.NoError(t, err)
	require.True(t, out.Repeated)
	require.NoError(t, p.work())
	require.Equal(t, session.StatusSuspended, w.session().Status, "the second approval waits for somebody who has seen it")
}

func TestResume_with_message_that_lost_a_race_answers_no_other_question(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {needs("region?")}, "eu": {needs("delete all?")}, "us": {says("done")}}))
	p := w.process()
	w.run(p, "go")
	say := func(text string) runtime.ResumeParams {
		return runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Checkpoint: w.session().Checkpoint().String(), Message: llm.TextParts(text), Caller: person}
	}
	eu, us := say("eu"), say("us")
	racer := w.process(func(c *runtime.Config) {
		c.Store = &storeHook{Store: c.Store, when: readOf(store.KindWait), happens: func() {
			_, err := p.Resume(context.Background(), eu)
			require.NoError(t, err)
			require.NoError(t, p.work())
		}}
	})
	_, err := racer.Resume(context.Background(), us)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.Equal(t, session.StatusSuspended, w.session().Status, "the second question waits")

	// Pasted again, the first answer is a repeat; a different one is refused.
	out, err := p.Resume(context.Background(), eu)
	require.NoError(t, err)
	require.True(t, out.Repeated)
	_, err = p.Resume(context.Background(), us)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
}

func TestDecide_all_is_about_what_is_open(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"a"}`, "deploy", `{"text":"b"}`), says("done")}}))
	p := w.process()
	w.run(p, "go")
	cp := w.session().Checkpoint().String()
	first := w.waits()[0].Wait
	no := false
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{
		Wait: first.ID, Kind: session.AnswerApproval, ApprovalID: first.Nonce, Approved: &no,
	}})
	require.NoError(t, err)
	w.clock.advance(time.Second)
	all := runtime.DecideParams{Key: w.key, Checkpoint: cp, ApproveAll: true, Caller: person}
	_, err = p.Decide(context.Background(), all)
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "one of all was rejected")
	only := runtime.DecideParams{Key: w.key, Checkpoint: cp, Approve: []string{"w2-2"}, Caller: person}
	for again := range 2 {
		out, err := p.Decide(context.Background(), only)
		require.NoError(t, err)
		require.Equal(t, again == 1, out.Repeated, "pasted again")
		require.NoError(t, p.settle())
	}
	_, err = p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Checkpoint: cp, RejectAll: true, Caller: person})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

func TestDeliver_of_an_entry_that_cannot_exist_takes_no_lease(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("retry", `{"text":"x"}`), says("done")}}))
	p := w.process()
	w.start(p, "go")
	for range 2 { // cold, then with the session in the cache
		_, err := p.Deliver(context.Background(), journal.NewWake(w.key, 1000, journal.WakeStep))
		require.NoError(t, err)
		require.Zero(t, w.head().Head.Lease.Seq)
	}
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

func TestDeadLetters_do_not_fail_a_session_whose_agent_is_not_in_this_program(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("done")}}))
	w.start(w.process(), "go")
	other, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "other", Planner: script{}}}})
	require.NoError(t, err)
	bad := w.process(func(c *runtime.Config) { c.Registry = other })
	_, err = bad.Deliver(context.Background(), journal.NewWake(w.key, 2, journal.WakeStep))
	require.Equal(t, runtime.CodeUnknownAgent, codeOf(err))
	tried := 0
	for range 60 {
		delivered, err := bad.deliverOne(context.Background())
		require.NoError(t, err)
		if delivered {
			tried++
		}
		w.clock.advance(2 * time.Second)
		_, err = bad.Sweep(context.Background())
		require.NoError(t, err)
		require.NoError(t, bad.HandleDeadLetters(context.Background()))
	}
	require.Greater(t, tried, 20, "more often than a message may be received")
	require.NoError(t, w.process().settle(), "the right program comes back")
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

func TestSweep_drives_on_when_the_last_answer_meant_to(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"x"}`, "locate", `{"text":"y"}`), says("done")}}))
	p := w.process()
	w.run(p, "go")
	held := w.open(session.WaitClientTool)
	_, err := p.Submit(context.Background(), runtime.SubmitParams{
		Key: w.key, Caller: person, HoldResume: true, Answer: fill(held.Wait, session.Answer{Result: []byte(`1`)}),
	})
	require.NoError(t, err)
	w.clock.advance(time.Second)
	last := w.open(session.WaitApproval)
	record := last
	answer := fill(last.Wait, yes())
	answer.Wait, answer.When = last.Wait.ID, w.clock.Now()
	record.State, record.Answer, record.Due = session.WaitAnswered, &answer, new(w.clock.Now())
	items := w.items(store.KindWait)
	for _, item := range items {
		if item.ID == last.Wait.ID { // answered, and its giver died before it could send
			_, err = w.store.Update(context.Background(), w.key, store.WaitItem(record, item.Rev))
			require.NoError(t, err)
		}
	}
	w.clock.advance(time.Minute)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// slowly is a side effect whose first run does not end before its context does.
func slowly(made *effects, policy session.UnknownPolicy, timeout time.Duration, started chan<- struct{}) tool.Tool {
	first := true
	spec := tool.Spec[textIn]{Name: "slow", OnUnknown: policy, Timeout: timeout}
	if policy == session.UnknownProbe {
		spec.Probe = func(context.Context, *tool.Call, textIn) (any, bool, error) { return "found", true, nil }
	}
	return tool.Define(spec, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		made.add("slow")
		if !first {
			return "ran again", nil
		}
		first = false
		close(started)
		<-ctx.Done()
		return "", ctx.Err()
	})
}

func TestSideEffect_that_is_cut_off_is_left_to_its_policy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy session.UnknownPolicy
		status llm.ResultStatus
		output string
		runs   int
	}{
		{policy: session.UnknownAsk, runs: 1},
		{policy: session.UnknownRetry, status: llm.ResultSuccess, output: `"ran again"`, runs: 2},
		{policy: session.UnknownProbe, status: llm.ResultSuccess, output: `"found"`, runs: 1},
	} {
		for how, timeout := range map[string]time.Duration{"by the end of its worker": time.Hour, "by its timeout": 50 * time.Millisecond} {
			t.Run(string(tc.policy)+" "+how, func(t *testing.T) {
				t.Parallel()
				made, started := newEffects(), make(chan struct{})
				a := helper(made, script{"go": {calls("slow", `{"text":"x"}`), says("done")}}, func(a *agent.Agent) {
					a.Tools = []tool.Tool{slowly(made, tc.policy, timeout, started)}
				})
				w := newWorld(t, made, a)
				p := w.process()
				w.start(p, "go")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				go func() {
					<-started
					if timeout == time.Hour {
						cancel()
					}
				}()
				_, _ = p.deliverOne(ctx)
				w.clock.advance(2 * time.Hour)
				require.NoError(t, w.process().settle())
				require.Equal(t, tc.runs, made.all()["slow"])
				if tc.policy == session.UnknownAsk {
					require.Equal(t, session.WaitUnknown, w.open(session.WaitUnknown).Wait.Kind, "a person is asked")
					return
				}
				for _, r := range results(w.session()) {
					require.Equal(t, tc.status, r.Status)
					require.JSONEq(t, tc.output, string(r.Output))
				}
				require.Equal(t, session.StatusCompleted, w.session().Status)
			})
		}
	}
}

func TestAsk_survives_the_end_of_its_worker(t *testing.T) {
	t.Parallel()
	made, first := newEffects(), true
	working := make(chan struct{})
	slow := tool.Define(tool.Spec[textIn]{Name: "slow", Effect: session.ReadOnly}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		if !first {
			return "fast", nil
		}
		first = false
		close(working)
		<-ctx.Done()
		return "", ctx.Err()
	})
	asked := make(chan struct{})
	asks := tool.Define(tool.Spec[textIn]{Name: "asks"}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
		defer func() {
			select {
			case <-asked:
			default:
				close(asked)
			}
		}()
		reply, err := c.Ask(ctx, tool.Question{ID: "q", Text: "which?"})
		return reply.Text, err
	})
	a := helper(made, script{"go": {calls("asks", `{"text":"x"}`, "slow", `{"text":"y"}`), says("done")}}, func(a *agent.Agent) {
		a.Tools = []tool.Tool{asks, slow}
	})
	w := newWorld(t, made, a)
	p := w.process()
	w.start(p, "go")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-working
		<-asked
		cancel()
	}()
	_, _ = p.deliverOne(ctx)
	w.clock.advance(2 * time.Minute)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.WaitQuestion, w.open(session.WaitQuestion).Wait.Kind, "the question is asked, not called unknown")
}

func TestStart_repeated_may_leave_the_agent_out(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("done")}}))
	p := w.process()
	request := runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts("go"), IdempotencyKey: "k1", Caller: person}
	_, err := p.Start(context.Background(), request)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	request.Agent = ""
	again, err := p.Start(context.Background(), request)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	request.Agent = "another"
	_, err = p.Start(context.Background(), request)
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
}
