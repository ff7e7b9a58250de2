// Package list lists sessions, what waits in them, what happened there, and the agents.
package list

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Config is what the lists are made with; all fields are required.
type Config struct {
	Screen *screen.Screen
	Place  *place.Place
	Now    func() time.Time
	// Do wraps a command's work.
	Do func(work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error
	// NoArgs refuses arguments, with advice.
	NoArgs func(advice string) cobra.PositionalArgs
	// CompleteAgents completes the names of agents.
	CompleteAgents cobra.CompletionFunc
	// Walk walks through the inbox with the person at the terminal, and reports whether it did.
	Walk func(ctx context.Context, q client.InboxParams) (walked bool, err error)
}

// Lists are the commands that list.
type Lists struct {
	*screen.Screen
	*place.Place
	now            func() time.Time
	do             func(work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error
	noArgs         func(advice string) cobra.PositionalArgs
	completeAgents cobra.CompletionFunc
	walk           func(ctx context.Context, q client.InboxParams) (walked bool, err error)
}

// New returns the lists of a command line.
func New(cfg Config) *Lists {
	return &Lists{Screen: cfg.Screen, Place: cfg.Place, now: cfg.Now, do: cfg.Do, noArgs: cfg.NoArgs, completeAgents: cfg.CompleteAgents, walk: cfg.Walk}
}

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
		return exit.Usagef("--limit %d: use 1 to 1000", p.limit)
	}
	return nil
}

// filter is one flag that keeps a list to some of it.
type filter struct {
	flag, about string
	value       *string
}

// filters are the flags that keep a list to some of it.
type filters []filter

func (all filters) register(cmd *cobra.Command) {
	for _, f := range all {
		cmd.Flags().StringVar(f.value, f.flag, "", f.about)
	}
}

// words are the flags that were given, for the command that prints the next page.
func (all filters) words() (words []string) {
	for _, f := range all {
		if *f.value != "" {
			words = append(words, "--"+f.flag, *f.value)
		}
	}
	return words
}

func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = string(word)
	}
	return out
}

// oneOf lists the words a flag takes: a, b or c.
func oneOf[T ~string](words []T) string {
	all := texts(words)
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// fault says of a refused page whose mistake it was.
func (p *page) fault(err error) error {
	if err != nil && exit.CodeOf(err) == client.CodeInvalidCursor {
		return exit.Usagef("--cursor %q is not one that was printed by this command", p.cursor)
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
	// ForkedFrom says of a fork what it is a copy of.
	ForkedFrom *session.Fork `json:"forkedFrom,omitempty"`
}

// SessionsCommand is the command sessions.
func (l *Lists) SessionsCommand() *cobra.Command {
	var p page
	q := client.SessionsParams{}
	var status string
	only := filters{
		{"status", "only sessions of this `status`: " + oneOf(session.Statuses()), &status},
		{"agent", "only sessions of this `agent`", &q.Agent},
		{"user", "only sessions that this `user` started", &q.User},
		{"tag", "only sessions with this `tag`", &q.Tag},
		{"root", "only this `session` and those that stem from it", &q.Root},
		{"forked-from", "only the forks of this `session`, by their ids; goes with --limit and --cursor alone", &q.ForkedFrom},
	}
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List sessions, the last changed first",
		Args:  l.noArgs("to list those of a status: --status suspended"),
		RunE: l.do(func(ctx context.Context, _ []string) error {
			q.Status = session.Status(status)
			return l.sessions(ctx, p, q, only.words())
		}),
	}
	p.register(cmd)
	only.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("agent", l.completeAgents)
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(texts(session.Statuses()), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (l *Lists) sessions(ctx context.Context, p page, q client.SessionsParams, only []string) error {
	if err := p.check(); err != nil {
		return err
	}
	if q.ForkedFrom != "" && len(only) > 2 {
		return exit.Usagef("--forked-from goes with --limit and --cursor alone")
	}
	q.Limit, q.Cursor = p.limit, p.cursor
	if q.Status == session.Status(session.OutcomePaused) { // the word that commands print of it
		q.Status = session.StatusSuspended
	}
	if status := q.Status; status != "" && !slices.Contains(session.Statuses(), status) {
		return exit.Usagef("--status %q: use %s", status, oneOf(session.Statuses()))
	}
	out := struct {
		Sessions []sessionRow `json:"sessions"`
		Cursor   string       `json:"cursor,omitempty"`
	}{Sessions: []sessionRow{}}
	err := l.read(ctx, func(e *place.Connection) error {
		found, err := e.Sessions(ctx, q)
		for _, h := range found.Items {
			out.Sessions = append(out.Sessions, sessionRow{
				Session: h.ID, Status: h.Status, Agent: h.Agent, Title: h.Title, Task: h.Task, CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, ForkedFrom: h.ForkedFrom,
			})
		}
		out.Cursor = found.Cursor
		return err
	})
	if err != nil {
		return p.fault(err)
	}
	if l.Form == screen.FormJSON {
		l.JSON(out)
		return nil
	}
	if len(out.Sessions) == 0 {
		l.noSessions(only != nil)
		return nil
	}
	l.Table(l.sessionRows(out.Sessions))
	l.more("sessions", out.Cursor, only)
	return nil
}

// sessionRows are the lines of sessions: as wide as the terminal, where there is one.
func (l *Lists) sessionRows(sessions []sessionRow) [][]string {
	rows := [][]string{{"SESSION", "STATUS", "AGENT", "CHANGED"}}
	for _, r := range sessions {
		rows = append(rows, []string{screen.CleanLine(r.Session), string(r.Status), screen.CleanLine(r.Agent), l.ago(r.UpdatedAt)})
	}
	about := func(title string) string { return screen.Short(title, 60) }
	if room := screen.Width(l.Stdout); room > 0 {
		for column := range rows[0] {
			widest := 0
			for _, row := range rows {
				widest = max(widest, screen.Columns(row[column]))
			}
			room -= widest + 2 // and the gap behind it
		}
		about = func(title string) string { return screen.Fit(title, max(room, 10)) }
	}
	rows[0] = append(rows[0], "ABOUT")
	for i, r := range sessions {
		rows[i+1] = append(rows[i+1], about(r.Title))
	}
	return rows
}

// noSessions says that there are no sessions, or none that a filter keeps.
func (l *Lists) noSessions(filtered bool) {
	start := l.Command("run", "--agent", "AGENT", "INPUT")
	switch {
	case l.NoData():
		l.Talk("No sessions: there is no data file %s. Start one: %s", l.DataPath(), start)
	case filtered:
		l.Talk("No such sessions in %s.", l.Where())
	default:
		l.Talk("No sessions in %s. Start one: %s", l.Where(), start)
	}
}

func (l *Lists) more(verb, cursor string, only []string) {
	if cursor != "" {
		l.Talk("There are more: %s", l.Command(append([]string{verb, "--cursor", cursor}, only...)...))
	}
}

// inboxRow is one line of the inbox.
type inboxRow struct {
	Session  string      `json:"session"`
	Agent    string      `json:"agent,omitempty"`
	OpenedAt time.Time   `json:"openedAt"`
	Wait     client.Wait `json:"wait"`
	// Command answers this wait when pasted, once a word in capitals in it is replaced.
	Command string `json:"command"`
	// elsewhere says that this program does not have the agent.
	elsewhere bool
}

// InboxCommand is the command inbox.
func (l *Lists) InboxCommand() *cobra.Command {
	var p page
	q := client.InboxParams{}
	var kind, risk string
	var older time.Duration
	only := filters{
		{"kind", "only waits of this `kind`: approval, question, input, client_tool, unknown or child", &kind},
		{"agent", "only waits of this `agent`", &q.Agent},
		{"tool", "only waits of this `tool`", &q.Tool},
		{"user", "only waits that this `user` may answer", &q.User},
		{"root", "only waits of this `session` and those that stem from it", &q.Root},
		{"text", "only waits with this `text` in their tool, arguments or question", &q.Text},
		{"risk", "only waits of this `risk`: low, medium or high", &risk},
	}
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List what waits for a person, with the commands that answer",
		Long: `List every open wait of every session, the soonest deadline first, each with a
command that answers it.

At a terminal it is a list to walk with j and k: Enter opens one, and there a
approves it, d rejects it with a reason, e changes its arguments in $EDITOR, g
delegates it, x extends it. No key counts within a moment of what it is about
appearing or changing. With --no-input, or into a pipe, the list is printed.`,
		Args: l.noArgs("to list only some: --kind, --agent, --tool, --user, --mine, --root, --older-than, --text or --risk"),
		RunE: l.do(func(ctx context.Context, _ []string) error {
			q.Kind, q.Risk = session.WaitKind(kind), session.Risk(risk)
			words := only.words()
			if q.Mine {
				words = append(words, "--mine")
			}
			switch {
			case older < 0:
				return exit.Usagef("--older-than %s: use a duration that has passed, as 2h", older)
			case older > 0:
				q.OpenedBefore, words = l.now().Add(-older), append(words, "--older-than", older.String())
			}
			return l.inbox(ctx, p, q, words)
		}),
	}
	p.register(cmd)
	only.register(cmd)
	cmd.Flags().BoolVar(&q.Mine, "mine", false, "only waits that you may answer")
	cmd.Flags().DurationVar(&older, "older-than", 0, "only waits that have been open for so long, as 90m or 24h")
	_ = cmd.RegisterFlagCompletionFunc("agent", l.completeAgents)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(texts(session.WaitKinds()), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (l *Lists) inbox(ctx context.Context, p page, q client.InboxParams, only []string) error {
	if err := p.check(); err != nil {
		return err
	}
	if q.Kind != "" && !slices.Contains(session.WaitKinds(), q.Kind) {
		return exit.Usagef("--kind %q: use %s", q.Kind, oneOf(session.WaitKinds()))
	}
	if p.cursor == "" {
		if walked, err := l.walk(ctx, q); walked || err != nil {
			return err
		}
	}
	q.Limit, q.Cursor = p.limit, p.cursor
	out := struct {
		Items []inboxRow `json:"items"`
		// Stored stands on the first page; StoredMore says that not every session was looked at.
		Stored     []storedRow `json:"stored,omitempty"`
		StoredMore bool        `json:"storedMore,omitempty"`
		Cursor     string      `json:"cursor,omitempty"`
	}{Items: []inboxRow{}}
	err := l.read(ctx, func(e *place.Connection) error {
		found, err := e.Inbox(ctx, q)
		agents := e.Agents()
		for _, w := range found.Items {
			out.Items = append(out.Items, inboxRow{
				Session: w.SessionID, Agent: w.Agent, OpenedAt: w.OpenedAt, Wait: w,
				Command: report.AnswerHint(l.Place, w.SessionID, w), elsewhere: agents != nil && !slices.Contains(agents, w.Agent),
			})
		}
		out.Cursor = found.Cursor
		if err == nil && q.Cursor == "" && !q.Mine && q.Text == "" && q.Risk == "" && q.OpenedBefore.IsZero() {
			narrow := q.Kind != "" || q.Tool != "" || q.User != ""
			out.Stored, out.StoredMore, err = l.stored(ctx, e, q, out.Items, out.Cursor == "" && !narrow)
		}
		return err
	})
	if err != nil {
		return p.fault(err)
	}
	if l.Form == screen.FormJSON {
		l.JSON(out)
		return nil
	}
	if len(out.Items) == 0 && len(out.Stored) == 0 {
		l.nothingWaits(only != nil)
	}
	l.sayItems(out.Items)
	l.sayStored(out.Stored, len(out.Items) > 0)
	if out.StoredMore {
		l.Talk("There are more suspended sessions than were looked at for answers that are only stored: %s", l.lookFurther(p, q, only))
	}
	l.more("inbox", out.Cursor, only)
	return nil
}

// nothingWaits says that the inbox is empty, or has nothing that a filter keeps.
func (l *Lists) nothingWaits(filtered bool) {
	switch {
	case l.NoData():
		l.Talk("Nothing waits: there is no data file %s.", l.DataPath())
	case filtered:
		l.Talk("Nothing of that kind waits in %s.", l.Where())
	default:
		l.Talk("Nothing waits for a person in %s.", l.Where())
	}
}

func (l *Lists) sayItems(items []inboxRow) {
	for i, row := range items {
		if i > 0 {
			l.Say("")
		}
		l.Say("%s  session %s, %s, %s", l.Bold(l.Stdout, report.Headline(row.Wait)), screen.CleanLine(row.Session), report.AgentName(row.Agent), l.ago(row.OpenedAt))
		l.Write(l.Stdout, report.Brief(row.Wait, l.now(), "  ", screen.Width(l.Stdout), len(items)))
		if _, whole := report.SumUp(row.Wait.Arguments); !whole && row.Wait.Question == nil {
			l.Say("  the whole: %s", l.Command("show", row.Session))
		}
		if row.Wait.Kind == session.WaitInput && row.Wait.Text != "" {
			l.Write(l.Stdout, screen.QuoteBlock(row.Wait.Text, "  ", screen.Width(l.Stdout)))
		}
		switch {
		case report.Late(row.Wait, l.now()):
			l.Say("  go on: %s", row.Command)
		case row.Wait.Kind == session.WaitApproval:
			l.Say("  approve%s: %s", report.OnlyOf(row.Wait), row.Command)
			l.Say("  reject%s:  %s", report.OnlyOf(row.Wait), l.Command(place.TargetWait("submit", row.Session, row.Wait.WaitID, "--reject")...))
		default:
			l.Say("  answer%s: %s", report.OnlyOf(row.Wait), row.Command)
		}
		if row.elsewhere {
			l.Say("  %s", report.Elsewhere(row.Agent))
		}
	}
}

// ago says how long ago something was.
func (l *Lists) ago(at time.Time) string { return report.Ago(l.now(), at) }

// read opens the engine for a command that only lists: where there is no data
// file there is nothing to list, and none is made.
func (l *Lists) read(ctx context.Context, list func(*place.Connection) error) error {
	e, err := l.OpenReading(ctx)
	if errors.Is(err, embedded.ErrNoData) {
		return nil
	}
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	return list(e)
}
