package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

type orderIn struct {
	Order    string            `json:"order" jsonschema:"the order's number"`
	Amount   int8              `json:"amount"`
	Rate     float64           `json:"rate,omitempty"`
	Due      *time.Time        `json:"due,omitempty"`
	Lines    []lineIn          `json:"lines,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Big      int64             `json:"big,omitempty"`
	Anything any               `json:"anything,omitempty"`
}

type lineIn struct {
	SKU string `json:"a/b"`
	N   int    `json:"n"`
}

func orderTool() tool.Tool {
	return tool.Define(tool.Spec[orderIn]{Name: "order"}, func(_ context.Context, _ *tool.Call, in orderIn) (orderIn, error) { return in, nil })
}

func TestTool_Validate(t *testing.T) {
	t.Parallel()
	order := orderTool()
	require.NoError(t, order.Err())
	for name, c := range map[string]struct {
		args string
		want []tool.Problem
	}{
		"good": {args: `{"order":"1","amount":2,"rate":1e3,"due":null,"lines":[{"a/b":"x","n":1}],"labels":{"a":"b"},"anything":[null]}`},
		"missing": {`{}`, []tool.Problem{
			{At: "/amount", Message: "missing, but required: expected integer"},
			{At: "/order", Message: "missing, but required: expected string (the order's number)"},
		}},
		"every_problem": {`{"order":7,"amount":1000,"rate":"x","lines":[{"a/b":"x"},{"n":"1","m":2,"a/b":null}],"labels":{"a":1},"due":"tomorrow","sum":1}`, []tool.Problem{
			{At: "/amount", Message: "maximum: got 1,000, want 127"},
			{At: "/due", Message: `expected the format date-time, got "tomorrow" (like 2026-01-31T09:30:00Z)`},
			{At: "/labels/a", Message: "expected string, got number"},
			{At: "/lines/0/n", Message: "missing, but required: expected integer"},
			{At: "/lines/1/a~1b", Message: "expected string, got null"},
			{At: "/lines/1/m", Message: "unknown property: expected only a/b, n"},
			{At: "/lines/1/n", Message: "expected integer, got string"},
			{At: "/order", Message: "expected string, got number"},
			{At: "/rate", Message: "expected number, got string"},
			{At: "/sum", Message: "unknown property: expected only amount, anything, big, due, labels, lines, order, rate"},
		}},
		"nothing":      {``, []tool.Problem{{At: "/amount", Message: "missing, but required: expected integer"}, {At: "/order", Message: "missing, but required: expected string (the order's number)"}}},
		"array":        {`[]`, []tool.Problem{{Message: "expected object, got array"}}},
		"null":         {`null`, []tool.Problem{{Message: "expected object, got null"}}},
		"text":         {`"order 7"`, []tool.Problem{{Message: `expected a JSON object, got the text "order 7"`}}},
		"no_json":      {`{"order"`, []tool.Problem{{Message: "this is not valid JSON: unexpected EOF"}}},
		"two_values":   {`{} {}`, []tool.Problem{{Message: "this is not valid JSON: invalid character after top-level value"}}},
		"given_twice":  {`{"order":"1","amount":1,"amount":100}`, []tool.Problem{{At: "/amount", Message: "given more than once"}}},
		"nested_twice": {`{"order":"1","amount":1,"lines":[{},{"n":{"x":1},"n":2}]}`, []tool.Problem{{At: "/lines/1/n", Message: "given more than once"}}},
		"huge_number":  {`{"order":"1","amount":1,"rate":1e999999999}`, []tool.Problem{{At: "/rate", Message: `this number is too large: "1e999999999"`}}},
		"not_so_whole": {`{"order":"1","amount":1.0}`, []tool.Problem{{At: "/amount", Message: "expected a whole number that fits int8, without fraction or exponent, got number 1.0"}}},
		"too_big_for_go": {`{"order":"1","amount":1,"big":9223372036854775808}`, []tool.Problem{
			{At: "/big", Message: "expected a whole number that fits int64, without fraction or exponent, got number 9223372036854775808"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := order.Validate(json.RawMessage(c.args))
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			var invalid *tool.ArgumentError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "order", invalid.Tool)
			require.Equal(t, c.want, invalid.Problems)
		})
	}
}

func TestTool_Validate_keywords_of_a_hand_written_schema(t *testing.T) {
	t.Parallel()
	got := tool.DefineClient(tool.Spec[map[string]any]{Name: "draw", Schema: json.RawMessage(`{
		"type": "object",
		"$defs": {"point": {"type": "array", "minItems": 2}},
		"properties": {
			"shape": {"oneOf": [{"type": "string", "pattern": "^[a-z]+$"}, {"type": "object", "required": ["name"]}]},
			"any": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
			"one": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
			"at": {"$ref": "#/$defs/point"},
			"kind": {"const": "line"},
			"color": {"type": ["string", "null"], "enum": ["red", null]},
			"never": false,
			"not": {"not": {"type": "string"}}
		},
		"propertyNames": {"maxLength": 5},
		"allOf": [{"required": ["color"]}]}`)})
	require.NoError(t, got.Err())
	err := got.Validate(json.RawMessage(`{"shape":"A","any":"x","one":1,"at":[1],"kind":"dot","never":1,"not":"x","toolong":1}`))
	for _, want := range []string{
		`/shape: fits none of the allowed forms: (1) /shape: expected text that matches ^[a-z]+$, got "A"; (2) /shape: expected object, got string`,
		"/any: fits none of the allowed forms: (1) /any: expected integer, got string; (2) /any: expected boolean, got string",
		"/one: fits more than one of the allowed forms",
		"/at: minItems: got 1, want 2",
		`/kind: expected "line", got "dot"`,
		"/never: must not be here",
		"/not: 'not' failed",
		"maxLength: got 7, want 5",
		`/color: missing, but required`,
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestArgumentError_is_written_for_a_model(t *testing.T) {
	t.Parallel()
	err := orderTool().Validate(json.RawMessage(`{"order":1}`))
	require.EqualError(t, err, "The arguments of order are not valid. Correct them and call it again:\n"+
		"- /amount: missing, but required: expected integer\n"+
		"- /order: expected string, got number")
	err = orderTool().Validate(json.RawMessage(`[]`))
	require.ErrorContains(t, err, "- arguments: expected object, got array")
}

func TestArgumentError_stays_short(t *testing.T) {
	t.Parallel()
	labels := strings.TrimSuffix(strings.Repeat(`1,`, 60), ",")
	args := json.RawMessage(`{"order":"1","amount":1,"lines":[` + labels + `]}`)
	var invalid *tool.ArgumentError
	require.ErrorAs(t, orderTool().Validate(args), &invalid)
	require.Len(t, invalid.Problems, 60, "every problem is there")
	require.ErrorContains(t, invalid, "- and 10 more problems")

	long := strings.Repeat("ä", 100_000)
	raw, err := json.Marshal(map[string]any{long: 1})
	require.NoError(t, err)
	require.Less(t, len(orderTool().Validate(raw).Error()), 1000)
	require.Less(t, len(orderTool().Validate(json.RawMessage(`"`+long+`"`)).Error()), 1000)
}

func TestTool_Validate_survives_a_type_that_panics(t *testing.T) {
	t.Parallel()
	got := tool.DefineClient(tool.Spec[struct{ V evil }]{Name: "t"})
	require.NoError(t, got.Err())
	require.ErrorContains(t, got.Validate(json.RawMessage(`{"V":1}`)), "the value cannot be read: no")
}

// FuzzTool_Validate: whatever a model writes, Validate neither panics nor lets
// pass what Run cannot decode, and what Go itself wrote passes.
func FuzzTool_Validate(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"order":"1","amount":2}`, `{"order":"1","amount":2.0}`, `{"order":"\ud800","amount":1e1}`,
		`{"a":1,"a":2}`, `[[[[`, `{"amount":1e999999999}`, `{"order":"1","amount":1,"due":"2026-01-31T09:30:60Z"}`,
		`{"ORDER":"1","amount":1}`, "{\"order\":\"\xff\",\"amount\":1}", `{"order":"1","amount":1,"labels":{"":""}}`,
		`{"order":"1","amount":1,"due":"2026-01-31T09:30:00,5Z"}`,
	} {
		f.Add([]byte(seed))
	}
	order := orderTool()
	f.Fuzz(func(t *testing.T, args []byte) {
		if err := order.Validate(args); err != nil {
			var invalid *tool.ArgumentError
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Problems)
			require.NotEmpty(t, err.Error())
			return
		}
		out, err := order.Run(t.Context(), tool.NewCall(tool.CallConfig{}), args)
		require.NoError(t, err, "valid arguments are decoded")
		require.NoError(t, order.Validate(out), "what Go wrote is valid: %s", out)
		require.Equal(t, order.NeedsApproval(args), order.NeedsApproval(out))
	})
}

// What a model is told about a property it left out, or may not give, is all
// that the schema says of it, however little that is.
func TestTool_Validate_says_what_the_schema_says(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","additionalProperties":false,"required":["a","b","c","d"],"properties":{
		"a":{}, "b":{"type":["string","null"]}, "c":{"enum":["x",1,null]}, "d":{"type":"string","format":"uuid","description":"the id"},
		"e":{"type":"object","additionalProperties":false}}}`)
	tl := tool.Define(tool.Spec[json.RawMessage]{Name: "t", Schema: schema}, func(_ context.Context, _ *tool.Call, in json.RawMessage) (string, error) { return "", nil })
	require.NoError(t, tl.Err())
	for args, want := range map[string][]tool.Problem{
		`{}`: {
			{At: "/a", Message: "missing, but required"},
			{At: "/b", Message: "missing, but required: expected string or null"},
			{At: "/c", Message: `missing, but required: expected one of "x", 1, null`},
			{At: "/d", Message: "missing, but required: expected string (the id)"},
		},
		`{"a":[],"b":null,"c":null,"d":"x"}`: {{At: "/d", Message: `expected the format uuid, got "x"`}},
		`{"a":0,"b":"","c":1,"d":"123e4567-e89b-12d3-a456-426614174000","e":{"f":1}}`: {
			{At: "/e/f", Message: "unknown property: no properties are expected"},
		},
	} {
		var wrong *tool.ArgumentError
		require.ErrorAs(t, tl.Validate(json.RawMessage(args)), &wrong, args)
		require.Equal(t, want, wrong.Problems, args)
	}
}

// Keywords of a property that are wrong are told with the property's name.
func TestSpec_Properties_that_are_wrong(t *testing.T) {
	t.Parallel()
	for keywords, says := range map[string]string{
		`["minimum"]`: `property "n": its keywords are no JSON object`, `{`: `property "n": its keywords are no JSON object`,
		`{"minimum": "low"}`: `property "n": `,
	} {
		tl := tool.Define(tool.Spec[lineIn]{Name: "t", Properties: map[string]json.RawMessage{"n": json.RawMessage(keywords)}},
			func(context.Context, *tool.Call, lineIn) (string, error) { return "", nil })
		var mistake *tool.SpecError
		require.ErrorAs(t, tl.Err(), &mistake, keywords)
		require.Equal(t, "Properties", mistake.Field)
		require.ErrorContains(t, tl.Err(), says)
		require.Error(t, tl.Validate(json.RawMessage(`{}`)), "a tool that is wrong takes no arguments")
	}
}
