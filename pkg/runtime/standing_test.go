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
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

type paymentIn struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

// standing is a permission for orders like the one approved, up to an amount.
func standingFor(how string, amount int) *session.Standing {
	return &session.Standing{For: how, Conditions: []session.Condition{{Field: "/amount", AtMost: json.RawMessage(fmt.Sprint(amount))}}}
}

// paying is a world whose agent pays 50, then 60, then 200 of an order, and then what the next message says.
func paying(t *testing.T, change ...func(*tool.Spec[paymentIn])) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, payer(made, change...))
	p := w.process()
	w.run(p, "go")
	require.Equal(t, session.StatusSuspended, w.session().Status)
	return w, p
}

func payer(made *effects, change ...func(*tool.Spec[paymentIn])) agent.Agent {
	spec := tool.Spec[paymentIn]{Name: "pay", Approve: tool.Always[paymentIn], Standing: &tool.Standing{}}
	for _, c := range change {
		c(&spec)
	}
	pays := func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(spec, func(_ context.Context, _ *tool.Call, in paymentIn) (string, error) {
			made.add(fmt.Sprintf("pay %s %d", in.Order, in.Amount))
			return "paid", nil
		}))
	}
	pay := func(order string, amount int) turn { return calls("pay", asked(order, amount)) }
	return helper(made, script{
		"go":   {pay("A", 50), pay("A", 60), pay("A", 200), says("bye")},
		"more": {pay("A", 70), says("bye")},
		"two":  {calls("pay", asked("A", 71), "pay", asked("A", 72), "line", `{"text":"1"}`), says("bye")},
	}, pays)
}

func asked(order string, amount int) string {
	return fmt.Sprintf(`{"order":%q,"amount":%d}`, order, amount)
}

// gives approves what waits with a standing permission.
func (w *world) gives(p *process, who string, s *session.Standing) error {
	w.t.Helper()
	a := yes()
	a.Standing = s
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: named(who), Answer: fill(w.open(session.WaitApproval).Wait, a)})
	return err
}

// waitsFor are the arguments of the call that waits for an approval.
func (w *world) waitsFor() string { return string(w.open(session.WaitApproval).Wait.Arguments) }

// permissionOf is the only one of a session.
func (w *world) permissionOf(p *process) session.ShownPermission {
	w.t.Helper()
	all, err := p.Permissions(context.Background(), w.key)
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return all[0]
}

// verified checks that the records are whole, and returns the calls that permissions covered.
func (w *world) verified() (covered []string) {
	w.t.Helper()
	lines, check, err := w.reader.VerifyAudit(context.Background(), w.key)
	require.NoError(w.t, err)
	require.True(w.t, check.Whole, "%+v", check.Faults)
	for _, line := range lines {
		if line.Kind == session.AuditCovered {
			covered = append(covered, line.Wait+" "+line.Who+" "+line.Call+" "+line.Tool)
		}
	}
	return covered
}

// TestStanding: what a permission covers runs without asking, the entry says by which, and what it does not
// cover is asked.
func TestStanding(t *testing.T) {
	t.Parallel()
	w, p := paying(t)
	require.NoError(t, w.gives(p, "ann", standingFor("session", 100)))
	require.NoError(t, p.settle())
	require.JSONEq(t, asked("A", 200), w.waitsFor())
	require.Equal(t, map[string]int{"pay A 50": 1, "pay A 60": 1}, w.effects.all())
	var ran []journal.ToolRun
	for _, e := range w.journal() {
		ran = append(ran, e.Calls...)
		gives := len(e.Answers) > 0
		require.Equal(t, gives, len(e.Needs) > 0, "an older program refuses the entry that takes it in, and no other")
		if gives {
			require.Equal(t, []string{session.NeedsStanding}, e.Needs)
			require.Equal(t, e.Needs, w.waits()[0].Wait.Needs)
		}
	}
	require.Len(t, ran, 2)
	require.Empty(t, ran[0].Permission)
	require.Equal(t, w.waits()[0].Wait.ID, ran[1].Permission)
	is := w.permissionOf(p)
	require.Equal(t, session.PermissionValid, is.State)
	require.Equal(t, "ann", is.Who)
	require.Equal(t, is.When.Add(24*time.Hour), is.Standing.Until)
	require.Equal(t, []string{"calls of pay", "amount is a number from 0 to 100", "all other arguments are those of this call"}, is.Covers)
	require.Equal(t, []string{is.ID + " ann " + ran[1].Call + " pay"}, w.verified())

	_, err := w.submit(p, session.WaitApproval, no())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.start(p, "more") // a later turn of the session
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("pay A 70"))
	w.start(p, "two")
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("pay A 71")+w.effects.count("pay A 72")-1)
	require.Len(t, w.verified(), 4)
	w.checkAtRest()
}

// TestStanding_is_over: each of these ends a permission, and then somebody is asked.
func TestStanding_is_over(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		between func(t *testing.T, w *world, p *process) *process
		state   session.PermissionState
	}{
		"expired": {func(_ *testing.T, w *world, p *process) *process { w.clock.advance(time.Hour); return p }, session.PermissionExpired},
		"revoked": {func(t *testing.T, w *world, p *process) *process {
			is := w.permissionOf(p)
			out, repeated, err := p.RevokePermission(ctx, w.key, is.ID, " it was too much ", named("bob"))
			require.NoError(t, err)
			require.False(t, repeated)
			require.Equal(t, session.PermissionRevoked, out.State)
			again, repeated, err := p.RevokePermission(ctx, w.key, is.ID, "other", named("cyd"))
			require.NoError(t, err)
			require.True(t, repeated)
			require.Equal(t, &session.Revocation{Who: "bob", From: "test", At: w.clock.Now().UTC(), Reason: "it was too much"}, again.Revoked)
			return p
		}, session.PermissionRevoked},
		"another definition": {func(_ *testing.T, w *world, _ *process) *process {
			return w.process(withAgents(w.t, payer(w.effects, func(s *tool.Spec[paymentIn]) { s.Description = "new" })))
		}, session.PermissionVoid},
		"the tool takes none": {func(_ *testing.T, w *world, _ *process) *process {
			return w.process(withAgents(w.t, payer(w.effects, func(s *tool.Spec[paymentIn]) { s.Standing = nil })))
		}, session.PermissionVoid},
		"a changed record": {func(_ *testing.T, w *world, p *process) *process {
			item := w.items(store.KindWait)[0]
			record := *item.Wait
			record.Answer.Standing.Conditions[0].AtMost = json.RawMessage("5000")
			w.update(store.WaitItem(record, item.Rev))
			return p
		}, session.PermissionVoid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := paying(t)
			require.NoError(t, w.gives(p, "ann", standingFor("1h", 1000)))
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			p = c.between(t, w, p)
			w.start(p, "more")
			require.NoError(t, p.settle())
			require.JSONEq(t, asked("A", 70), w.waitsFor())
			require.Zero(t, w.effects.count("pay A 70"))
			require.Equal(t, c.state, w.permissionOf(p).State)
		})
	}
}

// TestStanding_after_a_cut: going back, a fork, and a task that failed or was stopped end every permission.
func TestStanding_after_a_cut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	given := func(t *testing.T) (*world, *process) {
		w, p := paying(t)
		require.NoError(t, w.gives(p, "ann", standingFor("session", 100)))
		require.NoError(t, p.settle())
		return w, p
	}
	none := func(t *testing.T, w *world, p *process) {
		all, err := p.Permissions(ctx, w.key)
		require.NoError(t, err)
		require.Empty(t, all)
	}
	t.Run("before it was given", func(t *testing.T) {
		t.Parallel()
		w, p := given(t)
		_, err := acknowledging(p, &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people})
		require.NoError(t, err)
		require.NoError(t, p.settle())
		none(t, w, p)
		require.JSONEq(t, asked("A", 60), w.waitsFor(), "what was approved is done, and this is asked")
	})
	t.Run("after it was given", func(t *testing.T) {
		t.Parallel()
		w, p := given(t)
		_, err := acknowledging(p, &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()+2), Caller: people})
		require.NoError(t, err)
		require.NoError(t, p.settle())
		none(t, w, p)
		require.JSONEq(t, asked("A", 60), w.waitsFor())
	})
	t.Run("fork", func(t *testing.T) {
		t.Parallel()
		w, p := given(t)
		forked, err := p.Fork(ctx, runtime.ForkParams{Origin: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()+2), Caller: people})
		require.NoError(t, err)
		origin := w.key
		w.key = forked.Key
		require.NoError(t, p.settle())
		none(t, w, p)
		require.JSONEq(t, asked("A", 60), w.waitsFor())
		require.Len(t, func() []session.ShownPermission { all, _ := p.Permissions(ctx, origin); return all }(), 1)
		require.Equal(t, runtime.CodePermissionNotFound, codeOf(func() error {
			_, _, err := p.RevokePermission(ctx, w.key, w.waits()[0].Wait.ID, "", named("ann"))
			return err
		}()))
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		w, p := given(t)
		_, err := p.Stop(ctx, runtime.StopParams{Key: w.key, Kind: runtime.SignalCancel, Caller: people})
		require.NoError(t, err)
		require.NoError(t, p.settle())
		none(t, w, p)
		w.start(p, "more")
		require.NoError(t, p.settle())
		require.JSONEq(t, asked("A", 70), w.waitsFor())
	})
	t.Run("another session", func(t *testing.T) {
		t.Parallel()
		w, p := given(t)
		w.key.ID = "another"
		w.start(p, "more")
		require.NoError(t, p.settle())
		require.JSONEq(t, asked("A", 70), w.waitsFor())
	})
}

// TestStanding_asks: what a permission does not cover, and what asks in spite of it.
func TestStanding_asks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec    func(*tool.Spec[paymentIn])
		between func(w *world)
		runs    bool
	}{
		"covered": {func(*tool.Spec[paymentIn]) {}, func(*world) {}, true},
		"a high risk": {func(s *tool.Spec[paymentIn]) {
			s.Show = func(in paymentIn) tool.Preview {
				risk := tool.RiskLow
				if in.Amount == 70 {
					risk = tool.RiskHigh
				}
				return tool.Preview{Title: "pay", Risk: risk}
			}
		}, func(*world) {}, false},
		"a preview that fails": {func(s *tool.Spec[paymentIn]) {
			s.Show = func(in paymentIn) tool.Preview {
				if in.Amount == 70 {
					panic("boom")
				}
				return tool.Preview{Title: "pay"}
			}
		}, func(*world) {}, false},
		"a low risk": {func(s *tool.Spec[paymentIn]) {
			s.Show = func(paymentIn) tool.Preview { return tool.Preview{Title: "pay", Risk: tool.RiskLow} }
		}, func(*world) {}, true},
		"a policy that prompts": {func(*tool.Spec[paymentIn]) {}, func(w *world) { w.rules = policyOf(map[string]session.ToolMode{"pay": session.ToolPrompt}) }, false},
		"a policy that leaves it": {func(*tool.Spec[paymentIn]) {}, func(w *world) {
			w.rules = policyOf(map[string]session.ToolMode{"pay": session.ToolAuto})
		}, true},
		"who gave it asks now": {func(s *tool.Spec[paymentIn]) { s.NotRequester = true }, func(*world) {}, false},
		"somebody else does":   {func(s *tool.Spec[paymentIn]) { s.NotRequester = true }, func(*world) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := paying(t, c.spec)
			require.NoError(t, w.gives(p, "bob", standingFor("session", 1000)))
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			c.between(w)
			by := person
			if name == "who gave it asks now" {
				by = named("bob")
			}
			_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: by, Rules: w.rules})
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, c.runs, w.session().Status == session.StatusCompleted)
			require.Equal(t, c.runs, w.effects.count("pay A 70") == 1)
			w.verified()
		})
	}
}

// TestStanding_of_a_policy: what the task's own policy asked for may stand, as long as those rules do.
func TestStanding_of_a_policy(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, payer(made, func(s *tool.Spec[paymentIn]) { s.Approve = nil }))
	w.rules = policyOf(map[string]session.ToolMode{"pay": session.ToolPrompt})
	p := w.process()
	w.run(p, "go")
	require.NoError(t, w.gives(p, "ann", standingFor("session", 1000)))
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Len(t, w.verified(), 2)
	w.start(p, "more")
	require.NoError(t, p.settle())
	require.JSONEq(t, asked("A", 70), w.waitsFor(), "another task with another policy, though it says the same")
}

// TestStanding_refused: who may not give a permission, and with what it is not given. Nothing is decided.
func TestStanding_refused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		spec func(*tool.Spec[paymentIn])
		by   runtime.Caller
		a    func(*session.Answer)
		code runtime.Code
	}{
		"a link":             {nil, runtime.Caller{Who: "ann", ByLink: true}, nil, runtime.CodeSignInRequired},
		"unverified":         {nil, runtime.Caller{Who: "ann", Unverified: true}, nil, runtime.CodeSignInRequired},
		"not signed in":      {nil, runtime.Caller{Who: "ann", NotSignedIn: true}, nil, runtime.CodeSignInRequired},
		"nobody":             {nil, runtime.Caller{}, nil, runtime.CodeSignInRequired},
		"a no":               {nil, named("ann"), func(a *session.Answer) { a.Approved = new(bool) }, runtime.CodeInvalidAnswer},
		"with an edit":       {nil, named("ann"), func(a *session.Answer) { a.EditedInput = json.RawMessage(asked("A", 51)) }, runtime.CodeInvalidAnswer},
		"too long":           {nil, named("ann"), func(a *session.Answer) { a.Standing.For = "25h" }, runtime.CodeInvalidAnswer},
		"for ever":           {nil, named("ann"), func(a *session.Answer) { a.Standing.For = "" }, runtime.CodeInvalidAnswer},
		"longer than it may": {func(s *tool.Spec[paymentIn]) { s.Standing.MaxAge = time.Hour }, named("ann"), func(a *session.Answer) { a.Standing.For = "2h" }, runtime.CodeInvalidAnswer},
		"it does not hold":   {nil, named("ann"), func(a *session.Answer) { a.Standing = standingFor("1h", 49) }, runtime.CodeInvalidAnswer},
		"the tool has none":  {func(s *tool.Spec[paymentIn]) { s.Standing = nil }, named("ann"), nil, runtime.CodeInvalidAnswer},
		"a high risk": {func(s *tool.Spec[paymentIn]) {
			s.Show = func(paymentIn) tool.Preview { return tool.Preview{Title: "pay", Risk: tool.RiskHigh} }
		}, named("ann"), nil, runtime.CodeInvalidAnswer},
		"not named": {func(s *tool.Spec[paymentIn]) { s.Who = []string{"bob"} }, named("ann"), nil, runtime.CodeNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := c.spec
			if spec == nil {
				spec = func(*tool.Spec[paymentIn]) {}
			}
			w, p := paying(t, spec)
			wait := w.open(session.WaitApproval).Wait
			a := fill(wait, yes())
			a.Standing = standingFor("1h", 100)
			if c.by.ByLink {
				a.Digest = wait.Digest
			}
			if c.a != nil {
				c.a(&a)
			}
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: c.by, Answer: a})
			require.Equal(t, c.code, codeOf(err), "%v", err)
			require.Equal(t, session.WaitOpen, w.waits()[0].State)
			if c.a == nil && c.code != runtime.CodeNotAllowed && !c.by.ByLink {
				_, err = p.PreviewPermission(ctx, w.key, wait.ID, *a.Standing, c.by)
				require.Equal(t, c.code, codeOf(err), "%v", err)
			}
		})
	}
	w, p := paying(t)
	a := session.Answer{Kind: session.AnswerReply, Wait: "w2-1", Standing: standingFor("1h", 100)}
	_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: named("ann"), Answer: a})
	require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
	require.NoError(t, w.gives(p, "ann", standingFor("1h", 100)))
	other := standingFor("2h", 100)
	again := fill(w.waits()[0].Wait, yes())
	again.Standing = other
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: named("ann"), Answer: again})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "another permission is another answer")
	again.Standing = standingFor("1h", 100)
	same, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: named("ann"), Answer: again})
	require.NoError(t, err)
	require.True(t, same.Repeated)
}

// TestStanding_preview: before it is given, one sees what it would have covered. Nothing is written.
func TestStanding_preview(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := paying(t)
	for range 2 {
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		require.NoError(t, p.settle())
	}
	before := asJSON(t, w.waits())
	wait := w.open(session.WaitApproval).Wait
	out, err := p.PreviewPermission(ctx, w.key, wait.ID, session.Standing{For: "2h", Conditions: []session.Condition{{Field: "/amount", AtMost: json.RawMessage("200")}, {Field: "/order", Equal: json.RawMessage(`"A"`)}}}, named("ann"))
	require.NoError(t, err)
	require.Equal(t, w.clock.Now().Add(2*time.Hour), out.Until)
	require.Len(t, out.Earlier, 2)
	require.JSONEq(t, asked("A", 60), string(out.Earlier[0].Arguments))
	require.True(t, out.Earlier[0].Covered && out.Earlier[1].Covered)
	out, err = p.PreviewPermission(ctx, w.key, wait.ID, session.Standing{For: "session"}, named("ann"))
	require.NoError(t, err)
	require.False(t, out.Earlier[0].Covered || out.Earlier[1].Covered)
	require.Equal(t, before, asJSON(t, w.waits()))
	_, err = p.PreviewPermission(ctx, w.key, "w9-9", session.Standing{For: "session"}, named("ann"))
	require.Equal(t, runtime.CodeWaitNotFound, codeOf(err))
}

// TestStanding_costs: a step reads one record more where a permission covers its call, and none where none does.
func TestStanding_costs(t *testing.T) {
	t.Parallel()
	requests := func() int64 {
		w, p := paying(t)
		require.NoError(t, w.gives(p, "ann", standingFor("session", 1000)))
		require.NoError(t, p.settle())
		meter := &metered{Store: w.store, t: t}
		p = w.process(func(c *runtime.Config) { c.Store = meter })
		w.start(p, "more")
		meter.seen.requests.Store(0)
		require.NoError(t, p.work())
		return meter.seen.requests.Load()
	}
	plain := func() int64 {
		made := newEffects()
		w := newWorld(t, made, payer(made, func(s *tool.Spec[paymentIn]) { s.Approve = nil }))
		p := w.process()
		w.run(p, "go")
		meter := &metered{Store: w.store, t: t}
		p = w.process(func(c *runtime.Config) { c.Store = meter })
		w.start(p, "more")
		meter.seen.requests.Store(0)
		require.NoError(t, p.work())
		return meter.seen.requests.Load()
	}
	require.Equal(t, plain()+1, requests())
}

// TestStanding_revoked_in_between: of a revocation and a step one comes first. A step that begins after the
// revocation asks.
func TestStanding_revoked_in_between(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := paying(t)
	require.NoError(t, w.gives(p, "ann", standingFor("session", 1000)))
	require.NoError(t, p.settle())
	id := w.permissionOf(p).ID
	for at := 1; ; at++ {
		w.start(p, "more")
		n, revoked := 0, false
		crossed := w.process(func(c *runtime.Config) {
			real := c.Store
			c.Store = &hook{Store: real, commit: func(ctx context.Context, params store.CommitParams) (store.Committed, error) {
				if n++; n == at {
					_, _, err := w.reader.RevokePermission(ctx, w.key, id, "", named("bob"))
					require.NoError(t, err)
					revoked = true
				}
				return real.Commit(ctx, params)
			}}
		})
		require.NoError(t, crossed.settle())
		if w.session().Status == session.StatusSuspended || !revoked {
			break
		}
		require.Contains(t, []session.Status{session.StatusCompleted}, w.session().Status)
	}
	require.JSONEq(t, asked("A", 70), w.waitsFor())
	w.verified()
	_, _, err := p.RevokePermission(ctx, w.key, "w9-9", "", named("ann"))
	require.Equal(t, runtime.CodePermissionNotFound, codeOf(err))
	_, _, err = p.RevokePermission(ctx, w.key, id, "", runtime.Caller{})
	require.Equal(t, runtime.CodeSignInRequired, codeOf(err))
}

// TestStanding_escalated: whom only the deadline lets answer approves the call that waits, and not those after it.
// Who is asked first still may, and not whom they delegated it to.
func TestStanding_escalated(t *testing.T) {
	t.Parallel()
	chief := runtime.Caller{Who: "zoe", From: "test", Roles: []string{"chief"}}
	for name, c := range map[string]struct {
		by   runtime.Caller
		code runtime.Code
	}{
		"asked first":        {named("ann"), ""},
		"delegated to":       {named("ben"), runtime.CodeNotAllowed},
		"by its name":        {named("eve"), runtime.CodeNotAllowed},
		"by a role":          {chief, runtime.CodeNotAllowed},
		"delegated by eve":   {named("kim"), runtime.CodeNotAllowed},
		"who may not at all": {named("mia"), runtime.CodeNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := paying(t, func(s *tool.Spec[paymentIn]) {
				s.Who = []string{"ann"}
				s.Expiry = &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{Who: []string{"eve"}, Roles: []string{"chief"}, After: time.Hour}}
			})
			w.delegates(p, named("ann"), "ben")
			w.clock.advance(time.Hour)
			w.delegates(p, named("eve"), "kim")
			wait := w.open(session.WaitApproval).Wait
			a := fill(wait, yes())
			a.Standing = standingFor("1h", 1000)
			_, err := p.PreviewPermission(t.Context(), w.key, wait.ID, *a.Standing, c.by)
			require.Equal(t, c.code, codeOf(err), "%v", err)
			_, err = p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: c.by, Answer: a})
			require.Equal(t, c.code, codeOf(err), "%v", err)
		})
	}
}

// TestStanding_revoked_before: what was answered and is not taken in yet can be revoked, and never counts.
func TestStanding_revoked_before(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w, p := paying(t)
	wait := w.open(session.WaitApproval).Wait
	_, _, err := p.RevokePermission(ctx, w.key, wait.ID, "", named("bob"))
	require.Equal(t, runtime.CodePermissionNotFound, codeOf(err), "nobody has given it")
	a := yes()
	a.Standing = standingFor("session", 1000)
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: named("ann"), Answer: fill(wait, a), HoldResume: true})
	require.NoError(t, err)
	out, repeated, err := p.RevokePermission(ctx, w.key, wait.ID, "a mistake", named("bob"))
	require.NoError(t, err)
	require.False(t, repeated)
	require.Equal(t, session.PermissionRevoked, out.State)
	_, repeated, err = p.RevokePermission(ctx, w.key, wait.ID, "a mistake", named("bob"))
	require.NoError(t, err)
	require.True(t, repeated)
	_, err = p.Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: named("ann")})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.JSONEq(t, asked("A", 60), w.waitsFor(), "the call that was approved has run, and the next one is asked for")
	require.Equal(t, session.PermissionRevoked, w.permissionOf(p).State)
	require.Empty(t, w.verified())
}

// TestStanding_crash: a process that dies at any of its writes leaves a call that ran once, under the permission.
func TestStanding_crash(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w, p := paying(t)
			f := &fuse{at: at, after: after}
			dies := w.process(func(c *runtime.Config) { c.Store = &fusedStore{Store: c.Store, fuse: f} })
			if err := w.gives(dies, "ann", standingFor("session", 1000)); err == nil {
				_ = dies.work()
			}
			died := f.blown()
			if w.waits()[0].State == session.WaitOpen {
				require.NoError(t, w.gives(p, "ann", standingFor("session", 1000)))
			}
			w.clock.advance(time.Minute)
			require.NoError(t, p.settle())
			for call, times := range w.effects.all() {
				require.Equal(t, 1, times, "%s, died at %d", call, at)
			}
			if w.session().Status == session.StatusSuspended { // whether it ran is not known
				require.True(t, died)
			}
			w.verified()
			if !died {
				require.Equal(t, map[string]int{"pay A 50": 1, "pay A 60": 1, "pay A 200": 1}, w.effects.all())
				break
			}
		}
	}
}

// TestStanding_verify: a call that ran under no permission that there was is found.
func TestStanding_verify(t *testing.T) {
	t.Parallel()
	w, p := paying(t)
	require.NoError(t, w.gives(p, "ann", standingFor("1h", 1000)))
	require.NoError(t, p.settle())
	require.Len(t, w.verified(), 2)
	item := w.items(store.KindWait)[0]
	record := *item.Wait
	record.Revoked = &session.Revocation{Who: "bob", At: w.clock.Now().Add(-2 * time.Hour)}
	w.update(store.WaitItem(record, item.Rev))
	_, check, err := w.reader.VerifyAudit(context.Background(), w.key)
	require.NoError(t, err)
	require.Len(t, check.Faults, 2)
	require.Contains(t, check.Faults[0].Fault, "long after that was revoked")
	require.Equal(t, llm.ResultSuccess, results(w.session())[ranIn(w, record.Wait.ID)].Status)
}

// ranIn is the first call that a permission covered.
func ranIn(w *world, permission string) string {
	for _, e := range w.journal() {
		for _, run := range e.Calls {
			if run.Permission == permission {
				return run.Call
			}
		}
	}
	return ""
}

// TestStanding_delegated: one call was delegated, so that later ones are not let run by whom it was delegated to.
func TestStanding_delegated(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, namesTwo(func(s *tool.Spec[textIn]) { s.Standing = &tool.Standing{} }))
	w.delegates(p, named("bob"), "zoe")
	err := w.gives(p, "zoe", &session.Standing{For: "1h"})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "%v", err)
	require.NoError(t, w.gives(p, "bob", &session.Standing{For: "1h"}))
	require.NoError(t, p.settle())
	require.Equal(t, "bob", w.permissionOf(p).Who)
}
