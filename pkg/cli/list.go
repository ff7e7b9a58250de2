package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
)

func (c *cli) showCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "show session [wait]",
		Short: "Show a session's journal as a timeline, or one wait",
		Long: `Show what happened in a session, entry by entry: steps, tools, waits, how long
each took and what it used. With --output json the entries are printed as they
are stored. With a wait, show that one with what a person needs to decide.`,
		Args:              sessionAndOne,
		ValidArgsFunction: c.completeSessionAndWait,
		RunE: c.do(func(ctx context.Context, args []string) error {
			if len(args) == 2 {
				return c.inbox.Show(ctx, args[0], args[1])
			}
			return c.noSession(c.lists.Show(ctx, args[0], full), args[0])
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "do not shorten texts, arguments and results")
	return cmd
}

func (c *cli) checkpointsCommand() *cobra.Command {
	var compare string
	var full bool
	cmd := &cobra.Command{
		Use:   "checkpoints session [checkpoint]",
		Short: "List the places a session can go back to, or show one",
		Long: `List the checkpoints of a session: the entries it can go back to, and can be
forked from. With a checkpoint, the number of its entry or its id, show the
session as it was: the conversation, the state, what was open, and what the
session has done since.

--compare shows what is different from another checkpoint: the messages that
only this one has, and the changes of the state.`,
		Example: `  adjourn checkpoints SESSION
  adjourn checkpoints SESSION 12 --compare 3`,
		Args:              sessionAndOne,
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			if len(args) == 1 && compare != "" {
				return exit.Usagef("--compare belongs to a checkpoint: name it behind the session")
			}
			return c.noSession(c.lists.Checkpoints(ctx, args[0], args[1:], compare, full), args[0])
		}),
	}
	cmd.Flags().StringVar(&compare, "compare", "", "compare with this `checkpoint`")
	cmd.Flags().BoolVar(&full, "full", false, "do not shorten texts, arguments and results")
	return cmd
}

func (c *cli) agentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "agents",
		Short: "List the agents there are, with their tools",
		Args:  noArgs("this command takes none"),
		RunE: c.here("agents", func(context.Context, []string) error {
			registry, err := c.Registry()
			if err != nil {
				return err
			}
			settings, err := app.ReadSettings(c.Env)
			if err != nil {
				return err
			}
			c.lists.Agents(registry, settings.Model)
			return nil
		}),
	}
}
