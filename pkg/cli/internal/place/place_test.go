package place_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
)

// said returns the place that words and an environment name.
func said(t *testing.T, env map[string]string, words ...string) *place.Place {
	t.Helper()
	getenv := func(name string) string { return env[name] }
	p := place.New(place.Config{
		Registry: func() (*agent.Registry, error) {
			return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "till", Planner: agent.PlannerFunc(
				func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: "done"}, nil })}}})
		},
		Program: "go", ProgramArgs: []string{"run", "./my shop"}, Env: getenv,
		Screen: screen.New(screen.Config{Name: "shop", Stdout: t.Output(), Stderr: t.Output(), Env: getenv}),
	})
	flags := pflag.NewFlagSet("shop", pflag.ContinueOnError)
	p.Register(flags)
	require.NoError(t, flags.Parse(words))
	return p
}

// TestCommand: a printed command leads to the same place from any folder.
func TestCommand(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	const program, server = "go run './my shop'", "http://127.0.0.1:1"
	other := map[string]string{"ADJOURN_DATA": "/tmp/other.db"}
	for name, c := range map[string]struct {
		env   map[string]string
		words []string
		where string
		want  string
	}{
		"as always":            {nil, nil, ".adjourn/adjourn.db", program + " show s"},
		"data":                 {nil, []string{"--data", "my data.db"}, "my data.db", program + " --data '" + filepath.Join(here, "my data.db") + "' show s"},
		"data by environment":  {other, nil, "/tmp/other.db", program + " --data /tmp/other.db show s"},
		"words count first":    {other, []string{"--data", "/a.db"}, "/a.db", program + " --data /a.db show s"},
		"server":               {other, []string{"--url", server}, server, program + " --url " + server + " show s"},
		"server, its token":    {nil, []string{"--url", server, "--token-file", "/t", "--allow-plain-http"}, server, program + " --url " + server + " --token-file /t --allow-plain-http show s"},
		"server by env":        {map[string]string{"ADJOURN_URL": server, "ADJOURN_TOKEN": "secret"}, nil, server, program + " --url " + server + " show s"},
		"data before that":     {map[string]string{"ADJOURN_URL": server}, []string{"--data", "/a.db"}, "/a.db", program + " --data /a.db show s"},
		"same data, unless by": {map[string]string{"ADJOURN_URL": server}, []string{"--data", ".adjourn/adjourn.db"}, ".adjourn/adjourn.db", program + " --data " + filepath.Join(here, ".adjourn/adjourn.db") + " show s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := said(t, c.env, c.words...)
			require.NoError(t, p.Check())
			require.Equal(t, c.where, p.Where())
			require.Equal(t, c.where == p.Server(), p.Remote())
			require.Equal(t, c.want, p.Command(place.Target("show", "s")...))
			require.Equal(t, program+" dev", p.ServeHint())
			require.Equal(t, program+" --url http://127.0.0.1:8420 --token-file /token inbox", p.At("http://127.0.0.1:8420", "/token").Command("inbox"))
		})
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"show", "s", "--full"}, place.Target("show", "s", "--full"))
	require.Equal(t, []string{"show", "--full", "--", "-s"}, place.Target("show", "-s", "--full"))
	require.Equal(t, []string{"submit", "s", "w1", "--reply", "x"}, place.TargetWait("submit", "s", "w1", "--reply", "x"))
	require.Equal(t, []string{"submit", "--reply", "x", "--", "-s", "w1"}, place.TargetWait("submit", "-s", "w1", "--reply", "x"))
}

func TestCheckHere(t *testing.T) {
	t.Parallel()
	require.NoError(t, said(t, nil).CheckHere("work"))
	for says, p := range map[string]*place.Place{
		"leave out --url":          said(t, nil, "--url", "http://a"),
		"ADJOURN_URL says http://": said(t, map[string]string{"ADJOURN_URL": "http://a"}),
	} {
		err := p.CheckHere("work")
		require.ErrorContains(t, err, says)
		require.Equal(t, exit.Usage, exit.Code("", err))
	}
}

func TestTokenHint(t *testing.T) {
	t.Parallel()
	token := map[string]string{"ADJOURN_TOKEN": "secret"}
	require.Equal(t, "the token is that of /t", said(t, token, "--token-file", "/t").TokenHint())
	require.Equal(t, "the token is that of ADJOURN_TOKEN", said(t, token).TokenHint())
	require.Contains(t, said(t, nil).TokenHint(), "no token was sent")
}

func TestOpen(t *testing.T) {
	t.Parallel()
	p := said(t, map[string]string{"XDG_CONFIG_HOME": t.TempDir()})
	p.UseData(filepath.Join(t.TempDir(), "a.db"))
	_, err := p.Open(t.Context(), true)
	require.ErrorIs(t, err, embedded.ErrNoData)
	require.NoFileExists(t, p.DataPath(), "who only looks makes nothing")
	e, err := p.Open(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []string{"till"}, e.Agents())
	require.NoError(t, e.Close())
	require.FileExists(t, p.DataPath())

	_, err = said(t, nil, "--url", "http://example.com", "--token-file", "/does/not/exist").Open(t.Context(), true)
	require.ErrorContains(t, err, "no such file")
	var usage *exit.UsageError
	_, err = said(t, map[string]string{"ADJOURN_TOKEN": "secret"}, "--url", "http://example.com").Open(t.Context(), true)
	require.ErrorAs(t, err, &usage)
	require.Contains(t, usage.Text, "--allow-plain-http")

	e, err = said(t, nil, "--url", "http://example.com").Open(t.Context(), true)
	require.NoError(t, err, "nothing is sent yet")
	require.Nil(t, e.Agents())
	require.NoError(t, e.Close())
}
