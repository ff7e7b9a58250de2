package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
)

// runFlags are the flags of run.
type runFlags struct {
	agent     string
	session   string
	key       work.Key
	inputFile string
	begin     work.Begin
	rules     work.Rules
	wait      work.Stay
}

func (c *cli) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [input]",
		Short: "Start a session, or the next turn of one that has ended",
		Long: `Start a session, or the next turn of one that has ended, and work on it until it
rests. The input is the argument, or --input-file, or what comes through stdin.

When the agent needs a person, a terminal is asked. Without a terminal, with
--no-input or with --output json nobody is asked: the command prints what is
waiting, writes it to pause.json beside the data file and exits with 10. With
--url there is no data file, so pause.json is not written.`,
		Example: `  adjourn run --agent janitor ./photos
  adjourn run --agent lab '[{say: hello}]'
  adjourn run --agent lab --output json < script.yaml
  adjourn run --session SESSION "and now the next thing"`,
		Args:              atMost(1, "quote the input if it has several words"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.run(ctx, f, args)
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.agent, "agent", "a", "", "`agent` that does the work (see the command agents)")
	flags.StringVarP(&f.session, "session", "s", "", "`id` of the session: letters, digits, _ and -; a new one by default")
	f.key.Register(flags)
	flags.StringVar(&f.inputFile, "input-file", "", "read the input from a `file`; - is stdin")
	f.begin.Register(flags)
	f.rules.Register(flags)
	f.wait.Register(flags)
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgents)
	_ = cmd.RegisterFlagCompletionFunc("session", c.completeSessions)
	return cmd
}

func (c *cli) run(ctx context.Context, f runFlags, args []string) error {
	if err := f.wait.Bound(c.Place); err != nil {
		return err
	}
	input, err := c.input(f, args)
	if err != nil {
		return err
	}
	if f.session != "" && len(args) == 1 && input == report.WordMessage {
		return exit.Usagef("%s", report.Replace(input, "what you want to say there"))
	}
	if f.session == report.WordSession {
		return exit.Usagef("--session %s", report.Replace(f.session, "an id for the new session there, or leave the flag out"))
	}
	rules, err := f.rules.Asked()
	if err != nil {
		return err
	}
	request := client.StartRequest{SessionID: f.session, Input: client.Text(input), Rules: rules}
	if err := f.begin.Fill(&request); err != nil {
		return err
	}
	if err := c.checkAgent(f.agent); err != nil {
		return err
	}
	e, err := c.Open(ctx, false)
	if err != nil {
		return err
	}
	defer c.close(e)
	if request.Agent, err = c.chooseAgent(ctx, e, f.agent, f.session); err != nil {
		return err
	}
	started, err := e.Start(ctx, client.StartParams{Request: request, IdempotencyKey: f.key.Text})
	if err != nil && f.session != "" {
		c.message = input
		return c.refused(ctx, e, f.session, err)
	}
	if err != nil {
		return err
	}
	if started.Replayed {
		c.Talk(work.Replayed)
	}
	return c.drive(ctx, e, started.SessionID, &f.wait)
}

// input returns what the agent is told, from exactly one place.
func (c *cli) input(f runFlags, args []string) (string, error) {
	var in io.Reader
	from := "the input"
	switch {
	case len(args) == 1 && f.inputFile != "":
		return "", exit.Usagef("the input was given twice: as an argument and by --input-file; use one")
	case len(args) == 1 && args[0] != "-":
		in = strings.NewReader(args[0])
	case f.inputFile != "" && f.inputFile != "-":
		file, err := os.Open(f.inputFile)
		if err != nil {
			return "", exit.Usagef("--input-file: %v", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in, from = file, f.inputFile
	default:
		if _, ok := screen.Terminal(c.Stdin); ok {
			return "", exit.Usagef("no input: give it as an argument, by --input-file or through stdin")
		}
		in, from = c.Stdin, "stdin"
	}
	text, err := io.ReadAll(io.LimitReader(in, client.MaxInput+1))
	switch {
	case err != nil:
		return "", exit.Usagef("read %s: %v", from, err)
	case len(text) > client.MaxInput:
		return "", &exit.RefusalError{Code: client.CodeInputTooLarge, Message: fmt.Sprintf(
			"%s is larger than %d MiB, more than any model reads; put it into a file and tell the agent where it is", from, client.MaxInput>>20)}
	case strings.TrimSpace(string(text)) == "":
		return "", exit.Usagef("%s is empty: give the input as an argument, by --input-file or through stdin", from)
	case !utf8.Valid(text):
		return "", exit.Usagef("%s is not text in UTF-8", from)
	}
	if from != "the input" {
		return strings.TrimRight(string(text), "\r\n"), nil
	}
	return string(text), nil
}

// checkAgent refuses a name that is not in the registry, before anything is made.
func (c *cli) checkAgent(name string) error {
	if name == "" || c.Remote() {
		return nil // only the server knows its agents
	}
	registry, err := c.Registry()
	if err != nil {
		return err
	}
	if names := registry.Names(); !slices.Contains(names, name) {
		return unknownAgent(name, names)
	}
	return nil
}

func unknownAgent(name string, names []string) error {
	return &exit.RefusalError{Code: client.CodeUnknownAgent, Message: fmt.Sprintf("there is no agent %q; there are: %s", name, strings.Join(names, ", "))}
}

// chooseAgent returns the agent of a start: the one named, none for the next
// turn of a session that has one, else ADJOURN_AGENT or the only one there is.
func (c *cli) chooseAgent(ctx context.Context, e *place.Connection, name, id string) (string, error) {
	if name != "" {
		return name, nil
	}
	if id != "" {
		_, err := e.Session(ctx, id, 0)
		if err == nil {
			return "", nil
		}
		if exit.Class(err) != client.ClassNotFound {
			return "", err
		}
	}
	settings, err := app.ReadSettings(c.Env)
	if err != nil {
		return "", err
	}
	names := e.Agents()
	if name := settings.Agent; name != "" {
		if names != nil && !slices.Contains(names, name) {
			return "", unknownAgent(name, names)
		}
		return name, nil
	}
	switch len(names) {
	case 0:
		return "", nil // the server says which there are
	case 1:
		return names[0], nil
	}
	return "", exit.Usagef("which agent? use --agent with one of: %s", strings.Join(names, ", "))
}
