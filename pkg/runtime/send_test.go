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
	"github.com/adjourn/adjourn/pkg/store"
)

func (w *world) send(p *process, change ...func(*runtime.SendParams)) (runtime.Sent, error) {
	params := runtime.SendParams{Key: w.key, Message: llm.TextParts("steer"), Caller: people}
	for _, c := range change {
		c(&params)
	}
	return p.Send(context.Background(), params)
}

func withStart(p *runtime.SendParams) { p.Start = true }

// sendScript is stopScript with a question, and a turn that ends at once.
func sendScript() script {
	lines := stopScript()
	lines["ask"] = []turn{needs("where?"), says("bye")}
	return lines
}

// sendPlaces are where nobody works on a session, with what becomes of a message there.
var sendPlaces = map[string]struct {
	place func(t *testing.T, w *world)
	want  session.SendOutcome
}{
	"just started":                         {stopPlaces["just started"], session.SendQueued},
	"after a reply whose tool was started": {stopPlaces["after a reply whose tool was started"], session.SendQueued},
	"between two steps":                    {stopPlaces["between two steps"], session.SendQueued},
	"delayed":                              {stopPlaces["delayed"], session.SendQueued},
	"waiting for a message":                {func(_ *testing.T, w *world) { w.run(w.process(), "ask") }, session.SendAnswered},
	"answered": {func(t *testing.T, w *world) {
		stopPlaces["answered"](t, w)
		_, err := w.answer(w.process(), 1)
		require.NoError(t, err)
		w.drain()
	}, session.SendQueued},
	"just answered with a message": {func(t *testing.T, w *world) {
		w.run(w.process(), "ask")
		_, err := w.submit(w.process(), session.WaitInput, session.Answer{Message: llm.TextParts("there")})
		require.NoError(t, err)
	}, session.SendQueued},
	"completed": {func(_ *testing.T, w *world) { w.run(w.process(), "more") }, session.SendStarted},
	"cancelled": {func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		_, err := w.stop(w.process(), runtime.SignalCancel)
		require.NoError(t, err)
	}, session.SendStarted},
}

// told counts how often the journal has a message of a user.
func (w *world) told(text string) int {
	n := 0
	for _, e := range w.journal() {
		for _, m := range e.Messages {
			if m.Role == llm.RoleUser && m.Text() == text {
				n++
			}
		}
		for _, a := range e.Answers {
			if text == (llm.Message{Parts: a.Message}).Text() && !strings.Contains(asJSON(w.t, e.Messages), text) {
				n++
			}
		}
	}
	return n
}

// checkMail holds that what rests has taken its mail in, each message once.
func (w *world) checkMail() {
	w.t.Helper()
	s := w.session()
	require.NotEqual(w.t, session.StatusRunning, s.Status)
	require.Len(w.t, s.Mail, int(w.head().Head.MailCount), "mail is left")
	seen := map[string]bool{}
	for _, e := range w.journal() {
		for _, id := range e.Mail {
			require.False(w.t, seen[id], "%s was taken in twice", id)
			seen[id] = true
		}
	}
}

// A message reaches the agent wherever the session stands, once, and is what its next reply sees.
func TestSend(t *testing.T) {
	t.Parallel()
	for name, c := range sendPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, sendScript()))
			c.place(t, w)
			before, task := w.session(), w.session().Task
			out, err := w.send(w.process(), withStart)
			require.NoError(t, err)
			require.Equal(t, c.want, out.Outcome)
			if c.want == session.SendStarted {
				task++
			}
			require.Equal(t, task, out.Task)
			require.False(t, out.Replayed)
			switch {
			case out.Mail != "":
				require.Equal(t, "m0000000001", out.Mail)
				require.Zero(t, out.Seq)
				require.Equal(t, before.Version, w.session().Version)
				mail := w.items(store.KindMail)[0].Mail
				require.Equal(t, journal.Mail{ID: out.Mail, Message: llm.User("steer"), Who: people.Who, From: people.From, At: w.clock.Now().UTC()}, *mail)
			case out.Seq > 0:
				require.Equal(t, before.Next(), out.Seq)
				require.Equal(t, people.Who, w.journal()[out.Seq-1].By)
				require.Contains(t, asJSON(t, w.journal()[out.Seq-1].Messages), "steer")
			}
			if c.want == session.SendAnswered {
				require.Equal(t, runtime.ContinuationResumed, out.Continuation)
			}
			w.clock.advance(2 * time.Hour)
			require.NoError(t, w.process().settle())
			require.Equal(t, 1, w.told("steer"), "%v", w.kinds())
			w.checkMail()
			for what, n := range made.all() {
				require.Equal(t, 1, n, what)
			}
			if name == "answered" {
				require.Equal(t, 1, made.count("deploy 3"), "what was approved runs")
			}
		})
	}
}

// A worker works on the session: the message waits for the next step, and so do those that follow it,
// in their order, whatever the clocks of those who sent them say.
func TestSend_keeps_the_order(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var seen []string
	w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), func(_ context.Context, v agent.View) (agent.Reply, error) {
		for _, m := range v.Messages {
			if m.Role == llm.RoleUser {
				seen = append(seen, m.Text())
			}
		}
		return agent.Reply{Text: "bye"}, nil
	}}}))
	p := w.process(func(cfg *runtime.Config) {
		cfg.StepsPerInvocation = 1
		cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
			if e.Seq != 2 {
				return
			}
			for i := range 12 {
				now := w.clock.Now().Add(-time.Duration(i) * time.Hour)
				other := w.process(func(cfg *runtime.Config) { cfg.Now = func() time.Time { return now } })
				out, err := w.send(other, func(p *runtime.SendParams) { p.Message = llm.TextParts(fmt.Sprint(i)) })
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("m%010d", i+1), out.Mail)
			}
		}}
	})
	w.run(p, "go")
	require.Equal(t, []string{"go", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}, seen)
	w.checkMail()
}

// A message does not bring a retry forward that is put off: it is there when the retry begins.
func TestSend_waits_for_a_delay(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, sendScript()))
	w.run(w.process(), "late")
	out, err := w.send(w.process())
	require.NoError(t, err)
	require.Equal(t, session.SendQueued, out.Outcome)
	w.clock.advance(30 * time.Minute)
	sweepOf(t, w.process())
	require.NoError(t, w.process().work())
	require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
	w.clock.advance(time.Hour)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkMail()
}

// What waits for something else refuses a message, or gives up what it waits for, as its agent's
// policy says.
func TestSend_to_what_waits_for_something_else(t *testing.T) {
	t.Parallel()
	for _, policy := range []bool{false, true} {
		t.Run(fmt.Sprintf("abandons=%v", policy), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, sendScript(), func(a *agent.Agent) { a.Policy.AbandonOnMessage = policy }))
			w.run(w.process(), "go")
			before := len(w.journal())
			out, err := w.send(w.process(), func(p *runtime.SendParams) { p.IdempotencyKey = "k" })
			if !policy {
				require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
				require.ErrorContains(t, err, "not for a message")
				require.Len(t, w.journal(), before)
				return
			}
			require.NoError(t, err)
			require.Equal(t, runtime.Sent{Outcome: session.SendAbandoned, Task: 1, Seq: int64(before) + 1}, out)
			again, err := w.send(w.process(), func(p *runtime.SendParams) { p.IdempotencyKey = "k" })
			require.NoError(t, err)
			out.Replayed = true
			require.Equal(t, out, again)
			require.NoError(t, w.process().settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Equal(t, 1, w.told("steer"))
			require.Zero(t, made.count("deploy 2"))
			w.checkAtRest()
		})
	}
}

// An answer that is only stored stays so: a message drives nothing on that was held on purpose.
func TestSend_to_held_answers(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, sendScript()))
	stopPlaces["held"](t, w)
	_, err := w.send(w.process())
	require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
	require.ErrorContains(t, err, "only stored")
}

// The question has expired and nobody has swept: the message goes on in its place.
func TestSend_after_a_deadline(t *testing.T) {
	t.Parallel()
	for _, then := range []session.DeadlineOutcome{session.ExpireReask, session.ExpireFail} {
		t.Run(string(then), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, sendScript(), expires(time.Hour, then)))
			w.run(w.process(), "ask")
			w.clock.advance(2 * time.Hour)
			out, err := w.send(w.process())
			require.NoError(t, err)
			require.Equal(t, session.SendQueued, out.Outcome)
			require.NoError(t, w.process().settle())
			require.Equal(t, session.StatusCompleted, w.session().Status, "%v", w.kinds())
			require.Equal(t, 1, w.told("steer"))
			w.checkAtRest()
		})
	}
}

func TestSend_refusals(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, sendScript()))
	p := w.process()
	refused := func(code runtime.Code, text string, change ...func(*runtime.SendParams)) {
		t.Helper()
		before, count := len(w.journal()), w.head().Head.MailCount
		_, err := w.send(p, change...)
		require.Equal(t, code, codeOf(err), "%v", err)
		require.ErrorContains(t, err, text)
		require.Len(t, w.journal(), before)
		require.Equal(t, count, w.head().Head.MailCount)
	}
	task := func(n int64) func(*runtime.SendParams) { return func(p *runtime.SendParams) { p.Task = n } }
	w.run(p, "more")
	refused(runtime.CodeSessionEnded, "with start")
	refused(runtime.CodeInvalidInput, "it has no task 2", task(2), withStart)
	refused(runtime.CodeInvalidInput, "counted from 1", task(-1))
	refused(runtime.CodeInvalidInput, "the input is empty", func(p *runtime.SendParams) { p.Message = llm.TextParts(" ") })
	refused(runtime.CodeInputTooLarge, "MB", func(p *runtime.SendParams) { p.Message = llm.TextParts(strings.Repeat("x", runtime.MaxInput+1)) })
	refused(runtime.CodeSessionNotFound, "no such session", func(p *runtime.SendParams) { p.Key.ID = "nobody" })
	refused(runtime.CodeSessionNotFound, "no such session", func(p *runtime.SendParams) { p.Key.Tenant = "other" })
	refused(runtime.CodeInvalidID, "", func(p *runtime.SendParams) { p.Key.ID = "a b" })
	w.start(p, "go")
	refused(runtime.CodeSessionEnded, "its task 1 has ended. Its present task is 2", task(1))
	refused(runtime.CodeSessionEnded, "its task 1 has ended", task(1), withStart)
	out, err := w.send(p, task(2))
	require.NoError(t, err)
	require.Equal(t, session.SendQueued, out.Outcome)
	_, err = w.stop(p, runtime.SignalInterrupt)
	require.NoError(t, err)
	refused(runtime.CodeNotResumable, "Resume it with the message", withStart)
	_, err = w.stop(p, runtime.SignalAbort)
	require.NoError(t, err)
	refused(runtime.CodeNotResumable, "aborted, which is for good", withStart)
	require.Equal(t, 1, w.told("steer"))
	w.checkMail()
}

func TestSend_to_what_has_failed(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {fails(&llm.Error{Class: llm.ClassInvalid})}}))
	w.run(w.process(), "go")
	_, err := w.send(w.process(), withStart)
	require.Equal(t, runtime.CodeNotResumable, codeOf(err))
	require.ErrorContains(t, err, "Retry it with the message")
}

// A repeated request gets the first answer, and its message is taken once, whatever has become of the
// session.
func TestSend_repeated(t *testing.T) {
	t.Parallel()
	for name, c := range sendPlaces {
		for _, settled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/settled=%v", name, settled), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, sendScript()))
				c.place(t, w)
				key := func(p *runtime.SendParams) { p.IdempotencyKey = "k" }
				first, err := w.send(w.process(), withStart, key)
				require.NoError(t, err)
				if settled {
					w.clock.advance(2 * time.Hour)
					require.NoError(t, w.process().settle())
				}
				again, err := w.send(w.process(), withStart, key)
				require.NoError(t, err)
				require.True(t, again.Replayed)
				again.Replayed = false
				require.Equal(t, first, again)
				_, err = w.send(w.process(), key)
				require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
				w.clock.advance(2 * time.Hour)
				require.NoError(t, w.process().settle())
				require.Equal(t, 1, w.told("steer"), "%v", w.kinds())
				w.checkMail()
			})
		}
	}
}

// A task whose worker dies again and again is failed with what was said to it, once: what an entry
// has taken in before is not taken in again, though the session is loaded bare.
func TestSend_to_what_the_dead_letters_give_up(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.MaxClaims = 1 })
	w.start(p, "go")
	say := func(text string) {
		_, err := w.send(p, func(p *runtime.SendParams) { p.Message = llm.TextParts(text) })
		require.NoError(t, err)
	}
	say("first")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, []string{"m0000000001"}, w.journal()[1].Mail)
	say("steer")
	w.drain()
	w.claimAs("dead", 3)
	w.clock.advance(time.Hour)
	_, err := p.DeadLetter(context.Background(), w.wake(3, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, session.StatusFailed, w.session().Status)
	require.Equal(t, 1, w.told("first"))
	require.Equal(t, 1, w.told("steer"))
	w.checkMail()
	_, err = p.Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Contains(t, asJSON(t, w.session().Messages), "steer", "the next try has read it")
	w.checkMail()
}

// What was said after a checkpoint is no part of it: who goes back, or forks, does not hear it again.
// The fork has mail of its own.
func TestSend_and_going_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}))
	w.start(w.process(), "go")
	_, err := w.send(w.process())
	require.NoError(t, err)
	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	at := checkpointAt(w, 1)
	_, err = w.process().GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: at, Caller: people})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.NotContains(t, asJSON(t, w.session().Messages), "steer")
	w.checkMail()

	for name, checkpoint := range map[string]string{"before": at, "after": checkpointAt(w, 2)} {
		forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Checkpoint: checkpoint, Message: llm.TextParts("go"), Caller: people})
		require.NoError(t, err)
		out, err := w.process().Send(context.Background(), runtime.SendParams{Key: forked.Key, Message: llm.TextParts("in the fork"), Caller: people})
		require.NoError(t, err)
		require.Equal(t, "m0000000001", out.Mail)
		require.NoError(t, w.process().settle())
		s, err := w.process().Session(context.Background(), forked.Key)
		require.NoError(t, err)
		require.Equal(t, session.StatusCompleted, s.Status)
		require.Equal(t, 1, strings.Count(asJSON(t, s.Messages), "in the fork"))
		require.Equal(t, name == "after", strings.Contains(asJSON(t, s.Messages), "steer"))
	}
}
