package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestStandsFor: whoever a wait was delegated to answers in the place of the first who did.
func TestStandsFor(t *testing.T) {
	t.Parallel()
	to := func(who, to string) session.WaitAct {
		return session.WaitAct{Kind: session.ActDelegated, Who: who, To: to}
	}
	for name, test := range map[string]struct {
		acts      []session.WaitAct
		who, want string
	}{
		"nobody delegated":           {nil, "bob", "bob"},
		"to another":                 {[]session.WaitAct{to("ann", "bob")}, "cem", "cem"},
		"who delegated":              {[]session.WaitAct{to("ann", "bob")}, "ann", "ann"},
		"to whom it was":             {[]session.WaitAct{to("ann", "bob")}, "bob", "ann"},
		"and on":                     {[]session.WaitAct{to("ann", "bob"), to("bob", "cem")}, "cem", "ann"},
		"back to the first":          {[]session.WaitAct{to("ann", "bob"), to("bob", "ann")}, "ann", "ann"},
		"a later one does not count": {[]session.WaitAct{to("bob", "cem"), to("ann", "bob")}, "cem", "bob"},
		"another act names nobody":   {[]session.WaitAct{{Kind: session.ActExtended, Who: "ann", To: "bob"}}, "bob", "bob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, session.StandsFor(test.acts, test.who))
		})
	}
}
