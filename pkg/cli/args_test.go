package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListsLast(t *testing.T) {
	t.Parallel()
	list := "- say: hi"
	for _, c := range []struct{ in, want []string }{
		{[]string{"run", list}, []string{"run", "--", list}},
		{[]string{"run", list, "--agent", "x"}, []string{"run", "--agent", "x", "--", list}},
		{[]string{"run", "--no-input", list}, []string{"run", "--no-input", "--", list}},
		{[]string{"run", "-q", list}, []string{"run", "-q", "--", list}},
		{[]string{"submit", "s", "--call", "c", "--reply", list}, []string{"submit", "s", "--call", "c", "--reply", list}},
		{[]string{"run", "-a", list}, []string{"run", "-a", list}},
		{[]string{"resume", "s", list}, []string{"resume", "s", "--", list}},
		{[]string{"run", "--", list}, []string{"run", "--", list}},
		{[]string{"run", list, "--", "x"}, []string{"run", "--", list, "x"}},
		{[]string{"run", "-"}, []string{"run", "-"}},
		{[]string{"run", "--wait", "1s", "plain"}, []string{"run", "--wait", "1s", "plain"}},
		{[]string{"nonsense", list}, []string{"nonsense", list}},
		{[]string{}, []string{}},
	} {
		require.Equal(t, c.want, listsLast(newCLI(Config{}).root(), c.in))
	}
}
