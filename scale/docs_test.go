package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func movesOf(t *testing.T) []move {
	t.Helper()
	moves, err := readMoves()
	require.NoError(t, err)
	return moves
}

// The tables of docs/scale.md are what make scale prints.
func TestPage(t *testing.T) {
	t.Parallel()
	moves := movesOf(t)
	page, err := os.ReadFile("../docs/scale.md")
	require.NoError(t, err)
	for _, write := range []func(w io.Writer) error{
		func(w io.Writer) error { return write(w, needs(moves)) },
		func(w io.Writer) error { return writeMoves(w, moves) },
	} {
		var printed bytes.Buffer
		require.NoError(t, write(&printed))
		require.Contains(t, string(page), printed.String(), "put what make scale prints into docs/scale.md")
	}
}

// Every move of moves.json is one that sessions make, and the other way round.
func TestNeeds(t *testing.T) {
	t.Parallel()
	n := needs(movesOf(t))
	require.InDelta(t, stepsEach+waitsEach, n.Sends, 0, "each invocation of the step function has one message")
	require.Positive(t, n.dueIndex())
}

// Lines are sorted by when they are met, so none speaks of the one before it. A table
// has a limit of reads wherever it has one of writes.
func TestLimits(t *testing.T) {
	t.Parallel()
	n := needs(movesOf(t))
	met := map[string]bool{}
	for _, l := range limits(n) {
		require.NotContains(t, l.turn+l.source, "the same", l.what)
		require.Positive(t, l.of, l.what)
		met[l.what] = true
	}
	require.Len(t, met, len(limits(n)))
	for what := range met {
		if strings.Contains(what, "table's write") {
			require.True(t, met[strings.Replace(what, "write", "read", 1)], what)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]float64{"0": 0, "0.0012": 0.00123, "12": 12.3, "1,200": 1234, "120,000,000": 123456789, "10": 9.99} {
		require.Equal(t, want, number(x))
	}
}
