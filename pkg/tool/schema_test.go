package tool_test

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

type node struct {
	Next *node `json:"next,omitempty"`
}

func TestSchemaOf(t *testing.T) {
	t.Parallel()
	type inner struct {
		Tags []string `json:"tags,omitempty"`
	}
	for name, c := range map[string]struct {
		infer func() (json.RawMessage, error)
		want  string
	}{
		"struct": {tool.SchemaOf[refundIn], `{"type":"object","additionalProperties":false,"required":["order","amount"],"properties":{
			"order":{"type":"string","description":"the order's number"},"amount":{"type":"integer"},"note":{"type":"string"}}}`},
		"pointer_to_struct": {tool.SchemaOf[*struct{}], `{"type":"object","additionalProperties":false}`},
		"map":               {tool.SchemaOf[map[string]any], `{"type":"object","additionalProperties":{}}`},
		"raw_json": {tool.SchemaOf[struct {
			V json.RawMessage `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{}}}`},
		"time": {tool.SchemaOf[struct {
			V time.Time `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"string","format":"date-time"}}}`},
		"number": {tool.SchemaOf[struct {
			V json.Number `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"number"}}}`},
		"bytes_are_base64": {tool.SchemaOf[struct {
			V []byte `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"string","contentEncoding":"base64"}}}`},
		"text_unmarshaler_is_text": {tool.SchemaOf[struct {
			V []netip.Addr `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"array","items":{"type":"string"}}}}`},
		"json_unmarshaler_is_anything": {tool.SchemaOf[struct {
			V map[string]evil `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"object","additionalProperties":{}}}}`},
		"slices_are_not_null_at_any_depth": {tool.SchemaOf[struct {
			V map[string][]inner `json:"v"`
		}], `{"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"type":"object","additionalProperties":
			{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"tags":{"type":"array","items":{"type":"string"}}}}}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.infer()
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
		})
	}
}

func TestSchemaOf_refuses(t *testing.T) {
	t.Parallel()
	for name, infer := range map[string]func() (json.RawMessage, error){
		"text":     tool.SchemaOf[string],
		"slice":    tool.SchemaOf[[]int],
		"raw_json": tool.SchemaOf[json.RawMessage],
		"any":      tool.SchemaOf[any],
		"channel":  tool.SchemaOf[struct{ C chan int }],
		"cycle":    tool.SchemaOf[node],
		"bad_tag": tool.SchemaOf[struct {
			A int `jsonschema:"minimum=1"`
		}],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := infer()
			require.Error(t, err)
		})
	}
}

func TestSpec_Properties_keeps_the_order_of_fields(t *testing.T) {
	t.Parallel()
	spec := refundSpec()
	spec.Properties = map[string]json.RawMessage{
		"amount": json.RawMessage(`{"minimum": 1, "description": "in cents"}`),
		"order":  json.RawMessage(`{"enum": ["A", "B"]}`),
	}
	got := tool.Define(spec, refund)
	require.NoError(t, got.Err())
	require.Regexp(t, `"order":.*"amount":.*"note":`, string(got.Schema()))
	require.NoError(t, got.Validate(json.RawMessage(`{"order":"A","amount":1}`)))
	require.ErrorContains(t, got.Validate(json.RawMessage(`{"order":"C","amount":1}`)), `/order: expected one of "A", "B", got "C"`)
	require.ErrorContains(t, got.Validate(json.RawMessage(`{"order":"A","amount":0}`)), "/amount: minimum: got 0, want 1")
}

func TestSpec_Properties_of_what_allows_everything(t *testing.T) {
	t.Parallel()
	spec := tool.Spec[struct {
		V any `json:"v,omitempty"`
	}]{Name: "t", Properties: map[string]json.RawMessage{"v": json.RawMessage(`{"type":["string","null"]}`)}}
	got := tool.DefineClient(spec)
	require.NoError(t, got.Err())
	require.NoError(t, got.Validate(json.RawMessage(`{"v":null}`)))
	require.ErrorContains(t, got.Validate(json.RawMessage(`{"v":1}`)), "/v: expected null or string, got number")
}

func TestSpec_Schema_may_refer_to_itself(t *testing.T) {
	t.Parallel()
	spec := tool.Spec[node]{Name: "walk", Schema: json.RawMessage(`{
		"type": "object", "additionalProperties": false,
		"properties": {"next": {"$ref": "#"}}}`)}
	got := tool.DefineClient(spec)
	require.NoError(t, got.Err())
	require.NoError(t, got.Validate(json.RawMessage(`{"next":{"next":{}}}`)))
	require.ErrorContains(t, got.Validate(json.RawMessage(`{"next":{"nxt":{}}}`)), "/next/nxt: unknown property: expected only next")
}
