package search_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/model/internal/search"
)

// TestSearch_finds_the_shortest_way on a model small enough to see it.
func TestSearch_finds_the_shortest_way(t *testing.T) {
	t.Parallel()
	count := func(to int, rest func(int) bool) *search.Space[int] {
		return &search.Space[int]{
			Name: "count", Properties: []string{"seven"},
			Next: func(s *int, emit func(int, search.Move)) {
				if *s < to {
					emit(*s+1, search.Move{Who: "one", What: "adds"})
					emit(min(*s+2, to), search.Move{Who: "two", What: "adds"})
				}
			},
			Broken: func(s *int) uint32 {
				if *s == 7 {
					return 1
				}
				return 0
			},
			Rest: func(s *int) bool { return rest(*s) },
		}
	}
	var out bytes.Buffer
	m := count(9, func(s int) bool { return s == 9 })
	o := m.Search(search.Bounds{States: 100, Trace: true, Out: &out})
	require.Equal(t, search.Outcome{States: 10, Depth: 5, Whole: true, Harm: []string{"seven"}}, o)
	require.Equal(t, 6, bytes.Count(out.Bytes(), []byte("\n")), out.String()) // the name, the start, one and three twos
	verdict, ok := o.Verdict(nil)
	require.False(t, ok)
	require.Contains(t, verdict, "MUST HOLD")

	m.Breaks = []string{"seven"}
	o = m.Search(search.Bounds{States: 100})
	verdict, ok = o.Verdict(m.Breaks)
	require.True(t, ok, verdict)

	m = count(5, func(s int) bool { return s == 4 })
	require.Equal(t, []string{search.Stuck}, m.Search(search.Bounds{States: 100}).Harm)
	m.Breaks = []string{"seven"}
	o = m.Search(search.Bounds{States: 100})
	require.Equal(t, []string{"seven"}, o.Missing)
	_, ok = o.Verdict(m.Breaks)
	require.False(t, ok)
	o = m.Search(search.Bounds{States: 3})
	require.False(t, o.Whole)
	_, ok = o.Verdict(m.Breaks)
	require.True(t, ok, "nothing is missing that was not reached")

	round := &search.Space[int]{
		Name: "round",
		Next: func(s *int, emit func(int, search.Move)) {
			emit(1-*s, search.Move{})
			emit(2, search.Move{Fault: *s == 0})
		},
		Broken: func(*int) uint32 { return 0 }, Rest: func(s *int) bool { return *s == 2 },
	}
	require.Equal(t, []string{search.Spin}, round.Search(search.Bounds{States: 100}).Harm)
}
