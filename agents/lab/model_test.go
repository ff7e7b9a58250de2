package lab_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/llm"
)

const everything = `
- think: let me see
  call: echo
  with: {text: hello}
- text: two at once
  calls:
    - {call: append_line, with: {path: out.txt, text: a}}
    - {call: add_note, with: {text: b}}
- repeat: 2
  call: echo
  with: {size: 1024}
- fail: rate_limited
  after: 2s
- stream: "a long text, in\n pieces "
- need: "which region?"
- say: all done
`

func ask(t *testing.T, m llm.Model, messages ...llm.Message) llm.Reply {
	t.Helper()
	return askDelayed(t, m, nil, messages...)
}

func askDelayed(t *testing.T, m llm.Model, delays []int, messages ...llm.Message) llm.Reply {
	t.Helper()
	reply, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: messages, Delays: delays}), nil)
	require.NoError(t, err)
	return reply
}

func TestModel_follows_the_script(t *testing.T) {
	t.Parallel()
	m := lab.Model()
	history := []llm.Message{llm.User("hello"), llm.Assistant("help"), llm.User(everything)}
	next := func() llm.Reply {
		reply := ask(t, m, history...)
		require.Equal(t, reply, ask(t, m, history...), "a request delivered twice is answered the same twice")
		require.EqualValues(t, len(history), reply.Usage.Input)
		history = append(history, reply.Message)
		if reply.Stop == llm.StopToolCalls {
			history = append(history, llm.Message{Role: llm.RoleTool})
		}
		return reply
	}

	reply := next()
	require.Equal(t, llm.StopToolCalls, reply.Stop)
	require.Equal(t, []llm.Part{
		{Kind: llm.PartReasoning, Text: "let me see"},
		{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "echo", Arguments: []byte(`{"text":"hello"}`)}},
	}, reply.Message.Parts)
	require.Equal(t, llm.Usage{Input: 3, Output: 4, Reasoning: 3}, reply.Usage)

	reply = next()
	require.Equal(t, "two at once", reply.Message.Text())
	require.Len(t, reply.Message.ToolCalls(), 2)
	require.Equal(t, "add_note", reply.Message.ToolCalls()[1].Name)

	for range 2 {
		require.JSONEq(t, `{"size":1024}`, string(next().Message.ToolCalls()[0].Arguments))
	}

	_, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: history}), nil)
	var failure *llm.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, llm.ClassRateLimited, failure.Class)
	require.Equal(t, 2*time.Second, failure.RetryAfter)
	require.ErrorContains(t, err, "item 4 of the script")

	delays := []int{1, len(history)} // one before the script, one for the failure
	reply = askDelayed(t, m, delays, history...)
	require.Equal(t, "a long text, in\n pieces ", reply.Message.Text())
	require.Equal(t, llm.StopEnd, reply.Stop)
	history = append(history, reply.Message)

	reply = askDelayed(t, m, delays, history...)
	require.Equal(t, "which region?", reply.Message.Text())
	require.Equal(t, llm.StopNeedsInput, reply.Stop)
	history = append(history, reply.Message, llm.User("eu-west-1"))

	for _, want := range []string{"all done", "done", "done"} {
		reply = askDelayed(t, m, delays, history...)
		require.Equal(t, want, reply.Message.Text())
		require.Equal(t, llm.StopEnd, reply.Stop)
		history = append(history, reply.Message, llm.User("- go on"))
	}
}

func TestModel_the_newest_script_counts(t *testing.T) {
	t.Parallel()
	m := lab.Model()
	history := []llm.Message{llm.User("- say: old"), llm.Assistant("old"), llm.User("- say: new"), llm.User("and a word")}
	require.Equal(t, "new", ask(t, m, history...).Message.Text())
	require.Equal(t, "new", askDelayed(t, m, []int{1, 2}, history...).Message.Text(), "delays of the old script do not count")
	require.Equal(t, "done", askDelayed(t, m, []int{3}, history...).Message.Text())
}

func TestModel_a_script_in_several_parts(t *testing.T) {
	t.Parallel()
	m := lab.Model()
	message := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
		llm.Text("- say: one\n"), {Kind: llm.PartImage, File: &llm.FileRef{URL: "x"}}, llm.Text("- say: two\n"),
	}}
	require.Equal(t, "two", ask(t, m, message, llm.Assistant("one")).Message.Text())
}

func TestModel_plain_text_is_no_script(t *testing.T) {
	t.Parallel()
	m := lab.Model()
	for name, text := range map[string]string{
		"words":            "hello",
		"nothing":          "",
		"blank":            " \n\n",
		"comment":          "# heading\n\n",
		"mapping":          "say: hello",
		"shopping_list":    "- milk\n- eggs: six of them\n- bread",
		"bullets":          "- this: is *a* bullet, and [so] on: {\n- \"another",
		"link":             "[see this](https://example.org): it says so",
		"json_list":        `["a", "b"]`,
		"empty_list":       `[]`,
		"dash":             "-5 degrees",
		"nested_list":      "- - say: x",
		"large":            strings.Repeat("word ", 2_000_000),
		"large_list":       strings.Repeat("- word\n", 1_500_000),
		"no_script_inside": "Please run this:\n- say: hello",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := ask(t, m, llm.User(text))
			require.Contains(t, reply.Message.Text(), "Send me a YAML list", "it explains itself")
			require.Equal(t, llm.StopEnd, reply.Stop)

			reply = ask(t, m, llm.User("- say: hi"), llm.User(text))
			require.Equal(t, "hi", reply.Message.Text(), "the script before it still counts")
		})
	}
	require.Contains(t, ask(t, m).Message.Text(), "Send me a YAML list", "no message at all")
}

func TestModel_the_help_is_right(t *testing.T) {
	t.Parallel()
	text := ask(t, lab.Model(), llm.User("hello")).Message.Text()
	_, example, _ := strings.Cut(text, "\n\n")
	example, _, _ = strings.Cut(example, "\n\n")
	script, err := lab.Parse(example)
	require.NoError(t, err)
	require.Equal(t, 2, script.Len())
}

func TestModel_a_malformed_script_is_an_error(t *testing.T) {
	t.Parallel()
	m := lab.Model()
	for name, c := range map[string]struct{ text, says string }{
		"unknown_key":       {"- say: x\n- cal: echo", "item 2, line 2: unknown key cal"},
		"list_of_mappings":  {"- milk: two\n- eggs: six", "item 1, line 1: unknown key milk"},
		"mixed":             {"- hello\n- say: x", "item 1, line 1: an item is a mapping"},
		"wrong_type":        {"- say: 5", "item 1, line 1: say must be text"},
		"tab":               {"- call: echo\n\twith: {text: x}", "line 2: this is no list of items in YAML"},
		"indentation":       {"- say: x\n- call: echo\n   with: {a: 1}", "line 3: this is no list of items in YAML"},
		"open_quote":        {"- say: \"x\n- say: y\n", "this is no list of items in YAML"},
		"json":              {`[{"say": "x"}, {"say"]`, "this is no list of items in YAML"},
		"flow":              {`- {say: x`, "this is no list of items in YAML"},
		"too_long":          {"- say: x\n" + strings.Repeat("- say: y\n", 200_000), "use repeat for long scripts"},
		"empty_second_item": {"- say: x\n-\n", "item 2, line 2: the item says nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // parsed, then remembered
				_, err := llm.Collect(m.Stream(t.Context(), llm.Request{
					Messages: []llm.Message{llm.User("- say: older"), llm.User(c.text)},
				}), nil)
				var failure *llm.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, llm.ClassInvalid, failure.Class)
				require.False(t, failure.Retryable())
				require.Contains(t, failure.Message, c.says)
			}
		})
	}
}

func TestModel_thinks_before_it_fails(t *testing.T) {
	t.Parallel()
	var seen []llm.Event
	_, err := llm.Collect(lab.Model().Stream(t.Context(), llm.Request{
		Messages: []llm.Message{llm.User("- {think: hm, fail: auth}")},
	}), func(e llm.Event) { seen = append(seen, e) })
	require.ErrorContains(t, err, "auth")
	require.Equal(t, []llm.Event{{Kind: llm.EventReasoningDelta, Text: "hm"}}, seen)
}

func TestModel_streams_a_few_words_at_a_time(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var got []string
		reply, err := llm.Collect(lab.Model().Stream(t.Context(), llm.Request{
			Messages: []llm.Message{llm.User(`- {stream: "  one two  three\nfour five six seven ", every: 50ms, think: hm}`)},
		}), func(e llm.Event) {
			if e.Kind == llm.EventTextDelta {
				got = append(got, fmt.Sprintf("%s %q", time.Since(begin), e.Text))
			}
		})
		require.NoError(t, err)
		require.Equal(t, []string{`0s "  one two  three\n"`, `50ms "four five six "`, `100ms "seven "`}, got)
		require.Equal(t, "  one two  three\nfour five six seven ", reply.Message.Text())
		require.Equal(t, llm.Usage{Input: 1, Output: 8, Reasoning: 1}, reply.Usage)
	})
}

func TestModel_a_stream_obeys_its_context(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Minute)
		defer cancel()
		begin, deltas := time.Now(), 0
		_, err := llm.Collect(lab.Model().Stream(ctx, llm.Request{
			Messages: []llm.Message{llm.User("- {stream: a b c d e f g h i j, every: 5m}")},
		}), func(llm.Event) { deltas++ })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 7*time.Minute, time.Since(begin), "it does not wait for the next delta")
		require.Equal(t, 2, deltas)
	})
}

func TestModel_many_scripts_at_once(t *testing.T) {
	t.Parallel()
	m := lab.Model()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 100 {
				want := fmt.Sprintf("%d", (i*100+j)%150)
				reply, err := llm.Collect(m.Stream(t.Context(), llm.Request{
					Messages: []llm.Message{llm.User("- say: 'x" + want + "'")},
				}), nil)
				if err != nil || reply.Message.Text() != "x"+want {
					t.Errorf("got %v, %v, want x%s", reply, err, want)
				}
			}
		})
	}
	group.Wait()
}

// history is a session of n steps under one script.
func history(n int) []llm.Message {
	messages := []llm.Message{llm.User("- {repeat: 100000, call: echo, with: {size: 2048}}")}
	for range n {
		messages = append(messages, llm.Assistant("x"), llm.Message{Role: llm.RoleTool})
	}
	return messages
}

// A late step of a session must cost no more than an early one. Not parallel:
// allocations are counted for the whole process.
func TestModel_long_sessions_cost_nothing_more(t *testing.T) {
	m := lab.Model()
	allocs := func(n int) float64 {
		req := llm.Request{Messages: history(n)}
		return testing.AllocsPerRun(50, func() {
			for _, err := range m.Stream(context.Background(), req) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	// A pool that the garbage collector or the race detector empties is filled again.
	require.InEpsilon(t, allocs(1), allocs(2000), 0.1)
}

func BenchmarkModel(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("step_%d", n), func(b *testing.B) {
			m, req := lab.Model(), llm.Request{Messages: history(n)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := llm.Collect(m.Stream(b.Context(), req), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleModel() {
	script := "- call: echo\n  with: {text: hello}\n- say: that was all\n"
	messages := []llm.Message{llm.User(script)}
	for range 3 {
		reply, err := llm.Collect(lab.Model().Stream(context.Background(), llm.Request{Messages: messages}), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, call := range reply.Message.ToolCalls() {
			fmt.Printf("call %s %s\n", call.Name, call.Arguments)
		}
		if text := reply.Message.Text(); text != "" {
			fmt.Println(text)
		}
		messages = append(messages, reply.Message)
	}
	// Output:
	// call echo {"text":"hello"}
	// that was all
	// done
}

// A reader who stops reading ends the stream, at any event; a call whose context is
// done before it begins yields nothing but that error.
func TestModel_stops_when_its_reader_does(t *testing.T) {
	t.Parallel()
	script := llm.Request{Messages: []llm.Message{llm.User("- think: hm\n  text: hi\n  calls: [{call: a}, {call: b}]")}}
	whole := 0
	for _, err := range lab.Model().Stream(t.Context(), script) {
		require.NoError(t, err)
		whole++
	}
	require.Greater(t, whole, 3)
	for n := 1; n <= whole; n++ {
		seen := 0
		for _, err := range lab.Model().Stream(t.Context(), script) {
			require.NoError(t, err)
			if seen++; seen == n {
				break
			}
		}
		require.Equal(t, n, seen)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for e, err := range lab.Model().Stream(over, script) {
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, e)
	}
}
