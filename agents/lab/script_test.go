package lab_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/llm"
)

func TestParse(t *testing.T) {
	t.Parallel()
	call := func(name, arguments string) lab.Call { return lab.Call{Tool: name, With: lab.Arguments(arguments)} }
	for name, c := range map[string]struct {
		text string
		want lab.Item
	}{
		"call":             {"- call: echo\n  with: {text: hello}", lab.Item{Call: call("echo", `{"text":"hello"}`)}},
		"call_alone":       {"- call: echo", lab.Item{Call: lab.Call{Tool: "echo"}}},
		"call_with_null":   {"- call: echo\n  with:", lab.Item{Call: lab.Call{Tool: "echo"}}},
		"call_and_text":    {"- {call: echo, text: look, think: hm}", lab.Item{Think: "hm", Text: "look", Call: lab.Call{Tool: "echo"}}},
		"calls":            {"- calls: [{call: a}, {call: b, with: {n: 1}}]", lab.Item{Calls: []lab.Call{{Tool: "a"}, call("b", `{"n":1}`)}}},
		"calls_and_text":   {"- {text: both, calls: [{call: a}]}", lab.Item{Text: "both", Calls: []lab.Call{{Tool: "a"}}}},
		"stream":           {"- {stream: a b c, every: 50ms}", lab.Item{Stream: "a b c", Every: 50 * time.Millisecond}},
		"stream_at_once":   {"- stream: a b c", lab.Item{Stream: "a b c"}},
		"fail":             {"- fail: rate_limited", lab.Item{Fail: llm.ClassRateLimited}},
		"fail_after":       {"- {fail: overloaded, after: 2s}", lab.Item{Fail: llm.ClassOverloaded, After: 2 * time.Second}},
		"need":             {`- need: "which region?"`, lab.Item{Need: "which region?"}},
		"say":              {"- say: done", lab.Item{Say: "done"}},
		"say_yes":          {"- say: yes", lab.Item{Say: "yes"}},
		"say_quoted":       {"- say: '5'", lab.Item{Say: "5"}},
		"say_block":        {"- say: |\n    two\n    lines\n", lab.Item{Say: "two\nlines\n"}},
		"think":            {"- {think: hm, say: x}", lab.Item{Think: "hm", Say: "x"}},
		"cost":             {"- {say: x, cost: 2500}", lab.Item{Say: "x", Cost: 2500}},
		"json":             {`[{"say": "x"}]`, lab.Item{Say: "x"}},
		"comments_and_bom": {"\uFEFF# a script\n---\n- say: x # so\n", lab.Item{Say: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := lab.Parse(c.text)
			require.NoError(t, err)
			require.Equal(t, 1, script.Len())
			require.Equal(t, 1, script.Reply(0))
			c.want.Repeat = 1
			require.Equal(t, c.want, script[0])
		})
	}
	for _, class := range []string{"rate_limited", "overloaded", "timeout", "context_overflow", "refused", "invalid", "auth"} {
		_, err := lab.Parse("- fail: " + class)
		require.NoError(t, err)
	}
}

func TestParse_arguments(t *testing.T) {
	t.Parallel()
	for with, want := range map[string]string{
		`{z: 1, a: 2}`:                     `{"z":1,"a":2}`,
		`{n: -3, f: 1.5, e: 1e3, h: 0x10}`: `{"n":-3,"f":1.5,"e":1000,"h":16}`,
		`{big: 18446744073709551615}`:      `{"big":18446744073709551615}`,
		`{big: 12345678901234567890123, neg: -9223372036854775809, fine: 0.10000000000000000555}`: `{"big":12345678901234567890123,"neg":-9223372036854775809,"fine":0.10000000000000000555}`,
		`{o: 0777, p: +5, u: 1_000, x: .5, y: 5.}`:                                                `{"o":511,"p":5,"u":1000,"x":0.5,"y":5}`,
		`{t: true, f: false, n: null, e: }`:                                                       `{"t":true,"f":false,"n":null,"e":null}`,
		`{on: yes, off: no}`:                                                                      `{"on":"yes","off":"no"}`,
		`{day: 2026-08-01}`:                                                                       `{"day":"2026-08-01"}`,
		`{at: 2026-08-01T10:00:00Z}`:                                                              `{"at":"2026-08-01T10:00:00Z"}`,
		`{list: [1, [two, {three: 3}]]}`:                                                          `{"list":[1,["two",{"three":3}]]}`,
		`{empty: "", list: [], map: {}}`:                                                          `{"empty":"","list":[],"map":{}}`,
		`{"1": one, "true": x}`:                                                                   `{"1":"one","true":"x"}`,
		`{html: "<b>&"}`:                                                                          `{"html":"\u003cb\u003e\u0026"}`,
		`{"": 1, "ü\n": "\x00"}`:                                                                  `{"":1,"ü\n":"\u0000"}`,
	} {
		script, err := lab.Parse("- call: echo\n  with: " + with)
		require.NoError(t, err, with)
		require.Equal(t, want, string(script[0].ToolCalls()[0].Arguments), with)
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	deep := "{a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}"
	for name, c := range map[string]struct {
		text       string
		item, line int
		says       string
	}{
		"nothing":               {"", 0, 0, "this is no list of items in YAML"},
		"text":                  {"hello", 0, 1, "this is no list of items"},
		"mapping":               {"say: hello", 0, 1, "this is no list of items"},
		"empty_list":            {"[]", 0, 0, "the list is empty"},
		"item_is_text":          {"- say: x\n- hello", 2, 2, "an item is a mapping such as {say: hello}"},
		"item_is_number":        {"- 5", 1, 1, "an item is a mapping"},
		"item_is_list":          {"- [a]", 1, 1, "an item is a mapping"},
		"item_is_nothing":       {"-", 1, 1, "the item says nothing"},
		"unknown_key":           {"- say: x\n-\n  cal: echo", 2, 3, "unknown key cal; the keys are with, text"},
		"key_is_list":           {"- {[a]: b}", 1, 1, "a value has the wrong type"},
		"key_twice":             {"- say: x\n  say: y", 1, 2, `mapping key "say" already defined at line 1`},
		"two_bodies":            {"- say: x\n  need: y", 1, 1, "need and say are in one item; make two items of them"},
		"call_and_calls":        {"- call: x\n  calls: [{call: y}]", 1, 1, "call and calls are in one item"},
		"no_body":               {"- think: hm", 1, 1, "the item says nothing; add one of call, calls"},
		"empty_item":            {"- {}", 1, 1, "the item says nothing"},
		"repeat_without_body":   {"- say: x\n- repeat: 3\n- call: echo", 2, 2, "the item says nothing; add one of"},
		"repeat_zero":           {"- {repeat: 0, say: x}", 1, 1, "repeat must be a whole number from 1 to 1000000, not 0"},
		"repeat_negative":       {"- {repeat: -1, say: x}", 1, 1, "repeat must be"},
		"repeat_too_often":      {"- {repeat: 1000001, say: x}", 1, 1, "repeat must be"},
		"repeat_huge":           {"- {repeat: 99999999999999999999, say: x}", 1, 1, "a value has the wrong type"},
		"repeat_fraction":       {"- {repeat: 1.5, say: x}", 1, 1, "a value has the wrong type"},
		"repeat_text":           {"- {repeat: '3', say: x}", 1, 1, "a value has the wrong type"},
		"repeat_list":           {"- {repeat: [3], say: x}", 1, 1, "a value has the wrong type"},
		"say_number":            {"- say: 5", 1, 1, "say must be text; put it in quotes"},
		"say_true":              {"- say: true", 1, 1, "say must be text"},
		"say_nothing":           {"- say:", 1, 1, "say must be text"},
		"say_date":              {"- say: 2026-01-01", 1, 1, "say must be text"},
		"say_list":              {"- say: [x]", 1, 1, "say must be text"},
		"say_mapping":           {"- say: {x: y}", 1, 1, "say must be text"},
		"say_empty":             {"- say: ''", 1, 1, "say must be text"},
		"think_number":          {"- {think: 5, say: x}", 1, 1, "think must be text"},
		"call_number":           {"- call: 5", 1, 1, "call must be text"},
		"call_nothing":          {"- call:", 1, 1, "call must be text"},
		"with_text":             {"- call: echo\n  with: hello", 1, 2, "with must be a mapping of arguments such as {text: hello}"},
		"with_list":             {"- call: echo\n  with: [1]", 1, 2, "with must be a mapping"},
		"with_number_key":       {"- call: echo\n  with: {1: a}", 1, 2, "the key 1 must be text, and be there once; put it in quotes"},
		"with_key_twice":        {"- call: echo\n  with: {a: 1, a: 2}", 1, 2, "the key a must be text, and be there once"},
		"with_nan":              {"- call: echo\n  with: {a: .nan}", 1, 2, "has no form in JSON"},
		"with_tag":              {"- call: echo\n  with: {a: !!binary aGk=}", 1, 2, "the tag !!binary is not read"},
		"with_anchor":           {"- call: echo\n  with: {a: &x [*x]}", 1, 1, "aliases are not read"},
		"with_merge":            {"- call: echo\n  with: {<<: {a: 1}}", 1, 2, "the key << must be text"},
		"with_deep":             {"- call: echo\n  with: " + deep, 1, 2, "nested more than 64 deep"},
		"with_without_call":     {"- {say: x, with: {a: 1}}", 1, 1, "with goes with call, not with say"},
		"text_without_call":     {"- {say: x, text: y}", 1, 1, "text goes with call or calls, not with say"},
		"every_without_stream":  {"- {say: x, every: 1s}", 1, 1, "every goes with stream, not with say"},
		"after_without_fail":    {"- {say: x, after: 1s}", 1, 1, "after goes with fail, not with say"},
		"calls_empty":           {"- calls: []", 1, 1, "the item says nothing"},
		"calls_mapping":         {"- calls: {call: a}", 1, 1, "calls must be a list of calls such as [{call: echo}]"},
		"calls_text":            {"- calls: [a]", 1, 1, "each of calls is a mapping such as {call: echo}"},
		"calls_without_name":    {"- calls: [{with: {a: 1}}]", 1, 1, "each of calls needs a call"},
		"calls_unknown_key":     {"- calls: [{call: a, text: b}]", 1, 1, "unknown key text in calls, where there are call, with; the keys are"},
		"every_number":          {"- {stream: x, every: 50}", 1, 1, "a value has the wrong type"},
		"every_negative":        {"- {stream: x, every: -1s}", 1, 1, "every, after and cost must not be negative"},
		"after_list":            {"- {fail: timeout, after: [1]}", 1, 1, "a value has the wrong type"},
		"cost_text":             {"- {say: x, cost: much}", 1, 1, "a value has the wrong type"},
		"cost_negative":         {"- {say: x, cost: -1}", 1, 1, "every, after and cost must not be negative"},
		"cost_of_failure":       {"- {fail: timeout, cost: 1}", 1, 1, "cost goes with a reply"},
		"fail_unknown":          {"- fail: aborted", 1, 1, `fail must be one of rate_limited, overloaded, timeout, context_overflow, refused, invalid, auth, not "aborted"`},
		"fail_nothing":          {"- fail:", 1, 1, "fail must be text"},
		"anchor":                {"- &a {say: x}\n- *a", 2, 2, "aliases are not read; write the value out, or use repeat"},
		"yaml_indentation":      {"- say: x\n- call: echo\n   with: {a: 1}\n", 0, 3, "this is no list of items in YAML"},
		"yaml_quote":            {"- say: x\n- say: \"never closed\n", 0, 0, "this is no list of items in YAML"},
		"yaml_tab":              {"- call: echo\n\twith: {}", 0, 2, "this is no list of items in YAML"},
		"two_documents":         {"- say: x\n---\n- say: y", 0, 0, "this is no list of items in YAML"},
		"too_long":              {"- say: " + strings.Repeat("x", 1<<20), 0, 0, "use repeat for long scripts"},
		"the_second_of_several": {"- repeat: 5\n  say: x\n- say: 1\n- say: 2", 2, 3, "say must be text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := lab.Parse(c.text)
			require.Zero(t, script)
			require.ErrorContains(t, err, c.says)
			if c.item > 0 {
				require.ErrorContains(t, err, fmt.Sprintf("item %d", c.item))
			}
			if c.line > 0 {
				require.ErrorContains(t, err, fmt.Sprintf("line %d", c.line))
			}
		})
	}
}

func TestScript_repeats_are_arithmetic(t *testing.T) {
	t.Parallel()
	script, err := lab.Parse("- say: a\n- {repeat: 1000000, say: b}\n- {repeat: 2, say: c}\n- say: d")
	require.NoError(t, err)
	require.Equal(t, 1_000_004, script.Len())
	require.Len(t, script, 4)
	for k, want := range map[int]string{
		0: "a", 1: "b", 500_000: "b", 1_000_000: "b", 1_000_001: "c", 1_000_002: "c", 1_000_003: "d",
	} {
		require.Equal(t, want, script[script.Reply(k)-1].Say, k)
	}
	for _, k := range []int{1_000_004, 1 << 40} {
		require.Zero(t, script.Reply(k), k)
	}
	require.Zero(t, lab.Script{}.Reply(0))
}

func FuzzParse(f *testing.F) {
	f.Add("- call: echo\n  with: {text: hello}\n- {repeat: 3, say: x}")
	f.Add("- calls:\n    - {call: a, with: {b: [1, 2.5, null, 2026-01-01]}}")
	f.Add("- &a {say: *a}")
	f.Add("[[[[")
	f.Fuzz(func(t *testing.T, text string) {
		script, err := lab.Parse(text)
		if err != nil {
			require.Empty(t, script)
			return
		}
		require.Len(t, script, script.Reply(script.Len()-1))
		require.Zero(t, script.Reply(script.Len()))
	})
}
