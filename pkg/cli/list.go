package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// page are the flags of commands that list.
type page struct {
	limit  int
	cursor string
}

func (p *page) register(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 50, "print at most this `number`, 1 to 1000")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "go on after a page that ended with this `cursor`")
}

func (p *page) check() error {
	if p.limit < 1 || p.limit > 1000 {
		return usage("--limit %d: use 1 to 1000", p.limit)
	}
	return nil
}

// fault says of a refused page whose mistake it was.
func (p *page) fault(err error) error {
	if err != nil && runtime.AsError(err).Code == runtime.CodeInvalidCursor {
		return usage("--cursor %q is not one that was printed by this command", p.cursor)
	}
	return err
}

// sessionRow is one line of sessions.
type sessionRow struct {
	Session   string         `json:"session"`
	Status    session.Status `json:"status"`
	Agent     string         `json:"agent"`
	Title     string         `json:"title,omitempty"`
	Task      int64          `json:"task"`
	CreatedAt time.Time      `json:"createdAt"`
	UpdatedAt time.Time      `json:"updatedAt"`
}

func (c *cli) sessionsCommand() *cobra.Command {
	var p page
	var status string
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List sessions, the last moved first",
		Args:  cobra.NoArgs,
		RunE: c.do(func(ctx context.Context, _ []string) error {
			return c.sessions(ctx, p, session.Status(status))
		}),
	}
	p.register(cmd)
	cmd.Flags().StringVar(&status, "status", "", "only sessions of this `status`: running, suspended, interrupted, completed, failed or cancelled")
	var words []string
	for _, s := range session.Statuses() {
		words = append(words, string(s))
	}
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) sessions(ctx context.Context, p page, status session.Status) error {
	if err := p.check(); err != nil {
		return err
	}
	if status != "" && !status.Ended() && status != session.StatusRunning && status != session.StatusSuspended && status != session.StatusInterrupted {
		return usage("--status %q: use running, suspended, interrupted, completed, failed or cancelled", status)
	}
	out := struct {
		Sessions []sessionRow `json:"sessions"`
		Cursor   string       `json:"cursor,omitempty"`
	}{Sessions: []sessionRow{}}
	err := c.look(ctx, func(e engine) error {
		found, err := e.Sessions(ctx, runtime.SessionsParams{Tenant: session.DefaultTenant, Status: status, Limit: p.limit, Cursor: p.cursor})
		for _, h := range found.Heads {
			out.Sessions = append(out.Sessions, sessionRow{
				Session: h.Key.ID, Status: h.Status, Agent: h.Agent, Title: h.Title, Task: h.Task, CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt,
			})
		}
		out.Cursor = found.Cursor
		return err
	})
	if err != nil {
		return p.fault(err)
	}
	if c.output == outputJSON {
		c.json(out)
		return nil
	}
	if len(out.Sessions) == 0 {
		c.nothing("sessions")
		return nil
	}
	rows := [][]string{{"SESSION", "STATUS", "AGENT", "MOVED", "ABOUT"}}
	for _, r := range out.Sessions {
		rows = append(rows, []string{cleanLine(r.Session), string(r.Status), cleanLine(r.Agent), c.ago(r.UpdatedAt), short(r.Title, 60)})
	}
	c.table(rows)
	c.more("sessions", out.Cursor)
	return nil
}

// nothing says that a list is empty, and where it looked.
func (c *cli) nothing(what string) {
	c.talk("No %s in %s. Start one: %s", what, c.place(), c.command("run", "--agent", "AGENT", "INPUT"))
}

func (c *cli) more(verb, cursor string) {
	if cursor != "" {
		c.talk("There are more: %s", c.command(verb, "--cursor", cursor))
	}
}

// inboxRow is one line of the inbox.
type inboxRow struct {
	Session  string              `json:"session"`
	Agent    string              `json:"agent,omitempty"`
	OpenedAt time.Time           `json:"openedAt"`
	Item     session.PendingItem `json:"-"`
	Wait     session.Wait        `json:"wait"`
	// Command answers this wait when pasted.
	Command string `json:"command"`
}

func (c *cli) inboxCommand() *cobra.Command {
	var p page
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List what waits for a person, in all sessions, with the command that answers each",
		Long:  `List every open wait of every session, the soonest deadline first, each with a command that answers it.`,
		Args:  cobra.NoArgs,
		RunE: c.do(func(ctx context.Context, _ []string) error {
			return c.inbox(ctx, p)
		}),
	}
	p.register(cmd)
	return cmd
}

func (c *cli) inbox(ctx context.Context, p page) error {
	if err := p.check(); err != nil {
		return err
	}
	out := struct {
		Items  []inboxRow `json:"items"`
		Cursor string     `json:"cursor,omitempty"`
	}{Items: []inboxRow{}}
	err := c.look(ctx, func(e engine) error {
		found, err := e.Inbox(ctx, runtime.InboxParams{Tenant: session.DefaultTenant, Limit: p.limit, Cursor: p.cursor})
		for _, item := range found.Items {
			pending := session.NewPendingItem(item.Record.Wait)
			out.Items = append(out.Items, inboxRow{
				Session: item.Key.ID, Agent: item.Record.Agent, OpenedAt: item.Record.Wait.OpenedAt, Wait: item.Record.Wait,
				Item: pending, Command: c.answerHint(item.Key.ID, pending),
			})
		}
		out.Cursor = found.Cursor
		return err
	})
	if err != nil {
		return p.fault(err)
	}
	if c.output == outputJSON {
		c.json(out)
		return nil
	}
	if len(out.Items) == 0 {
		c.talk("Nothing waits for a person in %s.", c.place())
		return nil
	}
	for i, row := range out.Items {
		if i > 0 {
			c.say("")
		}
		c.say("%s  session %s, %s, %s", c.bold(c.Stdout, headline(row.Item)), cleanLine(row.Session), who(row.Agent), c.ago(row.OpenedAt))
		c.write(c.Stdout, details(row.Item, "  ", width(c.Stdout)))
		if row.Item.Kind == session.WaitInput && row.Item.Text != "" {
			c.write(c.Stdout, quoteBlock(row.Item.Text, "  ", width(c.Stdout)))
		}
		if row.Item.Kind == session.WaitApproval {
			c.say("  approve: %s", row.Command)
			c.say("  reject:  %s", c.command(target("submit", row.Session, "--call", row.Item.WaitID, "--reject")...))
			continue
		}
		c.say("  answer: %s", row.Command)
	}
	c.more("inbox", out.Cursor)
	return nil
}

// table prints rows in columns.
func (c *cli) table(rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // a strings.Builder takes everything
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		c.write(c.Stdout, strings.TrimRight(line, " \n")+"\n")
	}
}

// ago says how long ago something was.
func (c *cli) ago(at time.Time) string {
	d := c.Now().Sub(at)
	if d < time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// span says a duration as people do, in its one or two largest units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		text := d.Round(time.Second).String()
		if minutes, whole := strings.CutSuffix(text, "m0s"); whole {
			return minutes + "m"
		}
		return text
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// compact returns JSON on one line of at most n characters.
func compact(raw json.RawMessage, n int) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return short(string(raw), n)
	}
	return short(plainAngles(b.String()), n)
}
