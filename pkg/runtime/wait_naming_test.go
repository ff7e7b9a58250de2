package runtime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// anew is a session whose one approval was decided so, by its call, and is void
// since the agent was changed: it is asked for anew, and nobody has looked.
func anew(t *testing.T, first runtime.DecideParams) (*world, *process) {
	t.Helper()
	made := newEffects()
	lines := script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}
	w := newWorld(t, made, helper(made, lines))
	p := w.process()
	w.run(p, "go")
	out, err := decide(w, p, first)
	require.NoError(t, err)
	require.False(t, out.Repeated)
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, lines, func(a *agent.Agent) { a.System = "Something else." })}})
	require.NoError(t, err)
	other := w.process(func(cfg *runtime.Config) { cfg.Registry = registry })
	require.NoError(t, other.settle())
	require.Equal(t, "w4-1", w.open(session.WaitApproval).Wait.ID)
	return w, other
}

func (w *world) checkpoint(seq int64) string {
	return session.Checkpoint{Session: w.key.ID, Seq: seq, Token: w.journal()[seq-1].Token}.String()
}

// edited is an approval of a wait with other arguments.
func edited(wait string) runtime.DecideParams {
	return runtime.DecideParams{Approve: []string{wait}, EditedInput: map[string]json.RawMessage{wait: json.RawMessage(`{"text":"2"}`)}}
}

// TestWaitNaming_what_was_decided_first_is_not_what_is_asked_anew: a decision sent again
// after its answer was lost decides nothing that was asked since.
func TestWaitNaming_what_was_decided_first_is_not_what_is_asked_anew(t *testing.T) {
	t.Parallel()
	only := runtime.DecideParams{Approve: []string{"w2-1"}}
	for name, c := range map[string]struct {
		first, again func(w *world) runtime.DecideParams
		then         runtime.DecideParams
		ran          string
	}{
		"a wait": {func(*world) runtime.DecideParams { return only }, func(*world) runtime.DecideParams { return only }, runtime.DecideParams{Approve: []string{"w4-1"}}, "deploy 1"},
		"edited": {func(*world) runtime.DecideParams { return edited("w2-1") }, func(*world) runtime.DecideParams { return edited("w2-1") }, edited("w4-1"), "deploy 2"},
		"all": {
			func(*world) runtime.DecideParams { return runtime.DecideParams{ApproveAll: true} },
			func(w *world) runtime.DecideParams {
				return runtime.DecideParams{ApproveAll: true, Checkpoint: w.checkpoint(2)}
			},
			runtime.DecideParams{Reject: []string{"w4-1"}},
			"",
		},
		"a wait, then all": {
			func(*world) runtime.DecideParams { return only },
			func(w *world) runtime.DecideParams {
				return runtime.DecideParams{ApproveAll: true, Checkpoint: w.checkpoint(2)}
			},
			runtime.DecideParams{RejectAll: true},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := anew(t, c.first(nil))
			before := w.waits()
			again, err := decide(w, p, c.again(w))
			require.NoError(t, err)
			require.True(t, again.Repeated)
			require.NoError(t, p.settle())
			require.Equal(t, before, w.waits())
			require.Empty(t, w.effects.all(), "nobody has seen the second approval")

			out, err := decide(w, p, c.then)
			require.NoError(t, err)
			require.False(t, out.Repeated)
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			again, err = decide(w, p, c.again(w))
			require.NoError(t, err)
			require.True(t, again.Repeated)
			if c.ran != "" {
				require.Equal(t, map[string]int{c.ran: 1}, w.effects.all())
			}
		})
	}
}

// TestWaitNaming_all_is_all_of_what_was_shown: somebody saw "deploy web" and approves all;
// what was asked after that is not meant, whatever way the approval is written, and
// however often it is sent.
func TestWaitNaming_all_is_all_of_what_was_shown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, approve := range map[string]func(w *world, p *process, shown string, wait session.Wait) error{
		"decide": func(w *world, p *process, shown string, _ session.Wait) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, ApproveAll: true, Checkpoint: shown})
			return err
		},
		"decide by the wait": func(w *world, p *process, _ string, wait session.Wait) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Approve: []string{wait.ID}})
			return err
		},
		"all with one that is named": func(w *world, p *process, _ string, wait session.Wait) error {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, ApproveAll: true, Approve: []string{wait.ID}})
			return err
		},
		"confirmation at the checkpoint": func(w *world, p *process, shown string, _ session.Wait) error {
			_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Approved, p.Checkpoint = true, shown })
			return err
		},
		"confirmation of the wait": func(w *world, p *process, _ string, wait session.Wait) error {
			_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Approved, p.Confirmation.Wait = true, wait.ID })
			return err
		},
		"submit by the wait": func(w *world, p *process, _ string, wait session.Wait) error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, Wait: wait.ID, Approved: yes().Approved}})
			return err
		},
		"submit by the nonce": func(w *world, p *process, _ string, wait session.Wait) error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, ApprovalID: wait.Nonce, Approved: yes().Approved}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"web"}`), calls("deploy", `{"text":"PROD-DB-WIPE"}`), says("bye")}}))
			p := w.process()
			w.run(p, "go")
			shown, wait := w.session().Checkpoint().String(), w.open(session.WaitApproval).Wait
			for range 3 {
				require.NoError(t, approve(w, p, shown, wait))
				require.NoError(t, p.settle())
			}
			require.Equal(t, map[string]int{"deploy web": 1}, made.all())
			require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)

			// Somebody else was first: what is asked by then is not meant either.
			w = w.another()
			p = w.process()
			w.run(p, "go")
			shown, wait = w.session().Checkpoint().String(), w.open(session.WaitApproval).Wait
			_, err := decide(w, p, runtime.DecideParams{RejectAll: true})
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(approve(w, p, shown, wait)))
			require.NoError(t, p.settle())
			require.Empty(t, made.all())
		})
	}
}

// TestWaitNaming_what_approves_needs_to_say_what: all, and a confirmation, are refused
// where nothing says what was shown; to reject needs nothing.
func TestWaitNaming_what_approves_needs_to_say_what(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "approve")
	_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, ApproveAll: true})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	_, err = resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Approved = true })
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	for range 2 {
		_, err = p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, RejectAll: true})
		require.NoError(t, err)
		require.NoError(t, p.settle())
	}
	_, err = resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Wait = "w2-1" })
	require.NoError(t, err, "the same again")
	require.Empty(t, w.effects.all())
}

// TestWaitNaming_no_field_takes_two_kinds_of_id: a call's id where a wait's belongs is
// refused with the wait to give instead.
func TestWaitNaming_no_field_takes_two_kinds_of_id(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := in(t, "approve")
	for name, try := range map[string]func() error{
		"approve": func() error {
			_, err := decide(w, p, runtime.DecideParams{Approve: []string{"c2-1"}})
			return err
		},
		"reject": func() error {
			_, err := decide(w, p, runtime.DecideParams{Reject: []string{"c2-1"}})
			return err
		},
		"confirm": func() error {
			_, err := resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Wait = "c2-1" })
			return err
		},
		"submit by the wait": func() error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, Wait: "c2-1", Approved: yes().Approved}})
			return err
		},
		"submit by the call": func() error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, ToolCallID: "c2-1", Approved: yes().Approved}})
			return err
		},
		"submit by nothing": func() error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, Approved: yes().Approved}})
			return err
		},
		"submit by another nonce": func() error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: session.Answer{Kind: session.AnswerApproval, ApprovalID: "w2-1_guessed", Approved: yes().Approved}})
			return err
		},
	} {
		err := try()
		require.Error(t, err, name)
		require.ErrorContains(t, err, "w2-1 (approval of deploy)", name)
		require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State, name)
	}
}

// TestWaitNaming_after_a_deadline: what comes for the first may be late.
func TestWaitNaming_after_a_deadline(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireReask, nil)
	w.clock.advance(2 * time.Hour)
	_, err := p.Sweep(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Equal(t, "w4-1", w.open(session.WaitApproval).Wait.ID)
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w4-1"}})
	require.NoError(t, err)
}

func TestWaitNaming_confirmation(t *testing.T) {
	t.Parallel()
	w, p := anew(t, runtime.DecideParams{Approve: []string{"w2-1"}})
	confirm := func(checkpoint string) (runtime.Resumed, error) {
		return resume(w, p, runtime.ResumeWithConfirmation, func(p *runtime.ResumeParams) { p.Confirmation.Approved, p.Checkpoint = true, checkpoint })
	}
	out, err := confirm(w.checkpoint(2))
	require.NoError(t, err)
	require.True(t, out.Repeated)
	require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	out, err = confirm(w.session().Checkpoint().String())
	require.NoError(t, err)
	require.False(t, out.Repeated)
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("deploy 1"))
}

// TestWaitNaming_by_the_nonce: it names the approval that was shown.
func TestWaitNaming_by_the_nonce(t *testing.T) {
	t.Parallel()
	w, p := anew(t, runtime.DecideParams{Approve: []string{"w2-1"}})
	submit := func(change func(*session.Answer)) (runtime.Submitted, error) {
		a := yes()
		a.Kind = session.AnswerApproval
		change(&a)
		return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
	}
	first, second := w.waits()[0].Wait, w.waits()[1].Wait
	for range 2 {
		out, err := submit(func(a *session.Answer) { a.ApprovalID = first.Nonce })
		require.NoError(t, err)
		require.True(t, out.Repeated)
		require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	}
	_, err := submit(func(a *session.Answer) { a.ApprovalID, a.Approved = first.Nonce, no().Approved })
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	_, err = submit(func(a *session.Answer) { a.ApprovalID, a.Wait = first.Nonce, second.ID })
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err), "a wait and another one's nonce")
	_, err = submit(func(a *session.Answer) { a.ApprovalID, a.ToolCallID = second.Nonce, "c9-9" })
	require.Equal(t, runtime.CodeWaitNotFound, codeOf(err), "an approval and another call")
	out, err := submit(func(a *session.Answer) { a.ApprovalID = second.Nonce })
	require.NoError(t, err)
	require.False(t, out.Repeated)
}

// TestWaitNaming_a_reply: a call may ask more than once, so a reply names its wait.
func TestWaitNaming_a_reply(t *testing.T) {
	t.Parallel()
	for name, atOnce := range map[string]bool{"one after the other": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			twice := tool.Define(tool.Spec[textIn]{Name: "twice"}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
				first, err := c.Ask(ctx, tool.Question{ID: "1", Text: "First?"})
				if err != nil && !atOnce {
					return "", err
				}
				second, err := c.Ask(ctx, tool.Question{ID: "2", Text: "Second?"})
				if err != nil {
					return "", err
				}
				return first.Text + second.Text, nil
			})
			w := newWorld(t, made, helper(made, script{"go": {calls("twice", `{"text":"1"}`)}}, func(a *agent.Agent) { a.Tools = append(a.Tools, twice) }))
			p := w.process()
			w.run(p, "go")
			reply := func(wait, question, words string) (runtime.Submitted, error) {
				a := text(words)
				a.Kind, a.Wait, a.QuestionID = session.AnswerReply, wait, question
				out, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
				if err == nil {
					require.NoError(t, p.settle())
				}
				return out, err
			}
			first := w.waits()[0].Wait.ID
			_, err := reply("", "1", "yes")
			require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err), "its question's id names no wait")
			_, err = reply(first, "2", "yes")
			require.Equal(t, runtime.CodeWrongKind, codeOf(err), "another question")
			_, err = reply(first, "1", "yes")
			require.NoError(t, err)
			out, err := reply(first, "", "yes")
			require.NoError(t, err)
			require.True(t, out.Repeated)
			second := w.open(session.WaitQuestion).Wait
			require.Equal(t, "Second?", second.Question.Text)
			_, err = reply(second.ID, "", "no")
			require.NoError(t, err)
			require.JSONEq(t, `"yesno"`, string(results(w.session())["c2-1"].Output))
		})
	}
}
