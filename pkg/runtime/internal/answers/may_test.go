package answers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestInPlaceOf: whoever a wait was delegated to answers in the place of the first who did, and who may
// answer anyway for themselves.
func TestInPlaceOf(t *testing.T) {
	t.Parallel()
	to := func(who, to string) session.WaitAct {
		return session.WaitAct{Kind: session.ActDelegated, Who: who, To: to}
	}
	role := []string{"manager"}
	for name, test := range map[string]struct {
		acts  []session.WaitAct
		who   string
		roles []string
		want  string
	}{
		"nobody delegated":           {nil, "bob", nil, ""},
		"to another":                 {[]session.WaitAct{to("ann", "bob")}, "cem", nil, ""},
		"who delegated":              {[]session.WaitAct{to("ann", "bob")}, "ann", role, ""},
		"to whom it was":             {[]session.WaitAct{to("ann", "bob")}, "bob", nil, "ann"},
		"to who may anyway":          {[]session.WaitAct{to("ann", "bob")}, "bob", role, ""},
		"and on":                     {[]session.WaitAct{to("ann", "bob"), to("bob", "cem")}, "cem", nil, "ann"},
		"back to the first":          {[]session.WaitAct{to("ann", "bob"), to("bob", "ann")}, "ann", nil, ""},
		"a later one does not count": {[]session.WaitAct{to("bob", "cem"), to("ann", "bob")}, "cem", nil, "bob"},
		"another act names nobody":   {[]session.WaitAct{{Kind: session.ActExtended, Who: "ann", To: "bob"}}, "bob", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := wait("w1-0", session.WaitApproval, session.WaitOpen)
			record.Wait.Rule, record.Acts = &session.AnswerRule{Roles: role}, test.acts
			for _, act := range test.acts {
				record.Wait.Who = append(record.Wait.Who, act.To)
			}
			require.Equal(t, test.want, answers.InPlaceOf(record, answers.Caller{Who: test.who, Roles: test.roles}))
		})
	}
}
