package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
)

func (c *cli) deleteCommand() *cobra.Command {
	var yes bool
	var key work.Key
	cmd := &cobra.Command{
		Use:   "delete session",
		Short: "Delete a session for good",
		Long: `Delete a session with all it has, whatever it does. A worker that works on it
loses its next write. What its tools have done is not undone, and its children
and forks stay. Its id is never used again.

A terminal is shown the session and asked; elsewhere --yes says it. To keep its
journal, export it first.`,
		Args:              oneSession,
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE:              c.do(func(ctx context.Context, args []string) error { return c.delete(ctx, args[0], yes, key.Text) }),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	key.Register(cmd.Flags())
	return cmd
}

func (c *cli) delete(ctx context.Context, id string, yes bool, key string) error {
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	if !yes {
		s, err := e.Session(ctx, id, 0)
		if err == nil {
			yes, err = c.person.AgreesToDelete(ctx, s)
		}
		if err != nil {
			return err
		}
		if !yes {
			c.Talk("Nothing was deleted.")
			return nil
		}
	}
	deleted, err := e.Delete(ctx, client.DeleteParams{SessionID: id, IdempotencyKey: key})
	if err != nil {
		return err
	}
	report.Deleted(c.Screen, c.Place, deleted)
	return nil
}
