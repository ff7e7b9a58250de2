package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every Go block of the README and of docs/ stands word for word in an example that
// is compiled and run. The README shows one whole program, which is this one.
func TestDocsShowTheExamples(t *testing.T) {
	t.Parallel()
	var examples strings.Builder
	for _, pattern := range []string{"../*/*.go", "../../pkg/*/example*_test.go", "../../pkg/*/*/example*_test.go"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			program, err := os.ReadFile(name)
			require.NoError(t, err)
			examples.Write(program)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	total := 0
	for _, name := range append(pages, "../../README.md") {
		page, err := os.ReadFile(name)
		require.NoError(t, err)
		blocks := strings.Split(string(page), "```go\n")[1:]
		total += len(blocks)
		for _, block := range blocks {
			shown, _, closed := strings.Cut(block, "```\n")
			require.True(t, closed)
			require.Contains(t, examples.String(), shown, name)
		}
		if name == "../../README.md" {
			program, err := os.ReadFile("main.go")
			require.NoError(t, err)
			require.Len(t, blocks, 1)
			require.True(t, strings.HasPrefix(blocks[0], string(program)+"```\n"), "the README's program is not main.go")
		}
	}
	require.GreaterOrEqual(t, total, 5)
}
