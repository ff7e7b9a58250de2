package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// escalating is what ann or ben may approve, and after an hour eve and the role chief for another one.
func escalating(change ...func(*tool.Spec[textIn])) tool.Spec[textIn] {
	spec := tool.Spec[textIn]{
		Name: "pay", Approve: tool.Always[textIn], Who: []string{"ann", "ben"},
		Expiry: &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Escalate: &tool.Escalation{Who: []string{"eve"}, Roles: []string{"chief"}, After: time.Hour}},
	}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

// TestEscalation_who: before the deadline those who are named first, after it they and the others, by every
// door, whether or not a sweep has come by then.
func TestEscalation_who(t *testing.T) {
	t.Parallel()
	chief := runtime.Caller{Who: "zoe", From: "test", Roles: []string{"chief"}}
	for _, door := range []string{"submit", "decide"} {
		for _, swept := range []bool{false, true} {
			for name, by := range map[string]runtime.Caller{"ann": named("ann"), "eve": named("eve"), "a chief": chief} {
				t.Run(fmt.Sprintf("%s by %s, swept=%v", name, door, swept), func(t *testing.T) {
					t.Parallel()
					w, p := ruled(t, escalating())
					wait := w.open(session.WaitApproval).Wait
					require.Equal(t, []string{session.NeedsEscalation}, wait.Needs, "an older program leaves it alone")
					w.clock.advance(time.Hour - time.Second)
					for _, early := range []runtime.Caller{named("eve"), chief, named("mia")} {
						_, err := w.votes(p, early, yes())
						require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
					}
					w.clock.advance(time.Second)
					if swept {
						require.Equal(t, 1, sweepOf(t, p).Escalated)
					}
					_, err := w.votes(p, named("mia"), yes())
					require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
					if door == "submit" {
						_, err = w.votes(p, by, yes())
					} else {
						_, err = p.Decide(t.Context(), runtime.DecideParams{Key: w.key, Caller: by, Approve: []string{wait.ID}})
					}
					require.NoError(t, err)
					require.NoError(t, p.settle())
					require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
					require.True(t, w.answered().Escalated)
					require.Empty(t, w.answered().For, "for themselves")
					record := w.waits()[0]
					require.Equal(t, "escalated", actsOf(record))
					require.Equal(t, []string{"ann", "ben", "eve"}, record.Wait.Who)
					require.Equal(t, []string{"chief"}, record.Wait.Rule.Roles)
					require.Equal(t, record.Acts[0].At.Add(time.Hour), record.Wait.Deadline.At, "a time of their own")
					_, check, err := p.VerifyAudit(t.Context(), w.key)
					require.NoError(t, err)
					require.True(t, check.Whole, "%v", check.Faults)
					w.checkAtRest()
				})
			}
		}
	}
}

// TestEscalation_time: who was there late has their whole time, and then comes the outcome.
func TestEscalation_time(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, escalating())
	w.clock.advance(5 * time.Hour)
	require.Equal(t, runtime.SweepResult{Escalated: 1}, sweepOf(t, p))
	w.clock.advance(time.Hour - time.Second)
	require.Equal(t, runtime.SweepResult{}, sweepOf(t, p))
	w.clock.advance(time.Second)
	_, err := w.votes(p, named("eve"), yes())
	require.Equal(t, runtime.CodeExpired, codeOf(err))
	require.NoError(t, p.settle())
	require.Equal(t, session.ExpireDeny, w.answered().Outcome)
	require.Empty(t, w.effects.all())
}

// TestEscalation_keeps_rules: who asked for the task, a link, and one person of two are no more after an
// escalation than they were before.
func TestEscalation_keeps_rules(t *testing.T) {
	t.Parallel()
	t.Run("who asked", func(t *testing.T) {
		t.Parallel()
		w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) {
			s.NotRequester, s.Who, s.Expiry.Escalate.Who = true, []string{"ben"}, []string{"ann", "eve"}
		}))
		w.clock.advance(time.Hour)
		_, err := w.votes(p, named("ann"), yes()) // she began it
		require.Equal(t, runtime.CodeRequesterMayNotAnswer, codeOf(err))
		_, err = w.votes(p, runtime.Caller{Who: "ann", From: "test", Roles: []string{"chief"}}, yes())
		require.Equal(t, runtime.CodeRequesterMayNotAnswer, codeOf(err))
		_, err = w.votes(p, named("eve"), yes())
		require.NoError(t, err)
	})
	t.Run("a link", func(t *testing.T) {
		t.Parallel()
		w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) { s.Assurance = tool.AssuranceSignedIn }))
		w.clock.advance(time.Hour)
		_, err := w.votes(p, runtime.Caller{Who: "eve", From: "test", ByLink: true}, yes())
		require.Equal(t, runtime.CodeSignInRequired, codeOf(err))
	})
	t.Run("two people", func(t *testing.T) {
		t.Parallel()
		w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) {
			s.Need, s.Noes, s.Expiry.Escalate.Roles = 2, 2, nil
		}))
		_, err := w.votes(p, named("ann"), no())
		require.NoError(t, err)
		require.Equal(t, session.WaitOpen, w.waits()[0].State, "ben alone cannot approve, but eve may come")
		w.clock.advance(time.Hour)
		_, err = w.votes(p, named("eve"), yes())
		require.NoError(t, err)
		require.Equal(t, session.WaitOpen, w.waits()[0].State)
		_, err = w.votes(p, named("eve"), no())
		require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), "one person is one vote")
		_, err = w.votes(p, named("ben"), yes())
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
	})
	t.Run("two people, and too few are left", func(t *testing.T) {
		t.Parallel()
		w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) {
			s.Need, s.Noes, s.Expiry.Escalate.Who, s.Expiry.Escalate.Roles = 2, 2, []string{"ben", "cyd"}, nil
			s.NotRequester = true // ann began it
		}))
		_, err := w.votes(p, named("ben"), no())
		require.NoError(t, err)
		require.Equal(t, session.WaitAnswered, w.waits()[0].State, "cyd alone is to come")
	})
}

// TestEscalation_and_delegation: whom it is escalated to answers for themselves, also where it was delegated to
// them before, and is still one person.
func TestEscalation_and_delegation(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) { s.Need, s.Expiry.Escalate.Roles = 2, nil }))
	_, err := actOn(w, p, session.ActDelegated, "ann", func(a *runtime.ActParams) { a.To = "eve" })
	require.NoError(t, err)
	_, err = w.votes(p, named("eve"), yes())
	require.NoError(t, err)
	require.Equal(t, "ann", w.waits()[0].Votes[0].For)
	w.clock.advance(time.Hour)
	require.Equal(t, 1, sweepOf(t, p).Escalated)
	out, err := w.votes(p, named("eve"), yes())
	require.NoError(t, err)
	require.True(t, out.Repeated)
	_, err = w.votes(p, named("ann"), yes())
	require.Equal(t, "ann", w.waits()[0].Votes[0].For)
	require.NoError(t, err, "it was said in her place")
	require.Len(t, w.waits()[0].Votes, 1)
	_, err = w.votes(p, named("ben"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())

	w, p = ruled(t, escalating())
	_, err = actOn(w, p, session.ActDelegated, "ann", func(a *runtime.ActParams) { a.To = "eve" })
	require.NoError(t, err)
	w.clock.advance(time.Hour)
	_, err = w.votes(p, named("eve"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Empty(t, w.answered().For)
}

// TestEscalation_extended: an extension before it puts it off; one after it moves the deadline that follows.
func TestEscalation_extended(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, escalating())
	_, err := actOn(w, p, session.ActExtended, "ann")
	require.NoError(t, err)
	w.clock.advance(time.Hour)
	require.Zero(t, sweepOf(t, p))
	w.clock.advance(time.Hour)
	until := w.clock.Now().Add(10 * time.Hour)
	_, err = actOn(w, p, session.ActExtended, "eve", func(a *runtime.ActParams) { a.Deadline = &until })
	require.NoError(t, err, "it is escalated first, and eve may")
	require.Equal(t, "extended escalated extended", actsOf(w.waits()[0]))
	w.clock.advance(10*time.Hour - time.Second)
	require.Zero(t, sweepOf(t, p))
	w.clock.advance(time.Second)
	require.Equal(t, 1, sweepOf(t, p).Expired, "once")
}

// TestEscalation_after_going_back: what is asked again after a way back, and in a fork, is asked of those who
// are asked first.
func TestEscalation_after_going_back(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, escalating())
	at := w.suspendedAt()
	w.clock.advance(time.Hour)
	require.Equal(t, 1, sweepOf(t, p).Escalated)
	w.interrupt()
	_, err := w.back(p, at, "")
	require.NoError(t, err)
	again := w.open(session.WaitApproval)
	require.Empty(t, again.Acts)
	require.Equal(t, []string{"ann", "ben"}, again.Wait.Who)
	require.Nil(t, again.Wait.Rule)
	require.Equal(t, w.clock.Now().Add(time.Hour), again.Wait.Deadline.At)
	require.Equal(t, []string{session.NeedsEscalation}, again.Wait.Needs)
	_, err = w.votes(p, named("eve"), yes())
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	w.clock.advance(time.Hour)
	_, err = w.votes(p, named("eve"), yes())
	require.NoError(t, err)
}

// TestEscalation_of_another_definition: what eve approved counts where the definition of now escalates to her
// too, and is asked again where it does not.
func TestEscalation_of_another_definition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tool.Spec[textIn])
		runs   bool
	}{
		"another description":     {func(s *tool.Spec[textIn]) { s.Description = "Pays." }, true},
		"others are asked first":  {func(s *tool.Spec[textIn]) { s.Who = []string{"ann", "ben", "cyd"} }, true},
		"nobody is asked later":   {func(s *tool.Spec[textIn]) { s.Expiry.Escalate = nil }, false},
		"others are asked later":  {func(s *tool.Spec[textIn]) { s.Expiry.Escalate.Who = []string{"mia"} }, false},
		"fewer roles later":       {func(s *tool.Spec[textIn]) { s.Expiry.Escalate.Roles = nil }, true},
		"ann is asked no more":    {func(s *tool.Spec[textIn]) { s.Who = []string{"ben"} }, true},
		"two have to":             {func(s *tool.Spec[textIn]) { s.Need = 2 }, false},
		"not who asked, any more": {func(s *tool.Spec[textIn]) { s.NotRequester = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goesOn := func(a *agent.Agent) { a.Policy.OnChange = agent.ChangeGoOn }
			w, p := ruled(t, escalating(), goesOn)
			w.clock.advance(time.Hour)
			_, err := w.votes(p, named("eve"), yes())
			require.NoError(t, err)
			changed := w.deployed(func(a *agent.Agent) {
				a.Policy.OnChange = agent.ChangeGoOn
				a.Tools = append(a.Tools, tool.Define(escalating(c.change), func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
					w.effects.add("pay " + in.Text)
					return "paid", nil
				}))
			})
			require.NoError(t, changed.work())
			require.Equal(t, c.runs, w.effects.count("pay 5") == 1)
			if !c.runs {
				require.Equal(t, session.WaitOpen, w.waits()[len(w.waits())-1].State)
			}
		})
	}
}

// TestEscalation_lists_of_nobody: a list that names nobody is as good as none, also to a process that has opened
// the wait itself and reads it back from the store.
func TestEscalation_lists_of_nobody(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]*tool.Escalation{
		"roles only":      {Who: []string{}, Roles: []string{"chief"}, After: time.Hour},
		"names only":      {Who: []string{"eve"}, Roles: []string{}, After: time.Hour},
		"no text in them": {Who: []string{"eve", "e\xffe"}, After: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) { s.Expiry.Escalate = to }))
			w.clock.advance(time.Hour)
			require.Equal(t, 1, sweepOf(t, p).Escalated)
			_, err := w.votes(p, named("ann"), yes())
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
		})
	}
}

// TestEscalation_changed_in_the_store: a record that says it was escalated, of a wait that is not to be, and
// one that names others, take no answer.
func TestEscalation_changed_in_the_store(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*journal.WaitRecord){
		"others":          func(r *journal.WaitRecord) { r.Wait.Deadline.Escalate.Who = []string{"mallory"} },
		"done in advance": func(r *journal.WaitRecord) { r.Wait.Escalate(r.Wait.OpenedAt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, escalating())
			item := w.items(store.KindWait)[0]
			change(item.Wait)
			_, err := w.store.Update(t.Context(), w.key, item)
			require.NoError(t, err)
			w.clock.advance(time.Hour)
			_, _ = p.Sweep(t.Context())
			_, _ = w.votes(p, runtime.Caller{Who: "mallory", From: "test", Roles: []string{"chief"}}, yes())
			_ = p.work()
			require.Empty(t, w.effects.all())
			_, check, err := p.VerifyAudit(t.Context(), w.key)
			require.NoError(t, err)
			require.False(t, check.Whole)
		})
	}
}

// TestEscalation_permission: who may answer only since the deadline is shown the wait as their answer would find
// it, whether or not a sweep has come by, and gives no standing permission.
func TestEscalation_permission(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, escalating(func(s *tool.Spec[textIn]) { s.Standing = &tool.Standing{} }))
	preview := func() error {
		_, err := p.PreviewPermission(t.Context(), w.key, "w2-1", session.Standing{For: "1h"}, named("eve"))
		return err
	}
	require.ErrorContains(t, preview(), "may be answered by")
	w.clock.advance(time.Hour)
	require.ErrorContains(t, preview(), "only since its deadline has passed")
	view, err := p.Wait(t.Context(), w.key, "w2-1", named("eve"))
	require.NoError(t, err)
	require.True(t, view.MayAnswer, "though no sweep has escalated it yet")
	require.Equal(t, runtime.CodeNotAllowed, codeOf(w.gives(p, "eve", &session.Standing{For: "1h"})))
	require.NoError(t, w.gives(p, "eve", nil))
}
