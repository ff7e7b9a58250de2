package pkg_test

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCLI_links_no_AWS: the program on a laptop starts without the AWS SDK, which would cost every command
// its time to start.
func TestCLI_links_no_AWS(t *testing.T) {
	t.Parallel()
	reached := links(t, "cmd/adjourn", "github.com/aws/")
	require.Contains(t, reached, "pkg/app", "it follows imports")
	require.NotContains(t, reached, "pkg/app/serverless")
}

// TestModels_are_linked_where_they_are_named: an adapter brings the SDK of its provider, megabytes of it, into
// the programs whose registry names it, and into no other.
func TestModels_are_linked_where_they_are_named(t *testing.T) {
	t.Parallel()
	const openai, anthropic = "github.com/openai/", "github.com/anthropics/"
	require.Contains(t, links(t, "cmd/adjourn", anthropic), "pkg/llm/openai")
	require.Contains(t, links(t, "functions/step", anthropic), "pkg/llm/openai")
	for _, program := range []string{"examples/support", "examples/tour"} {
		links(t, program, openai, anthropic)
	}
	require.NotContains(t, links(t, "pkg/llm/openai", anthropic), "pkg/llm/anthropic")
	require.Contains(t, links(t, "pkg/llm/anthropic", openai), "pkg/llm/internal/remote")
}

// links returns the rooms that a room imports, through others too, and requires that none of them imports a
// module that begins with one of these.
func links(t *testing.T, room string, without ...string) []string {
	t.Helper()
	const module = "github.com/adjourn/adjourn/"
	all, err := sources("..")
	require.NoError(t, err)
	imports := map[string][]string{}
	for _, s := range all {
		file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			imports[s.room] = append(imports[s.room], path)
		}
	}
	reached, ways := []string{room}, map[string]string{room: room}
	for i := 0; i < len(reached); i++ {
		for _, path := range imports[reached[i]] {
			way := ways[reached[i]] + " → " + path
			for _, prefix := range without {
				require.False(t, strings.HasPrefix(path, prefix), way)
			}
			if room, ours := strings.CutPrefix(path, module); ours && !slices.Contains(reached, room) {
				reached, ways[room] = append(reached, room), way
			}
		}
	}
	return reached
}
