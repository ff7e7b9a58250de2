package tool_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

type foldLine struct {
	Amount int `json:"amount"`
}

type foldBase struct {
	Order string `json:"order"`
}

type foldIn struct {
	foldBase
	Amount int                 `json:"amount"`
	Kelvin string              `json:"kelvin"`
	Lines  []foldLine          `json:"lines"`
	By     map[string]foldLine `json:"by"`
	Next   *foldLine           `json:"next"`
	Any    any                 `json:"any"`
	When   time.Time           `json:"when"`
	Raw    json.RawMessage     `json:"raw"`
	Plain  int
}

// TestValidate_case: encoding/json finds a field whatever the case of its letters,
// so an open schema would let through what it bounds under another case.
func TestValidate_case(t *testing.T) {
	t.Parallel()
	open := json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","maximum":100}}}`)
	ran := 0
	fold := tool.Define(tool.Spec[foldIn]{Name: "pay", Schema: open}, func(_ context.Context, _ *tool.Call, in foldIn) (int, error) {
		ran++
		return in.Amount, nil
	})
	require.NoError(t, fold.Err())
	for _, args := range []string{
		`{"amount":100}`, `{"other":1,"lines":[{"amount":1,"more":2}],"by":{"A":{"amount":1}},"next":{"amount":2}}`,
		`{"order":"A-1","any":{"AMOUNT":1},"raw":{"Amount":1},"Plain":3,"when":"2026-01-02T03:04:05Z"}`, `{"next":null,"lines":null}`,
	} {
		require.NoError(t, fold.Validate(json.RawMessage(args)), args)
	}
	for args, at := range map[string]string{
		`{"Amount":5000}`:                            "/Amount",
		`{"amount":1,"AMOUNT":5000}`:                 "/AMOUNT",
		`{"AMOUNT":5000,"amount":1}`:                 "/amount",
		`{"amount":1,"amount":5000}`:                 "/amount",
		`{"\u0041mount":5000}`:                       "/Amount",
		`{"\u212aelvin":"x"}`:                        "/\u212aelvin", // the Kelvin sign folds to k
		`{"line\u017f":[]}`:                          "/line\u017f",  // a long s folds to s
		`{"ORDER":"A-1"}`:                            "/ORDER",
		`{"plain":1}`:                                "/plain",
		`{"lines":[{"amount":1},{"aMount":5000}]}`:   "/lines/1/aMount",
		`{"by":{"x":{"Amount":5000}}}`:               "/by/x/Amount",
		`{"next":{"Amount":5000}}`:                   "/next/Amount",
		`{"any":{"a":1,"A":2}}`:                      "/any/A",
		`{"any":[{"k":1,"\u212a":2}]}`:               "/any/0/\u212a",
		`{"by":{"x":{"amount":1},"X":{"amount":2}}}`: "/by/X",
		`{"raw":{"a":{"b":1,"b":2}}}`:                "/raw/a/b",
	} {
		var wrong *tool.ArgumentError
		require.ErrorAs(t, fold.Validate(json.RawMessage(args)), &wrong, args)
		require.Len(t, wrong.Problems, 1, args)
		require.Equal(t, at, wrong.Problems[0].At, args)
	}
	require.Zero(t, ran)
}

type foldNamed struct {
	Order string `json:"order"`
}

type foldItem struct {
	Other string `json:"other"`
}

type foldInner struct {
	Item foldItem `json:"item"`
}

// foldSelf decides by itself what it makes of JSON.
type foldSelf struct{ Amount int }

func (s *foldSelf) UnmarshalJSON(raw []byte) error {
	var amounts map[string]int
	if err := json.Unmarshal(raw, &amounts); err != nil {
		return err
	}
	s.Amount = amounts["AMOUNT"]
	return nil
}

type foldMore struct {
	foldInner
	foldNamed `json:"named"`
	Item      foldLine    `json:"item"`
	Pair      [2]foldLine `json:"pair"`
	Self      foldSelf    `json:"self"`
	Umlaut    int         `json:"\u00fcber"`
	note      string      //nolint:unused // is none of the fields that encoding/json knows
}

// TestValidate_case_of_every_kind_of_field: what encoding/json knows as a field, and
// of which type, is what is held to its case, and nothing else is.
func TestValidate_case_of_every_kind_of_field(t *testing.T) {
	t.Parallel()
	more := tool.Define(tool.Spec[foldMore]{Name: "more", Schema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *tool.Call, foldMore) (int, error) {
		return 0, nil
	})
	require.NoError(t, more.Err())
	for _, args := range []string{
		`{"named":{"order":"A-1"},"ORDER":"is no field here"}`, `{"item":{"amount":1,"Other":1}}`, `{"pair":[{"amount":1},{"amount":2}]}`,
		`{"self":{"AMOUNT":7}}`, `{"\u00fcber":1}`, `{"Note":1}`, `{"note":1}`, `{"any":{"a":1e-400}}`,
	} {
		require.NoError(t, more.Validate(json.RawMessage(args)), args)
	}
	for args, at := range map[string]string{
		`{"named":{"Order":"A-1"}}`:            "/named/Order",
		`{"Named":{"order":"A-1"}}`:            "/Named",
		`{"item":{"Amount":5000}}`:             "/item/Amount", // the outer field's type, not the embedded one's
		`{"pair":[{"amount":1},{"AMOUNT":2}]}`: "/pair/1/AMOUNT",
		`{"\u00dcber":1}`:                      "/\u00dcber",
		`{"any":{"s":1,"\u017f":2}}`:           "/any/\u017f", // no letter is lower than a long s
		`{"any":1e-401}`:                       "/any",
		`{"any":1e401}`:                        "/any",
	} {
		var wrong *tool.ArgumentError
		require.ErrorAs(t, more.Validate(json.RawMessage(args)), &wrong, args)
		require.Len(t, wrong.Problems, 1, args)
		require.Equal(t, at, wrong.Problems[0].At, args)
	}
}

type foldTree struct {
	Name string               `json:"name"`
	Kids []foldTree           `json:"kids"`
	By   map[string]*foldTree `json:"by"`
	List foldList             `json:"list"`
	Self *foldPointer         `json:"self"`
}

type (
	foldList    []foldList
	foldPointer *foldPointer
)

// Types that stand in themselves are looked through as deep as the arguments go.
func TestValidate_case_in_circular_types(t *testing.T) {
	t.Parallel()
	tree := tool.Define(tool.Spec[foldTree]{Name: "plant", Schema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *tool.Call, foldTree) (int, error) { return 0, nil })
	require.NoError(t, tree.Err())
	require.NoError(t, tree.Validate(json.RawMessage(`{"name":"a","kids":[{"kids":[{"name":"b"}]}],"by":{"NAME":{"name":"c","by":{"Kids":null}}},"list":[[],[[]]]}`)))
	for args, at := range map[string]string{
		`{"kids":[{},{"kids":[{"Name":"b"}]}]}`:            "/kids/1/kids/0/Name",
		`{"by":{"Name":{"by":{"x":{"KIDS":[]}}}}}`:         "/by/Name/by/x/KIDS",
		`{"by":{"x":{"kids":[{"by":{"y":{"By":null}}}]}}}`: "/by/x/kids/0/by/y/By",
	} {
		var wrong *tool.ArgumentError
		require.ErrorAs(t, tree.Validate(json.RawMessage(args)), &wrong, args)
		require.Len(t, wrong.Problems, 1, args)
		require.Equal(t, at, wrong.Problems[0].At, args)
	}
}
