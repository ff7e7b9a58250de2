package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestHintsWithAWordToReplace: what only a person or a client knows is a word in
// capitals. Pasted as it stands it is refused with what to put there, and nothing is
// stored; with the word replaced it works.
func TestHintsWithAWordToReplace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, hint, word, put, says string }{
		"client tool": {"[{call: locate}, {say: ok}]", "--result JSON", "JSON", `'{"city": "Bern"}'`, "put the result there, as JSON"},
		"choice":      {"[{call: pick}, {say: ok}]", "--select CHOICE", "CHOICE", "red", "put one of these there: red, blue"},
		"several":     {"[{call: many}, {say: ok}]", "--select CHOICE", "CHOICE", "red", "put one of these there: red, blue"},
		"text":        {"[{call: name}, {say: ok}]", "--reply ANSWER", "ANSWER", "Ada", "put the answer there: What is your name?"},
		"verdict":     {"[{call: pay}, {say: ok}]", "--verdict VERDICT", "VERDICT", "happened", "put one of these there: happened, not_happened"},
		"input":       {"[{need: where?}, {say: ok}]", "MESSAGE", "MESSAGE", "there", "put what you want to say there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, b *bench) {
				b.program = b.install()
				hint := b.start("-dash-", c.script, 10).ResumeHint
				require.Contains(t, hint+" ", " "+c.hint+" ")
				require.Contains(t, b.shell(hint).ends(2).stderr, c.word+" is a word to replace: "+c.says)
				require.Contains(t, b.run("inbox").ends(0).stdout, "session -dash-", "it still waits")
				hint = strings.Replace(hint, " "+c.word, " "+c.put, 1)
				if c.word == "MESSAGE" {
					hint = strings.Replace(hint, c.put, "'- say: ok'", 1) // the toy follows it
				}
				require.Equal(t, "ok\n", b.shell(hint).ends(0).stdout)
			})
		})
	}
}

// TestInputWithAWordToReplace: the command that answers it beside other waits has one, too.
func TestInputWithAWordToReplace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{need: where?}]", 10)
		require.Contains(t, b.run("inbox").ends(0).stdout, " submit s w2-1 --reply ANSWER\n")
		require.Contains(t, b.run("submit", "s", "w2-1", "--reply", "ANSWER").ends(2).stderr, "ANSWER is a word to replace: put the answer there")
		require.Contains(t, b.run("resume", "s", "MESSAGE").ends(2).stderr, "MESSAGE is a word to replace")
		require.Equal(t, "ok\n", b.run("resume", "s", "[{say: ok}] # a MESSAGE, an ANSWER").ends(0).stdout)
	})
}

// TestNextTurnWithAWordToReplace: what is to be said next is not the program's to say.
func TestNextTurnWithAWordToReplace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		b.start("s", "[{say: ok}]", 0)
		hint := b.run("resume", "s", "-o", "json").ends(5).manifest().ResumeHint
		require.True(t, strings.HasSuffix(hint, " run --session s MESSAGE"), hint)
		require.Contains(t, b.shell(hint).ends(2).stderr, "MESSAGE is a word to replace")
		require.Equal(t, "more\n", b.shell(strings.Replace(hint, "MESSAGE", "'- say: more'", 1)).ends(0).stdout)
	})
}

// TestOnlyTheWordIsRefused: a text that holds a word to replace, or another one, is an
// answer like any other, and so is a choice that is called so.
func TestOnlyTheWordIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		answer []string
	}{
		"in small letters": {"[{call: name}, {say: ok}]", []string{"--reply", "answer"}},
		"in a sentence":    {"[{call: name}, {say: ok}]", []string{"--reply", "the ANSWER"}},
		"another one":      {"[{call: name}, {say: ok}]", []string{"--reply", "MESSAGE"}},
		"as JSON":          {"[{call: locate}, {say: ok}]", []string{"--result", `"JSON"`}},
		"of an error":      {"[{call: locate}, {say: ok}]", []string{"--error", "ANSWER"}},
		"a choice":         {"[{call: loud}, {say: ok}]", []string{"--select", "CHOICE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.registry = loud
			m := b.start("s", c.script, 10)
			if name == "a choice" {
				require.Equal(t, "adjourn "+b.words()+" show s", m.ResumeHint, "no word that is a choice stands for one")
			}
			require.Equal(t, "ok\n", b.run(append([]string{"submit", "s", "w2-1"}, c.answer...)...).ends(0).stdout)
		})
	}
}

// loud has the toy's tools, and one whose choices are in capitals.
func loud() (*agent.Registry, error) {
	tools, err := toys()
	if err != nil {
		return nil, err
	}
	tools = append(tools, tool.Define(tool.Spec[noIn]{Name: "loud", Description: "Asks for a word.", Effect: session.ReadOnly},
		func(ctx context.Context, c *tool.Call, _ noIn) ([]string, error) {
			reply, err := c.Ask(ctx, tool.Question{ID: "word", Text: "Which word?", Choices: []session.Choice{{ID: "VOICE"}, {ID: "CHOICE"}}})
			return reply.Selected, err
		}))
	return agent.NewRegistry(agent.Config{
		Models: agent.Models{"scripted": func(context.Context, string, func(string) string) (llm.Model, error) { return lab.Model(), nil }},
		Agents: []agent.Agent{{Name: "toy", Description: "Follows scripts.", Model: "scripted:toy", Tools: tools}},
	})
}
