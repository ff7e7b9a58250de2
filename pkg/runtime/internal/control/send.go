package control

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// SendRequest brings a message to a session, wherever it stands.
type SendRequest struct {
	Key     session.Key
	Message []llm.Part
	// Task that the message is for; 0 means the one that is present when the session is first read.
	Task int64
	// Start says that a session which has ended takes its next turn with the message.
	Start bool
	// By is who sends it.
	By answers.Caller
	// Record returns what remembers the request, together with what it did to an entry.
	Record func(seq int64, did any) ([]store.Item, error)
}

// Sent is what became of it.
type Sent struct {
	Outcome session.SendOutcome
	Task    int64
	// Seq is the entry that has the message; 0 where none has it yet.
	Seq int64
	// Mail is the id under which the message waits for the next step.
	Mail string
	// Wait that it answers.
	Wait string
}

// Send reads and writes once, as [Control.Stop] does. It writes what no other verb does; that a
// message answers a wait, or begins the next turn, is carried out by who asked, and is only said:
// with the wait, or with the entry that begins the turn.
func (c *Control) Send(ctx context.Context, p *SendRequest) (Sent, error) {
	head, newest, err := c.present(ctx, p.Key, &p.Task)
	if err != nil {
		return Sent{}, err
	}
	switch status := newest.Status; {
	case p.Task < head.Head.Task:
		return Sent{}, refusal.At(codes.SessionEnded, p.Key, status, "its task %d has ended. Its present task is %d", p.Task, head.Head.Task)
	case status.Ended():
		return sendEnded(p, newest)
	case status == session.StatusInterrupted:
		return Sent{}, refusal.At(codes.NotResumable, p.Key, status, "it is interrupted, and a message alone does not drive it on. Resume it with the message")
	case status == session.StatusSuspended:
		return c.sendWaiting(ctx, p, head, newest.Seq)
	}
	return c.putMail(ctx, p, head)
}

// sendEnded says what becomes of a message to a session that has ended.
func sendEnded(p *SendRequest, newest journal.Entry) (Sent, error) {
	status := newest.Status
	switch {
	case status == session.StatusFailed && newest.Failure.Aborted():
		return Sent{}, aborted(p.Key, status)
	case status == session.StatusFailed:
		return Sent{}, refusal.At(codes.NotResumable, p.Key, status, "it has failed, and takes no message. Retry it with the message")
	case !p.Start:
		return Sent{}, refusal.At(codes.SessionEnded, p.Key, status, "it is %s, and nobody reads a message. Send it with start to begin the next turn with it", status)
	}
	return Sent{Outcome: session.SendStarted, Task: newest.Task + 1, Seq: newest.Seq + 1}, nil
}

// putMail puts a message for the next step of a running task: in one transaction with HEAD, which
// counts it, and onto the revision of HEAD that was read. An entry with which the session would rest
// is refused by it. Its id is its number among the mail of the session, so that mail keeps its order
// whatever the clocks say. Whoever has the message for the next step takes it in; a retry that is put
// off is not brought forward.
func (c *Control) putMail(ctx context.Context, p *SendRequest, head store.Item) (Sent, error) {
	next := *head.Head
	next.MailCount++
	out := Sent{Outcome: session.SendQueued, Task: next.Task, Mail: fmt.Sprintf("m%010d", next.MailCount)}
	record, err := p.Record(next.StatusSeq, out)
	if err != nil {
		return Sent{}, err
	}
	mail := journal.Mail{ID: out.Mail, Message: llm.UserParts(p.Message), Who: p.By.Who, At: c.cfg.Now().UTC(), From: p.By.From}
	items := append([]store.Item{store.MailItem(mail, 0), store.HeadItem(next, head.Rev)}, record...)
	return out, c.cfg.Sessions.Update(ctx, p.Key, items)
}

// sendWaiting says which wait a message answers. Where nothing is open any more, the session goes on
// with the answers and, after them, the message. Otherwise the message abandons what waits, or is refused.
func (c *Control) sendWaiting(ctx context.Context, p *SendRequest, head store.Item, newest int64) (Sent, error) {
	waits, err := c.cfg.Sessions.WaitsAt(ctx, p.Key, head.Head.WaitsAt)
	if err != nil {
		return Sent{}, err
	}
	for _, item := range waits {
		if item.Wait.Wait.Kind == session.WaitInput && item.Wait.State == session.WaitOpen {
			return Sent{Outcome: session.SendAnswered, Task: p.Task, Wait: item.ID}, nil
		}
	}
	s, err := c.cfg.Sessions.LoadExisting(ctx, p.Key)
	if err != nil {
		return Sent{}, err
	}
	defer func() { c.cfg.Sessions.PutBack(s) }()
	if s.Version != newest {
		return Sent{}, movedOn(p.Key)
	}
	out := Sent{Outcome: session.SendAbandoned, Task: p.Task, Seq: s.Next()}
	waits, open, err := c.cfg.Sessions.ExpireOverdue(ctx, s)
	if err != nil {
		return Sent{}, err
	}
	if len(open) == 0 && !stored.StaysSuspended(stored.WaitRecords(waits)) {
		out.Outcome = session.SendQueued
	} else if err := answers.CheckAbandon(s, stored.WaitRecords(waits), p.By); err != nil {
		return Sent{}, err
	}
	return out, c.goOnWith(ctx, s, head, waits, out.Outcome == session.SendAbandoned, &Words{
		Message: p.Message, By: p.By, Record: func(seq int64) ([]store.Item, error) { return p.Record(seq, out) },
	})
}

// Words are what a session goes on with.
type Words struct {
	Message []llm.Part
	// By is who says so.
	By answers.Caller
	// Change changes the move; nil does not.
	Change func(*engine.Move)
	// Record returns what remembers the request that did so, with its entry.
	Record func(seq int64) ([]store.Item, error)
}

// Abandon goes on with a message, after an interruption or where the policy lets it abandon what is
// open. An error that is [store.ErrConflict] means that another writer was first.
func (c *Control) Abandon(ctx context.Context, s *session.Session, p *Words) error {
	head, err := c.cfg.Sessions.Head(ctx, s.Key)
	if err != nil {
		return err
	}
	waits, _, err := c.cfg.Sessions.ExpireOverdue(ctx, s)
	if err != nil {
		return err
	}
	if err := answers.CheckAbandon(s, stored.WaitRecords(waits), p.By); err != nil {
		return err
	}
	return c.goOnWith(ctx, s, head, waits, true, p)
}

// goOnWith commits one move: it takes the answers in, closes open waits and, where they are
// abandoned, the calls that have not run, and appends the message.
func (c *Control) goOnWith(ctx context.Context, s *session.Session, head store.Item, waits []store.Item, abandons bool, p *Words) error {
	taken, items := stored.TakeWaits(s, waits, s.Next(), c.cfg.StepBytes)
	record, err := p.Record(s.Next())
	if err != nil {
		return err
	}
	items = append(items, record...)
	var closed engine.StepOutcome
	if abandons {
		var ledgers []store.Item
		if closed, ledgers, err = c.cfg.Worker.CloseOpenCalls(ctx, s, len(items)); err != nil {
			return err
		}
		items = append(items, ledgers...)
	}
	m := engine.Resumed(s, taken, message(p.Message), closed.Results, c.stamp(p.By.Who, p.By.From))
	if p.Change != nil {
		p.Change(&m)
	}
	m.Entry.StateOps, m.Entry.Events, m.Entry.Calls = closed.StateOps, closed.Events, closed.Used.Runs
	return c.cfg.Sessions.Commit(ctx, s, &head, m, items)
}
