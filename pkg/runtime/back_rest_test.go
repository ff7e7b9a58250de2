package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// A checkpoint with as many waits as there can be is gone back to: they are asked by the step that follows where one entry cannot.
func TestGoingBack_many_waits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{40, 60, 80} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			var list []string
			for i := range n {
				list = append(list, "deploy", fmt.Sprintf(`{"text":"%d"}`, i))
			}
			w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
			w.run(w.process(), "go")
			require.Len(t, w.waits(), n)
			_, err := w.back(w.process(), w.suspendedAt(), "")
			require.NoError(t, err)
		})
	}
}

// A retry from where it failed asks to acknowledge nothing that an earlier way back has left behind.
func TestGoingBack_retry_last_after_a_way_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	plan := script{"go": {calls("line", `{"text":"1"}`), says("bye")}, "bad": {fails(&llm.Error{Class: llm.ClassInvalid}), says("ok")}}
	w := newWorld(t, made, helper(made, plan))
	w.run(w.process(), "go")
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Message: llm.TextParts("bad"), Caller: people}
	_, err := acknowledging(w.process(), &params)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusFailed, w.session().Status)
	_, err = w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people})
	require.NoError(t, err, "nothing was done after the newest entry")
}

// A task that is tried again, or anew, does not begin stuck.
func TestGoingBack_repeated_calls_then_retry(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"retry", "restart"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			e := calls("echo", `{"text":"1"}`)
			w := newWorld(t, made, helper(made, script{"go": {e, e, e, says("bye")}, "more": {says("fine")}}, func(a *agent.Agent) { a.Limits.RepeatedCalls = 3 }))
			w.run(w.process(), "go")
			require.Equal(t, "limit_reached", w.session().Failure.Type)
			_, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, FromStart: verb == "restart", Message: llm.TextParts("more"), Caller: people})
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			s := w.session()
			require.Equal(t, session.StatusCompleted, s.Status, "%v", s.Failure)
		})
	}
}

// What is approved after a way back with many waits runs.
func TestGoingBack_many_waits_then_approved(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var list []string
	for i := range 60 {
		list = append(list, "deploy", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
	w.run(w.process(), "go")
	_, err := w.back(w.process(), w.suspendedAt(), "")
	t.Log(codeOf(err), err)
	if err == nil {
		return
	}
	for i := range 60 {
		_, err := w.answer(w.process(), i)
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	t.Log(w.session().Status, len(made.all()), results(w.session())["c2-1"])
	require.Len(t, made.all(), 60, "each was approved with 200")
}

// A retry that dies at any write is done once when it is asked again.
func TestGoingBack_retry_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for _, from := range []bool{false, true} {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			plan := script{"go": {calls("line", `{"text":"1"}`), fails(&llm.Error{Class: llm.ClassInvalid}), says("bye")}}
			world := newWorld(t, made, helper(made, plan))
			for at := 1; ; at++ {
				for _, after := range []bool{false, true} {
					world = world.another()
					w := world
					w.run(w.process(), "go")
					params := runtime.BackParams{Key: w.key, FromStart: from, Caller: people, IdempotencyKey: newID()}
					if from {
						_, err := w.process().Retry(context.Background(), params)
						params.Acknowledge = runtime.AsError(err).Effects.Digest
					}
					f := &fuse{at: at, after: after}
					_, err := w.fusedProcess(f, true, 1).Retry(context.Background(), params)
					if !f.blown() {
						require.NoError(t, err)
						return
					}
					w.clock.advance(time.Minute)
					began, err := w.process().Retry(context.Background(), params)
					require.NoError(t, err)
					require.EqualValues(t, 2, began.Task)
					require.NoError(t, w.process().settle())
					require.EqualValues(t, 2, w.session().Task)
				}
			}
		})
	}
}

// A task whose first step failed is tried again.
func TestGoingBack_retry_first_step(t *testing.T) {
	t.Parallel()
	for _, from := range []bool{false, true} {
		made := newEffects()
		n := 0
		flaky := func(ctx context.Context, v agent.View) (agent.Reply, error) {
			if n++; n <= 2 {
				return agent.Reply{}, &llm.Error{Class: llm.ClassInvalid}
			}
			return agent.Reply{Text: "fine"}, nil
		}
		w := newWorld(t, made, helper(made, script{"go": {flaky, flaky, flaky}}))
		w.run(w.process(), "go")
		for range 2 {
			require.Equal(t, session.StatusFailed, w.session().Status)
			_, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, FromStart: from, Caller: people})
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
		}
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Equal(t, "go", w.session().Messages[0].Text())
		w.checkPaired(w.session())
	}
}

// Dead letters fail a task that has gone back, and a fork, with paired calls.
func TestGoingBack_dead_letter_after_back(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"back", "back twice", "fork"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), calls("line", `{"text":"2"}`, "line", `{"text":"3"}`), says("bye")}}))
			w.start(w.process(), "go")
			w.deliver(w.process(), 2, journal.WakeStep)
			w.drain()
			f := &fuse{at: 2, after: true}
			_, err := w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(w.session().Next(), journal.WakeStep))
			t.Log(err, f.ops)
			w.clock.advance(time.Minute)
			_, err = w.stop(w.process(), runtime.SignalInterrupt)
			require.NoError(t, err)
			t.Log(w.kinds(), len(w.session().Calls))
			at := len(w.journal())
			if verb == "fork" {
				forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
				require.NoError(t, err)
				t.Log(forked.Status)
				w.key = forked.Key
				_, err = w.goOn(w.process())
				require.NoError(t, err)
			} else {
				params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at), Caller: people}
				_, err = acknowledging(w.process(), &params)
				require.NoError(t, err)
				if verb == "back twice" {
					_, err = w.stop(w.process(), runtime.SignalInterrupt)
					require.NoError(t, err)
					_, err = acknowledging(w.process(), &params)
					require.NoError(t, err)
				}
			}
			w.drain()
			t.Log(w.kinds(), len(w.session().Calls))
			next := w.session().Next()
			w.clock.advance(time.Minute)
			w.claimAs("x", next)
			w.clock.advance(time.Minute)
			p := w.process(func(cfg *runtime.Config) { cfg.MaxClaims = 1 })
			_, err = p.DeadLetter(context.Background(), w.wake(next, journal.WakeStep))
			require.NoError(t, err)
			s := w.session()
			require.Equal(t, session.StatusFailed, s.Status)
			w.checkPaired(s)
			w.checkAtRest()
		})
	}
}

// Mail that was not taken in before a way back is taken in after it.
func TestGoingBack_mail_after_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}, "hello": {says("hi")}}))
	w.run(w.process(), "go")
	at := w.suspendedAt()
	_, err := w.answer(w.process(), 0)
	require.NoError(t, err)
	w.deliver(w.process(), w.session().Next(), journal.WakeResume)
	require.Equal(t, session.StatusRunning, w.session().Status)
	w.drain()
	w.mail("01", "hello")
	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at-1), Caller: people}
	began, err := acknowledging(w.process(), &params)
	t.Log(err, began.Status)
	require.NoError(t, w.process().settle())
	t.Log(w.session().Status, w.session().Mail, w.kinds())
	require.NotEmpty(t, w.session().Mail)
}

// Going back after 1,000 entries writes one entry, which holds none of the history; a fork holds what the
// history of its checkpoint weighs.
func TestGoingBack_long_session(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var plan []turn
	for range 998 {
		plan = append(plan, calls("echo", `{"text":"`+strings.Repeat("x", 200)+`"}`))
	}
	w := newWorld(t, made, helper(made, script{"go": append(plan, says("bye")), "on": {says("again")}}, func(a *agent.Agent) { a.Limits.Steps = 2000 }))
	w.start(w.process(), "go")
	require.NoError(t, w.process(func(cfg *runtime.Config) { cfg.StepsPerInvocation = 1000 }).work())
	before := w.journal()
	require.Len(t, before, 1000)
	_, err := w.process().GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 500), Message: llm.TextParts("on"), Caller: people})
	require.NoError(t, err)
	after := w.journal()
	require.Len(t, after, 1001)
	size := func(e journal.Entry) int {
		raw, err := journal.Encode(&e)
		require.NoError(t, err)
		return len(raw)
	}
	require.Less(t, size(after[1000]), 1500)
	require.Equal(t, before, after[:1000], "nothing is rewritten")

	weight := func(checkpoint int) int {
		forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Checkpoint: before[checkpoint-1].Checkpoint(w.key.ID).String(), Caller: people})
		require.NoError(t, err)
		entries, err := w.process().Journal(context.Background(), forked.Key)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		return size(entries[0])
	}
	require.InEpsilon(t, weight(550)-weight(100), weight(1000)-weight(550), 0.2, "in proportion to the history")
}
