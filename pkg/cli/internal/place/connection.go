package place

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Connection is how a command reaches the sessions of a place: through the client of the
// HTTP API, whose handler is behind a server or, for a data file, in this process. It is
// for one command: it remembers up to which entry it has seen a session. It is not safe
// for concurrent use.
type Connection struct {
	*client.Client
	// app has the data file; nil behind a server.
	app *embedded.App
	// onEntry is told each entry of a session that a server works on.
	onEntry func(*journal.Entry)
	// onHalt is told of a halt that holds a session which is waited for; nil where it is told
	// otherwise.
	onHalt func(client.Halt)
	seen   map[string]int64
	// told holds the entry after which a session was told to go on, though until
	// its worker comes it looks as if it rested.
	told map[string]int64
	// asked is when a session was driven last.
	asked map[string]time.Time
	// stood is what a verb answered of a session, until it is driven.
	stood map[string]client.Session
}

const (
	// between is how long it takes at least from one drive of a session to the next. A
	// server may say in one breath that it rests and that it goes on.
	between = 500 * time.Millisecond
	// lookSoon and lookEvery are how long a session is waited for until it is looked, at
	// first and then again, whether the server has its agent.
	lookSoon, lookEvery = 2 * time.Second, 20 * time.Second
	// startWithin is how long a session may take to go on that was told to.
	startWithin = time.Minute
	// maxWaits and maxEntries are how many of a session are taken in: a server could
	// name more and more without end.
	maxWaits, maxEntries = 100_000, 1_000_000
)

// newConnection speaks to a server; onEntry is told of the sessions it works on.
func newConnection(c *client.Client, onEntry func(*journal.Entry)) *Connection {
	return &Connection{Client: c, onEntry: onEntry, seen: map[string]int64{}, told: map[string]int64{}, asked: map[string]time.Time{}, stood: map[string]client.Session{}}
}

// Over connects to a data file that is open: in this process, as the user of the command.
func (p *Place) Over(a *embedded.App) (*Connection, error) {
	links, err := dev.KeysBeside(p.DataPath()).LinksOf(a.Settings)
	if err != nil {
		p.Log().Warn("no links to this data file", "error", err) // all else goes on
	}
	handler, err := httpapi.New(httpapi.Config{
		Runtime: a.Runtime, Links: links, InProcess: true, MaxBody: math.MaxInt64,
		Authenticate: func(*http.Request) (httpapi.Caller, error) {
			return httpapi.Caller{Tenant: session.DefaultTenant, Who: p.Who, From: "cli", OneUser: true, Operator: true}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	c := newConnection(client.Over(handler), nil)
	c.app = a
	return c, nil
}

// Start begins a session, or its next turn. Replayed is told only of a key the caller
// gave: the repeats of the client are not the caller's.
func (c *Connection) Start(ctx context.Context, p client.StartParams) (client.Started, error) {
	out, err := c.Client.Start(ctx, p)
	if err != nil {
		return out, err
	}
	c.seen[out.SessionID] = out.Entry.Seq - 1
	c.stood[out.SessionID] = client.Session{} // a start checks the agent
	out.Replayed = out.Replayed && p.IdempotencyKey != ""
	return out, nil
}

// Submit answers one wait.
func (c *Connection) Submit(ctx context.Context, p client.SubmitParams) (client.Submitted, error) {
	out, err := c.Client.Submit(ctx, p)
	if err == nil {
		c.stoodAt(p.SessionID, out.Session)
	}
	return out, err
}

// Resume goes on with a session. Replayed as in Start.
func (c *Connection) Resume(ctx context.Context, p client.ResumeParams) (client.Resumed, error) {
	out, err := c.Client.Resume(ctx, p)
	if err != nil {
		return out, err
	}
	if out.After > 0 {
		c.told[p.SessionID] = out.After
	}
	return c.began(p.SessionID, out, p.IdempotencyKey), nil
}

// Retry tries again what has failed. Replayed as in Start.
func (c *Connection) Retry(ctx context.Context, p client.RetryParams) (client.Resumed, error) {
	out, err := c.Client.Retry(ctx, p)
	if err != nil {
		return out, err
	}
	return c.began(p.SessionID, out, p.IdempotencyKey), nil
}

// began remembers where a session stood, and the task that has begun from a checkpoint, if any.
func (c *Connection) began(id string, out client.Resumed, key string) client.Resumed {
	c.stoodAt(id, out.Session)
	if out.Entry != nil {
		c.seen[id] = out.Entry.Seq - 1
	}
	out.Replayed = out.Replayed && key != ""
	return out
}

// Fork begins a session of its own from a checkpoint of another one. Replayed as in Start.
func (c *Connection) Fork(ctx context.Context, p client.ForkParams) (client.Forked, error) {
	out, err := c.Client.Fork(ctx, p)
	if err == nil {
		out.Replayed = out.Replayed && p.IdempotencyKey != ""
		c.seen[out.SessionID] = out.Entry.Seq - 1
		c.stood[out.SessionID] = client.Session{} // a fork checks the agent
	}
	return out, err
}

// Send brings a message to a session. Replayed as in Start.
func (c *Connection) Send(ctx context.Context, p client.SendParams) (client.Sent, error) {
	out, err := c.Client.Send(ctx, p)
	if err != nil {
		return out, err
	}
	if out.Outcome == client.SendStarted {
		c.seen[out.SessionID] = out.Seq - 1
	}
	c.stoodAt(p.SessionID, out.Session)
	out.Replayed = out.Replayed && p.IdempotencyKey != ""
	return out, nil
}

// stoodAt remembers where a session stood when this command met it. What was written
// since it was last told of is told next.
func (c *Connection) stoodAt(id string, s *client.Session) {
	if s == nil {
		return
	}
	c.stood[id] = *s
	if _, known := c.seen[id]; !known {
		c.seen[id] = s.Version
	}
}

// Waits returns every wait a session opened, in order, with what became of it.
func (c *Connection) Waits(ctx context.Context, id string) ([]client.Wait, error) {
	var all []client.Wait
	for wait, err := range c.AllWaits(ctx, id) {
		if err == nil && len(all) == maxWaits {
			err = fmt.Errorf("%w: it names more than %d waits of one session", client.ErrNotAdjourn, maxWaits)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, wait)
	}
	return all, nil
}

// Entries returns every entry of a session, oldest first.
func (c *Connection) Entries(ctx context.Context, id string) ([]journal.Entry, error) {
	var all []journal.Entry
	for entry, err := range c.Journal(ctx, id, 0) {
		if err == nil && len(all) == maxEntries {
			err = fmt.Errorf("%w: it has more than %d entries of one session", client.ErrNotAdjourn, maxEntries)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, entry)
	}
	return all, nil
}

// Drive stays with a session until it rests, or until ctx ends. With a data file this
// process works on it; a server works on it either way, and its progress is told.
func (c *Connection) Drive(ctx context.Context, id string) error {
	after, told := c.told[id]
	delete(c.told, id)
	if c.app != nil {
		key := session.Key{Tenant: session.DefaultTenant, ID: id}
		return c.app.Runtime.DriveAfter(ctx, key, c.app.Only(key), after)
	}
	if last, again := c.asked[id]; again {
		select {
		case <-time.After(between - time.Since(last)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.asked[id] = time.Now()
	if err := c.served(ctx, id); err != nil {
		return err
	}
	if told {
		if err := c.awaitStart(ctx, id, after); err != nil {
			return err
		}
	}
	following, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watchServed(following, id, stop)
	}()
	defer func() {
		stop(nil)
		<-watched
	}()
	for entry, err := range c.Follow(following, id, c.seen[id]) {
		if err != nil && ctx.Err() == nil && following.Err() != nil {
			return context.Cause(following)
		}
		if err != nil {
			return err
		}
		c.seen[id] = entry.Seq
		c.onEntry(&entry)
	}
	return nil
}

// watchServed stops waiting for a session that turns out not to be served: while a worker
// finds out that it lacks the agent, it looks as if the worker was at work.
func (c *Connection) watchServed(ctx context.Context, id string, stop context.CancelCauseFunc) {
	for pause := lookSoon; ; pause = lookEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		s, err := c.Session(ctx, id, 0)
		if err == nil && AgentMissing(s) {
			stop(notServed(s))
			return
		}
		if err == nil && s.Halted != nil && c.onHalt != nil {
			c.onHalt(*s.Halted)
		}
	}
}

// served refuses to wait for a session whose agent the server does not have: it stores
// what the session is told, and none of its workers goes on.
func (c *Connection) served(ctx context.Context, id string) error {
	s, known := c.stood[id]
	if !known {
		var err error
		if s, err = c.Session(ctx, id, 0); err != nil {
			return err
		}
		c.stoodAt(id, &s)
	}
	delete(c.stood, id)
	if AgentMissing(s) {
		return notServed(s)
	}
	return nil
}

func notServed(s client.Session) error {
	return exit.Refusef(client.Code(s.ResumeCode), s.ID, "%s", s.ResumeReason)
}

// AgentMissing reports whether what answered says that it does not have the agent of a
// session, or does not offer it.
func AgentMissing(s client.Session) bool {
	code := client.Code(s.ResumeCode)
	return code == client.CodeUnknownAgent || code == client.CodeAgentNotOffered
}

// awaitStart waits until a session that was told to go on has done so. One that
// does not in all that time rests after all: what told it may have been lost.
func (c *Connection) awaitStart(ctx context.Context, id string, after int64) error {
	waiting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	err := c.AwaitEntry(waiting, id, after)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// Agents names the agents there are; nil where this program cannot know.
func (c *Connection) Agents() []string {
	if c.app == nil {
		return nil
	}
	return c.app.Registry.Names()
}

// Tool returns the definition of an agent's tool, where this program has it.
func (c *Connection) Tool(agent, name string) (tool.Tool, bool) {
	if c.app == nil {
		return tool.Tool{}, false
	}
	return c.app.Registry.Tool(agent, name)
}

// Close gives the data file, or connections, back.
func (c *Connection) Close() error {
	c.Client.Close()
	if c.app == nil {
		return nil
	}
	return c.app.Close()
}

// progress tells an entry as a worker of this process would.
func (p *Place) progress(e *journal.Entry) { p.Screen.Entry(runtime.NewProgress(e)) }
