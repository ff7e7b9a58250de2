package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Page selects one page of a list.
type Page struct {
	// Limit is how many items there are at most; 0 leaves it to the server.
	Limit int
	// Cursor of the page before; empty means the first.
	Cursor string
}

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	return q
}

// SessionsParams select sessions.
type SessionsParams struct {
	Page
	// Status keeps only sessions of that status; empty means all.
	Status session.Status
	// Agent, Root (the session they stem from), User (who started them) and Tag keep
	// only such sessions; empty means all.
	Agent, Root, User, Tag string
	// ForkedFrom keeps only the forks of this session; with it nothing else is given but the page.
	ForkedFrom string
}

// words sets the parameters that are not empty.
func words(q url.Values, all map[string]string) url.Values {
	for name, value := range all {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Sessions returns a page of sessions, the last moved first.
func (c *Client) Sessions(ctx context.Context, p SessionsParams) (Sessions, error) {
	q := words(p.query(), map[string]string{"status": string(p.Status), "agent": p.Agent, "root": p.Root, "user": p.User, "tag": p.Tag, "forkedFrom": p.ForkedFrom})
	var out Sessions
	err := c.send(ctx, request{method: http.MethodGet, path: "sessions", query: q}, &out)
	return out, err
}

// Messages returns a page of a session's messages, the oldest first.
func (c *Client) Messages(ctx context.Context, id string, p Page) (Messages, error) {
	return list[Messages](ctx, c, id, "messages", p.query(), 0)
}

// Runs returns a page of a session's runs, the oldest first.
func (c *Client) Runs(ctx context.Context, id string, p Page) (Runs, error) {
	return list[Runs](ctx, c, id, "runs", p.query(), 0)
}

// Checkpoints returns a page of a session's checkpoints, the oldest first.
func (c *Client) Checkpoints(ctx context.Context, id string, p Page) (Checkpoints, error) {
	return list[Checkpoints](ctx, c, id, "checkpoints", p.query(), 0)
}

// Waits returns a page of all a session waited for, in the order it was asked.
func (c *Client) Waits(ctx context.Context, id string, p Page) (Waits, error) {
	return list[Waits](ctx, c, id, "waits", p.query(), 0)
}

// AuditParams select lines of a session's audit.
type AuditParams struct {
	Page
	// Verify has all records of the session compared with each other.
	Verify bool
}

// Audit returns a page of what is recorded of a session's waits, and says whether its records are whole.
func (c *Client) Audit(ctx context.Context, id string, p AuditParams) (Audit, error) {
	q := p.query()
	if p.Verify {
		q.Set("verify", "true")
	}
	return list[Audit](ctx, c, id, "audit", q, 0)
}

// InboxParams select open waits.
type InboxParams struct {
	Page
	// Kind keeps only waits of that kind; empty means all.
	Kind session.WaitKind
	// Agent, Root (the session theirs stem from), Tool and User (who may answer) keep
	// only such waits; empty means all.
	Agent, Root, Tool, User string
	// Mine keeps only waits that the caller may answer.
	Mine bool
	// OpenedBefore keeps only waits that were opened before, Text those with it in their tool,
	// arguments, question or words, Risk those whose tool says so of the call. A page may then be short, even empty, though another follows.
	OpenedBefore time.Time
	Text         string
	Risk         session.Risk
}

// Inbox returns a page of the open waits of all sessions, the soonest deadline first.
func (c *Client) Inbox(ctx context.Context, p InboxParams) (Waits, error) {
	var out Waits
	q := words(p.query(), map[string]string{"kind": string(p.Kind), "agent": p.Agent, "root": p.Root, "tool": p.Tool, "user": p.User, "text": p.Text, "risk": string(p.Risk)})
	if p.Mine {
		q.Set("mine", "true")
	}
	if !p.OpenedBefore.IsZero() {
		q.Set("openedBefore", p.OpenedBefore.UTC().Format(time.RFC3339Nano))
	}
	err := c.send(ctx, request{method: http.MethodGet, path: "waits", query: q}, &out)
	return out, err
}

// EntriesParams select entries of a session's journal.
type EntriesParams struct {
	// After is the number of the last entry that is known.
	After int64
	// Limit is how many entries there are at most; 0 leaves it to the server.
	Limit int
	// Wait asks the server to hold the answer back until there is a later entry,
	// for so long at most, in whole seconds. It does not wait for a session that rests.
	Wait time.Duration
	// Stay waits for a session that rests too: for who watches what others do, or has
	// just told it to go on.
	Stay bool
}

// Entries returns a page of a session's journal.
func (c *Client) Entries(ctx context.Context, id string, p EntriesParams) (Entries, error) {
	q := Page{Limit: p.Limit}.query()
	q.Set("after", strconv.FormatInt(p.After, 10))
	if seconds := int(p.Wait / time.Second); seconds > 0 {
		q.Set("wait", strconv.Itoa(seconds))
	}
	if p.Stay {
		q.Set("stay", "true")
	}
	return list[Entries](ctx, c, id, "entries", q, p.Wait)
}

func list[T any](ctx context.Context, c *Client, id, what string, q url.Values, wait time.Duration) (T, error) {
	var out T
	path, err := of(id, what)
	if err != nil {
		return out, err
	}
	err = c.send(ctx, request{method: http.MethodGet, path: path, session: id, query: q, wait: wait}, &out)
	return out, err
}

// AllSessions goes through every page of Sessions, from p's cursor on.
func (c *Client) AllSessions(ctx context.Context, p SessionsParams) iter.Seq2[Summary, error] {
	return all(p.Page, func(page Page) ([]Summary, string, error) {
		p.Page = page
		found, err := c.Sessions(ctx, p)
		return found.Items, found.Cursor, err
	})
}

// AllMessages goes through every page of Messages. In place of a value that the
// server cannot send stands what [LeftOut] says.
func (c *Client) AllMessages(ctx context.Context, id string) iter.Seq2[llm.Message, error] {
	return all(Page{}, func(page Page) ([]llm.Message, string, error) {
		found, err := c.Messages(ctx, id, page)
		return found.Items, found.Cursor, err
	})
}

// AllRuns goes through every page of Runs.
func (c *Client) AllRuns(ctx context.Context, id string) iter.Seq2[Run, error] {
	return all(Page{}, func(page Page) ([]Run, string, error) {
		found, err := c.Runs(ctx, id, page)
		return found.Items, found.Cursor, err
	})
}

// AllCheckpoints goes through every page of Checkpoints.
func (c *Client) AllCheckpoints(ctx context.Context, id string) iter.Seq2[Checkpoint, error] {
	return all(Page{}, func(page Page) ([]Checkpoint, string, error) {
		found, err := c.Checkpoints(ctx, id, page)
		return found.Items, found.Cursor, err
	})
}

// AllWaits goes through every page of Waits.
func (c *Client) AllWaits(ctx context.Context, id string) iter.Seq2[Wait, error] {
	return all(Page{}, func(page Page) ([]Wait, string, error) {
		found, err := c.Waits(ctx, id, page)
		return found.Items, found.Cursor, err
	})
}

// AllInbox goes through every page of Inbox, from p's cursor on.
func (c *Client) AllInbox(ctx context.Context, p InboxParams) iter.Seq2[Wait, error] {
	return all(p.Page, func(page Page) ([]Wait, string, error) {
		p.Page = page
		found, err := c.Inbox(ctx, p)
		return found.Items, found.Cursor, err
	})
}

// all goes through pages until one has no cursor; an error is yielded last.
func all[T any](p Page, next func(Page) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		page := p // ranging over it again begins anew
		for {
			items, cursor, err := next(page)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if cursor == "" || cursor == page.Cursor {
				return
			}
			page.Cursor = cursor
		}
	}
}

const (
	// longestPoll is how long one request of Follow asks to be held back: less than
	// any gateway cuts off.
	longestPoll = 20 * time.Second
	// shortestPoll keeps a server that does not hold answers back from being asked
	// without a pause.
	shortestPoll = 500 * time.Millisecond
)

// Journal yields a session's entries that there are after the given one, oldest first.
// In place of a value that the server cannot send stands what [LeftOut] says.
func (c *Client) Journal(ctx context.Context, id string, after int64) iter.Seq2[journal.Entry, error] {
	return c.entries(ctx, id, after, false)
}

// Follow yields a session's entries after the given one as they are written, until
// the session rests: it is suspended, interrupted or ended. An error is yielded
// last, that of ctx included. Large values are as in Journal.
func (c *Client) Follow(ctx context.Context, id string, after int64) iter.Seq2[journal.Entry, error] {
	return c.entries(ctx, id, after, true)
}

// AwaitEntry waits until a session has an entry after the given one, whether or
// not it rests, or until ctx ends.
func (c *Client) AwaitEntry(ctx context.Context, id string, after int64) error {
	for {
		asked := time.Now()
		page, err := c.Entries(ctx, id, EntriesParams{After: after, Limit: 1, Wait: longestPoll, Stay: true})
		if err != nil || len(page.Items) > 0 {
			return err
		}
		if err := pause(ctx, shortestPoll-time.Since(asked)); err != nil {
			return err
		}
	}
}

func (c *Client) entries(ctx context.Context, id string, after int64, stay bool) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		p := EntriesParams{After: after}
		if stay {
			p.Wait = longestPoll
		}
		for {
			asked := time.Now()
			page, err := c.Entries(ctx, id, p)
			if err == nil && page.More && page.After <= p.After {
				err = fmt.Errorf("%w: entries after %d would be asked for again and again", ErrNotAdjourn, p.After)
			}
			if err != nil {
				yield(journal.Entry{}, err)
				return
			}
			for _, e := range page.Items {
				if !yield(e, nil) {
					return
				}
			}
			if !page.More && (!stay || page.Resting) {
				return
			}
			if early := shortestPoll - time.Since(asked); len(page.Items) == 0 && early > 0 {
				if err := pause(ctx, early); err != nil {
					yield(journal.Entry{}, err)
					return
				}
			}
			p.After = page.After
		}
	}
}
