package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README shows this very program: what a newcomer copies is what was compiled and run.
func TestReadmeShowsThisProgram(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found, "the README has no Go program")
	shown, _, _ = strings.Cut(shown, "```\n")
	require.Equal(t, string(program), shown)
}
