package list

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// NoticesCommand lists what was told outside, and tries a channel.
func (l *Lists) NoticesCommand() *cobra.Command {
	var p page
	cmd := &cobra.Command{
		Use:   "notices [test channel]",
		Short: "List what was told outside, and what became of it",
		Long: `List the notices of all sessions, the newest first: what each tells, and for
each channel whether it was sent, when it is tried again, or why it was given
up. Notices are written where a channel has its settings, and sent by dev and
work:

  ADJOURN_WEBHOOK_URL      address that notices are posted to
  ADJOURN_WEBHOOK_SECRET   whsec_ and the key they are signed with
  ADJOURN_SLACK_TOKEN      bot that posts them
  ADJOURN_SLACK_CHANNEL    id of the channel it posts to
  ADJOURN_SLACK_ARGUMENTS  true: cards show arguments, and approve those
  ADJOURN_SLACK_PEOPLE     who decides there, with ADJOURN_SLACK_SIGNING_SECRET

The others are in docs/notices.md.

With the word test and the name of a channel it sends one test message there,
with the settings of this machine.`,
		Example: `  adjourn notices
  adjourn notices test webhook`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 2 && args[0] == "test" {
				return nil
			}
			return exit.Usagef("%q: to list notices give no argument; to try a channel: notices test CHANNEL", strings.Join(args, " "))
		},
		RunE: l.do(func(ctx context.Context, args []string) error {
			if len(args) == 2 {
				return l.testChannel(ctx, args[1])
			}
			return l.notices(ctx, p)
		}),
	}
	p.register(cmd)
	return cmd
}

func (l *Lists) notices(ctx context.Context, p page) error {
	if err := p.check(); err != nil {
		return err
	}
	out := client.Notices{Items: []client.Notice{}}
	err := l.read(ctx, func(e *place.Connection) error {
		found, err := e.Notices(ctx, client.Page{Limit: p.limit, Cursor: p.cursor})
		out.Items, out.Cursor = append(out.Items, found.Items...), found.Cursor
		return err
	})
	if err != nil {
		return p.fault(err)
	}
	if l.Form == screen.FormJSON {
		l.JSON(out)
		return nil
	}
	if len(out.Items) == 0 {
		l.Talk("Nothing was told outside. Notices are written where a channel has its settings: %s", l.Command("help", "notices"))
		return nil
	}
	table := [][]string{{"WRITTEN", "SESSION", "TELLS", "CHANNEL", "STATE", "TRIES", "WHY"}}
	for _, n := range out.Items {
		tells := screen.CleanLine(string(n.Type))
		for _, w := range n.Waits {
			tells += " " + screen.CleanLine(w.ID)
		}
		for _, s := range n.Sends {
			table = append(table, []string{
				l.ago(n.At), screen.CleanLine(n.SessionID), tells, screen.CleanLine(s.Channel), l.sendState(s), strconv.Itoa(s.Tries), screen.CleanLine(s.Error),
			})
		}
	}
	l.Table(table)
	l.more("notices", out.Cursor, nil)
	return nil
}

// sendState says how far a send has come.
func (l *Lists) sendState(s client.NoticeSend) string {
	switch {
	case s.State == journal.NoticeGivenUp:
		return "given up"
	case s.State == journal.NoticePending && s.Next != nil && s.Next.After(l.now()):
		return "again in " + screen.Span(s.Next.Sub(l.now()))
	}
	return screen.CleanLine(string(s.State))
}

// testChannel sends a test message with the settings of this machine.
func (l *Lists) testChannel(ctx context.Context, channel string) error {
	if err := l.CheckHere("notices test"); err != nil {
		return err
	}
	settings, err := app.ReadSettings(l.Place.Env)
	if err != nil {
		return err
	}
	channels, err := settings.Notices.Open(l.now)
	if err != nil {
		return err
	}
	sender := notice.NewSender(notice.Config{Channels: channels, Now: l.now})
	names := sender.Names()
	if len(names) == 0 {
		return exit.Usagef("no channel has its settings here: %s", l.Command("help", "notices"))
	}
	if err := sender.Test(ctx, channel, app.NewID()); err != nil {
		for _, name := range names {
			if name == channel {
				return fmt.Errorf("%s: %w", channel, err)
			}
		}
		return exit.Usagef("channel %q: use %s", channel, strings.Join(names, ", "))
	}
	l.Say("%s took the test message.", channel)
	return nil
}
