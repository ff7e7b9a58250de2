package tool_test

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
)

type hidden struct{ number string }

type line struct {
	F func() `json:"f"`
}

// list refers to itself, which a result may.
type list struct {
	Next  *list            `json:"next"`
	Time  time.Time        `json:"time"`
	Big   *big.Int         `json:"big"`
	Raw   json.RawMessage  `json:"raw"`
	Any   any              `json:"any"`
	Err   error            `json:"err"`
	Done  chan struct{}    `json:"-"`
	After func()           `json:"after,omitzero"`
	ByNum map[int64]string `json:"byNum"`
	inner chan int
}

func takes[In any]() tool.Tool { return tool.DefineClient(tool.Spec[In]{Name: "x"}) }

func gives[Out any]() tool.Tool {
	return tool.Define(tool.Spec[struct{}]{Name: "x"}, func(context.Context, *tool.Call, struct{}) (Out, error) {
		var none Out
		return none, nil
	})
}

// TestTypesWithoutJSON: a tool whose types can never be JSON is told when it is defined,
// with the name of the field.
func TestTypesWithoutJSON(t *testing.T) {
	t.Parallel()
	_ = hidden{number: ""}
	_ = list{inner: nil}
	for name, c := range map[string]struct {
		tool tool.Tool
		want string
	}{
		"chan in a field": {takes[struct {
			C []chan int `json:"c"`
		}](), `In: field "c" is a chan int, which has no JSON: take another type, or leave it out with json:"-"`},
		"below": {takes[struct {
			Lines []line `json:"lines"`
		}](), `In: field "lines.f" is a func(), which has no JSON`},
		"interface": {takes[struct {
			E error `json:"e"`
		}](), `In: field "e" is the interface error, which nothing can be read into`},
		"unexported": {takes[hidden](), "In: its type is a struct with unexported fields only, so no argument arrives"},
		"as text": {takes[struct {
			N *int `json:"n,string"`
		}](), `In: field "n" has ",string" in its json tag`},
		"twice": {takes[struct {
			A string `json:"B"`
			B string
		}](), `In: its type has two fields with the JSON name "B"`},
		"tag": {takes[struct {
			N int `json:"n" jsonschema:"minimum=1"`
		}](), `In: field "n" has the jsonschema tag "minimum=1": it is the description and nothing else`},
		"itself": {takes[*node](), "In: no schema can be inferred: cycle detected for type tool_test.node: change the type, or set Schema"},
		"keys": {takes[struct {
			M map[float64]string `json:"m"`
		}](), `In: field "m" is a map with keys of type float64, which JSON has not: take string`},
		"chan out":      {gives[chan int](), "Out: its type is a chan int, which has no JSON"},
		"func out":      {gives[*line](), `Out: field "f" is a func(), which has no JSON`},
		"many out":      {gives[map[string][]line](), `Out: field "f" is a func(), which has no JSON`},
		"complex out":   {gives[complex128](), "Out: its type is a complex128"},
		"what is right": {gives[list](), ""},
		"any":           {gives[any](), ""},
		"error":         {gives[error](), ""},
		"times":         {gives[[]time.Time](), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want == "" {
				require.NoError(t, c.tool.Err())
				return
			}
			require.ErrorContains(t, c.tool.Err(), c.want)
		})
	}
}
