package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
)

// sendFlags are the flags of send.
type sendFlags struct {
	asked client.SendRequest
	key   work.Key
	wait  work.Stay
}

func (c *cli) sendCommand() *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use:   "send session message",
		Short: "Say something to an agent while it works",
		Long: `Send a message to a session, wherever it stands:

  it works           its next step takes the message in. The command does not
                     wait for that. A retry that is put off is not brought
                     forward.
  it asked for input the message is the answer.
  it has ended       --start begins its next turn with it; without, exit 5.

A session that waits for something else refuses the message (exit 5), unless its
agent gives that up for a message. One that was interrupted goes on by
resume SESSION MESSAGE, one that has failed by retry SESSION MESSAGE.

What was taken is in the history of the session, also where the task is stopped
or fails before its agent has read it.`,
		Example: `  adjourn send SESSION "leave the videos alone"
  adjourn send SESSION --start "and now the next thing"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return errors.New("the message is missing")
			}
			return sessionAndOne(cmd, args)
		},
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.send(ctx, f, args[0], args[1])
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.asked.Start, "start", false, "begin the next turn with it, if the session has ended")
	flags.Int64Var(&f.asked.Task, "task", 0, "`number` of the task that it is for; it does not reach a later one")
	f.key.Register(flags)
	f.wait.Register(flags)
	return cmd
}

func (c *cli) send(ctx context.Context, f sendFlags, id, message string) error {
	if err := f.wait.Bound(c.Place); err != nil {
		return err
	}
	if err := checkMessage(message); err != nil {
		return err
	}
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	c.message, f.asked.Message = message, client.Text(message)
	sent, err := e.Send(ctx, client.SendParams{SessionID: id, Request: f.asked, IdempotencyKey: f.key.Text})
	if err != nil {
		return c.refused(ctx, e, id, err)
	}
	c.did = "the message is stored"
	switch {
	case sent.Replayed:
		c.Talk("This message was taken before; here is where its session stands.")
		if sent.MailID != "" { // a worker reads it
			return c.taken(ctx, e, id)
		}
	case sent.MailID != "":
		return c.queued(ctx, e, sent)
	case sent.Outcome == client.SendAbandoned:
		c.Talk("What it waited for is given up: it goes on with the message.")
	case sent.Continuation == client.ContinuationStored:
		c.Talk("The message is stored.")
	}
	return c.drive(ctx, e, id, &f.wait)
}

// queued tells of a message that waits for the next step, which is no affair of this command.
func (c *cli) queued(ctx context.Context, e *place.Connection, sent client.Sent) error {
	v, err := report.Load(ctx, c.Place, e, sent.SessionID)
	if err != nil {
		return err
	}
	if c.Remote() || !v.CanResume {
		v.ResumeHint = "" // somebody is at it
	}
	if c.Form == screen.FormJSON {
		c.Talk("The message is stored: task %d takes it in with its next step.", sent.Task)
		c.tell(ctx, e, v)
		return nil
	}
	c.Say("The message is stored: task %d takes it in with its next step.", sent.Task)
	if v.ResumeHint != "" {
		c.Say("Where nobody works on it: %s", v.ResumeHint)
	}
	return nil
}
