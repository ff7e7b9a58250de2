package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/app"
)

func (c *cli) showCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "show session",
		Short: "Show a session's journal as a timeline",
		Long: `Show what happened in a session, entry by entry: steps, tools, waits, how long
each took and what it used. With --output json the entries are printed as they are stored.`,
		Args:              exactly(1, "session"),
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.noSession(c.lists.Show(ctx, args[0], full), args[0])
		}),
	}
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
