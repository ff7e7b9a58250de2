package list

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

// LinkCommand is the command link; its arguments, their completion and what is said where there is no
// session are the command line's, as for [Lists.ExportCommand].
func (l *Lists) LinkCommand(args cobra.PositionalArgs, complete cobra.CompletionFunc, none func(error, string) error) *cobra.Command {
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "link session [wait]",
		Short: "Print a link to an approval, for a phone or another browser",
		Long: `Print a link to an approval: a page that shows what is to be approved, with a
button to approve it and one to deny it. Opening the page decides nothing.

Whoever has the link may decide in your name, so treat it like a password. It
ends with the approval, or after a week, or when --expires says.

The wait may be left out where one approval is open. On a data file the link
leads to where dev served it last.`,
		Example: `  adjourn link SESSION
  adjourn link SESSION w2-1 --expires 1h`,
		Args:              args,
		ValidArgsFunction: complete,
		RunE: l.do(func(ctx context.Context, args []string) error {
			wait := ""
			if len(args) == 2 {
				wait = args[1]
				if wait == "" {
					return exit.Usagef("the wait is empty: its id is in what this prints: %s", l.Command("inbox"))
				}
			}
			return none(l.link(ctx, args[0], wait, lasts), args[0])
		}),
	}
	cmd.Flags().DurationVar(&lasts, "expires", 0, "`time` that the link lasts, 1s to 720h   (168h, or until the deadline)")
	return cmd
}

func (l *Lists) link(ctx context.Context, id, wait string, lasts time.Duration) error {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	if wait == "" {
		if wait, err = l.oneApproval(ctx, e, id); err != nil {
			return err
		}
	}
	var asked client.LinkRequest
	if lasts != 0 {
		asked.ExpiresInMillis = new(lasts.Milliseconds())
	}
	made, err := e.Link(ctx, client.LinkParams{SessionID: id, WaitID: wait, Request: asked})
	switch {
	case exit.CodeOf(err) == client.CodeLinksOff && !l.Remote():
		return exit.Refusef(client.CodeLinksOff, id, "nothing serves links to this data file yet. A server does, and makes their key: %s", l.Command("dev"))
	case err != nil:
		return err
	}
	if l.Form == screen.FormJSON {
		l.JSON(struct {
			client.Link
			Session string `json:"session"`
			Wait    string `json:"wait"`
		}{made, id, wait})
		return nil
	}
	l.Say("%s", screen.CleanLine(made.URL))
	if made.Decides {
		l.Talk("Whoever has this link may decide %s in your name, until %s.", wait, made.ExpiresAt.Local().Format("2006-01-02 15:04:05"))
	} else {
		l.Talk("It shows %s and does not decide it, for that needs more than a link.", wait)
	}
	return nil
}

// oneApproval is the id of the one open approval of a session.
func (l *Lists) oneApproval(ctx context.Context, e *place.Connection, id string) (string, error) {
	stands, err := e.Session(ctx, id, 0)
	if err != nil {
		return "", err
	}
	var open []string
	if stands.Pause != nil {
		for _, w := range stands.Pause.Pending {
			if w.Kind == session.WaitApproval && w.State == session.WaitOpen {
				open = append(open, w.WaitID)
			}
		}
	}
	switch len(open) {
	case 0:
		return "", exit.Refusef(client.CodeNothingToDecide, id, "no approval is open")
	case 1:
		return open[0], nil
	}
	return "", exit.Usagef("%d approvals are open: name one, such as %s", len(open), l.Command(place.TargetWait("link", id, open[0])...))
}
