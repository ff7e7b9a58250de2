package main

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// small is how many states of each configuration are searched here; make model searches all.
const small = 15_000

// TestModel searches each configuration up to a small bound: what must hold does
// so far, and what is seen whole breaks where a rule is switched off.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, m := range models() {
		t.Run(m.title(), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			o := m.search(bounds{states: small, trace: true, out: &out})
			verdict, ok := o.verdict(m.expects())
			if !ok {
				t.Errorf("%s\n%s", verdict, out.String())
			}
			t.Logf("%d states: %s", o.states, verdict)
		})
	}
}

// TestModel_names: a configuration is chosen by the beginning of its name.
func TestModel_names(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range models() {
		require.False(t, seen[m.title()], m.title())
		seen[m.title()] = true
		for _, p := range m.expects() {
			_, known := allProperties()[p]
			require.True(t, known, "%s: %s", m.title(), p)
		}
	}
}

// TestRules: each rule is on by default, and switched off by a configuration that breaks by it.
func TestRules(t *testing.T) {
	t.Parallel()
	off, on := map[string]bool{}, reflect.ValueOf(allRules())
	for _, f := range configs() {
		if f.off == nil {
			require.Empty(t, f.breaks, f.name)
			continue
		}
		r := allRules()
		f.off(&r)
		for i := range on.NumField() {
			if !reflect.ValueOf(r).Field(i).Bool() {
				off[on.Type().Field(i).Name] = true
			}
		}
	}
	for i := range on.NumField() {
		name := on.Type().Field(i).Name
		require.True(t, on.Field(i).Bool(), name)
		require.True(t, off[name], "no configuration switches %s off", name)
	}
}

// TestWords: the model has every word of the program, or says that it leaves it out.
func TestWords(t *testing.T) {
	t.Parallel()
	known := slices.Clone(kindsLeftOut)
	statuses := []session.Status{}
	for _, k := range kinds[1:] {
		known = append(known, k.word)
		statuses = append(statuses, k.status)
	}
	require.Subset(t, known, session.Kinds())
	require.Subset(t, statuses, session.Statuses())
	for i := range signals[1:] {
		require.True(t, stronger(uint8(i+1), uint8(i)))
	}
	require.Len(t, propertyTexts, len(propertyNames))
	require.Equal(t, dangling, 1<<(len(propertyNames)-1), "the names are in the order of the bits")
}

// TestSearch_finds_the_shortest_way on a model small enough to see it.
func TestSearch_finds_the_shortest_way(t *testing.T) {
	t.Parallel()
	count := func(to int, rest func(int) bool) *space[int] {
		return &space[int]{
			name: "count", properties: []string{"seven"},
			next: func(s *int, emit func(int, move)) {
				if *s < to {
					emit(*s+1, move{who: "one", what: "adds"})
					emit(min(*s+2, to), move{who: "two", what: "adds"})
				}
			},
			broken: func(s *int) uint32 {
				if *s == 7 {
					return 1
				}
				return 0
			},
			rest: func(s *int) bool { return rest(*s) },
		}
	}
	var out bytes.Buffer
	m := count(9, func(s int) bool { return s == 9 })
	o := m.search(bounds{states: 100, trace: true, out: &out})
	require.Equal(t, outcome{states: 10, depth: 5, whole: true, harm: []string{"seven"}}, o)
	require.Equal(t, 6, bytes.Count(out.Bytes(), []byte("\n")), out.String()) // the name, the start, one and three twos
	verdict, ok := o.verdict(nil)
	require.False(t, ok)
	require.Contains(t, verdict, "MUST HOLD")

	m.breaks = []string{"seven"}
	o = m.search(bounds{states: 100})
	verdict, ok = o.verdict(m.breaks)
	require.True(t, ok, verdict)

	m = count(5, func(s int) bool { return s == 4 })
	require.Equal(t, []string{stuck}, m.search(bounds{states: 100}).harm)
	m.breaks = []string{"seven"}
	o = m.search(bounds{states: 100})
	require.Equal(t, []string{"seven"}, o.missing)
	_, ok = o.verdict(m.breaks)
	require.False(t, ok)
	o = m.search(bounds{states: 3})
	require.False(t, o.whole)
	_, ok = o.verdict(m.breaks)
	require.True(t, ok, "nothing is missing that was not reached")

	round := &space[int]{
		name:   "round",
		next:   func(s *int, emit func(int, move)) { emit(1-*s, move{}); emit(2, move{fault: *s == 0}) },
		broken: func(*int) uint32 { return 0 }, rest: func(s *int) bool { return *s == 2 },
	}
	require.Equal(t, []string{spin}, round.search(bounds{states: 100}).harm)
}
