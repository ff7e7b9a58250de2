package runtime_test

import (
	"context"
	"encoding/json"
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

// otherDigest writes journals in which a wait shows other arguments than its call has.
func otherDigest(s store.Store) store.Store {
	return &hook{Store: s, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
		for i := range p.Entry.Waits {
			p.Entry.Waits[i].Digest = journal.Digest([]byte(`{"text":"what was shown"}`))
			for _, item := range p.Items {
				if item.Kind == store.KindWait && item.ID == p.Entry.Waits[i].ID {
					item.Wait.Wait.Digest = p.Entry.Waits[i].Digest
				}
			}
		}
		return s.Commit(ctx, vouched(p))
	}}
}

// otherAnswers writes journals in which answers are for other arguments than was said.
func otherAnswers(digest string) func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		return &hook{Store: s, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			for i := range p.Entry.Answers {
				p.Entry.Answers[i].Digest = digest
			}
			return s.Commit(ctx, vouched(p))
		}}
	}
}

// vouched has HEAD name the entry as it is now.
func vouched(p store.CommitParams) store.CommitParams {
	for _, item := range p.Items {
		if item.Kind == store.KindHead && item.Head.Newest.Seq > 0 {
			item.Head.Newest.Hash, _ = journal.HashOf(&p.Entry)
		}
	}
	return p
}

// TestApproval_mismatch: a call whose arguments are not those that were approved
// does not run, and the model is told. Missing is never yes.
func TestApproval_mismatch(t *testing.T) {
	t.Parallel()
	other := journal.Digest([]byte(`{"text":"3"}`))
	edited := yes()
	edited.EditedInput = json.RawMessage(`{"text":"2"}`)
	for name, c := range map[string]struct {
		store  func(store.Store) store.Store
		answer session.Answer
		// door refuses the answer.
		door bool
	}{
		"other arguments were shown":     {store: otherDigest, answer: yes(), door: true},
		"an answer without a digest":     {store: otherAnswers(""), answer: yes()},
		"an answer to other arguments":   {store: otherAnswers(other), answer: yes()},
		"edited, without a digest":       {store: otherAnswers(""), answer: edited},
		"edited into something else":     {store: otherAnswers(other), answer: edited},
		"edited, with that of the shown": {store: otherAnswers(journal.Digest([]byte(`{"text":"1"}`))), answer: edited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"approve": {calls("deploy", `{"text":"1"}`), says("bye")}}))
			p := w.process(func(cfg *runtime.Config) { cfg.Store = c.store(cfg.Store) })
			w.run(p, "approve")
			_, err := w.submit(p, session.WaitApproval, c.answer)
			if c.door {
				require.Equal(t, runtime.CodeApprovalMismatch, codeOf(err))
				require.NoError(t, p.work())
				require.Equal(t, session.StatusSuspended, w.session().Status)
				require.Empty(t, made.all())
				return
			}
			require.NoError(t, err)
			require.NoError(t, p.work())
			s := w.session()
			require.Equal(t, session.StatusCompleted, s.Status)
			require.Empty(t, made.all())
			require.Len(t, results(s), 1)
			require.Equal(t, llm.ResultError, results(s)["c2-1"].Status)
			require.Contains(t, string(results(s)["c2-1"].Output), "approval_mismatch")
			require.Equal(t, journal.ToolClosed, w.items(store.KindTool)[0].Tool.State, "nor will it")
			w.checkRecords()
			_, check, err := p.VerifyAudit(t.Context(), w.key)
			require.NoError(t, err)
			require.NotEmpty(t, check.Faults)
		})
	}
}

// TestApproval_of_what_runs: the answer in the journal, that of a deadline as well,
// has the digest of what ran.
func TestApproval_of_what_runs(t *testing.T) {
	t.Parallel()
	approved, edited := yes(), yes()
	edited.EditedInput = json.RawMessage(`{"text":"2"}`)
	for name, c := range map[string]struct {
		answer *session.Answer
		ran    string
	}{
		"as shown":  {&approved, `{"text":"1"}`},
		"edited":    {&edited, `{"text":"2"}`},
		"a default": {nil, `{"text":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := expiring(t, session.WaitApproval, session.ExpireDefault, true)
			if c.answer != nil {
				_, err := w.submit(p, session.WaitApproval, *c.answer)
				require.NoError(t, err)
			} else {
				w.clock.advance(2 * time.Hour)
				require.Equal(t, 1, sweepOf(t, p).Expired)
			}
			require.NoError(t, p.settle())
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			var answered, ran []string
			for _, e := range w.journal() {
				for _, a := range e.Answers {
					answered = append(answered, a.Digest)
				}
				for _, run := range e.Calls {
					ran = append(ran, run.Digest)
				}
			}
			require.Equal(t, []string{journal.Digest(json.RawMessage(c.ran))}, answered)
			require.Equal(t, answered, ran)
		})
	}
}

// TestWho_covers_questions: who may answer for a tool may answer what it asks.
func TestWho_covers_questions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, question, want []string }{
		"the tool's":     {[]string{"ops"}, nil, []string{"ops"}},
		"the question's": {[]string{"ops"}, []string{"legal"}, []string{"legal"}},
		"nobody's":       {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asks := tool.Define(tool.Spec[textIn]{Name: "asks", Who: c.tool}, func(ctx context.Context, call *tool.Call, _ textIn) (string, error) {
				reply, err := call.Ask(ctx, tool.Question{ID: "q", Text: "Sure?", Who: c.question})
				return reply.Text, err
			})
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"ask": {calls("asks", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, asks) }))
			p := w.process()
			w.run(p, "ask")
			require.Equal(t, c.want, w.open(session.WaitQuestion).Wait.Who)
			_, err := w.submit(p, session.WaitQuestion, text("yes"))
			if c.want != nil {
				require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
				return
			}
			require.NoError(t, err)
		})
	}
}
