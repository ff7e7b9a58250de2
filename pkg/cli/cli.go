// Package cli is the command line over the runtime: data on stdout, talk on stderr, the outcome in the exit code.
//
// A command opens the engine, carries out one verb, works on the session until
// it rests, then prints the session's manifest. It decides nothing about a
// session: the runtime does, and [exit.Code] says in one place what that means
// to a shell.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/demo"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/inbox"
	"github.com/adjourn/adjourn/pkg/cli/internal/list"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
)

// Config is everything a command line depends on.
type Config struct {
	// Registry of the agents; required.
	Registry func() (*agent.Registry, error)
	// Program is the name the program was called by (argv[0]); hints begin with it
	// and with ProgramArgs, the words that belong to it: run ./cmd/shop after go.
	Program     string
	ProgramArgs []string
	// Args are the arguments after the program's name.
	Args []string
	// Stdin, Stdout and Stderr; nil means empty or discarded. Where they are
	// terminals the command asks, shows progress and colours.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Env reads a variable of the environment; nil means [os.Getenv].
	Env func(string) string
	// Who uses the command line; recorded with every answer.
	Who string
	// Now is the clock; nil means the machine's.
	Now func() time.Time
	// Decorate may put something around the ports; a test's door.
	Decorate func(app.Parts) app.Parts
}

// Main runs the command line of this process and ends it. A first Ctrl-C or
// SIGTERM stops cleanly; a second one at once.
func Main(registry func() (*agent.Registry, error)) {
	collectLate()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		first := <-signals
		signal.Stop(signals) // before anybody hears of the first, who may say that a second one stops at once
		if first == syscall.SIGTERM {
			end(errTerminated)
		}
		end(nil)
	}()
	who := ""
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	program, programArgs := called(os.Args[0])
	os.Exit(Run(ctx, Config{
		Registry: registry, Program: program, ProgramArgs: programArgs, Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Who: who,
	}))
}

// errTerminated is why the context of a command ended that nobody at its terminal has stopped.
var errTerminated = fmt.Errorf("%w: terminated", context.Canceled)

// collectLate has the first garbage collection come at four times the usual heap, 16 MB: most
// commands have ended by then, and a collection costs them a tenth of their time. From there on
// the heap grows by 80 % between two collections, not by the usual 100: what goes on for long
// takes less memory for some more of the processor. GOGC, if it is set, decides instead.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(400)
	first := new(struct{ _ *int }) // is collected by it
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, 80)
}

// Run carries out one command and returns its exit code. When ctx ends, work is
// stopped cleanly and the code is 130.
func Run(ctx context.Context, cfg Config) int {
	c := newCLI(cfg)
	root := c.root()
	root.SetArgs(listsLast(root, c.Args))
	err := root.ExecuteContext(ctx)
	if err != nil && !c.began {
		if strings.Contains(err.Error(), "missing unit in duration") {
			err = fmt.Errorf("%w: name the unit, as in 5s or 5m", err)
		}
		if flag := unknownFlag(root, c.Args); flag != "" && strings.HasPrefix(err.Error(), "unknown command") {
			err = fmt.Errorf("unknown flag: %s", flag) // its neighbour was taken for the command
		}
		err = &exit.UsageError{Text: err.Error(), Cause: err, Command: c.at(root)}
	}
	code := c.end(ctx, err)
	if err := c.Unwritten(); err != nil {
		c.Complain("writing to stdout: %v", err)
		if code == exit.Completed || code == exit.Paused {
			code = exit.Failed
		}
	}
	return code
}

// end prints what has not been said yet and returns the exit code.
func (c *cli) end(ctx context.Context, err error) int {
	var said *exit.SaidError
	switch {
	case err == nil:
		return exit.Completed
	case errors.As(err, &said):
		return said.Code
	case ctx.Err() != nil && !errors.Is(err, context.Canceled):
		// What broke because it was interrupted, broke because of that.
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	report.Refuse(c.Screen, c.Place, report.View{}, err)
	return c.code(err)
}

// code is what an error means to a shell.
func (c *cli) code(err error) int {
	if c.Patience > 0 && c.Patience < place.LongestPatience && exit.CodeOf(err) == client.CodeStoreLocked {
		return exit.Waited // the time given ran out while another process held the file
	}
	return exit.Code("", err)
}

// errNoRegistry says that a program has no agents to offer.
var errNoRegistry = errors.New("this program has no registry: give cli.Main a function that returns what agent.NewRegistry returns")

// given returns the function that makes a program's registry, with an error in the place
// of nothing.
func given(registry func() (*agent.Registry, error)) func() (*agent.Registry, error) {
	return func() (*agent.Registry, error) {
		if registry == nil {
			return nil, errNoRegistry
		}
		r, err := registry()
		if err == nil && r == nil {
			err = errNoRegistry
		}
		return r, err
	}
}

// called returns the words this program was called by. What go run built is gone
// when it ends, so that is named by its package.
func called(argv0 string) (program string, args []string) {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" && strings.Contains(argv0, string(filepath.Separator)+"go-build") {
		return "go", []string{"run", info.Path}
	}
	return argv0, nil
}

// name is what people call the program.
func name(cfg Config) string {
	name := cfg.Program
	if n := len(cfg.ProgramArgs); n > 0 {
		name = cfg.ProgramArgs[n-1]
	}
	return strings.TrimSuffix(filepath.Base(name), ".exe")
}

// cli is one run of the command line.
type cli struct {
	Config
	*screen.Screen
	*place.Place
	person  *prompt.Person
	lists   *list.Lists
	inbox   *inbox.Inbox
	workers *work.Commands

	// did says what the command has written down, for when nobody goes on with it.
	did string
	// message that a session was to go on with; "" for none.
	message string
	// told says that the session was told to stop, and may need a moment.
	told bool
	// verb is the command's name.
	verb string
	// began says that the words were understood and the command has started.
	began bool
}

func newCLI(cfg Config) *cli {
	if cfg.Program == "" {
		cfg.Program = "adjourn"
	}
	if cfg.Registry != nil {
		cfg.Registry = sync.OnceValues(cfg.Registry) // it compiles a schema for each tool, and is asked for more than once
	}
	if cfg.Args == nil {
		cfg.Args = []string{}
	}
	if cfg.Stdin == nil {
		cfg.Stdin = strings.NewReader("")
	}
	if cfg.Stdout == nil {
		cfg.Stdout = io.Discard
	}
	if cfg.Stderr == nil {
		cfg.Stderr = io.Discard
	}
	if cfg.Env == nil {
		cfg.Env = os.Getenv
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Who == "" {
		cfg.Who = "unknown"
	}
	cfg.Registry = given(cfg.Registry)
	name := name(cfg)
	s := screen.New(screen.Config{Name: name, Stdout: cfg.Stdout, Stderr: cfg.Stderr, Env: cfg.Env})
	where := place.New(place.Config{
		Registry: cfg.Registry, Program: cfg.Program, ProgramArgs: cfg.ProgramArgs, UserAgent: name + "/" + version(), Who: cfg.Who,
		Env: cfg.Env, Now: cfg.Now, Screen: s, Decorate: cfg.Decorate,
	})
	c := &cli{Config: cfg, Screen: s, Place: where}
	c.person = prompt.New(prompt.Config{Stdin: cfg.Stdin, Screen: s, Place: where, Env: cfg.Env})
	c.inbox = inbox.New(inbox.Config{Screen: s, Place: where, Stdin: cfg.Stdin, Person: c.person, Now: cfg.Now, Do: c.do, Complete: c.completeSessionAndWait, NoSession: c.noSession, Refused: c.refused, Drive: c.drive})
	c.lists = list.New(list.Config{Screen: s, Place: where, Now: cfg.Now, Do: c.do, NoArgs: noArgs, CompleteAgents: c.completeAgents, Walk: c.inbox.Walk})
	c.workers = work.New(work.Config{Screen: s, Place: where, Who: cfg.Who, Now: cfg.Now, Here: c.here, NoArgs: noArgs})
	where.Trust = c.person.Trusts
	if slices.Contains(cfg.Args, "--output=json") || slices.Contains(cfg.Args, "-ojson") || followed(cfg.Args, "--output", "json") || followed(cfg.Args, "-o", "json") {
		// Said before the flags are parsed, so that a mistake in them has JSON too.
		c.Form = screen.FormJSON
	}
	return c
}

func followed(args []string, name, value string) bool {
	i := slices.Index(args, name)
	return i >= 0 && i+1 < len(args) && args[i+1] == value
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "adjourn",
		Short: "Run agents that stop and wait for people",
		Long: `Adjourn runs agents step by step. When one reaches something a person must
decide, it stops: the process ends with exit code 10 and nothing runs. Later,
any other process brings the answer and the agent goes on.

  adjourn run --agent janitor ./photos     start; here: find duplicate files
  adjourn inbox                            what is waiting for a person
  adjourn resume SESSION --approve WAIT    decide, and let it go on
  adjourn show SESSION                     what happened, step by step
  adjourn demo                             the whole story in two minutes
  adjourn dev                              serve the HTTP API on this machine

Data is printed on stdout, everything else on stderr.

Exit codes
  0 completed    2 usage        5 conflict or expired    124 --wait ran out
  1 failed       3 not found    10 paused                130 interrupted
                 4 not allowed

Environment
  ADJOURN_DATA    data file, when there is no --data   (` + app.DefaultData + `)
  ADJOURN_TRUST_DATA   true is --trust-data for every command
  ADJOURN_URL     server, when there is neither --url nor --data
  ADJOURN_TOKEN   token for the server, when there is no --token-file
  ADJOURN_AGENT   agent of new sessions, when there is no --agent
  ADJOURN_MODEL   model of every agent, as provider:model
  OPENAI_API_KEY   key of the model provider openai
  OPENAI_BASE_URL   another server that speaks its API
  ADJOURN_GRANT_KEYS   keys that sign links to approvals   (dev makes one)
  ADJOURN_PUBLIC_URL   what links begin with   (the address of dev)
  ADJOURN_SIGN_IN_URL   where people sign in for what no link decides
  ADJOURN_POLICY   policy of tools of every task: its file, or itself in braces
  ADJOURN_LAB     true: dev offers agents that are there to try things out
  ADJOURN_LAB_FOLDER   the one folder for files of tools   (adjourn-files)
  ADJOURN_LEASE   how long a dead worker keeps its step   (20s)
  ADJOURN_STEPS_PER_INVOCATION   steps that one queue message drives   (16)
  ADJOURN_LOG     debug, info, warn, error or off   (warn)`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	flags := root.PersistentFlags()
	c.Register(flags)
	flags.StringVarP(&c.Form, "output", "o", c.Form, "`form` of what is printed on stdout: text or json")
	flags.BoolVarP(&c.Quiet, "quiet", "q", false, "say nothing on stderr but errors")
	flags.BoolVar(&c.person.NoInput, "no-input", false, "never ask, also on a terminal")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{screen.FormText, screen.FormJSON}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(
		c.runCommand(), c.resumeCommand(), c.submitCommand(),
		c.lists.InboxCommand(), c.lists.NoticesCommand(), c.lists.SessionsCommand(), c.showCommand(), c.agentsCommand(),
		c.workers.Work(), c.workers.Dev(), c.demoCommand(), c.versionCommand(),
	)
	root.AddCommand(c.retryCommand(), c.forkCommand(), c.checkpointsCommand(), c.lists.RunsCommand(oneSession, c.completeFirst(c.completeSessions), c.noSession), c.lists.AuditCommand(oneSession, c.completeFirst(c.completeSessions), c.noSession),
		c.lists.PermissionsCommand(c.completeFirst(c.completeSessions), c.noSession))
	root.AddCommand(c.sendCommand(), c.lists.LinkCommand(sessionAndOne, c.completeSessionAndWait, c.noSession))
	root.AddCommand(append(c.stopCommands(), c.inbox.Commands()...)...)
	root.AddCommand(c.deleteCommand(), c.lists.ExportCommand(oneSession, c.completeFirst(c.completeSessions), c.noSession))
	root.AddCommand(c.haltCommand(), c.goCommand())
	if name := c.Name; name != "adjourn" {
		c.adopt(root, name)
	}
	strictHelp(root)
	for _, cmd := range append(root.Commands(), root) {
		cmd.Long = screen.HangLines(cmd.Long, 81)
	}
	// So wide that no terminal breaks inside a word.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", "Flags.FlagUsagesWrapped 80"))
	return root
}

// adopt makes the commands those of a user's own program: under its name, and
// without the demo, which tells its story with an agent of ours.
func (c *cli) adopt(root *cobra.Command, name string) {
	root.Use = name
	words := strings.NewReplacer("  adjourn ", "  "+name+" ")
	for _, cmd := range append(root.Commands(), root) {
		cmd.Long, cmd.Example = words.Replace(cmd.Long), words.Replace(cmd.Example)
	}
	registry, err := c.Registry()
	if err != nil {
		return // the command itself will say so
	}
	if _, ok := registry.Agent(demo.Agent); ok {
		return
	}
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "demo":
			root.RemoveCommand(cmd)
		case "run":
			cmd.Example = c.runExamples(registry)
		case "dev":
			work.HideTrials(cmd, registry)
		}
	}
	var lines []string
	for line := range strings.Lines(root.Long) {
		if strings.Contains(line, demo.Agent) {
			line = fmt.Sprintf("  %-40s start\n", name+` run "INPUT"`)
		}
		if !strings.Contains(line, demo.Agent) && !strings.HasPrefix(line, "  "+name+" demo") {
			lines = append(lines, line)
		}
	}
	root.Long = strings.Join(lines, "")
}

// runExamples are the examples of run with an agent that a user's own program has.
func (c *cli) runExamples(registry *agent.Registry) string {
	agent, input, _ := work.FirstInput(registry)
	start := "  " + c.Name + " run --agent " + place.Quote(agent) + " "
	return start + place.Quote(input) + "\n" + start + "--output json < input.txt\n" +
		"  " + c.Name + ` run --session SESSION "and now the next thing"`
}

// do wraps a command's work: what fails before it is a mistake in the words.
func (c *cli) do(todo func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if c.Form != screen.FormText && c.Form != screen.FormJSON && (c.Form != screen.FormJSONLines || cmd.Name() != "audit") {
			return exit.Usagef("--output %q: use text or json", c.Form)
		}
		if err := c.Check(); err != nil {
			return err
		}
		if err := checkNotEmpty(cmd.Flags()); err != nil {
			return err
		}
		c.began, c.verb = true, cmd.Name()
		err := todo(cmd.Context(), args)
		if u := (*exit.UsageError)(nil); errors.As(err, &u) && u.Command == "" {
			u.Command = cmd.CommandPath()
		}
		return err
	}
}

// here is do for a command that works on this machine's data only.
func (c *cli) here(command string, todo func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return c.do(func(ctx context.Context, args []string) error {
		if err := c.CheckHere(command); err != nil {
			return err
		}
		return todo(ctx, args)
	})
}

// at returns the command the arguments name, for the line that points to its help.
func (c *cli) at(root *cobra.Command) string {
	if cmd, _, err := root.Find(c.Args); err == nil && cmd != nil && cmd.Name() != "help" {
		return cmd.CommandPath()
	}
	return root.CommandPath()
}

// close gives the engine back; work that is done stays done.
func (c *cli) close(e interface{ Close() error }) {
	report.Close(c.Screen, c.Place, e)
}
