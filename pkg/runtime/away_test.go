package runtime_test

import (
	"context"
	"fmt"
	"iter"
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
	"github.com/adjourn/adjourn/pkg/tool"
)

// absent says that somebody is away for a day.
func (w *world) absent(who, to string) runtime.AwayParams {
	return runtime.AwayParams{Tenant: w.key.Tenant, Who: who, From: "test", To: to, Until: w.clock.Now().Add(24 * time.Hour), Reason: "on holiday"}
}

// away has people stand in for others: "ann bob" is Bob for Ann.
func (w *world) away(p *process, pairs ...string) {
	w.t.Helper()
	for _, pair := range pairs {
		who, to, _ := strings.Cut(pair, " ")
		_, err := p.SetAway(context.Background(), w.absent(who, to))
		require.NoError(w.t, err)
	}
}

func namesTwo(change ...func(*tool.Spec[textIn])) tool.Spec[textIn] {
	spec := tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], Who: []string{"bob", "cyd"}}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

// TestStandIn_who is who may answer in whose place, by the rule of the wait and who is away. Ann asked for the task.
func TestStandIn_who(t *testing.T) {
	t.Parallel()
	notRequester := func(s *tool.Spec[textIn]) { s.NotRequester = true }
	roles := func(s *tool.Spec[textIn]) { s.Who, s.Roles = nil, []string{"manager"} }
	signedIn := func(s *tool.Spec[textIn]) { s.Assurance = session.AssuranceSignedIn }
	withAnn := func(s *tool.Spec[textIn]) { s.Who = []string{"ann", "bob"} }
	byLink := runtime.Caller{Who: "zoe", From: "link", ByLink: true}
	for name, test := range map[string]struct {
		rule []func(*tool.Spec[textIn])
		away []string
		by   runtime.Caller
		// want is the code, in the place of whom otherwise.
		want     runtime.Code
		inPlace  string
		stoodFor string
	}{
		"nobody is away":                     {by: named("zoe"), want: runtime.CodeNotAllowed},
		"who is named":                       {away: []string{"bob cyd"}, by: named("cyd")},
		"who stands in":                      {away: []string{"bob zoe"}, by: named("zoe"), inPlace: "bob", stoodFor: "bob"},
		"another":                            {away: []string{"bob zoe"}, by: named("eve"), want: runtime.CodeNotAllowed},
		"for somebody who is not named":      {away: []string{"eve zoe"}, by: named("zoe"), want: runtime.CodeNotAllowed},
		"who is away still may":              {away: []string{"bob zoe"}, by: named("bob")},
		"without a name":                     {away: []string{"bob zoe"}, by: runtime.Caller{From: "test"}, want: runtime.CodeNotAllowed},
		"who is not verified":                {away: []string{"bob zoe"}, by: runtime.Caller{Who: "zoe", Unverified: true}, want: runtime.CodeNotAllowed},
		"the user of a data file":            {away: []string{"bob zoe"}, by: runtime.Caller{Who: "zoe", OneUser: true}, want: runtime.CodeNotAllowed},
		"a chain":                            {away: []string{"bob eve", "eve zoe"}, by: named("zoe"), inPlace: "bob", stoodFor: "bob"},
		"within a chain":                     {away: []string{"bob eve", "eve zoe"}, by: named("eve"), inPlace: "bob", stoodFor: "bob"},
		"a chain of eight":                   {away: []string{"bob b1", "b1 b2", "b2 b3", "b3 b4", "b4 b5", "b5 b6", "b6 b7", "b7 zoe"}, by: named("zoe"), inPlace: "bob", stoodFor: "bob"},
		"a chain of nine":                    {away: []string{"bob b1", "b1 b2", "b2 b3", "b3 b4", "b4 b5", "b5 b6", "b6 b7", "b7 b8", "b8 zoe"}, by: named("zoe"), want: runtime.CodeNotAllowed},
		"a role is not passed on":            {rule: []func(*tool.Spec[textIn]){roles}, away: []string{"mia zoe"}, by: named("zoe"), want: runtime.CodeNotAllowed},
		"the requester stands in":            {rule: []func(*tool.Spec[textIn]){notRequester}, away: []string{"bob ann"}, by: named("ann"), want: runtime.CodeRequesterMayNotAnswer},
		"for the requester":                  {rule: []func(*tool.Spec[textIn]){withAnn, notRequester}, away: []string{"ann zoe"}, by: named("zoe"), want: runtime.CodeRequesterMayNotAnswer},
		"whom the requester named":           {rule: []func(*tool.Spec[textIn]){notRequester}, away: []string{"bob ann", "ann zoe"}, by: named("zoe"), want: runtime.CodeRequesterMayNotAnswer},
		"for the requester and for another":  {rule: []func(*tool.Spec[textIn]){withAnn, notRequester}, away: []string{"ann zoe", "bob zoe"}, by: named("zoe"), inPlace: "bob", stoodFor: "bob"},
		"another, where no requester may":    {rule: []func(*tool.Spec[textIn]){notRequester}, away: []string{"bob zoe"}, by: named("zoe"), inPlace: "bob", stoodFor: "bob"},
		"for the requester, who may":         {rule: []func(*tool.Spec[textIn]){withAnn}, away: []string{"ann zoe"}, by: named("zoe"), inPlace: "ann", stoodFor: "ann"},
		"by a link":                          {away: []string{"bob zoe"}, by: byLink, inPlace: "bob", stoodFor: "bob"},
		"by a link that does not say enough": {rule: []func(*tool.Spec[textIn]){signedIn}, away: []string{"bob zoe"}, by: byLink, want: runtime.CodeSignInRequired},
		"by a link, and nobody is away":      {by: byLink, want: runtime.CodeNotAllowed},
	} {
		for _, door := range []string{"submit", "decide"} {
			if door == "decide" && test.by.ByLink {
				continue
			}
			t.Run(name+" by "+door, func(t *testing.T) {
				t.Parallel()
				w, p := ruled(t, namesTwo(test.rule...))
				w.away(p, test.away...)
				var err error
				if door == "submit" {
					_, err = w.votes(p, test.by, yes())
				} else {
					_, err = p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Approve: []string{"w2-1"}, Caller: test.by})
				}
				require.Equal(t, test.want, codeOf(err), "%v", err)
				require.NoError(t, p.settle())
				record := w.waits()[0]
				if test.want != "" {
					require.Empty(t, w.effects.all())
					require.Empty(t, record.Acts)
					require.Equal(t, session.WaitOpen, record.State)
					return
				}
				require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
				answer := w.answered()
				require.Equal(t, test.by.Who, answer.Who)
				require.Equal(t, test.inPlace, answer.For)
				if test.stoodFor == "" {
					require.Empty(t, record.Acts)
					return
				}
				require.Len(t, record.Acts, 1)
				act := record.Acts[0]
				require.Equal(t, session.ActStoodIn, act.Kind)
				require.Equal(t, []string{test.by.Who, test.stoodFor, "on holiday"}, []string{act.Who, act.For, act.Reason})
				require.True(t, act.At.Equal(answer.When))
				require.NotNil(t, act.Until)
				w.checkAtRest()
				_, check, err := p.VerifyAudit(context.Background(), w.key)
				require.NoError(t, err)
				require.True(t, check.Whole, "%v", check.Faults)
			})
		}
	}
}

// TestStandIn_one_voice: who is away and who stands in for them are one voice, whichever comes first, also in a
// chain and where it was delegated to who is away; somebody else makes up the number.
func TestStandIn_one_voice(t *testing.T) {
	t.Parallel()
	two := func(s *tool.Spec[textIn]) { s.Need = 2 }
	for name, test := range map[string]struct {
		away      []string
		delegated [2]string // by whom, to whom
		order     string
	}{
		"bob first":                       {away: []string{"bob zoe"}, order: "bob zoe"},
		"zoe first":                       {away: []string{"bob zoe"}, order: "zoe bob"},
		"a chain":                         {away: []string{"bob eve", "eve zoe"}, order: "zoe eve bob"},
		"a chain backwards":               {away: []string{"bob eve", "eve zoe"}, order: "bob eve zoe"},
		"delegated to who is away":        {away: []string{"eve zoe"}, delegated: [2]string{"bob", "eve"}, order: "zoe eve bob"},
		"delegated, who delegated first":  {away: []string{"eve zoe"}, delegated: [2]string{"bob", "eve"}, order: "bob zoe eve"},
		"delegated, to who stands in too": {away: []string{"bob zoe"}, delegated: [2]string{"bob", "zoe"}, order: "zoe bob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, namesTwo(two))
			w.away(p, test.away...)
			if test.delegated[0] != "" {
				w.delegates(p, named(test.delegated[0]), test.delegated[1])
			}
			for i, who := range strings.Fields(test.order) {
				said, err := w.votes(p, named(who), yes())
				require.NoError(t, err, who)
				require.Equal(t, i > 0, said.Repeated, who)
				require.Equal(t, 1, said.VotesMissing)
				_, err = w.votes(p, named(who), no())
				require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err), who)
			}
			require.Len(t, w.waits()[0].Votes, 1)
			require.NoError(t, p.settle())
			require.Empty(t, w.effects.all())
			_, err := w.votes(p, named("cyd"), yes())
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
			w.checkAtRest()
		})
	}
}

// TestStandIn_of_two: who stands in for two people is one person, and is heard for the one who has not been.
func TestStandIn_of_two(t *testing.T) {
	t.Parallel()
	two := func(s *tool.Spec[textIn]) { s.Need = 2 }
	w, p := ruled(t, namesTwo(two))
	w.away(p, "bob zoe", "cyd zoe")
	for range 2 {
		said, err := w.votes(p, named("zoe"), yes())
		require.NoError(t, err)
		require.Equal(t, "bob", said.Answer.For)
	}
	require.Len(t, w.waits()[0].Votes, 1)

	w, p = ruled(t, namesTwo(two))
	w.away(p, "bob zoe", "cyd zoe")
	_, err := w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	_, err = w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
	require.Equal(t, "cyd", w.answered().For)
}

// TestStandIn_in_time: what counts is when the answer is written: not before it begins, not when it ends nor
// later. What was answered stays answered, and who comes again is told it.
func TestStandIn_in_time(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after time.Duration
		ends  bool
		want  runtime.Code
	}{
		"before":                   {59*time.Minute + 59*time.Second + 999*time.Millisecond, false, runtime.CodeNotAllowed},
		"as it begins":             {time.Hour, false, ""},
		"in its last second":       {3*time.Hour - time.Millisecond, false, ""},
		"in the moment it is over": {3 * time.Hour, false, runtime.CodeNotAllowed},
		"ended in the same second": {time.Hour, true, runtime.CodeNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, namesTwo())
			ctx, now := context.Background(), w.clock.Now()
			until := now.Add(3 * time.Hour)
			absent := w.absent("bob", "zoe")
			absent.Begins, absent.Until = now.Add(time.Hour), until
			_, err := p.SetAway(ctx, absent)
			require.NoError(t, err)
			w.clock.advance(test.after)
			if test.ends {
				_, err := p.EndAway(ctx, absent)
				require.NoError(t, err)
			}
			_, err = w.votes(p, named("zoe"), yes())
			require.Equal(t, test.want, codeOf(err), "%v", err)
			if test.want != "" {
				return
			}
			_, err = p.EndAway(ctx, absent)
			require.NoError(t, err)
			answer := session.Answer{Wait: "w2-1", Kind: session.AnswerApproval, Approved: new(true)}
			again, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: named("zoe"), Answer: answer})
			require.NoError(t, err)
			require.True(t, again.Repeated)
			answer.Approved = new(false)
			_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: named("zoe"), Answer: answer})
			require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
			w.clock.advance(until.Sub(w.clock.Now()))
			require.NoError(t, p.settle())
			require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all(), "it was over before the call ran")
			w.checkAtRest()
		})
	}
}

// TestStandIn_stricter_rule: an approval by who stood in counts where the definition still names the person who
// was away, and is asked again where it does not.
func TestStandIn_stricter_rule(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		now  func(*tool.Spec[textIn])
		runs bool
	}{
		"as it was":               {func(*tool.Spec[textIn]) {}, true},
		"the person alone":        {func(s *tool.Spec[textIn]) { s.Who = []string{"bob"} }, true},
		"the person and another":  {func(s *tool.Spec[textIn]) { s.Who = []string{"bob", "eve"} }, true},
		"another alone":           {func(s *tool.Spec[textIn]) { s.Who = []string{"cyd"} }, false},
		"nobody who asked for it": {func(s *tool.Spec[textIn]) { s.NotRequester = true }, false},
		"two":                     {func(s *tool.Spec[textIn]) { s.Need = 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, namesTwo(), func(a *agent.Agent) { a.Policy.OnChange = session.ChangeGoOn })
			w.away(p, "bob zoe")
			_, err := w.votes(p, named("zoe"), yes())
			require.NoError(t, err)
			p = w.deployed(func(a *agent.Agent) {
				a.Policy.OnChange = session.ChangeGoOn
				a.Tools[len(a.Tools)-1] = tool.Define(namesTwo(test.now), func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
					w.effects.add("pay " + in.Text)
					return "paid", nil
				})
			})
			require.NoError(t, p.settle())
			if test.runs {
				require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
			} else {
				require.Empty(t, w.effects.all())
				require.Equal(t, session.WaitOpen, w.waits()[1].State, "it is asked again")
			}
			w.checkAtRest()
		})
	}
}

// TestStandIn_acts: who stands in extends and dismisses in the place of who is away, and delegates nothing: that
// would last for longer.
func TestStandIn_acts(t *testing.T) {
	t.Parallel()
	kinds := func(w *world) (kinds []session.WaitActKind) {
		for _, act := range w.waits()[0].Acts {
			kinds = append(kinds, act.Kind)
		}
		return kinds
	}
	w, p := askedOf(t)
	w.away(p, "ann zoe")
	_, err := actOn(w, p, session.ActDelegated, "zoe")
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	require.Empty(t, kinds(w))
	_, err = actOn(w, p, session.ActExtended, "zoe")
	require.NoError(t, err)
	require.Equal(t, []session.WaitActKind{session.ActStoodIn, session.ActExtended}, kinds(w))
	_, err = p.EndAway(context.Background(), w.absent("ann", ""))
	require.NoError(t, err)
	_, err = actOn(w, p, session.ActDismissed, "zoe")
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "to have stood in once is nothing for later")
	w.away(p, "ann zoe")
	_, err = actOn(w, p, session.ActDismissed, "zoe")
	require.NoError(t, err)
	require.Equal(t, []session.WaitActKind{session.ActStoodIn, session.ActExtended}, kinds(w), "it is said once")
	require.Equal(t, "ann", w.waits()[0].Answer.For)
	require.NoError(t, p.settle())
	require.Equal(t, 0, w.effects.count("ran 1"))
	lines, check, err := p.VerifyAudit(context.Background(), w.key)
	require.NoError(t, err)
	require.True(t, check.Whole, "%v", check.Faults)
	var told []string
	for _, line := range lines[1:] {
		if line.Kind == session.AuditRefused {
			continue
		}
		told = append(told, string(line.Kind)+" "+line.Who)
	}
	require.Equal(t, []string{"stood_in zoe", "extended zoe", "answered zoe"}, told[:3], "%v", told)
}

// TestStandIn_reminder: the vote of who stands in takes no reminder away that is late, from those who have not
// voted yet.
func TestStandIn_reminder(t *testing.T) {
	t.Parallel()
	expiry := &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{10 * time.Minute}}
	w, p := ruled(t, namesTwo(func(s *tool.Spec[textIn]) { s.Need, s.Expiry = 2, expiry }))
	w.away(p, "bob zoe")
	w.clock.advance(55 * time.Minute)
	_, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.Equal(t, runtime.SweepResult{Reminded: 1}, sweepOf(t, p))
	record := w.waits()[0]
	require.Equal(t, "stood_in reminded", actsOf(record))
	require.Equal(t, record.Wait.Deadline.At, *record.Due)
}

// TestStandIn_after_delegation: to have stood in for one person takes nothing from another's voice.
func TestStandIn_after_delegation(t *testing.T) {
	t.Parallel()
	spec := namesTwo(func(s *tool.Spec[textIn]) {
		s.Need, s.Expiry = 2, &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny}
	})
	w, p := ruled(t, spec)
	w.away(p, "bob zoe")
	_, err := actOn(w, p, session.ActExtended, "zoe")
	require.NoError(t, err)
	w.delegates(p, named("cyd"), "zoe")
	said, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.Equal(t, "cyd", said.Answer.For)
	_, err = w.votes(p, named("bob"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
}

// TestStandIn_standing: who stands in gives no standing permission, which would last for longer.
func TestStandIn_standing(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, namesTwo())
	w.away(p, "bob zoe")
	require.Equal(t, runtime.CodeNotAllowed, codeOf(w.gives(p, "zoe", &session.Standing{})))
	_, err := p.PreviewPermission(context.Background(), w.key, "w2-1", session.Standing{For: "1h"}, named("zoe"))
	require.ErrorContains(t, err, "stands in", "what would be refused says why, as the answer does")
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
}

// TestStandIn_message: a message that abandons what waits is not sent in another's place.
func TestStandIn_message(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, namesTwo())
	w.away(p, "bob zoe")
	_, err := w.stop(p, runtime.SignalInterrupt)
	require.NoError(t, err)
	_, err = p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("never mind"), Caller: named("zoe")})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err), "%v", err)
}

// TestStandIn_shown: the inbox of who stands in, and a wait, say so while it is in force; nothing of it is seen by
// another tenant.
func TestStandIn_shown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := ruled(t, namesTwo())
	inbox := func(tenant, user string) int {
		page, err := p.Inbox(ctx, runtime.InboxParams{Tenant: tenant, User: user})
		require.NoError(t, err)
		return len(page.Items)
	}
	seen := func(who string) runtime.WaitView {
		v, err := p.Wait(ctx, w.key, "w2-1", named(who))
		require.NoError(t, err)
		return v
	}
	require.Zero(t, inbox(w.key.Tenant, "zoe"))
	elsewhere := w.absent("bob", "zoe")
	elsewhere.Tenant = "globex"
	_, err := p.SetAway(ctx, elsewhere)
	require.NoError(t, err)
	require.Zero(t, inbox(w.key.Tenant, "zoe"))
	require.False(t, seen("zoe").MayAnswer)
	require.Empty(t, seen("zoe").StandIns)
	_, err = w.votes(p, named("zoe"), yes())
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	here, err := p.Away(ctx, w.key.Tenant)
	require.NoError(t, err)
	require.Empty(t, here.StandIns)
	require.Empty(t, here.Changes)

	w.away(p, "bob eve", "eve zoe", "mia kim")
	for user, want := range map[string]int{"zoe": 1, "eve": 1, "bob": 1, "cyd": 1, "kim": 0, "": 1} {
		require.Equal(t, want, inbox(w.key.Tenant, user), user)
	}
	require.Zero(t, inbox("globex", "zoe"))
	v := seen("zoe")
	require.True(t, v.MayAnswer)
	require.Equal(t, "bob", v.For)
	require.Len(t, v.StandIns, 2)
	require.Equal(t, []string{"eve", "zoe"}, []string{v.StandIns[0].StandIn, v.StandIns[1].StandIn})
	require.False(t, seen("kim").MayAnswer)
	require.Empty(t, seen("bob").For)
	w.clock.advance(24 * time.Hour)
	require.Zero(t, inbox(w.key.Tenant, "zoe"))
	require.False(t, seen("zoe").MayAnswer)
	require.Empty(t, seen("zoe").StandIns)
}

// TestStandIn_link: a link is made for who stands in, and shows no more when the person is back.
func TestStandIn_link(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := ruled(t, namesTwo())
	look := func(by runtime.Caller) runtime.LinkedWait {
		linked, err := p.LinkedWait(ctx, w.key, "w2-1", by)
		require.NoError(t, err)
		return linked
	}
	byLink := runtime.Caller{Who: "zoe", From: "link", ByLink: true}
	require.Error(t, look(named("zoe")).NotAllowed)
	w.away(p, "bob zoe")
	require.NoError(t, look(named("zoe")).NotAllowed)
	require.NoError(t, look(named("zoe")).Undecidable)
	require.NoError(t, look(byLink).Undecidable)
	require.NoError(t, look(byLink).NotAllowed)
	_, err := p.EndAway(ctx, w.absent("bob", ""))
	require.NoError(t, err)
	require.Error(t, look(byLink).NotAllowed)
	_, err = w.votes(p, byLink, yes())
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
}

// reads counts how often it is read who is away.
type reads struct {
	store.Store
	n int
}

func (r *reads) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if kind == store.KindTenantRecord {
		r.n++
	}
	return r.Store.Items(ctx, key, kind, id)
}

// TestStandIn_cost: who is away is read only where somebody may not answer otherwise, once for all they decide.
func TestStandIn_cost(t *testing.T) {
	t.Parallel()
	for who, want := range map[string]int{"bob": 0, "zoe": 1, "eve": 1} {
		for _, door := range []string{"submit", "decide"} {
			t.Run(who+" by "+door, func(t *testing.T) {
				t.Parallel()
				w, p := ruled(t, namesTwo())
				w.away(p, "bob zoe")
				counted := &reads{}
				p = w.process(func(cfg *runtime.Config) { counted.Store = cfg.Store; cfg.Store = counted })
				if door == "submit" {
					_, _ = w.votes(p, named(who), yes())
				} else {
					_, _ = p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Approve: []string{"w2-1"}, Caller: named(who)})
				}
				require.Equal(t, want, counted.n)
			})
		}
	}
}

// TestStandIn_unreadable: where it cannot be read who is away nobody answers as who stands in, and who is named does.
func TestStandIn_unreadable(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, namesTwo())
	_, err := w.store.Update(context.Background(), session.Key{Tenant: w.key.Tenant}, store.TenantItem(journal.TenantRecord{Name: "away", Value: []byte(`[]`)}, 0))
	require.NoError(t, err)
	_, err = w.votes(p, named("zoe"), yes())
	require.Equal(t, runtime.CodeCorrupt, codeOf(err))
	require.Empty(t, w.waits()[0].Acts)
	_, err = w.votes(p, named("bob"), yes())
	require.NoError(t, err)
}

// TestStandIn_dies: the process dies at each write of an answer; the same request again, under its key, gives it
// once, with the act that explains it.
func TestStandIn_dies(t *testing.T) {
	t.Parallel()
	for at := 1; at < 3; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d after=%v", at, after), func(t *testing.T) {
				t.Parallel()
				w, p := ruled(t, namesTwo())
				w.away(p, "bob zoe")
				answer := fill(w.open(session.WaitApproval).Wait, yes())
				params := runtime.SubmitParams{Key: w.key, Caller: named("zoe"), Answer: answer, IdempotencyKey: "k"}
				_, _ = w.fusedProcess(&fuse{at: at, after: after}, true, 1).Submit(context.Background(), params)
				_, err := p.Submit(context.Background(), params)
				require.NoError(t, err)
				require.NoError(t, p.settle())
				require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
				require.Len(t, w.waits()[0].Acts, 1)
				require.Equal(t, "bob", w.answered().For)
				w.checkAtRest()
			})
		}
	}
}

// TestStandIn_leaves_a_reminder: one of two votes by who stands in, between the moment of a reminder and the
// sweep, does not take the reminder away from the others, nor leave the wait due at a moment that is over.
func TestStandIn_leaves_a_reminder(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, namesTwo(func(s *tool.Spec[textIn]) {
		s.Need, s.Expiry = 2, &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny, Remind: []time.Duration{30 * time.Minute}}
	}))
	w.away(p, "bob zoe")
	w.clock.advance(30*time.Minute + time.Second)
	_, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.Equal(t, "stood_in", actsOf(w.waits()[0]))
	require.Equal(t, runtime.SweepResult{Reminded: 1}, sweepOf(t, p))
	require.Equal(t, runtime.SweepResult{}, sweepOf(t, p))
	record := w.waits()[0]
	require.Equal(t, "stood_in reminded", actsOf(record))
	require.Equal(t, record.Wait.Deadline.At, *record.Due)
}

// TestStandIn_extends_as_often: that somebody stood in takes no room of what people may do to a wait.
func TestStandIn_extends_as_often(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, namesTwo(func(s *tool.Spec[textIn]) { s.Expiry = &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny} }))
	w.away(p, "bob zoe")
	extend := func(n int) error {
		_, err := actOn(w, p, session.ActExtended, "zoe", func(a *runtime.ActParams) { a.Deadline = new(w.clock.Now().Add(time.Duration(n+2) * time.Hour)) })
		return err
	}
	for n := range session.MaxWaitActs {
		require.NoError(t, extend(n), n)
	}
	require.Equal(t, runtime.CodeTooManyActs, codeOf(extend(session.MaxWaitActs)))
	require.Equal(t, session.MaxWaitActs, strings.Count(actsOf(w.waits()[0]), "extended"))
}
