package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// stopWait is how long a command waits for the worker that was told to stop: longer than the worker
// waits for a tool that does not heed its context.
const stopWait = 8 * time.Second

// stopWord is a command that stops a task.
type stopWord struct {
	name, short, long string
	stop              func(*client.Client, context.Context, client.StopParams) (client.Stopped, error)
}

var stopWords = []stopWord{
	{
		"interrupt", "Stop an agent softly; it can go on later",
		`Stop what an agent does now, and keep everything it has committed. What waits
stays open under the same ids: an answer is stored, and resume goes on.

A session that has ended is refused (exit 5).`,
		(*client.Client).Interrupt,
	},
	{
		"cancel", "End what an agent does; the session takes a next turn",
		`End the task an agent works on. Calls that have not run never will, what is
open is closed, and run --session SESSION begins the next turn. A side effect
that was cut off is shown as unknown.

To cancel what has ended does nothing.`,
		(*client.Client).Cancel,
	},
	{
		"abort", "End a session as failed",
		`End the session, for good, as failed. Calls that have not run never will, and
what is open is closed. A side effect that was cut off is shown as unknown.

To abort what has ended does nothing.`,
		(*client.Client).Abort,
	},
}

// stopCommands are interrupt, cancel and abort.
func (c *cli) stopCommands() (all []*cobra.Command) {
	for _, word := range stopWords {
		var asked client.StopRequest
		cmd := &cobra.Command{
			Use:               word.name + " session",
			Short:             word.short,
			Long:              word.long,
			Args:              oneSession,
			ValidArgsFunction: c.completeFirst(c.completeSessions),
			RunE: c.do(func(ctx context.Context, args []string) error {
				return c.stop(ctx, word, args[0], asked)
			}),
		}
		cmd.Flags().StringVar(&asked.Reason, "reason", "", "`text` that is kept with it")
		cmd.Flags().Int64Var(&asked.Task, "task", 0, "`number` of the task that is to stop; a later one goes on")
		all = append(all, cmd)
	}
	return all
}

func (c *cli) stop(ctx context.Context, word stopWord, id string, asked client.StopRequest) error {
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	stopped, err := word.stop(e.Client, ctx, client.StopParams{SessionID: id, Request: asked, Wait: stopWait})
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	v, err := report.Load(ctx, c.Place, e, id)
	if err != nil {
		return err
	}
	return c.stands(ctx, e, v, stopped)
}

// stands prints where a session stands that was to stop. That it has ended is what was asked for.
func (c *cli) stands(ctx context.Context, e *place.Connection, v report.View, stopped client.Stopped) error {
	v.CutOff = report.CutOff(ctx, e, v)
	text := c.Form != screen.FormJSON
	switch {
	case stopped.Outcome == client.StopSent && v.Outcome == session.OutcomeRunning && v.Task == stopped.Task:
		v.ResumeHint = ""
		c.Talk("Session %s has not stopped yet. Its worker was told; a tool may take some seconds to end.", v.ID)
		c.Talk("If the worker is dead, the same command stops it, 20 seconds from now.")
		if !text {
			c.tell(ctx, e, v)
		}
		if ctx.Err() != nil {
			return exit.Said(exit.Interrupted)
		}
		return exit.Said(exit.Waited)
	case stopped.Outcome == client.StopNothing && v.Task != stopped.Task:
		c.Talk("Nothing was done: task %d has ended, and the session is at task %d.", stopped.Task, v.Task)
	case stopped.Outcome == client.StopNothing:
		c.Talk("Nothing was done: %s.", report.Stands(v.Status))
		if text {
			return nil
		}
	case text && v.Outcome == session.OutcomeCancelled:
		c.Say("Session %s is cancelled.", v.ID)
		c.cutOff(v)
		c.Say("Its next turn: %s", c.nextTurn(v.ID))
		report.Record(c.Screen, c.Place, v)
		return nil
	case text && v.Outcome == session.OutcomeFailed:
		c.Say("Session %s has failed for good. What happened: %s", v.ID, c.Command(place.Target("show", v.ID)...))
		c.cutOff(v)
		report.Record(c.Screen, c.Place, v)
		return nil
	}
	c.tell(ctx, e, v)
	return nil
}

// cutOff says that a side effect may have been cut off.
func (c *cli) cutOff(v report.View) {
	if v.CutOff {
		c.Say("A tool with an effect was cut off; its outcome is unknown: %s", c.Command(place.Target("show", v.ID)...))
	}
}
