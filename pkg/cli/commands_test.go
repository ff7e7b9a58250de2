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

// TestEnvironment_is_documented: the variables of docs/cli.md stand in the program's help,
// in the same words.
func TestEnvironment_is_documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Environment\n")
	require.True(t, found)
	var written, told []string
	for line := range strings.Lines(strings.NewReplacer("`", "", "|", "").Replace(table)) {
		if words := strings.Fields(line); len(words) > 0 && strings.ToUpper(words[0]) == words[0] && words[0] != "---" {
			written = append(written, strings.Join(words, " "))
		}
	}
	require.Greater(t, len(written), 10)
	_, help, found := strings.Cut(setup(t).run("--help").ends(0).stdout, "\nEnvironment\n")
	require.True(t, found)
	help, _, _ = strings.Cut(help, "\n\n")
	for line := range strings.Lines(help) {
		told = append(told, strings.Join(strings.Fields(line), " "))
	}
	require.Equal(t, written, told, "docs/cli.md, Environment, and adjourn --help (pkg/cli/cli.go) differ")
}

// TestHelpFitsATerminal: no line of a help is broken at 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, command := range []string{"", "run", "resume", "submit", "retry", "fork", "send", "interrupt", "cancel", "abort", "runs", "checkpoints", "audit", "export", "delete", "stop", "go", "inbox", "away", "link", "notices", "sessions", "show", "agents", "work", "dev", "demo", "version"} {
		words := []string{"--help"}
		if command != "" {
			words = []string{command, "--help"}
		}
		for _, line := range splitLines(b.runIn(t.Context(), "", words...).ends(0).stdout) {
			require.LessOrEqual(t, len([]rune(line)), 80, "%s: %s", command, line)
			require.Equal(t, strings.TrimRight(line, " "), line, "%s: a line that is too long was broken here", command)
		}
	}
}
