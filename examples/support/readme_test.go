package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every Go block of the README stands word for word in an example that is
// compiled and run; the first one is this whole program.
func TestReadmeShowsTheExamples(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	programs, err := filepath.Glob("../*/main.go")
	require.NoError(t, err)
	var examples strings.Builder
	for _, name := range programs {
		program, err := os.ReadFile(name)
		require.NoError(t, err)
		examples.Write(program)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.GreaterOrEqual(t, len(blocks), 2)
	for i, block := range blocks {
		shown, _, closed := strings.Cut(block, "```\n")
		require.True(t, closed)
		require.Contains(t, examples.String(), shown)
		if i == 0 {
			program, err := os.ReadFile("main.go")
			require.NoError(t, err)
			require.Equal(t, string(program), shown)
		}
	}
}
