package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// otherDigest writes journals in which a wait shows other arguments than its call has.
type otherDigest struct{ store.Store }

func (s otherDigest) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	for i := range p.Entry.Waits {
		p.Entry.Waits[i].Digest = session.Digest([]byte(`{"text":"what was shown"}`))
	}
	return s.Store.Commit(ctx, p)
}

// TestApproval_mismatch: a call whose arguments are not those that were approved
// does not run, and the model is told.
func TestApproval_mismatch(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"approve": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.Store = otherDigest{cfg.Store} })
	w.run(p, "approve")
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Empty(t, made.all())
	results := 0
	for _, e := range w.journal() {
		for _, m := range e.Messages {
			for _, part := range m.Parts {
				if r := part.ToolResult; r != nil {
					results++
					require.Equal(t, llm.ResultError, r.Status)
					require.Contains(t, string(r.Output), "approval_mismatch")
				}
			}
		}
	}
	require.Equal(t, 1, results)
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
