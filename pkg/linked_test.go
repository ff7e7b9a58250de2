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
	reached, ways := []string{"cmd/adjourn"}, map[string]string{"cmd/adjourn": "cmd/adjourn"}
	for i := 0; i < len(reached); i++ {
		for _, path := range imports[reached[i]] {
			way := ways[reached[i]] + " → " + path
			require.False(t, strings.HasPrefix(path, "github.com/aws/"), way)
			if room, ours := strings.CutPrefix(path, module); ours && !slices.Contains(reached, room) {
				reached, ways[room] = append(reached, room), way
			}
		}
	}
	require.Contains(t, reached, "pkg/app", "it follows imports")
	require.NotContains(t, reached, "pkg/app/serverless")
}
