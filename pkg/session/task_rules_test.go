package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// A caller may ask for a lower limit, and for a higher one up to the ceiling; none is the highest.
func TestLimits_Asked(t *testing.T) {
	t.Parallel()
	const none = session.Unlimited
	for name, c := range map[string]struct{ own, ceiling, asked, want, most int64 }{
		"lower":                           {own: 10, asked: 5, want: 5},
		"the same":                        {own: 10, asked: 10, want: 10},
		"higher":                          {own: 10, asked: 11, most: 10},
		"higher, up to the ceiling":       {own: 10, ceiling: 20, asked: 20, want: 20},
		"higher than the ceiling":         {own: 10, ceiling: 20, asked: 21, most: 20},
		"none":                            {own: 10, asked: none, most: 10},
		"none, under a ceiling":           {own: 10, ceiling: 20, asked: none, most: 20},
		"none, where callers may":         {own: 10, ceiling: none, asked: none, want: none},
		"any, where callers may":          {own: 10, ceiling: none, asked: 1000, want: 1000},
		"the agent has none":              {own: none, asked: 5, want: 5},
		"the agent has none, and so do I": {own: none, asked: none, want: none},
	} {
		got, err := session.Limits{Steps: c.own}.Asked(session.AskedLimits{Steps: c.asked}, session.Limits{Steps: c.ceiling})
		if c.want == 0 {
			var raised *session.RaisedLimitError
			require.ErrorAs(t, err, &raised, name)
			require.Equal(t, session.RaisedLimitError{Limit: "steps", Asked: c.asked, Most: c.most}, *raised, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, got.Steps, name)
	}
	_, err := session.Limits{}.Asked(session.AskedLimits{Steps: none - 1}, session.Limits{})
	require.ErrorContains(t, err, "is no limit")
}
