package labtest

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestScript_is_one_the_lab_takes: what a script counts is what the lab will do.
func TestScript_is_one_the_lab_takes(t *testing.T) {
	t.Parallel()
	tools := map[string]tool.Tool{}
	for _, one := range lab.Tools() {
		tools[one.Name()] = one
	}
	everything := small()
	everything.Repeat(5, everything.Echo())
	everything.Need("which color?")
	everything.Later()
	scripts := []*Script{{}, everything, Fixed("deploy")}
	for seed := range uint64(50) {
		scripts = append(scripts, Random(rand.New(rand.NewPCG(seed, 1)), Mix{Ask: true, Deny: true, Later: true}))
	}
	for _, s := range scripts {
		s.Prepare("/tmp/files")
		parsed, err := lab.Parse(s.Text())
		require.NoError(t, err, s.Text())
		replies, calls, waits := 0, 0, 0
		for k := range parsed.Len() {
			item := parsed[parsed.Reply(k)-1]
			if item.Fail == "" && item.Say == "" {
				replies++
			}
			if item.Need != "" {
				waits++
			}
			for _, c := range item.ToolCalls() {
				calls++
				require.NoError(t, tools[c.Name].Validate(c.Arguments), "%s %s", c.Name, c.Arguments)
				if c.Name == "deploy" || c.Name == "pick_color" {
					waits++
				}
			}
		}
		require.Equal(t, []int{s.replies, s.calls, s.waits}, []int{replies, calls, waits}, s.Text())
		last := parsed[parsed.Reply(parsed.Len()-1)-1]
		require.Equal(t, "done", last.Say)
	}
}

// TestRandom_has_everything: each kind comes within some seeds, and a seed is enough to have it again.
func TestRandom_has_everything(t *testing.T) {
	t.Parallel()
	texts := map[Mix]string{}
	for _, with := range []Mix{{}, {Ask: true, Deny: true, Later: true}} {
		for seed := range uint64(50) {
			one, again := Random(rand.New(rand.NewPCG(seed, 1)), with), Random(rand.New(rand.NewPCG(seed, 1)), with)
			one.Prepare("/tmp/files")
			again.Prepare("/tmp/files")
			require.Equal(t, one.Text(), again.Text(), "seed %d", seed)
			texts[with] += one.Text()
			lines := map[string]bool{}
			for _, e := range one.Effects() {
				require.False(t, lines[e.Line], "%q twice", e.Line)
				lines[e.Line] = true
				require.True(t, with.Deny || !e.Denied)
			}
		}
	}
	for _, kind := range []string{"append_line", "append_once", "echo", "deploy", `"calls"`} {
		require.Contains(t, texts[Mix{}], kind)
	}
	for _, kind := range []string{"pick_color", "rate_limited"} {
		require.NotContains(t, texts[Mix{}], kind)
		require.Contains(t, texts[Mix{true, true, true}], kind)
	}
}

func TestScript_effects(t *testing.T) {
	t.Parallel()
	s := small()
	s.Prepare("/nowhere")
	s.Prepare(t.TempDir()) // a script is for the last one
	effects := s.Effects()
	require.Len(t, effects, 4)
	var tools []string
	for _, e := range effects {
		tools = append(tools, e.Tool)
		require.Equal(t, e.Line == "deployed service-3", e.Denied)
		require.Zero(t, e.Count(t), "there is no file yet")
		arguments, err := json.Marshal(e.arguments)
		require.NoError(t, err)
		require.Equal(t, e.Line, s.EffectOf(t, arguments).Line)
	}
	require.Equal(t, []string{"append_line", "append_once", "deploy", "deploy"}, tools)
	require.Contains(t, faults(func(t require.TestingT) { s.EffectOf(t, json.RawMessage(`{"service": "another"}`)) }), "no call of the script")

	effects[0].write()
	effects[2].write()
	effects[0].write()
	require.Equal(t, 2, effects[0].Count(t))
	require.Equal(t, 1, effects[2].Count(t))
	require.Zero(t, effects[3].Count(t), "the others' lines do not count")
	require.Equal(t, "-- script\n"+s.Text()+"-- lines.txt\nline 0\nline 0\n-- deploy.txt\ndeployed service-2\n", s.Report())

	unreadable := effects[0]
	unreadable.file = t.TempDir()
	require.Contains(t, faults(func(t require.TestingT) { unreadable.Count(t) }), "directory")
	require.Equal(t, 3, strings.Count(s.Text(), "call"+`":"append`)+strings.Count(s.Text(), `"call":"echo"`))
}
