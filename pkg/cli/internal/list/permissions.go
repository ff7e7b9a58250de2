package list

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/session"
)

// PermissionsCommand is the command permissions, of one session: how it is completed, and what is said where
// there is none, is the command line's.
func (l *Lists) PermissionsCommand(complete cobra.CompletionFunc, none func(error, string) error) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "permissions {session | revoke session id}",
		Short: "List the standing permissions of a session, or revoke one",
		Long: `List the standing permissions that people gave in a session (submit --approve
--standing): which calls each covers, who gave it, until when, and whether it
counts. It ends with its time; going back, a fork, and a task that failed or was
stopped end all of them.

With the word revoke it takes one back: a step that begins later does not use
it, and somebody is asked instead.`,
		Example: `  adjourn permissions SESSION
  adjourn permissions revoke SESSION w2-1 --reason "ask me again"`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && args[0] != "":
				return nil
			case len(args) == 3 && args[0] == "revoke" && args[1] != "" && args[2] != "":
				return nil
			}
			return exit.Usagef("it takes a session; to revoke: permissions revoke SESSION ID")
		},
		ValidArgsFunction: complete,
		RunE: l.do(func(ctx context.Context, args []string) error {
			if len(args) == 3 {
				return none(l.revoke(ctx, args[1], args[2], reason), args[1])
			}
			if reason != "" {
				return exit.Usagef("--reason goes with revoke")
			}
			return none(l.permissions(ctx, args[0]), args[0])
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that is kept with revoke")
	return cmd
}

func (l *Lists) permissions(ctx context.Context, id string) error {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	found, err := e.Permissions(ctx, id)
	if err != nil {
		return err
	}
	if l.Form == screen.FormJSON {
		l.JSON(struct {
			Permissions []session.ShownPermission `json:"permissions"`
		}{found.Items})
		return nil
	}
	if len(found.Items) == 0 {
		l.Talk("It has no standing permission.")
	}
	for _, p := range found.Items {
		l.sayPermission(p)
	}
	return nil
}

func (l *Lists) revoke(ctx context.Context, id, permission, reason string) error {
	e, err := l.Open(ctx, true)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	revoked, err := e.RevokePermission(ctx, id, permission, reason)
	if err != nil {
		return err
	}
	if revoked.Repeated {
		l.Talk("It was revoked before: nothing was done again.")
	}
	if l.Form == screen.FormJSON {
		l.JSON(revoked.Permission)
		return nil
	}
	l.sayPermission(revoked.Permission)
	return nil
}

// sayPermission prints a permission: its id and whether it counts, what it covers, who gave it, who revoked it.
func (l *Lists) sayPermission(p session.ShownPermission) {
	const when = "2006-01-02 15:04 MST"
	in := l.now().Location()
	text := screen.CleanLine(p.ID) + "  " + screen.CleanLine(string(p.State)) + ", until " + p.Standing.Until.In(in).Format(when) + "\n"
	text += "  " + screen.CleanLine(strings.Join(p.Covers, "; ")) + "\n"
	text += "  given by " + screen.CleanLine(p.Who) + " at " + p.When.In(in).Format(when) + " from " + screen.CleanLine(p.From) + "\n"
	text += "  with the call " + screen.CleanLine(p.Tool+" "+string(p.Arguments)) + "\n"
	if r := p.Revoked; r != nil {
		text += "  revoked by " + screen.CleanLine(r.Who) + " at " + r.At.In(in).Format(when)
		if r.Reason != "" {
			text += ": " + screen.CleanLine(r.Reason)
		}
		text += "\n"
	}
	l.Write(l.Stdout, text)
}
