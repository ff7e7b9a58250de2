package session_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

func appendOp(key, value string) session.StateOp {
	return session.StateOp{Op: session.StateAppend, Key: key, Value: json.RawMessage(value)}
}

func replaceOp(key, value string) session.StateOp {
	return session.StateOp{Op: session.StateReplace, Key: key, Value: json.RawMessage(value)}
}

func requireState(t *testing.T, s *session.State, key, want string) {
	t.Helper()
	got, ok := s.Get(key)
	require.True(t, ok)
	require.JSONEq(t, want, string(got))
}

func TestState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ops  []session.StateOp
		want string
	}{
		"append_to_nothing_makes_a_list": {[]session.StateOp{appendOp("k", `1`)}, `[1]`},
		"append_to_a_list":               {[]session.StateOp{replaceOp("k", ` [1, 2]`), appendOp("k", `[3]`)}, `[1,2,[3]]`},
		"append_to_a_value_keeps_both":   {[]session.StateOp{replaceOp("k", `{"a":1}`), appendOp("k", `null`)}, `[{"a":1},null]`},
		"append_to_null_keeps_both":      {[]session.StateOp{replaceOp("k", `null`), appendOp("k", `1`)}, `[null,1]`},
		"replace_wins":                   {[]session.StateOp{appendOp("k", `1`), replaceOp("k", `"x"`)}, `"x"`},
		"replace_by_an_empty_list":       {[]session.StateOp{appendOp("k", `1`), replaceOp("k", `[]`)}, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s session.State
			for _, op := range c.ops {
				require.NoError(t, s.Apply(op))
			}
			requireState(t, &s, "k", c.want)
			require.Equal(t, []string{"k"}, s.Keys())
			require.JSONEq(t, c.want, string(s.Snapshot()["k"]))
			clone := s.Clone()
			for _, s := range []session.State{s, clone} {
				require.InDelta(t, len(c.want), s.Size(), 4, "what is replaced counts no more")
			}
		})
	}
}

func TestState_refuses(t *testing.T) {
	t.Parallel()
	for says, op := range map[string]session.StateOp{
		`append to state "k": not valid JSON`:     appendOp("k", `{`),
		`replace state "k": not valid JSON`:       replaceOp("k", ``),
		`replace state "k": unexpected end`:       replaceOp("k", `[1`),
		`state "k": unknown operation "multiply"`: {Op: "multiply", Key: "k"},
	} {
		var s session.State
		require.ErrorContains(t, s.Apply(op), says)
		_, err := s.With([]session.StateOp{appendOp("a", `1`), op})
		require.ErrorContains(t, err, says)
		_, set := s.Get("k")
		require.False(t, set)
		require.Empty(t, s.Keys())
	}
}

// Two steps from one state, as a step and its retry make them, must not write over each other.
func TestState_two_states_made_of_one_are_apart(t *testing.T) {
	t.Parallel()
	var base session.State
	for i := range 5 { // leaves room in the array
		require.NoError(t, base.Apply(appendOp("k", strconv.Itoa(i))))
	}
	first, err := base.With([]session.StateOp{appendOp("k", `"first"`)})
	require.NoError(t, err)
	second, err := base.With([]session.StateOp{appendOp("k", `"second"`)})
	require.NoError(t, err)
	clone := base.Clone()
	require.NoError(t, clone.Apply(appendOp("k", `"clone"`)))
	require.NoError(t, base.Apply(appendOp("k", `"base"`)))

	requireState(t, &first, "k", `[0,1,2,3,4,"first"]`)
	requireState(t, &second, "k", `[0,1,2,3,4,"second"]`)
	requireState(t, &clone, "k", `[0,1,2,3,4,"clone"]`)
	requireState(t, &base, "k", `[0,1,2,3,4,"base"]`)
}

func TestState_append_costs_the_same_however_long_the_list(t *testing.T) {
	t.Parallel()
	var s session.State
	op := []session.StateOp{appendOp("k", `1`)}
	grow := func(n int) {
		for range n {
			var err error
			s, err = s.With(op)
			require.NoError(t, err)
		}
	}
	grow(100_000) // copying the list each time would take minutes
	raw, ok := s.Get("k")
	require.True(t, ok)
	require.Len(t, raw, 200_001)
}

// FuzzState compares State with a map of plain values, along several lines of descent.
func FuzzState(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0, 0, 0, 4, 4, 4, 1, 0})
	f.Add([]byte("append append replace clone with with"))
	f.Add([]byte{0, 0, 0, 0, 0, 3, 0, 11, 0, 3, 19, 0, 27})
	f.Fuzz(func(t *testing.T, data []byte) {
		states, models := []session.State{{}}, []map[string][]string{{}} // a list, or one value after "="
		for _, b := range data[:min(len(data), 200)] {
			at := int(b>>3) % len(states)
			key, value := string('a'+rune(b>>6)), strconv.Itoa(int(b))
			model := maps.Clone(models[at])
			switch b & 7 {
			case 0, 1: // a new state with one more item
				next, err := states[at].With([]session.StateOp{appendOp(key, value)})
				require.NoError(t, err)
				states, models = append(states, next), append(models, naiveAppend(model, key, value))
			case 2, 3:
				require.NoError(t, states[at].Apply(appendOp(key, value)))
				models[at] = naiveAppend(model, key, value)
			case 4:
				require.NoError(t, states[at].Apply(replaceOp(key, value)))
				model[key] = []string{"=", value}
				models[at] = model
			case 5:
				require.NoError(t, states[at].Apply(replaceOp(key, `[`+value+`]`)))
				model[key] = []string{value}
				models[at] = model
			case 6:
				states, models = append(states, states[at].Clone()), append(models, model)
			case 7:
				require.Error(t, states[at].Apply(appendOp(key, `{`)))
			}
		}
		for i := range states {
			require.Equal(t, slices.Sorted(maps.Keys(models[i])), append([]string(nil), states[i].Keys()...))
			for key, want := range models[i] {
				requireState(t, &states[i], key, naiveJSON(want))
			}
		}
	})
}

func naiveAppend(model map[string][]string, key, value string) map[string][]string {
	list := slices.Clone(model[key])
	if len(list) > 0 && list[0] == "=" {
		list = list[1:]
	}
	model[key] = append(list, value)
	return model
}

func naiveJSON(v []string) string {
	if v[0] == "=" {
		return v[1]
	}
	out := "["
	for i, item := range v {
		if i > 0 {
			out += ","
		}
		out += item
	}
	return out + "]"
}
