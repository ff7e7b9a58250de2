package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commandNames are those of all commands of the program, as a shell is offered them.
func (b *bench) commandNames() []string {
	b.t.Helper()
	var names []string
	for line := range strings.Lines(b.run("__complete", "").ends(0).stdout) {
		if name, _, described := strings.Cut(line, "\t"); described {
			names = append(names, name)
		}
	}
	require.Contains(b.t, names, "run")
	return names
}

// TestCommands_are_documented: each command has its line in the table of docs/cli.md, and
// no line is of a command that there is not.
func TestCommands_are_documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Commands\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	var written []string
	for line := range strings.Lines(table) {
		if row, is := strings.CutPrefix(line, "| `"); is {
			written = append(written, strings.FieldsFunc(row, func(c rune) bool { return c == ' ' || c == '`' })[0])
		}
	}
	names := setup(t).commandNames()
	require.ElementsMatch(t, append(written, "help"), names, "docs/cli.md, Commands, and the commands of the program (pkg/cli/cli.go) differ")
}
