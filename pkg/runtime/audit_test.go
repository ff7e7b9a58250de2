package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestAudit_of_refused_answers: who was refused, when and why stands beside the wait,
// up to a bound; who may not answer does not reach it, and the answer that counts is
// taken all the same.
func TestAudit_of_refused_answers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := waiting(t, "guarded")
	carol := runtime.Caller{Who: "carol", From: "test"}
	for range journal.MaxAudit + 5 {
		_, err := w.submit(p, session.WaitApproval, yes())
		require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	}
	lines := w.items(store.KindAudit)
	require.Len(t, lines, journal.MaxAudit/2, "the rest is for those who may answer")
	require.Equal(t, journal.AuditRefused, lines[0].Audit.Kind)
	require.Equal(t, person.Who, lines[0].Audit.Who)
	require.JSONEq(t, `{"code":"not_allowed"}`, string(lines[0].Audit.Data))
	require.EqualValues(t, 32, w.waits()[0].Unrecorded, "of 55 that have no line, counted at each power of two")
	for range journal.MaxAudit {
		_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(w.open(session.WaitApproval).Wait, session.Answer{})})
		require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	}
	lines = w.items(store.KindAudit)
	require.Len(t, lines, journal.MaxAudit)
	require.Equal(t, carol.Who, lines[journal.MaxAudit/2].Audit.Who)
	require.Equal(t, journal.AuditFull, lines[journal.MaxAudit-1].Audit.Kind)
	require.EqualValues(t, 64, w.waits()[0].Unrecorded)
	_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(w.open(session.WaitApproval).Wait, yes())})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)

	// The lines are a chain, and the entry that takes the answer in holds its end.
	chain := make([]journal.Audit, 0, len(lines))
	for _, line := range lines {
		chain = append(chain, *line.Audit)
	}
	record := w.waits()[0]
	require.NoError(t, journal.CheckAudit(w.key, record.Wait.ID, chain, record.Audit))
	taken := w.journal()[record.TakenBy-1]
	require.Equal(t, session.KindResumed, taken.Kind)
	require.Equal(t, record.Audit.Hash, taken.Answers[0].Audit)
	require.NotEmpty(t, taken.Answers[0].Audit)
}

// TestAudit_of_views: who has read a wait has one line for each origin, up to a bound; reading never fails
// for it, and an answer counts all the same.
func TestAudit_of_views(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := waiting(t, "approve")
	see := func(who, from string) { p.Viewed(ctx, w.key, runtime.Caller{Who: who, From: from}, w.waits()) }
	silent := w.process(func(cfg *runtime.Config) {
		cfg.Store = &hook{Store: cfg.Store, update: func(ctx context.Context, _ session.Key, _ []store.Item) ([]store.Item, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
	})
	silent.Viewed(ctx, w.key, person, w.waits())
	require.Empty(t, w.items(store.KindAudit))
	for range 3 {
		see("ann", "cli")
		see("ann", "http 10.0.0.1")
	}
	require.Len(t, w.items(store.KindAudit), 2)
	for i := range 30 {
		see("ann", fmt.Sprintf("http 10.0.1.%d", i))
	}
	require.Len(t, w.items(store.KindAudit), 4, "nobody takes up all lines by many origins")
	for i := range 30 {
		see(fmt.Sprintf("ben%d", i), "cli")
	}
	lines := w.items(store.KindAudit)
	require.Len(t, lines, 20)
	require.Equal(t, session.AuditViewed, lines[0].Audit.Kind)
	require.Equal(t, "ann", lines[0].Audit.Who)
	require.Equal(t, "cli", lines[0].Audit.From)

	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	see("eve", "cli")
	require.Len(t, w.items(store.KindAudit), 20, "nobody is asked any more")
	w.checkAtRest()
	all, err := p.Audit(ctx, w.key)
	require.NoError(t, err)
	require.Len(t, all, 1+20+1+1)
	require.Equal(t, session.AuditAsked, all[0].Kind)
	require.Equal(t, session.AuditAnswered, all[21].Kind)
	require.Equal(t, person.Who, all[21].Who)
	require.Equal(t, session.AuditTaken, all[22].Kind)
}

// TestAudit_of_policies: a call that the policy of the task had approved, or denied, is told with that.
func TestAudit_of_policies(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), calls("put", `{"text":"2"}`), says("bye")}}))
	w.rules = session.TaskRules{Policy: &session.ToolPolicy{Tools: map[string]session.ToolMode{"line": session.ToolPrompt, "put": session.ToolNever}}}
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	lines, err := p.Audit(t.Context(), w.key)
	require.NoError(t, err)
	require.Equal(t, session.AuditAsked, lines[0].Kind)
	require.Contains(t, string(lines[0].Data), `"byPolicy":true`)
	last := lines[len(lines)-1]
	require.Equal(t, session.AuditDenied, last.Kind)
	require.Equal(t, "put", last.Tool)
	require.Equal(t, "policy", last.Who)
	w.checkAtRest()
}

// refusals are the codes of the lines of a wait's audit.
func (w *world) refusals(wait string) []runtime.Code {
	w.t.Helper()
	codes := []runtime.Code{}
	var lines []journal.Audit
	for _, item := range w.items(store.KindAudit) {
		if item.Audit.Wait != wait {
			continue
		}
		var data struct{ Code runtime.Code }
		require.NoError(w.t, json.Unmarshal(item.Audit.Data, &data))
		codes, lines = append(codes, data.Code), append(lines, *item.Audit)
	}
	for _, record := range w.waits() {
		if record.Wait.ID == wait {
			require.NoError(w.t, journal.CheckAudit(w.key, wait, lines, record.Audit))
		}
	}
	return codes
}

// withAnswer are waits as answers left them, without the audit of those that were refused.
func withAnswer(items []store.Item) []store.Item {
	for i := range items {
		record := *items[i].Wait
		record.Audit = journal.AuditTip{}
		items[i].Rev, items[i].Wait = 0, &record
	}
	return items
}

// TestRefused_is_audited: whatever answer to a wait there is, by whatever verb, leaves
// a line of it when it is refused, and changes nothing else.
func TestRefused_is_audited(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	submit := func(change func(a *session.Answer)) func(*world, *process) error {
		return func(w *world, p *process) error {
			a := fill(w.waits()[0].Wait, yes())
			change(&a)
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
			return err
		}
	}
	decide := func(change func(p *runtime.DecideParams)) func(*world, *process) error {
		return func(w *world, p *process) error {
			params := runtime.DecideParams{Key: w.key, Caller: person}
			change(&params)
			_, err := p.Decide(ctx, params)
			return err
		}
	}
	rejected := func(w *world, p *process) {
		_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: people, RejectAll: true})
		require.NoError(w.t, err)
	}
	for name, c := range map[string]struct {
		agent  string
		before func(*world, *process)
		try    func(*world, *process) error
		code   runtime.Code
		lines  int
	}{
		"who may not":                 {"guarded", nil, submit(func(*session.Answer) {}), runtime.CodeNotAllowed, 1},
		"who may not, decides":        {"guarded", nil, decide(func(p *runtime.DecideParams) { p.Approve = []string{"w2-1"} }), runtime.CodeNotAllowed, 1},
		"who may not, rejects all":    {"guarded", nil, decide(func(p *runtime.DecideParams) { p.RejectAll = true }), runtime.CodeNotAllowed, 1},
		"a nonce that is guessed":     {"approve", nil, submit(func(a *session.Answer) { a.Wait, a.ToolCallID, a.ApprovalID = "", "", "w2-1_guessed" }), runtime.CodeWaitNotFound, 1},
		"its wait with another nonce": {"approve", nil, submit(func(a *session.Answer) { a.ApprovalID = "w2-1_guessed" }), runtime.CodeInvalidAnswer, 1},
		"another kind": {"approve", nil, submit(func(a *session.Answer) {
			*a = session.Answer{Wait: a.Wait, Kind: session.AnswerVerdict, Verdict: session.VerdictHappened}
		}), runtime.CodeWrongKind, 1},
		"another call":         {"approve", nil, submit(func(a *session.Answer) { a.ToolCallID = "c2-2" }), runtime.CodeWaitNotFound, 1},
		"another question":     {"name", nil, submit(func(a *session.Answer) { a.Approved, a.Text, a.QuestionID = nil, new(string), "another" }), runtime.CodeWrongKind, 1},
		"no approval, decided": {"name", nil, decide(func(p *runtime.DecideParams) { p.Reject = []string{"w3-1"} }), runtime.CodeWrongKind, 1},
		"answered otherwise":   {"approve", rejected, submit(func(*session.Answer) {}), runtime.CodeAlreadyAnswered, 1},
		"decided otherwise":    {"approve", rejected, decide(func(p *runtime.DecideParams) { p.Approve = []string{"w2-1"} }), runtime.CodeAlreadyAnswered, 1},
		"confirmed otherwise": {"approve", rejected, func(w *world, p *process) error {
			_, err := p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person, Mode: runtime.ResumeWithConfirmation, Confirmation: runtime.Confirmation{Wait: "w2-1", Approved: true}})
			return err
		}, runtime.CodeAlreadyAnswered, 1},
		"a wait there is not":           {"approve", nil, submit(func(a *session.Answer) { a.Wait = "w2-9" }), runtime.CodeWaitNotFound, 0},
		"a nonce of no wait":            {"approve", nil, submit(func(a *session.Answer) { a.Wait, a.ToolCallID, a.ApprovalID = "", "", "w2-9_guessed" }), runtime.CodeWaitNotFound, 0},
		"malformed":                     {"approve", nil, submit(func(a *session.Answer) { a.Text = new(string) }), runtime.CodeInvalidInput, 1},
		"all of nobody knows what":      {"approve", nil, decide(func(p *runtime.DecideParams) { p.ApproveAll = true }), runtime.CodeInvalidInput, 0},
		"the same again":                {"approve", rejected, decide(func(p *runtime.DecideParams) { p.RejectAll = true }), "", 0},
		"the same again, by its wait":   {"approve", rejected, submit(func(a *session.Answer) { a.Approved = new(bool) }), "", 0},
		"nobody's, by one who may look": {"name", nil, decide(func(p *runtime.DecideParams) { p.RejectAll = true }), runtime.CodeNothingToDecide, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := waiting(t, c.agent)
			if c.before != nil {
				c.before(w, p)
			}
			id := w.waits()[0].Wait.ID
			before := withAnswer(w.items(store.KindWait))
			for n := 1; n <= 2; n++ {
				require.Equal(t, c.code, codeOf(c.try(w, p)))
				require.Equal(t, slices.Repeat([]runtime.Code{c.code}, n*c.lines), w.refusals(id), "each time")
			}
			require.Equal(t, before, withAnswer(w.items(store.KindWait)))
		})
	}
}

// TestRefused_is_audited_once_it_is_told: a request that finds itself carried out by
// a copy of it was not refused.
func TestRefused_is_audited_once_it_is_told(t *testing.T) {
	t.Parallel()
	w, p := deciding(t)
	ctx := context.Background()
	params := runtime.DecideParams{Key: w.key, Caller: person, Approve: []string{"w2-1"}, IdempotencyKey: "k"}
	cross := &storeHook{when: updateOf(store.KindWait), happens: func() {
		_, err := p.Decide(ctx, params)
		require.NoError(t, err)
		require.NoError(t, p.settle())
	}}
	copied := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
	out, err := copied.Decide(ctx, params)
	require.NoError(t, err)
	require.True(t, out.Replayed)
	require.Empty(t, w.items(store.KindAudit))
}

// TestRefused_is_audited_though_its_caller_has_gone: who hangs up leaves a trace too,
// and so do two at once.
func TestRefused_is_audited_though_its_caller_has_gone(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "guarded")
	ctx, hangUp := context.WithCancel(context.Background())
	other := func() { _, _ = w.submit(p, session.WaitApproval, yes()) }
	cross := &storeHook{when: updateOf(store.KindWait), happens: func() {
		hangUp()
		other()
	}}
	rude := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
	_, err := rude.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.open(session.WaitApproval).Wait, yes())})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	require.Len(t, w.refusals("w2-1"), 2)
}
