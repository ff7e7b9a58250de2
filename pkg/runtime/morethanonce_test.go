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

// edited is an approval of c2-1, or as it is named, with other arguments.
func edited(name string) runtime.DecideParams {
	return runtime.DecideParams{Approve: []string{name}, EditedInput: map[string]json.RawMessage{name: json.RawMessage(`{"text":"2"}`)}}
}

// TestMoreThanOnce_decide: a decision by call, sent again after its answer was lost, must
// not decide what is asked anew.
func TestMoreThanOnce_decide(t *testing.T) {
	t.Parallel()
	only := runtime.DecideParams{Approve: []string{"c2-1"}}
	for name, c := range map[string]struct{ first, again runtime.DecideParams }{
		"approved":                {only, only},
		"edited":                  {edited("c2-1"), edited("c2-1")},
		"all":                     {runtime.DecideParams{ApproveAll: true}, runtime.DecideParams{ApproveAll: true}},
		"approved, then all":      {only, runtime.DecideParams{ApproveAll: true}},
		"approved, then rejected": {only, runtime.DecideParams{Reject: []string{"c2-1"}}},
		"approved, then none":     {only, runtime.DecideParams{RejectAll: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := anew(t, c.first)
			before := w.waits()
			_, err := decide(w, p, c.again)
			require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err), "%v", err)
			require.ErrorContains(t, err, "name that: w4-1", "it says what to do")
			require.NoError(t, p.settle())
			require.Equal(t, before, w.waits())
			require.Empty(t, w.effects.all(), "nobody has seen the second approval")
		})
	}
}

// TestMoreThanOnce_decide_as_it_was: who names what was asked first is told that it
// counts, before and after what is asked anew is decided.
func TestMoreThanOnce_decide_as_it_was(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name func(w *world) runtime.DecideParams
		then runtime.DecideParams
		ran  string
	}{
		"a wait": {func(*world) runtime.DecideParams { return runtime.DecideParams{Approve: []string{"w2-1"}} }, runtime.DecideParams{Approve: []string{"w4-1"}}, "deploy 1"},
		"a checkpoint": {func(w *world) runtime.DecideParams {
			return runtime.DecideParams{Approve: []string{"c2-1"}, Checkpoint: w.checkpoint(2)}
		}, edited("w4-1"), "deploy 2"},
		"all of it": {func(w *world) runtime.DecideParams {
			return runtime.DecideParams{ApproveAll: true, Checkpoint: w.checkpoint(2)}
		}, runtime.DecideParams{Reject: []string{"w4-1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := anew(t, runtime.DecideParams{Approve: []string{"c2-1"}})
			first := c.name(w)
			again, err := decide(w, p, first)
			require.NoError(t, err)
			require.True(t, again.Repeated)
			require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)

			out, err := decide(w, p, c.then)
			require.NoError(t, err)
			require.False(t, out.Repeated)
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			again, err = decide(w, p, first)
			require.NoError(t, err)
			require.True(t, again.Repeated)
			if c.ran != "" {
				require.Equal(t, map[string]int{c.ran: 1}, w.effects.all())
			}
		})
	}
}

func (w *world) checkpoint(seq int64) string {
	return session.Checkpoint{Session: w.key.ID, Seq: seq, Token: w.journal()[seq-1].Token}.String()
}

// TestMoreThanOnce_decide_at_the_newest_checkpoint: it says which is meant.
func TestMoreThanOnce_decide_at_the_newest_checkpoint(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]runtime.DecideParams{
		"by call": {Approve: []string{"c2-1"}}, "all": {ApproveAll: true}, "edited": edited("c2-1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := anew(t, runtime.DecideParams{Approve: []string{"c2-1"}})
			params.Checkpoint = w.session().Checkpoint().String()
			_, err := decide(w, p, params)
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			again, err := decide(w, p, params)
			require.NoError(t, err)
			require.True(t, again.Repeated)
			params.Checkpoint = ""
			again, err = decide(w, p, params)
			require.NoError(t, err, "none is open any more: the newest counts")
			require.True(t, again.Repeated)
		})
	}
}

// TestMoreThanOnce_after_a_deadline: what comes for the first may be late.
func TestMoreThanOnce_after_a_deadline(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireReask, nil)
	w.clock.advance(2 * time.Hour)
	_, err := p.Sweep(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Equal(t, "w4-1", w.open(session.WaitApproval).Wait.ID)
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"c2-1"}})
	require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err))
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w2-1"}})
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	_, err = decide(w, p, runtime.DecideParams{Approve: []string{"w4-1"}})
	require.NoError(t, err)
}

func TestMoreThanOnce_confirmation(t *testing.T) {
	t.Parallel()
	w, p := anew(t, runtime.DecideParams{Approve: []string{"c2-1"}})
	confirm := func(checkpoint string) (runtime.Resumed, error) {
		return p.Resume(context.Background(), runtime.ResumeParams{
			Key: w.key, Mode: runtime.ResumeWithConfirmation, Checkpoint: checkpoint, Confirmation: runtime.Confirmation{Approved: true}, Caller: person,
		})
	}
	_, err := confirm("")
	require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err), "%v", err)
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

// TestMoreThanOnce_submit_an_approval: its nonce names the one that was shown.
func TestMoreThanOnce_submit_an_approval(t *testing.T) {
	t.Parallel()
	w, p := anew(t, runtime.DecideParams{Approve: []string{"c2-1"}})
	submit := func(change func(*session.Answer)) (runtime.Submitted, error) {
		a := yes()
		a.Kind, a.ToolCallID = session.AnswerApproval, "c2-1"
		change(&a)
		return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
	}
	first, second := w.waits()[0].Wait, w.waits()[1].Wait
	_, err := submit(func(*session.Answer) {})
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	for range 2 {
		out, err := submit(func(a *session.Answer) { a.ApprovalID = first.Nonce })
		require.NoError(t, err)
		require.True(t, out.Repeated)
		require.Equal(t, session.WaitOpen, w.open(session.WaitApproval).State)
	}
	_, err = submit(func(a *session.Answer) { a.ApprovalID, a.Approved = first.Nonce, no().Approved })
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	_, err = submit(func(a *session.Answer) { a.ApprovalID, a.Wait = first.Nonce, second.ID })
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err), "a wait and another one's nonce")
	out, err := submit(func(a *session.Answer) { a.ApprovalID = second.Nonce })
	require.NoError(t, err)
	require.False(t, out.Repeated)
}

// TestMoreThanOnce_submit_a_reply: by its call alone, sent again, it would answer
// the tool's next question.
func TestMoreThanOnce_submit_a_reply(t *testing.T) {
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
			reply := func(question, words string) (runtime.Submitted, error) {
				a := text(words)
				a.Kind, a.ToolCallID, a.QuestionID = session.AnswerReply, "c2-1", question
				out, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
				if err == nil {
					require.NoError(t, p.settle())
				}
				return out, err
			}
			if atOnce {
				_, err := reply("", "yes")
				require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err), "which of them?")
				_, err = reply("1", "yes")
				require.NoError(t, err)
			} else {
				_, err := reply("", "yes")
				require.NoError(t, err, "there is only one")
			}
			_, err := reply("", "yes")
			require.Equal(t, runtime.CodeStaleCheckpoint, codeOf(err))
			out, err := reply("1", "yes")
			require.NoError(t, err)
			require.True(t, out.Repeated)
			require.Equal(t, "Second?", w.open(session.WaitQuestion).Wait.Question.Text)
			_, err = reply("2", "no")
			require.NoError(t, err)
			require.JSONEq(t, `"yesno"`, string(results(w.session())["c2-1"].Output))
			if !atOnce {
				out, err = reply("", "no")
				require.NoError(t, err, "none is open any more: the newest counts")
				require.True(t, out.Repeated)
			}
		})
	}
}
