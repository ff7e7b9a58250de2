package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
)

// Commands are dismiss, extend, delegate and away.
func (b *Inbox) Commands() []*cobra.Command {
	return []*cobra.Command{b.dismissCommand(), b.extendCommand(), b.delegateCommand(), b.awayCommand()}
}

// names takes a session, a wait, and so many words more.
func names(words string, more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2+more {
			return errors.New("this command takes " + words)
		}
		for _, arg := range args {
			if arg == "" {
				return errors.New("an argument is empty: this command takes " + words)
			}
		}
		return nil
	}
}

func (b *Inbox) dismissCommand() *cobra.Command {
	var reason string
	var stay work.Stay
	cmd := &cobra.Command{
		Use:   "dismiss session wait",
		Short: "Say of a wait that nobody will answer it",
		Long: `Say of one wait, with a reason, that nobody will answer it. Nothing is decided:
its call ends as one that was not answered, and the agent is told who dismissed
it and why. When nothing is open any more the session goes on.

What asks for a message is not dismissed: cancel the session.`,
		Example:           `  adjourn dismiss SESSION w2-1 --reason "the order was withdrawn"`,
		Args:              names("a session and a wait", 0),
		ValidArgsFunction: b.cfg.Complete,
		RunE: b.cfg.Do(func(ctx context.Context, args []string) error {
			if reason == "" {
				return exit.Usagef("say why, with --reason: the agent is told, and who looks later")
			}
			if err := stay.Bound(b.cfg.Place); err != nil {
				return err
			}
			return b.act(ctx, args[0], &stay, func(e *place.Connection) (client.Acted, error) {
				return e.Dismiss(ctx, client.ActParams[client.DismissRequest]{SessionID: args[0], WaitID: args[1], Request: client.DismissRequest{Reason: reason}})
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that the agent is told; required")
	stay.Register(cmd.Flags())
	return cmd
}

func (b *Inbox) extendCommand() *cobra.Command {
	var asked client.ExtendRequest
	var by time.Duration
	var until string
	cmd := &cobra.Command{
		Use:   "extend session wait",
		Short: "Give a wait a later deadline",
		Long: `Give one wait a later deadline: so much after the one it has (--by), or a time
(--until). At most 30 days from now. Of an extension and the deadline in the
same moment one comes first; where it was the deadline, it exits with 5.`,
		Example: `  adjourn extend SESSION w2-1 --by 24h --reason "Ann is back tomorrow"
  adjourn extend SESSION w2-1 --until 2026-03-01T12:00:00+01:00`,
		Args:              names("a session and a wait", 0),
		ValidArgsFunction: b.cfg.Complete,
		RunE: b.cfg.Do(func(ctx context.Context, args []string) error {
			if (by == 0) == (until == "") {
				return exit.Usagef("say until when: --by DURATION or --until TIME")
			}
			if until != "" {
				at, err := time.Parse(time.RFC3339, until)
				if err != nil {
					return exit.Usagef("--until %q: use a time as 2026-03-01T12:00:00+01:00", until)
				}
				asked.Deadline = at
			} else if by < 0 {
				return exit.Usagef("--by %s: an extension is later", by)
			}
			return b.act(ctx, args[0], nil, func(e *place.Connection) (client.Acted, error) {
				if by > 0 {
					w, err := e.Wait(ctx, args[0], args[1])
					switch {
					case err != nil:
						return client.Acted{}, err
					case w.Wait.Deadline == nil:
						return client.Acted{}, exit.Refusef(client.CodeNoDeadline, args[0], "%s has no deadline: it waits until somebody answers", screen.CleanLine(args[1]))
					}
					asked.Deadline = w.Wait.Deadline.At.Add(by)
				}
				return e.Extend(ctx, client.ActParams[client.ExtendRequest]{SessionID: args[0], WaitID: args[1], Request: asked})
			})
		}),
	}
	cmd.Flags().DurationVar(&by, "by", 0, "so much later than now set, as 90m or 24h")
	cmd.Flags().StringVar(&until, "until", "", "a `time`, as 2026-03-01T12:00:00+01:00")
	cmd.Flags().StringVar(&asked.Reason, "reason", "", "`text` that is kept with it")
	return cmd
}

func (b *Inbox) delegateCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "delegate session wait person",
		Short: "Let another person answer a wait",
		Long: `Let another person answer one wait, in your place: they may answer then, you
still may, and both have one voice together. The person is named as the server
knows them, or on a data file by their user name.`,
		Example:           `  adjourn delegate SESSION w2-1 ben --reason "it is his order"`,
		Args:              names("a session, a wait and a person", 1),
		ValidArgsFunction: b.cfg.Complete,
		RunE: b.cfg.Do(func(ctx context.Context, args []string) error {
			return b.act(ctx, args[0], nil, func(e *place.Connection) (client.Acted, error) {
				return e.Delegate(ctx, client.ActParams[client.DelegateRequest]{
					SessionID: args[0], WaitID: args[1], Request: client.DelegateRequest{To: args[2], Reason: reason},
				})
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that is kept with it")
	return cmd
}

// act does something to a wait; with a stay the session may go on with that, and is worked on.
func (b *Inbox) act(ctx context.Context, id string, stay *work.Stay, do func(*place.Connection) (client.Acted, error)) error {
	s, where := b.cfg.Screen, b.cfg.Place
	e, err := where.Open(ctx, true)
	if err != nil {
		return b.cfg.NoSession(err, id)
	}
	defer report.Close(s, where, e)
	acted, err := do(e)
	if err != nil {
		return b.cfg.Refused(ctx, e, id, err)
	}
	if acted.Repeated {
		s.Talk("Already done: you had done the same before, nothing was done again.")
	}
	if stay != nil {
		return b.cfg.Drive(ctx, e, id, stay)
	}
	if s.Form == screen.FormJSON {
		s.JSON(acted.Wait)
		return nil
	}
	s.Write(s.Stdout, report.Block(acted.Wait, b.cfg.Now(), screen.Width(s.Stdout), func(text string) string { return s.Bold(s.Stdout, text) }))
	s.Write(s.Stdout, actLines(acted.Wait.Acts, b.cfg.Now()))
	return nil
}
