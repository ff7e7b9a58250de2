package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestWait_Due: the next of the reminders and the deadline, after what was done already.
func TestWait_Due(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	did := func(kind session.WaitActKind, after time.Duration) session.WaitAct {
		return session.WaitAct{Kind: kind, At: opened.Add(after)}
	}
	const reminded, extended, delegated, escalated = session.ActReminded, session.ActExtended, session.ActDelegated, session.ActEscalated
	many := make([]session.WaitAct, session.MaxReminded)
	for i := range many {
		many[i] = did(reminded, time.Second)
	}
	for name, c := range map[string]struct {
		deadline time.Duration
		remind   []time.Duration
		acts     []session.WaitAct
		want     time.Duration
	}{
		"no reminders":                     {time.Hour, nil, nil, time.Hour},
		"the first of them":                {time.Hour, []time.Duration{time.Minute, 10 * time.Minute}, nil, 50 * time.Minute},
		"the second":                       {time.Hour, []time.Duration{time.Minute, 10 * time.Minute}, []session.WaitAct{did(reminded, 50*time.Minute)}, 59 * time.Minute},
		"both at once":                     {time.Hour, []time.Duration{time.Minute, 10 * time.Minute}, []session.WaitAct{did(reminded, 59*time.Minute)}, time.Hour},
		"extended past it":                 {2 * time.Hour, []time.Duration{time.Minute}, []session.WaitAct{did(reminded, 59*time.Minute), did(extended, 59*time.Minute)}, 119 * time.Minute},
		"extended by little":               {61 * time.Minute, []time.Duration{10 * time.Minute}, []session.WaitAct{did(reminded, 50*time.Minute), did(extended, 55*time.Minute)}, 61 * time.Minute},
		"delegated":                        {time.Hour, []time.Duration{time.Minute}, []session.WaitAct{did(delegated, 59*time.Minute)}, 59 * time.Minute},
		"a vote of who stands in":          {time.Hour, []time.Duration{time.Minute}, []session.WaitAct{did(session.ActStoodIn, 59*time.Minute+time.Second)}, 59 * time.Minute},
		"escalated":                        {2 * time.Hour, []time.Duration{time.Minute}, []session.WaitAct{did(reminded, 59*time.Minute), did(escalated, time.Hour)}, 119 * time.Minute},
		"escalated for less than that":     {61 * time.Minute, []time.Duration{10 * time.Minute}, []session.WaitAct{did(escalated, time.Hour)}, 61 * time.Minute},
		"as many as are given":             {time.Hour, []time.Duration{time.Minute}, many, time.Hour},
		"longer than it was open, by hand": {time.Hour, []time.Duration{2 * time.Hour}, nil, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := session.Wait{OpenedAt: opened, Deadline: &session.Deadline{At: opened.Add(c.deadline), Remind: c.remind}}
			require.Equal(t, opened.Add(c.want), *w.Due(c.acts))
		})
	}
	require.Nil(t, (&session.Wait{}).Due(nil))
}

// TestWait_Escalate: others are added to those who are named, nobody where everyone may answer, and what the
// wait was copied from stays.
func TestWait_Escalate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	to := &session.Escalation{Who: []string{"ann", "eve"}, Roles: []string{"chief"}, After: time.Hour}
	for name, c := range map[string]struct {
		who, roles, wantWho, wantRoles []string
	}{
		"names":    {[]string{"ann"}, nil, []string{"ann", "eve"}, []string{"chief"}},
		"roles":    {nil, []string{"ops", "chief"}, []string{"ann", "eve"}, []string{"ops", "chief"}},
		"everyone": {nil, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was := session.Wait{Who: c.who, Deadline: &session.Deadline{At: now, Escalate: to}}
			was.Hold(&session.AnswerRule{Roles: c.roles, NotRequester: true}, []string{"ann"})
			is := was
			is.Escalate(now)
			require.Equal(t, c.wantWho, is.Who)
			require.Equal(t, c.wantRoles, is.Rule.Roles)
			require.True(t, is.Rule.NotRequester)
			require.Equal(t, session.Deadline{At: now.Add(time.Hour)}, *is.Deadline)
			require.False(t, is.Escalates())
			require.True(t, was.Escalates())
			require.Equal(t, c.who, was.Who)
			require.Equal(t, c.roles, was.Rule.Roles)
		})
	}
}

// TestWait_HeldTo_after_an_escalation: an answer of somebody a wait was escalated to is held to whom the tool
// escalates to now.
func TestWait_HeldTo_after_an_escalation(t *testing.T) {
	t.Parallel()
	w := session.Wait{Kind: session.WaitApproval, Who: []string{"ann"}, Deadline: &session.Deadline{Escalate: &session.Escalation{Who: []string{"eve"}}}}
	eve := session.Answer{Who: "eve", Escalated: true}
	to := func(who ...string) *session.Escalation { return &session.Escalation{Who: who} }
	require.True(t, w.HeldTo(eve, []string{"ann"}, nil, to("eve")))
	require.True(t, w.HeldTo(eve, []string{"ben"}, nil, to("eve")), "she may")
	require.True(t, w.HeldTo(eve, []string{"eve"}, nil, nil), "now from the start")
	require.False(t, w.HeldTo(eve, []string{"ann"}, nil, nil))
	require.False(t, w.HeldTo(eve, []string{"ann"}, nil, to("mia")))
	require.False(t, w.HeldTo(session.Answer{Who: "eve"}, []string{"ben"}, nil, to("eve")), "before it was escalated")
	require.True(t, w.HeldTo(eve, nil, nil, nil), "everyone may now")
}
