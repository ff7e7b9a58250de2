package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// waiting is how long a command stays with a session: until it rests, unless --wait says less.
type waiting struct {
	flags *pflag.FlagSet
	most  time.Duration
}

func (w *waiting) register(flags *pflag.FlagSet) {
	w.flags = flags
	flags.DurationVar(&w.most, "wait", 0, "stay for at most this `duration`, then exit 124; what runs then is interrupted,\nas by Ctrl-C, unless a server works on it; 0s leaves all work to others and exits 0\n(default: until it rests)")
}

func (w *waiting) limited() bool { return w.flags.Changed("wait") }

// none says that the command leaves all work to others: it is done once what it
// was asked for is written down.
func (w *waiting) none() bool { return w.limited() && w.most == 0 }

func (w *waiting) check() error {
	if w.most < 0 {
		return exit.Usagef("--wait %s: use a duration from 0s on, such as 30s or 5m", w.most)
	}
	return nil
}

// bound holds the store's wait for another process to the time given.
func (c *cli) bound(w *waiting) error {
	if err := w.check(); err != nil {
		return err
	}
	if w.limited() && w.most > 0 {
		c.Patience = min(w.most, place.LongestPatience)
	}
	return nil
}

// drive works on a session until it rests, asks where there is somebody to ask,
// and prints where the session stands in the end.
func (c *cli) drive(ctx context.Context, e *place.Connection, id string, w *waiting) error {
	if w.none() {
		return c.taken(ctx, e, id)
	}
	for {
		v, err := c.untilRest(ctx, e, id, w)
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
func (c *cli) untilRest(ctx context.Context, e *place.Connection, id string, w *waiting) (report.View, error) {
	work := ctx
	if w.limited() {
		var cancel context.CancelFunc
		work, cancel = context.WithTimeout(ctx, w.most)
		defer cancel()
	}
	defer c.sayStopping(ctx)()
	for {
		err := unlessOver(work, e.Drive(work, id))
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
		if v.Outcome != session.OutcomeRunning || work.Err() != nil {
			return v, nil
		}
		// It rested, and somebody else has made it go on.
	}
}

// sayStopping is whenStopped for work in this process, before which people may wait.
func (c *cli) sayStopping(ctx context.Context) (end func()) {
	if c.Remote() || c.Form == screen.FormJSON {
		return func() {}
	}
	return c.whenStopped(ctx, "Stopping; tools may finish for 5 s. Ctrl-C again stops at once.")
}

// whenStopped says a text as soon as ctx ends. What it returns ends that, and comes back
// when the text is said, or never will be.
func (c *cli) whenStopped(ctx context.Context, text string) (end func()) {
	said := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() {
		defer close(said)
		c.Talk("%s", text)
	})
	return func() {
		if !unsaid() {
			<-said
		}
	}
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

// unlessOver returns what broke the work. That its time was over, or that it was
// interrupted, is no error; but that another process held the data file is told.
func unlessOver(work context.Context, err error) error {
	if work.Err() != nil && (errors.Is(work.Err(), context.Canceled) || exit.CodeOf(err) != client.CodeStoreLocked) {
		return nil
	}
	return err
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
		c.Talk("Interrupted.")
		code = exit.Interrupted
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
		if exit.CodeOf(err) == client.CodeNotResumable {
			v.ResumeHint = c.nextTurn(id)
		}
	case session.OutcomePaused, session.OutcomeInterrupted, session.OutcomeFailed, session.OutcomeError:
	}
	report.Refuse(c.Screen, c.Place, v, err)
	return exit.Said(exit.Code("", err))
}

// maxNext is how long a message may be that stands in a printed command.
const maxNext = 200

// nextTurn is the command that goes on with a session that has come to its end: with
// the message that was given, if it can stand there.
func (c *cli) nextTurn(id string) string {
	message := c.message
	if message == "" || len(message) > maxNext || screen.CleanLine(message) != message {
		message = report.WordMessage
	}
	words := []string{"run", "--session", id}
	if strings.HasPrefix(message, "-") {
		words = append(words, "--")
	}
	return c.Command(append(words, message)...)
}
