package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/cli/internal/work"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// drive works on a session until it rests, asks where there is somebody to ask,
// and prints where the session stands in the end.
func (c *cli) drive(ctx context.Context, e *place.Connection, id string, stay *work.Stay) error {
	if stay.None() {
		return c.taken(ctx, e, id)
	}
	for {
		v, err := c.untilRest(ctx, e, id, stay)
		if err != nil {
			return err
		}
		if v.Outcome == session.OutcomePaused && ctx.Err() == nil && c.person.There() {
			again, err := c.person.Ask(ctx, e, v.Session)
			if err != nil {
				return err
			}
			if again {
				c.did = "your answer is stored"
				continue
			}
			if v, err = report.Load(ctx, c.Place, e, id); err != nil {
				return err
			}
		}
		return c.rest(ctx, e, v)
	}
}

// untilRest works on a session until it rests, the time given is over, or ctx ends,
// and returns where it stands then.
func (c *cli) untilRest(ctx context.Context, e *place.Connection, id string, stay *work.Stay) (report.View, error) {
	within, cancel := stay.Within(ctx)
	defer cancel()
	defer work.SayStopping(ctx, c.Screen, c.Place)()
	for {
		err := work.UnlessOver(within, e.Drive(within, id))
		v, standErr := report.Load(ctx, c.Place, e, id)
		if standErr != nil {
			return v, cmp.Or(err, standErr)
		}
		if err != nil && c.Remote() && exit.Class(err) == client.ClassUnavailable {
			c.Talk("The server was away for a while, and is back.")
			if err = nil; v.Outcome == session.OutcomeRunning {
				continue
			}
		}
		if err != nil {
			report.Refuse(c.Screen, c.Place, v, c.unmanned(v, err))
			return v, exit.Said(c.code(err))
		}
		if v.Outcome == session.OutcomeRunning && ctx.Err() != nil && (!c.Remote() || c.wantsInterrupt(ctx, v.ID)) {
			return c.interrupted(ctx, e, v)
		}
		if v.Outcome != session.OutcomeRunning || within.Err() != nil {
			return v, nil
		}
		// It rested, and somebody else has made it go on.
	}
}

// wantsInterrupt asks what Ctrl-C means for a session that a server works on: it goes on there
// when nobody watches. A command that was terminated, or has no terminal, asks nobody.
func (c *cli) wantsInterrupt(ctx context.Context, id string) bool {
	if errors.Is(context.Cause(ctx), errTerminated) || !c.person.There() {
		return false
	}
	return c.person.WantsInterrupt(context.WithoutCancel(ctx), id)
}

// interrupted interrupts the session that this command has worked on, or watched, until Ctrl-C, so
// that nothing but a resume goes on with it: not the next work, not a server on the same data file.
func (c *cli) interrupted(ctx context.Context, e *place.Connection, v report.View) (report.View, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stopWait)
	defer cancel()
	if _, err := e.Interrupt(ctx, client.StopParams{SessionID: v.ID, Request: client.StopRequest{Task: v.Task}, Wait: stopWait}); err != nil {
		if exit.Class(err) == client.ClassConflict { // it has ended
			return report.Load(ctx, c.Place, e, v.ID)
		}
		c.Complain("it could not be interrupted, and goes on when somebody works on it: %v", err)
		return v, nil
	}
	c.told = true
	return report.Load(ctx, c.Place, e, v.ID)
}

// unmanned says of a session whose agent this program has not what became of what was
// brought: it is stored, and nobody here goes on with it.
func (c *cli) unmanned(v report.View, err error) error {
	code := exit.CodeOf(err)
	if c.Remote() && place.AgentMissing(v.Session) && (code == client.CodeUnknownAgent || code == client.CodeAgentNotOffered) {
		text := report.NotServed(c.Place, v.Session)
		if c.did != "" {
			text = c.did + ", and nobody goes on with it here: " + text
		}
		return &exit.RefusalError{Code: code, Session: v.ID, Cause: err, Message: text}
	}
	if code != client.CodeUnknownAgent || c.did == "" {
		return err
	}
	return &exit.RefusalError{Code: client.CodeUnknownAgent, Session: v.ID, Cause: err, Message: fmt.Sprintf(
		"%s, but nobody goes on with it here: its agent %q is not in this program. Let the program that has it work or resume it", c.did, v.Agent)}
}

// taken ends a command that only writes down what it was asked for. Where the
// session stands is in the manifest, and what it does next is no outcome of this.
func (c *cli) taken(ctx context.Context, e *place.Connection, id string) error {
	v, err := report.Load(ctx, c.Place, e, id)
	if err != nil {
		return err
	}
	c.tell(ctx, e, v)
	return nil
}

// tell prints where a session stands, and keeps the pause file true. What was answered
// of a pause is asked for where it is read by a person.
func (c *cli) tell(ctx context.Context, e *place.Connection, v report.View) {
	var answered []client.Wait
	if v.Outcome == session.OutcomePaused && c.Form != screen.FormJSON {
		if waits, err := e.Waits(context.WithoutCancel(ctx), v.ID); err == nil { // the pause is told without them, too
			answered = report.Stored(waits)
			for _, line := range report.AskedAgain(waits) {
				c.Talk("%s", line)
			}
		}
	}
	report.Print(c.Screen, c.Place, v, answered)
	report.Record(c.Screen, c.Place, v)
}

// rest prints the manifest of a session that is left alone now, and ends the command.
func (c *cli) rest(ctx context.Context, e *place.Connection, v report.View) error {
	code := exit.Code(v.Outcome, nil)
	if v.Outcome == session.OutcomeRunning && ctx.Err() != nil {
		switch {
		case !c.Remote():
			c.Talk("Interrupted.")
		case c.told:
			c.Talk("Session %s has not stopped yet. Its worker was told; a tool may take some seconds to end.", v.ID)
		default:
			c.Talk("Stopped watching. To stop the session itself: %s", c.Command(place.Target("interrupt", v.ID)...))
		}
		code = exit.Interrupted
	}
	if v.Outcome == session.OutcomeInterrupted && ctx.Err() == nil && c.did != "" {
		c.Talk("Somebody has interrupted it: %s, and nothing goes on until somebody resumes it.", c.did)
	}
	if c.person.Overtaken {
		code = exit.Conflict
	}
	v.CutOff = report.CutOff(ctx, e, v)
	c.tell(ctx, e, v)
	return exit.Said(code)
}

// leave prints where a session stands that this command leaves as it is.
func (c *cli) leave(ctx context.Context, e *place.Connection, id string) error {
	v, err := report.Load(ctx, c.Place, e, id)
	if err != nil {
		return err
	}
	return c.rest(ctx, e, v)
}

// refused prints an error about a session together with where that session stands.
func (c *cli) refused(ctx context.Context, e *place.Connection, id string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var usage *exit.UsageError
	if !errors.As(err, &usage) || usage.Paste == "" {
		switch exit.Class(err) {
		case client.ClassConflict, client.ClassGone, client.ClassInvalid, client.ClassNotFound:
		case client.ClassForbidden, client.ClassUnavailable, client.ClassInternal:
			return err
		}
	}
	v, standErr := report.Load(ctx, c.Place, e, id)
	if standErr != nil {
		return err
	}
	switch v.Outcome {
	case session.OutcomeRunning:
		if c.Remote() || !report.GoesOn(v.Session) {
			v.ResumeHint = "" // somebody is at it
		}
	case session.OutcomeCompleted, session.OutcomeCancelled:
		if code := exit.CodeOf(err); code == client.CodeNotResumable || code == client.CodeSessionEnded && c.message != "" {
			v.ResumeHint = c.nextTurn(id)
		}
	case session.OutcomeInterrupted:
		if exit.CodeOf(err) == client.CodeNotResumable && c.message != "" {
			v.ResumeHint = c.saying("resume", id)
		}
	case session.OutcomeFailed:
		v.Message = c.sayable()
	case session.OutcomePaused, session.OutcomeError:
	}
	report.Refuse(c.Screen, c.Place, v, err)
	return exit.Said(exit.Code("", err))
}

// maxNext is how long a message may be that stands in a printed command.
const maxNext = 200

// nextTurn is the command that goes on with a session that has come to its end: with
// the message that was given, if it can stand there.
func (c *cli) nextTurn(id string) string { return c.saying("run", "--session", id) }

// sayable is the message that was given, if it can stand in a printed command.
func (c *cli) sayable() string {
	if len(c.message) > maxNext || screen.CleanLine(c.message) != c.message {
		return ""
	}
	return c.message
}

// saying is a command with the message that was given.
func (c *cli) saying(words ...string) string {
	message := cmp.Or(c.sayable(), report.WordMessage)
	if strings.HasPrefix(message, "-") {
		words = append(words, "--")
	}
	return c.Command(append(words, message)...)
}
