package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// flagAcknowledge is the flag that names the effects which its user has seen.
const flagAcknowledge = "acknowledge"

const aboutAcknowledge = "`digest` of the list of effects that you have seen, as it was printed"

// retryCommand is retry.
func (c *cli) retryCommand() *cobra.Command {
	var from, acknowledge string
	var f work.Task
	cmd := &cobra.Command{
		Use:   "retry session [message]",
		Short: "Try again what has failed",
		Long: `Begin a task of a session that has failed, and was not aborted:

  --from last      from where it failed, so that no call is made twice (this is
                   what it does without --from)
  --from start     from the start of the task that failed
  --from ENTRY     from the checkpoint of that entry, as show and checkpoints
                   number them; the checkpoint's id does as well

What the session has done since then is not undone: it is shown, and you are
asked. Without a terminal the command exits with 5 and prints the one that says
you have seen it (--acknowledge).`,
		Example: `  adjourn retry SESSION
  adjourn retry SESSION --from start "use the other account"`,
		Args:              sessionAndOne,
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.retry(ctx, from, acknowledge, &f, args)
		}),
	}
	cmd.Flags().StringVar(&from, "from", client.RetryFromLast, "`where` to begin: last, start, the number of an entry, or a checkpoint")
	cmd.Flags().StringVar(&acknowledge, flagAcknowledge, "", aboutAcknowledge)
	f.Register(cmd.Flags())
	return cmd
}

func (c *cli) retry(ctx context.Context, from, acknowledge string, f *work.Task, args []string) error {
	return c.begins(ctx, f, args, func(e *place.Connection, id string, message client.Content, rules session.TaskRules) error {
		where := from
		if from != client.RetryFromLast && from != client.RetryFromStart {
			var err error
			if where, err = c.lists.CheckpointOf(ctx, e, id, from); err != nil {
				return c.refused(ctx, e, id, err)
			}
		}
		flags := append([]string{"--from", from}, f.Words()...)
		return c.goBack(ctx, e, id, args, flags, acknowledge, &f.Stay, func(acknowledge string) (client.Resumed, error) {
			return e.Retry(ctx, client.RetryParams{
				SessionID: id, IdempotencyKey: f.Text,
				Request: client.RetryRequest{From: where, Message: message, Acknowledge: acknowledge, Rules: rules},
			})
		})
	})
}

// begins reads the words of such a command, and has it begin where the session lives.
func (c *cli) begins(ctx context.Context, f *work.Task, args []string, begin func(e *place.Connection, id string, message client.Content, rules session.TaskRules) error) error {
	if err := f.Stay.Bound(c.Place); err != nil {
		return err
	}
	id, message, err := c.toGoOn(args)
	if err != nil {
		return err
	}
	rules, err := f.Rules.Asked()
	if err != nil {
		return err
	}
	e, err := c.Open(ctx, true)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	return begin(e, id, message, rules)
}

// toGoOn reads which session is meant, and the message to go on with; nil for none.
func (c *cli) toGoOn(args []string) (id string, message client.Content, err error) {
	if len(args) == 1 {
		return args[0], nil, nil
	}
	c.message = args[1]
	return args[0], client.Text(c.message), checkMessage(c.message)
}

// checkMessage refuses a message that says nothing.
func checkMessage(message string) error {
	switch {
	case strings.TrimSpace(message) == "":
		return exit.Usagef("the message is empty")
	case message == report.WordMessage:
		return exit.Usagef("%s", report.Replace(message, "what you want to say there"))
	}
	return nil
}

// goBack begins a task from a checkpoint, and works on it. What has been done since then is shown
// first. Args and flags are the words of the command, for the one that is printed.
func (c *cli) goBack(ctx context.Context, e *place.Connection, id string, args, flags []string, acknowledge string, stay *work.Stay, begin func(acknowledge string) (client.Resumed, error)) error {
	for {
		resumed, err := begin(acknowledge)
		effects := exit.Effects(err)
		switch {
		case err == nil:
			switch c.did = "the task has begun"; {
			case resumed.Replayed:
				c.did = ""
				c.Talk(work.Replayed)
			case len(resumed.Open) > 0:
				c.Talk("What was open there is asked anew, under new ids: no answer given since counts.")
			}
			return c.drive(ctx, e, id, stay)
		case effects == nil || effects.Count == 0:
			return c.refused(ctx, e, id, err)
		case !c.person.There():
			return c.unacknowledged(ctx, e, id, args, append(flags, "--"+flagAcknowledge, effects.Digest), err)
		}
		yes, err := c.person.Acknowledges(ctx, id, *effects)
		if err != nil {
			return err
		}
		if !yes {
			c.Talk("Nothing was done: session %s stays as it is.", id)
			return nil
		}
		acknowledge = effects.Digest
	}
}

// unacknowledged prints what was done after the checkpoint, with the command that says to have seen it.
func (c *cli) unacknowledged(ctx context.Context, e *place.Connection, id string, args, flags []string, refused error) error {
	v, err := report.Load(ctx, c.Place, e, id)
	if err != nil {
		return refused
	}
	words := append([]string{c.verb}, flags...)
	if len(args) > 1 || strings.HasPrefix(args[0], "-") {
		words = append(words, "--")
	}
	v.ResumeHint = c.Command(append(words, args...)...)
	report.Refuse(c.Screen, c.Place, v, refused)
	return exit.Said(exit.Code("", refused))
}

// forkCommand is fork.
func (c *cli) forkCommand() *cobra.Command {
	var checkpoint, as string
	var tags []string
	var f work.Task
	cmd := &cobra.Command{
		Use:   "fork session [message]",
		Short: "Begin a session of its own from a checkpoint",
		Long: `Begin a new session with the history of a checkpoint of another one, and work on
it. The other one stays as it is, and goes on waiting for what it waits for.
What was open at the checkpoint is asked in the new session too, under ids of
its own; answers that came later are not in it.

--checkpoint takes the number of an entry, as show and checkpoints number them,
or the checkpoint's id; without it the newest checkpoint is copied.`,
		Example: `  adjourn fork SESSION
  adjourn fork SESSION --checkpoint 12 --session second "use the other account"`,
		Args:              sessionAndOne,
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.begins(ctx, &f, args, func(e *place.Connection, id string, message client.Content, rules session.TaskRules) error {
				request := client.ForkRequest{CheckpointID: checkpoint, SessionID: as, Input: message, Rules: rules, Tags: tags}
				return c.fork(ctx, e, id, request, &f)
			})
		}),
	}
	cmd.Flags().StringVarP(&checkpoint, "checkpoint", "c", "", "`entry`, or the id of a checkpoint, that is copied")
	cmd.Flags().StringVarP(&as, "session", "s", "", "`id` of the new session: letters, digits, _ and -")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, work.AboutTag)
	f.Register(cmd.Flags())
	return cmd
}

func (c *cli) fork(ctx context.Context, e *place.Connection, id string, request client.ForkRequest, f *work.Task) (err error) {
	if request.CheckpointID != "" {
		if request.CheckpointID, err = c.lists.CheckpointOf(ctx, e, id, request.CheckpointID); err != nil {
			return c.refused(ctx, e, id, err)
		}
	}
	forked, err := e.Fork(ctx, client.ForkParams{SessionID: id, Request: request, IdempotencyKey: f.Text})
	if err != nil {
		if about, _ := exit.About(err); about != id {
			return err // the new session's id is another one's
		}
		return c.refused(ctx, e, id, err)
	}
	c.Talk("Session %s is a fork of %s.", forked.SessionID, id)
	if forked.Replayed {
		c.Talk(work.Replayed)
		return c.drive(ctx, e, forked.SessionID, &f.Stay)
	}
	if forked.Status == session.StatusInterrupted { // a copy of what had ended, or was interrupted
		c.Talk("It rests, as the other one did there, until it is resumed: %s", c.saying("resume", forked.SessionID))
		if c.Form != screen.FormJSON {
			return nil
		}
		return c.taken(ctx, e, forked.SessionID)
	}
	return c.drive(ctx, e, forked.SessionID, &f.Stay)
}
