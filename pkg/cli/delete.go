package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

func (c *cli) deleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete session",
		Short: "Delete a session for good",
		Long: `Delete a session with all it has, whatever it does. A worker that works on it
loses its next write. What its tools have done is not undone, and its children
and forks stay. Its id is never used again.

A terminal is shown the session and asked; elsewhere --yes says it. To keep its
journal, export it first.`,
		Args:              exactly(1, "session"),
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE:              c.do(func(ctx context.Context, args []string) error { return c.delete(ctx, args[0], yes) }),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return cmd
}

func (c *cli) exportCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export session",
		Short: "Write a session's journal as JSON lines",
		Long: `Write the entries of a session as they are stored, one JSON object a line, the
oldest first: on stdout, or into a new file. What cannot be written whole is an
error, and a file that was begun is removed.`,
		Args:              exactly(1, "session"),
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.noSession(c.lists.Export(ctx, args[0], file), args[0])
		}),
	}
	cmd.Flags().StringVar(&file, "file", "", "new `file` to write into")
	return cmd
}

func (c *cli) delete(ctx context.Context, id string, yes bool) error {
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	if !yes {
		s, err := e.Session(ctx, id, 0)
		if err != nil {
			return err
		}
		if !c.person.There() {
			return &exit.UsageError{
				Text:  fmt.Sprintf("there is no terminal to ask at. --yes says that session %s is to be deleted for good:\n%s", screen.CleanLine(id), what(s)),
				Paste: c.Command(place.Target("delete", id, "--yes")...),
			}
		}
		switch yes, err := c.person.AgreesToDelete(ctx, id, what(s)); {
		case err != nil:
			return err
		case !yes:
			c.Talk("Nothing was deleted.")
			return nil
		}
	}
	deleted, err := e.Delete(ctx, client.DeleteParams{SessionID: id})
	if err != nil {
		return err
	}
	report.Ended(c.Screen, c.Place, id)
	if c.Form == screen.FormJSON {
		c.JSON(deleted)
		return nil
	}
	c.Say("Session %s is deleted. It was %s.", deleted.SessionID, deleted.Status)
	if deleted.Status == session.StatusRunning {
		c.Talk("A step that was under way writes nothing more into it; what its tools have done is not undone.")
	}
	return nil
}

// what says which session is to be deleted.
func what(s client.Session) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, task %d, %d entries\n", screen.CleanLine(s.Agent), s.Status, s.Task, s.Version)
	if s.Title != "" {
		fmt.Fprintf(&b, "%s\n", screen.CleanLine(s.Title))
	}
	if s.Pause != nil && len(s.Pause.Pending) > 0 {
		fmt.Fprintf(&b, "it waits for %s\n", report.Things(s.Pause.Pending))
	}
	return b.String()
}
