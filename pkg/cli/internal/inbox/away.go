package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// awayAsked is what is asked of away.
type awayAsked struct {
	client.AwayRequest
	begins, until string
	list, end     bool
}

func (b *Inbox) awayCommand() *cobra.Command {
	var asked awayAsked
	cmd := &cobra.Command{
		Use:   "away",
		Short: "Say who answers in your place while you are away",
		Long: `Say who stands in for you while you are away, until when: they may answer what
waits for you by name, in your place, and both of you have one voice together.
It ends by itself. It replaces what you said before; --end takes it back.

Everybody says it of themselves. It needs a server that knows people apart.`,
		Example: `  adjourn away --to ben --until 2026-12-01
  adjourn away --to ben --begins 2026-12-20 --until 2027-01-07T08:00:00+01:00
  adjourn away --list
  adjourn away --end`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("this command takes no arguments: name who stands in for you with --to")
			}
			return nil
		},
		RunE: b.cfg.Do(func(ctx context.Context, _ []string) error { return b.away(ctx, asked) }),
	}
	cmd.Flags().StringVar(&asked.To, "to", "", "who stands in for you: the `person`, as the server knows them")
	cmd.Flags().StringVar(&asked.begins, "begins", "", "a `time` or a day from which on you are away; without it, now")
	cmd.Flags().StringVar(&asked.until, "until", "", "a `time` as 2026-12-01T08:00:00+01:00, or the day on which you are back")
	cmd.Flags().StringVar(&asked.Reason, "reason", "", "`text` that is kept with it")
	cmd.Flags().BoolVar(&asked.list, "list", false, "list who stands in for whom")
	cmd.Flags().BoolVar(&asked.end, "end", false, "say that you are back")
	return cmd
}

// check refuses flags that do not go together, and reads the times.
func (a *awayAsked) check() (err error) {
	sets := a.To != "" || a.until != "" || a.begins != "" || a.Reason != ""
	switch {
	case a.list && a.end, sets && (a.list || a.end):
		return exit.Usagef("one of them: --to PERSON --until TIME, --list, or --end")
	case a.list || a.end:
		return nil
	case a.To == "" || a.until == "":
		return exit.Usagef("say who stands in for you, and until when: --to PERSON --until TIME. Or --list, or --end")
	}
	if a.Until, err = timeOf("--until", a.until); err != nil || a.begins == "" {
		return err
	}
	a.Begins, err = timeOf("--begins", a.begins)
	return err
}

// timeOf reads a time, or a day, which begins here.
func timeOf(flag, text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		return day, exit.Usagef("%s %q: use a day as 2026-12-01, or a time as 2026-12-01T08:00:00+01:00", flag, text)
	}
	return day, nil
}

func (b *Inbox) away(ctx context.Context, asked awayAsked) error {
	if err := asked.check(); err != nil {
		return err
	}
	if asked.list {
		return b.listAway(ctx)
	}
	s := b.cfg.Screen
	e, err := b.cfg.Place.Open(ctx, true)
	if err != nil {
		return err
	}
	defer report.Close(s, b.cfg.Place, e)
	var changed client.AwayChanged
	if asked.end {
		changed, err = e.EndAway(ctx)
	} else {
		changed, err = e.SetAway(ctx, asked.AwayRequest)
	}
	switch {
	case err != nil:
		return err
	case s.Form == screen.FormJSON:
		s.JSON(changed)
	case changed.StandIn == nil:
		s.Say("Nobody stood in for you.")
	case asked.end:
		s.Say("%s does not stand in for %s any more.", screen.CleanLine(changed.StandIn.StandIn), screen.CleanLine(changed.StandIn.Person))
	default:
		s.Say("%s", standsIn(*changed.StandIn))
		if changed.Already {
			s.Talk("Nothing was done: that was so before.")
		}
	}
	return nil
}

func (b *Inbox) listAway(ctx context.Context) error {
	s := b.cfg.Screen
	e, err := b.cfg.Place.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(s, b.cfg.Place, e)
	away, err := e.Away(ctx)
	switch {
	case err != nil:
		return err
	case s.Form == screen.FormJSON:
		s.JSON(away)
		return nil
	case len(away.Items) == 0:
		s.Talk("Nobody is away.")
	}
	for _, item := range away.Items {
		line := standsIn(item)
		if item.Reason != "" {
			line += " " + screen.Short(item.Reason, 200)
		}
		s.Say("%s", line)
	}
	return nil
}

// standsIn says who stands in for whom.
func standsIn(s session.StandIn) string {
	return screen.Sprintf("%s stands in for %s from %s until %s.", screen.CleanLine(s.StandIn), screen.CleanLine(s.Person),
		s.Begins.Local().Format(time.DateTime), s.Until.Local().Format(time.DateTime))
}
