package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// asProgram makes the test's binary the program itself, so that what is pasted
// into a shell runs as processes of its own.
const asProgram = "ADJOURN_TEST_AS_PROGRAM"

// asAnother makes it a program that has other agents.
const asAnother = "ADJOURN_TEST_AS_ANOTHER"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if filepath.Base(os.Args[0]) == "curl" {
			if err := asCurl(os.Args[1:]); err != nil {
				_, _ = os.Stderr.WriteString(err.Error() + "\n")
				os.Exit(7)
			}
			os.Exit(0)
		}
		if os.Getenv(asAnother) != "" {
			cli.Main(another)
		}
		cli.Main(registry)
	}
	code := isolated(m.Run)
	if commands := untold(); code == 0 && len(commands) > 0 {
		fmt.Fprintf(os.Stderr, "no story told with both (pkg/cli/server_test.go) has the command %s: tell one, on a data file and on a server\n", strings.Join(commands, ", "))
		code = 1
	}
	os.Exit(code)
}

// configHome is the variable that leads to a user's configuration. What the tests'
// commands remember of data files is no business of whoever runs the tests.
const configHome = "XDG_CONFIG_HOME"

// isolated runs tests with a configuration of their own, which their processes inherit.
func isolated(run func() int) int {
	dir, err := os.MkdirTemp("", "adjourn-config-")
	if err == nil {
		err = os.Setenv(configHome, dir)
	}
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return run()
}

type deployIn struct {
	Service string `json:"service"`
	// Log gets one line for each time it really happened.
	Log string `json:"log,omitempty"`
}

type noIn struct{}

// registry has one agent that follows scripts, and one that needs no word.
func registry() (*agent.Registry, error) {
	toy, err := toys()
	if err != nil {
		return nil, err
	}
	return agent.NewRegistry(agent.Config{
		Models: agent.Models{"scripted": func(context.Context, string, func(string) string) (llm.Model, error) { return lab.Model(), nil }},
		Agents: []agent.Agent{
			{Name: "toy", Description: "Follows scripts.", Model: "scripted:toy", Tools: toy},
			{Name: "hello", Description: "Says hello.", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
				return agent.Reply{Text: "hello"}, nil
			})},
		},
	})
}

// longJSON is wider than a terminal, and has no space to wrap at.
var longJSON = `{"keys":["` + strings.Repeat("0123456789", 20) + `"],"end":true}`

func toys() ([]tool.Tool, error) {
	tools := []tool.Tool{
		tool.Define(tool.Spec[deployIn]{Name: "deploy", Description: "Deploys a service.", Approve: tool.Always[deployIn]},
			func(_ context.Context, _ *tool.Call, in deployIn) (string, error) {
				if in.Log == "" {
					return "deployed " + in.Service, nil
				}
				f, err := os.OpenFile(in.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					return "", err
				}
				_, err = f.WriteString(in.Service + "\n")
				return "deployed " + in.Service, errors.Join(err, f.Close())
			}),
		tool.Define(tool.Spec[deployIn]{Name: "guarded", Description: "Ada and bob may approve it.", Approve: tool.Always[deployIn], Who: []string{"bob", "ada"}},
			func(context.Context, *tool.Call, deployIn) (string, error) { return "done", nil }),
		tool.Define(tool.Spec[deployIn]{Name: "bobs", Description: "Bob may approve it.", Approve: tool.Always[deployIn], Who: []string{"bob"}},
			func(context.Context, *tool.Call, deployIn) (string, error) { return "done", nil }),
		tool.Define(tool.Spec[deployIn]{Name: "paid", Description: "Two people may approve it.", Approve: tool.Always[deployIn], Need: 2},
			func(context.Context, *tool.Call, deployIn) (string, error) { return "done", nil }),
		tool.Define(tool.Spec[deployIn]{Name: "others", Description: "Others may approve it.", Approve: tool.Always[deployIn], Roles: []string{"finance"}, Who: []string{"ada", "bob"}, NotRequester: true},
			func(context.Context, *tool.Call, deployIn) (string, error) { return "done", nil }),
		tool.Define(tool.Spec[noIn]{Name: "pick", Description: "Asks for a color.", Effect: session.ReadOnly},
			func(ctx context.Context, c *tool.Call, _ noIn) ([]string, error) {
				reply, err := c.Ask(ctx, tool.Question{ID: "color", Text: "Which color?", Choices: []session.Choice{{ID: "red", Label: "Red"}, {ID: "blue", Label: "Blue"}}})
				return reply.Selected, err
			}),
		tool.Define(tool.Spec[noIn]{Name: "many", Description: "Asks for colors.", Effect: session.ReadOnly},
			func(ctx context.Context, c *tool.Call, _ noIn) ([]string, error) {
				reply, err := c.Ask(ctx, tool.Question{ID: "colors", Text: "Which colors?", Multi: true, Choices: []session.Choice{{ID: "red"}, {ID: "blue"}}})
				return append([]string{}, reply.Selected...), err
			}),
		tool.Define(tool.Spec[noIn]{Name: "store", Description: "Asks whether to store something.", Effect: session.ReadOnly},
			func(ctx context.Context, c *tool.Call, _ noIn) ([]string, error) {
				reply, err := c.Ask(ctx, tool.Question{ID: "store", Text: "Store this?\n" + longJSON, Choices: []session.Choice{{ID: "yes", Label: "Yes, " + longJSON}, {ID: "no"}}})
				return reply.Selected, err
			}),
		tool.Define(tool.Spec[noIn]{Name: "name", Description: "Asks for a name.", Effect: session.ReadOnly},
			func(ctx context.Context, c *tool.Call, _ noIn) (string, error) {
				reply, err := c.Ask(ctx, tool.Question{ID: "name", Text: "What is your name?"})
				return reply.Text, err
			}),
		tool.Define(tool.Spec[deployIn]{
			Name: "urgent", Description: "Must be approved within an hour.", Approve: tool.Always[deployIn],
			Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny},
		}, func(context.Context, *tool.Call, deployIn) (string, error) { return "done", nil }),
		tool.Define(tool.Spec[deployIn]{
			Name: "silence", Description: "Is approved if nobody objects within an hour.", Approve: tool.Always[deployIn],
			Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDefault, Value: true},
		}, func(context.Context, *tool.Call, deployIn) (string, error) { return "done", nil }),
		tool.Define(tool.Spec[noIn]{Name: "soon", Description: "Asks for a color within an hour.", Effect: session.ReadOnly},
			func(ctx context.Context, c *tool.Call, _ noIn) ([]string, error) {
				reply, err := c.Ask(ctx, tool.Question{ID: "color", Text: "Which color?", Choices: []session.Choice{{ID: "red"}, {ID: "blue"}}, Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireDefault, Value: "red"}})
				return reply.Selected, err
			}),
		tool.Define(tool.Spec[refundIn]{
			Name: "refund", Description: "Pays an order back.", Standing: &tool.Standing{},
			Approve: func(in refundIn) bool { return in.Amount > 100 },
		}, func(context.Context, *tool.Call, refundIn) (string, error) { return "paid", nil }),
		tool.DefineClient(tool.Spec[noIn]{Name: "locate", Description: "Says where you are."}),
		tool.Define(tool.Spec[noIn]{Name: "pay", Description: "Nobody hears how it went.", Timeout: 20 * time.Millisecond, OnUnknown: session.UnknownAsk},
			func(ctx context.Context, _ *tool.Call, _ noIn) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}),
		tool.Define(tool.Spec[deployIn]{Name: "gate", Description: "Waits until there is a file; it writes another one when it begins.", Effect: session.ReadOnly},
			func(ctx context.Context, _ *tool.Call, in deployIn) (string, error) {
				if err := os.WriteFile(in.Service+".reached", nil, 0o600); err != nil {
					return "", err
				}
				for {
					if _, err := os.Stat(in.Service); err == nil || ctx.Err() != nil {
						return "open", ctx.Err()
					}
					time.Sleep(10 * time.Millisecond)
				}
			}),
		tool.Define(tool.Spec[deployIn]{Name: "stubborn", Description: "Never ends, whatever it is told; it writes a file when it begins.", Effect: session.ReadOnly},
			func(_ context.Context, _ *tool.Call, in deployIn) (string, error) {
				if err := os.WriteFile(in.Service, nil, 0o600); err != nil {
					return "", err
				}
				select {}
			}),
		tool.Define(tool.Spec[noIn]{Name: "send", Description: "Has an effect and never ends by itself."},
			func(ctx context.Context, _ *tool.Call, _ noIn) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}),
		tool.Define(tool.Spec[noIn]{Name: "hang", Description: "Never ends by itself.", Effect: session.ReadOnly},
			func(ctx context.Context, _ *tool.Call, _ noIn) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}),
	}
	return tools, nil
}

type refundIn struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

// bench is one folder with a data file, and a program to run on it.
type bench struct {
	t        *testing.T
	dir      string
	data     string
	env      map[string]string
	registry func() (*agent.Registry, error)
	decorate func(app.Parts) app.Parts
	program  string
	// ahead is how far the clock of commands, and of the bench's server, is ahead.
	ahead atomic.Int64
	// told says that the bench is that of a story told with both.
	told bool
	// url and token of the server commands speak to; empty for the data file.
	url, token string
}

func setup(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	return &bench{t: t, dir: dir, data: filepath.Join(dir, "my data", "adjourn.db"), env: map[string]string{configHome: os.Getenv(configHome)}, registry: registry, program: "adjourn"}
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

type result struct {
	t      *testing.T
	code   int
	stdout string
	stderr string
}

// run carries out one command on the bench's data file.
func (b *bench) run(args ...string) result {
	b.t.Helper()
	return b.runIn(b.t.Context(), "", append(b.where(), args...)...)
}

// pipe is run with something on stdin.
func (b *bench) pipe(stdin string, args ...string) result {
	b.t.Helper()
	return b.runIn(b.t.Context(), stdin, append(b.where(), args...)...)
}

func (b *bench) runIn(ctx context.Context, stdin string, args ...string) result {
	b.t.Helper()
	for _, word := range args {
		if b.told {
			toldWords.Store(word, true)
		}
	}
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, cli.Config{
		Registry: b.registry, Program: b.program, Args: args, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Env: func(name string) string { return b.env[name] }, Who: "ada", Decorate: b.decorate, Now: b.now,
	})
	return result{t: b.t, code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// manifest reads stdout, which must be one manifest and nothing else.
func (r result) manifest() report.Manifest {
	r.t.Helper()
	var m report.Manifest
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	decoder.DisallowUnknownFields()
	require.NoError(r.t, decoder.Decode(&m), "stdout: %s\nstderr: %s", r.stdout, r.stderr)
	require.False(r.t, decoder.More(), "stdout holds more than the manifest: %s", r.stdout)
	return m
}

// ends asserts the exit code, showing what was said.
func (r result) ends(code int) result {
	r.t.Helper()
	require.Equal(r.t, code, r.code, "stdout: %s\nstderr: %s", r.stdout, r.stderr)
	return r
}

// start runs a script as JSON and returns its manifest.
func (b *bench) start(id, script string, code int) report.Manifest {
	b.t.Helper()
	return b.run("run", "--agent", "toy", "--session", id, "-o", "json", script).ends(code).manifest()
}

// install puts the program under a name with a space and a quote into the bench.
func (b *bench) install() string {
	b.t.Helper()
	self, err := os.Executable()
	require.NoError(b.t, err)
	path := filepath.Join(b.dir, "it's adjourn")
	require.NoError(b.t, os.Symlink(self, path))
	return path
}

// shell runs a line as if it was pasted, in an empty folder.
func (b *bench) shell(line string) result {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "sh", "-c", line)
	cmd.Dir = b.t.TempDir()
	cmd.Env = b.environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		require.NoError(b.t, err)
	}
	return result{t: b.t, code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func splitLines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
