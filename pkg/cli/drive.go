package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/pkg/cli/exit"
	"github.com/adjourn/adjourn/pkg/cli/place"
	"github.com/adjourn/adjourn/pkg/cli/report"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// waiting is how long a command stays with a session: until it rests, unless --wait says less.
type waiting struct {
	flags *pflag.FlagSet
	for_  time.Duration
}

func (w *waiting) register(flags *pflag.FlagSet) {
	w.flags = flags
	flags.DurationVar(&w.for_, "wait", 0, "stay for at most this `duration`, then exit 124; 0s leaves all work to others\n(default: until it rests)")
}

func (w *waiting) limited() bool { return w.flags.Changed("wait") }

func (w *waiting) check() error {
	if w.for_ < 0 {
		return exit.Usagef("--wait %s: use a duration from 0s on, such as 30s or 5m", w.for_)
	}
	return nil
}

// drive works on a session until it rests, asks where there is somebody to ask,
// and prints where the session stands in the end.
func (c *cli) drive(ctx context.Context, e place.Engine, k session.Key, w *waiting) error {
	for {
		workErr := c.work(ctx, e, k, w)
		m, err := c.stand(ctx, e, k)
		if err != nil {
			if workErr != nil {
				return workErr
			}
			return err
		}
		if workErr != nil && c.Remote() && exit.Class(workErr) == runtime.ClassUnavailable {
			c.Talk("The server was away for a while, and is back.")
			if workErr = nil; m.Outcome == session.OutcomeRunning {
				continue
			}
		}
		if workErr != nil {
			report.Refuse(c.Screen, c.Place, m, workErr)
			return exit.Said(exit.Code("", workErr))
		}
		if m.Outcome == session.OutcomeRunning && ctx.Err() == nil && !w.limited() {
			continue // it rested, and somebody else has made it go on
		}
		if m.Outcome == session.OutcomePaused && ctx.Err() == nil && c.person.There() {
			again, err := c.person.Ask(ctx, e, k, m)
			if err != nil {
				return err
			}
			if again {
				continue
			}
			if m, err = c.stand(ctx, e, k); err != nil {
				return err
			}
		}
		return c.rest(ctx, m)
	}
}

// work drives the session until it rests, the time given is over, or ctx ends;
// neither of the last two is an error here.
func (c *cli) work(ctx context.Context, e place.Engine, k session.Key, w *waiting) error {
	if w.limited() {
		if w.for_ == 0 {
			return nil
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.for_)
		defer cancel()
	}
	err := e.Drive(ctx, k)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stand returns the session's manifest, hint included, also after an interrupt.
func (c *cli) stand(ctx context.Context, e place.Engine, k session.Key) (session.Manifest, error) {
	m, err := e.Manifest(context.WithoutCancel(ctx), k)
	if err != nil {
		return m, err
	}
	m.ResumeHint = report.ResumeHint(c.Place, m)
	return m, nil
}

// rest prints the manifest of a session that is left alone now, and ends the command.
func (c *cli) rest(ctx context.Context, m session.Manifest) error {
	code := exit.Code(m.Outcome, nil)
	if m.Outcome == session.OutcomeRunning && ctx.Err() != nil {
		c.Talk("Interrupted.")
		code = exit.Interrupted
	}
	if c.person.Overtaken {
		code = exit.Conflict
	}
	report.Manifest(c.Screen, c.Place, m)
	report.Record(c.Screen, c.Place, m)
	return exit.Said(code)
}

// leave prints where a session stands that this command leaves as it is.
func (c *cli) leave(ctx context.Context, e place.Engine, k session.Key) error {
	m, err := c.stand(ctx, e, k)
	if err != nil {
		return err
	}
	return c.rest(ctx, m)
}

// refused prints an error about a session together with where that session stands.
func (c *cli) refused(ctx context.Context, e place.Engine, k session.Key, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var usage *exit.UsageError
	if !errors.As(err, &usage) || usage.Paste == "" {
		switch exit.Class(err) {
		case runtime.ClassConflict, runtime.ClassGone, runtime.ClassInvalid, runtime.ClassNotFound:
		case runtime.ClassForbidden, runtime.ClassUnavailable, runtime.ClassInternal:
			return err
		}
	}
	m, standErr := c.stand(ctx, e, k)
	if standErr != nil {
		return err
	}
	if m.Outcome == session.OutcomeRunning {
		m.ResumeHint = "" // somebody is at it
	}
	report.Refuse(c.Screen, c.Place, m, err)
	return exit.Said(exit.Code("", err))
}
