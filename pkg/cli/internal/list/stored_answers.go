package list

import (
	"context"
	"slices"
	"strconv"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	// listPage is how many a list is asked for at once, listPages how often it is asked.
	listPage, listPages = 1000, 5
	// manyStored is how many sessions are looked at one by one for answers that are only
	// stored, unless more are to be listed.
	manyStored = 200
)

// storedRow is a session that waits for nobody but for the command that goes on:
// its answers were only stored, or a deadline has passed.
type storedRow struct {
	Session string        `json:"session"`
	Agent   string        `json:"agent,omitempty"`
	Waits   []client.Wait `json:"waits"`
	// Command goes on when pasted; "" where this program has not the agent.
	Command string `json:"command,omitempty"`
}

// lists are what is there across sessions.
type lists interface {
	Sessions(ctx context.Context, p client.SessionsParams) (client.Sessions, error)
	Inbox(ctx context.Context, p client.InboxParams) (client.Waits, error)
}

// stored returns the sessions whose answers are only stored, p.Limit at most, and
// whether there may be more. A filter keeps those of which it keeps an answered wait.
// Of open is known that they wait for somebody; with complete, nothing else does.
func (l *Lists) stored(ctx context.Context, e *place.Connection, p client.InboxParams, open []inboxRow, complete bool) (rows []storedRow, more bool, err error) {
	heads, more, err := waitForNobody(ctx, e, p, open, complete)
	if err != nil {
		return nil, false, err
	}
	for i, head := range heads {
		if len(rows) == p.Limit || i == max(manyStored, p.Limit) {
			return rows, true, nil
		}
		v, err := report.Load(ctx, l.Place, e, head.ID)
		if err != nil || !onlyStored(v.Session) && !report.GoesOn(v.Session) {
			continue // it has moved on, or cannot be read: a list shows what it can
		}
		waits, err := e.Waits(ctx, head.ID)
		answered := report.Stored(waits)
		if err != nil || !slices.ContainsFunc(answered, kept(p)) {
			continue
		}
		if !onlyStored(v.Session) && (l.Remote() || !slices.ContainsFunc(answered, expired)) {
			continue // somebody is about to go on with it: a server, or who answered last
		}
		rows = append(rows, storedRow{Session: head.ID, Agent: head.Agent, Waits: answered, Command: v.ResumeHint})
	}
	return rows, more, nil
}

// StoredIn returns the sessions of a data file whose answers are only stored and whose
// agent this program has, [manyStored] at most: work leaves them as they are.
func StoredIn(ctx context.Context, e *place.Connection) (ids []string, err error) {
	heads, _, err := waitForNobody(ctx, e, client.InboxParams{}, nil, false)
	if err != nil {
		return nil, err
	}
	for _, head := range heads[:min(len(heads), manyStored)] {
		s, err := e.Session(ctx, head.ID, 0)
		if err == nil && onlyStored(s) && slices.Contains(e.Agents(), head.Agent) {
			ids = append(ids, head.ID)
		}
	}
	return ids, nil
}

// onlyStored reports whether a session rests though everything it waited for is answered.
func onlyStored(s client.Session) bool {
	return s.Outcome == session.OutcomePaused && s.Pause == nil
}

// expired reports whether a deadline ended a wait.
func expired(w client.Wait) bool { return w.State == session.WaitExpired }

// kept is whether the filter of an inbox keeps a wait that is not open any more.
func kept(p client.InboxParams) func(client.Wait) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	return func(w client.Wait) bool {
		return is(string(p.Kind), string(w.Kind)) && is(p.Tool, w.Tool) && (p.User == "" || len(w.Who) == 0 || w.Rule != nil && len(w.Rule.Roles) > 0 || slices.Contains(w.Who, p.User))
	}
}

// waitForNobody returns the suspended sessions, of p's agent and root, that are not in
// the inbox, and whether there may be more. No list holds them. To look at each suspended
// session costs two requests for each; to take those away that the inbox holds costs one
// for each 1,000, and leaves few to look at.
func waitForNobody(ctx context.Context, across lists, p client.InboxParams, open []inboxRow, complete bool) (heads []client.Summary, more bool, err error) {
	sessions := client.SessionsParams{Status: session.StatusSuspended, Agent: p.Agent, Root: p.Root, Page: client.Page{Limit: listPage}}
	for range listPages {
		page, err := across.Sessions(ctx, sessions)
		if err != nil {
			return nil, false, err
		}
		heads = append(heads, page.Items...)
		if sessions.Cursor = page.Cursor; page.Cursor == "" {
			break
		}
	}
	waits := map[string]bool{}
	takeAway := func() {
		heads = slices.DeleteFunc(heads, func(h client.Summary) bool { return waits[h.ID] })
	}
	for _, row := range open {
		waits[row.Session] = true
	}
	takeAway()
	inbox := client.InboxParams{Agent: p.Agent, Root: p.Root, Page: client.Page{Limit: listPage}}
	for n := 0; !complete && n < listPages && len(heads) > 0; n++ {
		page, err := across.Inbox(ctx, inbox)
		if err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			waits[item.SessionID] = true
		}
		takeAway()
		inbox.Cursor, complete = page.Cursor, page.Cursor == ""
	}
	return heads, sessions.Cursor != "", nil
}

// sayStored prints sessions whose answers are only stored, with the command that goes on.
func (l *Lists) sayStored(rows []storedRow, below bool) {
	for i, row := range rows {
		if i > 0 || below {
			l.Say("")
		}
		what := "answered, and only stored"
		if slices.ContainsFunc(row.Waits, expired) {
			what = "a deadline has passed"
		}
		l.Say("%s  session %s, %s", l.Bold(l.Stdout, what), screen.CleanLine(row.Session), report.AgentName(row.Agent))
		l.Write(l.Stdout, report.StoredLines(row.Waits, "  ", l.now()))
		if row.Command == "" {
			l.Say("  %s", report.Elsewhere(row.Agent))
			continue
		}
		l.Say("  go on: %s", row.Command)
	}
}

// lookFurther is the command that looks at more sessions, or at all that are suspended.
func (l *Lists) lookFurther(p page, q client.InboxParams, only []string) string {
	if p.limit < listPage {
		return l.Command(append([]string{"inbox", "--limit", strconv.Itoa(listPage)}, only...)...)
	}
	of := filters{{flag: "agent", value: &q.Agent}, {flag: "root", value: &q.Root}}
	return l.Command(append([]string{"sessions", "--status", string(session.StatusSuspended)}, of.words()...)...)
}
