package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

type effectiveInner struct {
	Amount float64 `json:"amount,omitempty"`
	Note   *string `json:"note"`
}

type effectiveBase struct {
	Base string `json:"base"`
}

type effectiveIn struct {
	effectiveBase
	Text   string                    `json:"text"`
	Whole  int64                     `json:"whole"`
	Small  uint8                     `json:"small"`
	Float  float64                   `json:"float"`
	Single float32                   `json:"single"`
	Yes    bool                      `json:"yes"`
	List   []string                  `json:"list"`
	Pair   [2]int                    `json:"pair"`
	Inner  effectiveInner            `json:"inner"`
	Next   *effectiveInner           `json:"next"`
	By     map[string]effectiveInner `json:"by"`
	Nth    map[int]string            `json:"nth"`
	Any    any                       `json:"any"`
	Raw    json.RawMessage           `json:"raw"`
	Number json.Number               `json:"number"`
	When   time.Time                 `json:"when"`
	Bytes  []byte                    `json:"bytes"`
}

// effectiveOpen lets everything through that encoding/json reads, and has defaults.
const effectiveOpen = `{"type":"object","properties":{"whole":{"default":7},"text":{"default":"as always"},"inner":{"$ref":"#/$defs/inner"},
	"by":{"type":["object","null"]},"pair":{"type":["array","null"]}},"$defs":{"inner":{"properties":{"amount":{"default":2.5}}}}}`

// effectiveTool keeps what its function got.
func effectiveTool(t testing.TB, got *effectiveIn) tool.Tool {
	made := tool.Define(tool.Spec[effectiveIn]{Name: "effective", Schema: json.RawMessage(effectiveOpen)}, func(_ context.Context, _ *tool.Call, in effectiveIn) (int, error) {
		*got = in
		return 0, nil
	})
	require.NoError(t, made.Err())
	return made
}

// TestEffective: what is shown is what the function gets, or the call is refused.
func TestEffective(t *testing.T) {
	t.Parallel()
	var in effectiveIn
	made := effectiveTool(t, &in)
	const rest = `"inner":{"amount":1},"text":"x","whole":1`
	for args, want := range map[string]string{
		``:                                 `{"text":"as always","whole":7}`, // no inner: nothing is made up to hold a default
		`{"inner":{}}`:                     `{"inner":{"amount":2.5},"text":"as always","whole":7}`,
		`{"inner":{"amount":0},"whole":0}`: `{"inner":{"amount":0},"text":"as always","whole":0}`,
		`{"dry_run":true,` + rest + `}`:    `{` + rest + `}`, // which the function would never see
		`{` + rest + `,"next":{"force":1,"note":null}}`:     `{` + rest + `,"next":{"note":null}}`,
		`{"inner":{"amount":1},"text":null,"whole":1}`:      `{"inner":{"amount":1},"text":"","whole":1}`,
		`{` + rest + `,"yes":null,"list":null}`:             `{` + rest + `,"list":null,"yes":false}`,
		`{` + rest + `,"by":{"a":null},"pair":null}`:        `{` + rest + `,"by":{"a":{"note":null}},"pair":[0,0]}`,
		`{"inner":null,"text":"x","whole":1}`:               `{"inner":{"amount":2.5,"note":null},"text":"x","whole":1}`,
		`{"text":"\\ud83d","whole":1,"inner":{"amount":1}}`: `{"inner":{"amount":1},"text":"\\ud83d","whole":1}`, // a backslash
		`{"text":"\ud800","inner":{"amount":1},"whole":1}`:  `{"inner":{"amount":1},"text":"` + "\uFFFD" + `","whole":1}`,
	} {
		effective, err := made.Effective(json.RawMessage(args))
		if strings.Contains(args, `"inner":null`) {
			require.Error(t, err, "a default for what null was read as: %s", effective)
			continue
		}
		require.NoError(t, err, args)
		require.JSONEq(t, want, string(effective), args)
	}
	for _, same := range []string{
		` {"text":"😀 \\n","whole":1,"inner":{"amount":100.10},"any":{"x":[1,1e2,null]},"float":1e2,"single":0.1}`,
		`{"whole":-9223372036854775808,"text":"é","inner":{"amount":9007199254740992}}`,
		`{"whole":-0,"text":"","inner":{"amount":-0.0},"number":12345678901234567890.10,"raw":{"a":12345678901234567890},"nth":{"7":"x"}}`,
		`{"whole":1,"text":"","inner":{"amount":1},"when":"2026-01-01T00:00:00.000+00:00","bytes":"YQ==","base":"b","pair":[1,2]}`,
	} {
		effective, err := made.Effective(json.RawMessage(same))
		require.NoError(t, err, same)
		require.Equal(t, same, string(effective))
	}
	for args, at := range map[string]string{
		`{"float":9007199254740993}`:               "/float",
		`{"float":1e-400}`:                         "/float",
		`{"single":0.123456789}`:                   "/single",
		`{"any":[12345678901234567890]}`:           "/any/0",
		`{"any":{"x":0.12345678901234567890}}`:     "/any/x",
		`{"inner":{"amount":1.00000000000000001}}`: "/inner/amount",
		`{"whole":1.0}`:                            "/whole",
		`{"whole":1e2}`:                            "/whole",
		`{"small":256}`:                            "/small",
		`{"pair":[1]}`:                             "/pair",
		`{"pair":[1,2,3]}`:                         "/pair",
		`{"nth":{"007":"x"}}`:                      "/nth/007",
		`{"nth":{"7":"x","+7":"y"}}`:               "/nth",
		`{"text":"a","TEXT":"b"}`:                  "/TEXT",
		`{"text":"a","text":"b"}`:                  "/text",
		"{\"text\":\"\xff\"}":                      "",
		`{"text":1}`:                               "/text",
		`{"by":{"a":{"AMOUNT":5000}}}`:             "/by/a/AMOUNT",
	} {
		_, err := made.Effective(json.RawMessage(args))
		var wrong *tool.ArgumentError
		require.ErrorAs(t, err, &wrong, args)
		require.Equal(t, at, wrong.Problems[0].At, args)
		require.Equal(t, err, made.Validate(json.RawMessage(args)))
	}
}

// TestEffective_of_a_client_tool: the client reads its arguments itself.
func TestEffective_of_a_client_tool(t *testing.T) {
	t.Parallel()
	made := tool.DefineClient(tool.Spec[struct{}]{Name: "locate", Schema: json.RawMessage(`{"type":"object","properties":{"precise":{"type":"boolean","default":false}}}`)})
	require.NoError(t, made.Err())
	effective, err := made.Effective(json.RawMessage(`{"of":{"id":12345678901234567890}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"of":{"id":12345678901234567890},"precise":false}`, string(effective))
}

// TestDefaults_that_do_not_fit: a default that its own schema refuses is a mistake of the definition.
func TestDefaults_that_do_not_fit(t *testing.T) {
	t.Parallel()
	wrong := tool.DefineClient(tool.Spec[struct{}]{Name: "x", Schema: json.RawMessage(`{"type":"object","properties":{"a b":{"type":"integer","default":"7"}}}`)})
	require.ErrorContains(t, wrong.Err(), `the default of /properties/a b does not fit its own schema`)
	type in struct {
		Limit int `json:"limit"`
	}
	overlaid := func(keywords string) tool.Tool {
		return tool.Define(tool.Spec[in]{Name: "y", Properties: map[string]json.RawMessage{"limit": json.RawMessage(keywords)}}, func(_ context.Context, _ *tool.Call, i in) (int, error) { return i.Limit, nil })
	}
	require.Error(t, overlaid(`{"minimum":1,"default":0}`).Err())
	fits := overlaid(`{"minimum":1,"default":10}`)
	require.NoError(t, fits.Err())
	effective, err := fits.Effective(nil)
	require.NoError(t, err, "what has a default may be left out")
	require.JSONEq(t, `{"limit":10}`, string(effective))
	endless := tool.DefineClient(tool.Spec[struct{}]{Name: "z", Schema: json.RawMessage(`{"type":"object","properties":{"kid":{"$ref":"#","default":{}}}}`)})
	require.NoError(t, endless.Err())
	require.ErrorContains(t, endless.Validate(json.RawMessage(`{}`)), "do not come to an end")
}

// sameAsShown holds what the function got against what is shown: each property that is shown is what
// it got, and what is not shown it got as nothing.
func sameAsShown(t testing.TB, shown json.RawMessage, got effectiveIn) {
	encoded, err := json.Marshal(got)
	require.NoError(t, err)
	none, err := json.Marshal(effectiveIn{})
	require.NoError(t, err)
	compareShown(t, "", plainJSON(t, shown), plainJSON(t, encoded), plainJSON(t, none))
	var again effectiveIn
	require.NoError(t, json.Unmarshal(shown, &again))
	require.True(t, reflect.DeepEqual(got, again), "%s", shown)
}

func plainJSON(t testing.TB, raw json.RawMessage) (doc any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&doc))
	return doc
}

func compareShown(t testing.TB, at string, shown, got, none any) {
	switch s := shown.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		n, _ := none.(map[string]any)
		for name, value := range s {
			if at == "" && (name == "when" || name == "bytes" || name == "raw") {
				continue // they read themselves; DeepEqual holds them
			}
			if _, omitted := g[name]; !omitted && strings.HasSuffix(at+"/"+name, "/amount") {
				f, err := value.(json.Number).Float64()
				require.NoError(t, err)
				require.Zero(t, f)
				continue
			}
			require.Contains(t, g, name, at)
			compareShown(t, at+"/"+name, value, g[name], n[name])
		}
		for name := range g {
			if _, is := s[name]; !is && at == "" {
				require.Equal(t, n[name], g[name], "%s/%s is not shown", at, name)
			}
		}
	case []any:
		g, _ := got.([]any)
		require.Len(t, g, len(s), at)
		for i := range s {
			compareShown(t, fmt.Sprintf("%s/%d", at, i), s[i], g[i], nil)
		}
	case json.Number:
		g, ok := got.(json.Number)
		require.True(t, ok, at)
		a, b := parsed(t, s), parsed(t, g)
		require.Zero(t, a.Cmp(b), "%s: %s is shown, and %s was got", at, s, g)
	default:
		require.Equal(t, shown, got, at)
	}
}

// parsed is a number as it is written, exactly.
func parsed(t testing.TB, n json.Number) *big.Rat {
	exact, ok := new(big.Rat).SetString(n.String())
	require.True(t, ok, n)
	return exact
}

// TestEffective_is_what_the_function_gets: for random arguments.
func TestEffective_is_what_the_function_gets(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(13, 1)) //nolint:gosec // the same arguments every time
	var in effectiveIn
	made := effectiveTool(t, &in)
	accepted, changed := 0, 0
	for range 5_000 {
		args := randomArguments(random)
		shown, err := made.Effective(args)
		if err != nil {
			continue
		}
		accepted++
		if !bytes.Equal(shown, args) {
			changed++
		}
		in = effectiveIn{}
		_, err = made.Run(t.Context(), nil, shown)
		require.NoError(t, err)
		sameAsShown(t, shown, in)
		again, err := made.Effective(shown)
		require.NoError(t, err)
		require.Equal(t, journal.Digest(shown), journal.Digest(again), "%s", args)
	}
	require.Greater(t, accepted, 500)
	require.Greater(t, changed, 200)
}

func randomArguments(r *rand.Rand) json.RawMessage {
	names := []string{"text", "whole", "small", "float", "single", "yes", "list", "pair", "inner", "next", "by", "nth", "any", "raw", "number", "when", "bytes", "base", "unknown", "Text"}
	var parts []string
	for range r.IntN(5) {
		name := names[r.IntN(len(names))]
		parts = append(parts, fmt.Sprintf("%q:%s", name, randomValue(r, name, 3)))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

func randomValue(r *rand.Rand, name string, depth int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	number := pick("0", "-0", "1", "1.0", "1e2", "255", "256", "0.1", "100.10", "9007199254740993", "9007199254740992", "12345678901234567890", "1e-400", "2.5", "1e300", "0.30000000000000004", "3.14159265358979323846")
	if r.IntN(12) == 0 {
		return pick("null", number, `"x"`, "true", "[]", "{}")
	}
	switch name {
	case "text", "base", "note":
		return pick(`"x"`, `""`, `"<&>"`, `"\ud83d\ude00"`, `"\ud800"`, `"\\ud800"`, `"é\u2028"`, "null")
	case "whole", "small", "float", "single", "amount", "number":
		return number
	case "yes":
		return pick("true", "false", "null")
	case "list":
		return pick(`["a","b"]`, `[null]`, "[]", "null")
	case "pair":
		return pick("[1,2]", "[1,null]", "[1]", "[1,2,3]", "null")
	case "inner", "next":
		return fmt.Sprintf(`{"amount":%s,%q:%s}`, number, pick("note", "more"), randomValue(r, "note", depth-1))
	case "by":
		return fmt.Sprintf(`{"a":%s,"b":%s}`, randomValue(r, "inner", depth-1), pick("null", "{}"))
	case "nth":
		return pick(`{"1":"x","2":null}`, `{"01":"x"}`, `{"-0":"x"}`, "{}")
	case "when":
		return pick(`"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00.120+02:00"`, "null")
	case "bytes":
		return pick(`"YQ=="`, `""`, "null", "[1,2]")
	}
	if depth == 0 {
		return number
	}
	return pick(`{"a":`+randomValue(r, "any", depth-1)+`,"b":null}`, `[`+randomValue(r, "any", depth-1)+`,"x"]`, number, `"x"`, "null")
}

// FuzzEffective: whatever is accepted is what the function gets.
func FuzzEffective(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // seeds
	for range 50 {
		f.Add([]byte(randomArguments(r)))
	}
	var in effectiveIn
	made := effectiveTool(f, &in)
	f.Fuzz(func(t *testing.T, args []byte) {
		shown, err := made.Effective(args)
		if err != nil {
			return
		}
		in = effectiveIn{}
		_, err = made.Run(t.Context(), nil, shown)
		require.NoError(t, err)
		var again effectiveIn
		require.NoError(t, json.Unmarshal(shown, &again))
		require.True(t, reflect.DeepEqual(in, again))
		twice, err := made.Effective(shown)
		require.NoError(t, err)
		require.Equal(t, string(shown), string(twice))
	})
}
