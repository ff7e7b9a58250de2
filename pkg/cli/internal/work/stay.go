package work

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
)

// Stay is how long a command stays with a session: until it rests, unless --wait says less.
type Stay struct {
	flags *pflag.FlagSet
	most  time.Duration
}

// Register adds the flag --wait.
func (s *Stay) Register(flags *pflag.FlagSet) {
	s.flags = flags
	flags.DurationVar(&s.most, "wait", 0, "stay for at most this `duration`, then exit 124; what runs then is cut off between\ntwo writes, unless a server works on it; 0s leaves all work to others and exits 0\n(default: until it rests)")
}

func (s *Stay) limited() bool { return s.flags.Changed("wait") }

// None says that the command leaves all work to others: it is done once what it
// was asked for is written down.
func (s *Stay) None() bool { return s.limited() && s.most == 0 }

// Bound refuses what is no time, and holds the store's wait for another process to
// the time given.
func (s *Stay) Bound(p *place.Place) error {
	if s.most < 0 {
		return exit.Usagef("--wait %s: use a duration from 0s on, such as 30s or 5m", s.most)
	}
	if s.limited() && s.most > 0 {
		p.Patience = min(s.most, place.LongestPatience)
	}
	return nil
}

// Within returns the context of the work, which ends when the time given is over.
func (s *Stay) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.limited() {
		return context.WithTimeout(ctx, s.most)
	}
	return ctx, func() {}
}

// SayStopping says, as soon as ctx ends, that the work in this process stops, before
// which people may wait. What it returns ends that, as that of whenStopped.
func SayStopping(ctx context.Context, s *screen.Screen, p *place.Place) (end func()) {
	if p.Remote() || s.Form == screen.FormJSON {
		return func() {}
	}
	return whenStopped(ctx, s, "Stopping; tools may finish for 5 s. Ctrl-C again stops at once.")
}

// whenStopped says a text as soon as ctx ends. What it returns ends that, and comes back
// when the text is said, or never will be.
func whenStopped(ctx context.Context, s *screen.Screen, text string) (end func()) {
	said := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() {
		defer close(said)
		s.Talk("%s", text)
	})
	return func() {
		if !unsaid() {
			<-said
		}
	}
}

// UnlessOver returns what broke the work. That its time was over, or that it was
// interrupted, is no error; but that another process held the data file is told.
func UnlessOver(work context.Context, err error) error {
	if work.Err() != nil && (errors.Is(work.Err(), context.Canceled) || exit.CodeOf(err) != client.CodeStoreLocked) {
		return nil
	}
	return err
}
