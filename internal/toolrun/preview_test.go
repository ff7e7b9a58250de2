package toolrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

type in struct {
	Text  string `json:"text"`
	Limit int    `json:"limit"`
}

func shows(show func(in) tool.Preview) tool.Tool {
	return tool.Define(tool.Spec[in]{
		Name: "write", Approve: tool.Always[in], Show: show, Properties: map[string]json.RawMessage{"limit": json.RawMessage(`{"default":3}`)},
	}, func(context.Context, *tool.Call, in) (int, error) { return 0, nil })
}

// TestPreview_that_fails: the approval is asked all the same, and is of a high risk.
func TestPreview_that_fails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		show func(in) tool.Preview
		says string
	}{
		"a panic": {func(in) tool.Preview { panic("boom\x1b[2J") }, "Show of tool write panicked: boom"},
		"a nil map": {func(i in) tool.Preview {
			var m map[string][]int
			return tool.Preview{Title: fmt.Sprint(m["x"][i.Limit])}
		}, "panicked"},
		"a risk":   {func(in) tool.Preview { return tool.Preview{Risk: "none"} }, "low, medium or high"},
		"a script": {func(in) tool.Preview { return tool.Preview{Links: []tool.Link{{URL: "javascript:alert(1)"}}} }, "http or https"},
		"a file":   {func(in) tool.Preview { return tool.Preview{Links: []tool.Link{{URL: "file:///etc/passwd"}}} }, "http or https"},
		"no host":  {func(in) tool.Preview { return tool.Preview{Links: []tool.Link{{URL: "https:/path"}}} }, "http or https"},
		"another's host": {func(in) tool.Preview {
			return tool.Preview{Links: []tool.Link{{URL: "https://bank.example@evil.example"}}}
		}, "http or https"},
		"a control": {func(in) tool.Preview { return tool.Preview{Links: []tool.Link{{URL: "https://a.example/\x1b"}}} }, "http or https"},
		"a long link": {func(in) tool.Preview {
			return tool.Preview{Links: []tool.Link{{URL: "https://a.example/" + strings.Repeat("x", 3000)}}}
		}, "http or https"},
		"many links":         {func(in) tool.Preview { return tool.Preview{Links: make([]tool.Link, 11)} }, "11 links"},
		"money as a float":   {func(in) tool.Preview { return tool.Preview{Money: &tool.Money{Amount: "1e3", Currency: "EUR"}} }, "money"},
		"money without kind": {func(in) tool.Preview { return tool.Preview{Money: &tool.Money{Amount: "1"}} }, "money"},
		"its own word":       {func(in) tool.Preview { return tool.Preview{Failed: "the shop does not answer"} }, "the shop does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := toolrun.Preview(shows(c.show), json.RawMessage(`{"text":"x","limit":3}`))
			require.NotNil(t, p)
			require.Contains(t, p.Failed, c.says)
			require.Equal(t, session.Preview{Failed: p.Failed, Risk: session.RiskHigh}, *p)
		})
	}
	require.Nil(t, toolrun.Preview(shows(nil), json.RawMessage(`{}`)))
	require.Nil(t, toolrun.Preview(shows(func(in) tool.Preview { return tool.Preview{} }), json.RawMessage(`{}`)))
}

// TestPreview_is_bounded: what changes is what is kept of a long text.
func TestPreview_is_bounded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("the same\n", 10_000)
	for name, diff := range map[string]tool.Diff{
		"a change in the middle": {Name: "notes\n.txt", Before: many + "old\n" + many, After: many + "new\n" + many},
		"much that is new":       {After: strings.Repeat("new\n", 100_000)},
		"much to escape":         {Before: strings.Repeat("\x00", 5_000), After: strings.Repeat("<&>", 5_000)},
		"no text":                {Before: strings.Repeat("\xff", 50_000), After: "é" + strings.Repeat("€", 50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := toolrun.Preview(shows(func(in) tool.Preview {
				return tool.Preview{Title: strings.Repeat("long ", 1000), Diff: &diff, Money: &tool.Money{Amount: "12.50", Currency: "EUR"}, Links: []tool.Link{{Label: "the\x00 order", URL: "https://shop.example/1"}}}
			}), json.RawMessage(`{}`))
			require.Empty(t, p.Failed)
			require.LessOrEqual(t, engine.EncodedSize(p), 16<<10)
			require.True(t, p.Diff.Cut)
			require.True(t, utf8.ValidString(p.Diff.Before+p.Diff.After+p.Title+p.Diff.Name))
			require.Len(t, []rune(p.Title), 200)
			if strings.Contains(name, "middle") {
				require.Equal(t, "the same\nthe same\nthe same\nold\nthe same\nthe same\nthe same\n", strings.TrimSuffix(p.Diff.Before, "\n")+"\n")
				require.Contains(t, p.Diff.After, "new\n")
				require.Equal(t, "notes .txt", p.Diff.Name)
			}
		})
	}
}

// TestExplain: what a person is shown is digested with the wait, and there is none where there is no room.
func TestExplain(t *testing.T) {
	t.Parallel()
	made := shows(func(i in) tool.Preview { return tool.Preview{Title: fmt.Sprint(i.Limit, " of ", i.Text)} })
	find := func(string) (tool.Tool, bool) { return made, true }
	effective, err := made.Effective(json.RawMessage(`{"text":"x"}`))
	require.NoError(t, err)
	plans := func() []engine.CallPlan {
		return []engine.CallPlan{
			{Do: engine.DoRun},
			{Do: engine.DoWait, Wait: session.Wait{Kind: session.WaitClientTool}},
			{Do: engine.DoWait, Arguments: effective, Wait: session.Wait{Kind: session.WaitApproval}},
		}
	}
	says := llm.Assistant(" I must write this. " + strings.Repeat("é", 2000))
	got := plans()
	toolrun.Explain(got, &says, find, func(int) bool { return true })
	require.Nil(t, got[0].Wait.Preview)
	require.Empty(t, got[1].Wait.Claim)
	w := got[2].Wait
	require.Equal(t, "3 of x", w.Preview.Title, "of the arguments that the function gets")
	require.True(t, strings.HasPrefix(w.Claim, "I must write this. é"))
	require.True(t, strings.HasSuffix(w.Claim, "[cut: it has 4019 bytes]"), w.Claim[len(w.Claim)-50:])
	require.NotEmpty(t, w.ShownDigest)
	require.Equal(t, journal.ShownDigest(w), w.ShownDigest)
	got = plans()
	toolrun.Explain(got, &says, find, func(int) bool { return false })
	require.Contains(t, got[2].Wait.Preview.Failed, "no room")
	require.Equal(t, session.RiskHigh, got[2].Wait.Preview.Risk)
	require.Empty(t, got[2].Wait.Claim)
	require.Equal(t, journal.ShownDigest(got[2].Wait), got[2].Wait.ShownDigest)
}

// TestCheckDecided: what was approved is what the function would get, or it is not called.
func TestCheckDecided(t *testing.T) {
	t.Parallel()
	made := shows(nil)
	whole := json.RawMessage(`{"limit":3,"text":"x"}`)
	for name, c := range map[string]struct {
		p    engine.CallPlan
		want error
	}{
		"nobody was asked":  {engine.CallPlan{Arguments: json.RawMessage(`{"text":"x"}`)}, nil},
		"what was approved": {engine.CallPlan{Arguments: whole, Decided: journal.Digest(whole)}, nil},
		"something else":    {engine.CallPlan{Arguments: json.RawMessage(`{"limit":4,"text":"x"}`), Decided: journal.Digest(whole)}, toolrun.ErrMismatch},
		"less":              {engine.CallPlan{Arguments: json.RawMessage(`{"text":"x"}`), Decided: journal.Digest(whole)}, toolrun.ErrMismatch},
		"less, approved so": {engine.CallPlan{Arguments: json.RawMessage(`{"text":"x"}`), Decided: journal.Digest([]byte(`{"text":"x"}`))}, toolrun.ErrMismatch},
		"what is refused":   {engine.CallPlan{Arguments: json.RawMessage(`{}`), Decided: journal.Digest([]byte(`{}`))}, toolrun.ErrMismatch},
	} {
		require.Equal(t, c.want, toolrun.CheckDecided(made, c.p, time.Time{}), name)
	}
}
