package control

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// StopRequest asks a task to stop.
type StopRequest struct {
	Key    session.Key
	Kind   journal.SignalKind
	Reason string
	// Task that is to stop; 0 means the present one.
	Task int64
	// Who asks, and from where.
	Who, From string
	// Record returns what remembers the request, together with what it did to an entry.
	Record func(seq int64, did any) ([]store.Item, error)
}

// Stopped is what became of it.
type Stopped struct {
	Outcome session.StopOutcome
	Task    int64
	Status  session.Status
}

// signal is what the request leaves on HEAD, or in the entry that stops the task.
func (c *Control) signal(p StopRequest, task int64) journal.Signal {
	return journal.Signal{ID: c.cfg.NewID(), Task: task, Kind: p.Kind, Reason: p.Reason, Who: p.Who, At: c.cfg.Now().UTC(), From: p.From}
}

// SendAgain sends for a task that a signal was left for, if it is put off still: who left it may
// have died before it could.
func (c *Control) SendAgain(ctx context.Context, key session.Key, task int64) error {
	head, err := c.cfg.Sessions.Head(ctx, key)
	if err != nil || head.Head.Signal == nil || head.Head.Signal.Task != task {
		return err
	}
	newest, err := c.cfg.Sessions.Newest(ctx, *head.Head)
	if err != nil {
		return err
	}
	return c.sendSignalled(ctx, key, newest)
}

// Stop reads and writes once. An error that is [store.ErrConflict] means that another writer was
// first.
func (c *Control) Stop(ctx context.Context, p StopRequest) (Stopped, error) {
	head, err := c.cfg.Sessions.Head(ctx, p.Key)
	if err != nil {
		return Stopped{}, err
	}
	h := head.Head
	if p.Task > h.Task {
		return Stopped{}, refusal.At(codes.InvalidInput, p.Key, h.Status, "it has no task %d: its present one is %d", p.Task, h.Task)
	}
	newest, err := c.cfg.Sessions.Newest(ctx, *h)
	if err != nil {
		return Stopped{}, err
	}
	switch status := newest.Status; {
	case newest.Task != h.Task || status != session.StatusRunning && newest.Seq != h.StatusSeq:
		return Stopped{}, fmt.Errorf("session %s: it moved while it was read: %w", p.Key, store.ErrConflict)
	case status.Ended(), p.Task != 0 && p.Task < h.Task:
		return c.stopEnded(ctx, p, head, newest)
	case status == session.StatusInterrupted && p.Kind == journal.SignalInterrupt:
		return c.stopNothing(ctx, p, newest, newest.Task)
	case status == session.StatusSuspended, status == session.StatusInterrupted:
		return c.stopResting(ctx, p, newest.Seq)
	}
	out := Stopped{Outcome: session.StopDone, Task: h.Task, Status: endOf(p.Kind)}
	if there := h.Signal; there != nil && there.Task == h.Task && there.Kind.Strength() > p.Kind.Strength() {
		out.Status = endOf(there.Kind)
	}
	record, err := p.Record(newest.Seq+1, out)
	if err != nil {
		return Stopped{}, err
	}
	if h.Lease.Live(c.cfg.Now(), newest.Seq, newest.KeepsLease) {
		return c.leaveSignal(ctx, p, head, newest)
	}
	is, err := c.cfg.Worker.Stop(ctx, p.Key, newest.Seq, c.signal(p, h.Task), record)
	if err == nil && is == "" {
		return c.leaveSignal(ctx, p, head, newest)
	}
	out.Status = is
	return out, err
}

// endOf is the status that a signal leads to.
func endOf(kind journal.SignalKind) session.Status {
	switch kind {
	case journal.SignalInterrupt:
		return session.StatusInterrupted
	case journal.SignalCancel:
		return session.StatusCancelled
	case journal.SignalAbort:
	}
	return session.StatusFailed
}

// stopEnded answers a request to stop a task that has ended.
func (c *Control) stopEnded(ctx context.Context, p StopRequest, head store.Item, newest journal.Entry) (Stopped, error) {
	if p.Kind != journal.SignalInterrupt {
		task := p.Task
		if task == 0 {
			task = head.Head.Task
		}
		return c.stopNothing(ctx, p, newest, task)
	}
	if newest.Status.Ended() && (p.Task == 0 || p.Task == head.Head.Task) {
		return Stopped{}, refusal.At(codes.SessionEnded, p.Key, newest.Status, "it is %s: there is nothing to interrupt", newest.Status)
	}
	return Stopped{}, refusal.At(codes.SessionEnded, p.Key, newest.Status, "its task %d has ended: there is nothing to interrupt. Its present task is %d", p.Task, head.Head.Task)
}

// stopNothing remembers that a request had nothing to do.
func (c *Control) stopNothing(ctx context.Context, p StopRequest, newest journal.Entry, task int64) (Stopped, error) {
	out := Stopped{Outcome: session.StopNothing, Task: task, Status: newest.Status}
	record, err := p.Record(newest.Seq, out)
	if err == nil && len(record) > 0 {
		err = c.cfg.Sessions.Update(ctx, p.Key, record)
	}
	return out, err
}

// leaveSignal leaves the signal on HEAD for the worker that has the step. It is written only onto
// the revision of HEAD that was read.
func (c *Control) leaveSignal(ctx context.Context, p StopRequest, head store.Item, newest journal.Entry) (Stopped, error) {
	next := *head.Head
	out := Stopped{Outcome: session.StopSent, Task: next.Task, Status: newest.Status}
	writes, err := p.Record(newest.Seq, out)
	if err != nil {
		return Stopped{}, err
	}
	there := next.Signal
	if there == nil || there.Task != next.Task || there.Kind.Strength() < p.Kind.Strength() {
		signal := c.signal(p, next.Task)
		next.Signal = &signal
		if newest.Until != nil { // who has the lease may give it back, to come again when the delay is over
			next.Due = new(c.cfg.Now().UTC())
		}
		writes = append(writes, store.HeadItem(next, head.Rev))
	}
	if len(writes) > 0 {
		if err := c.cfg.Sessions.Update(ctx, p.Key, writes); err != nil {
			return Stopped{}, err
		}
	}
	return out, c.sendSignalled(ctx, p.Key, newest)
}

// sendSignalled sends for a session that is put off and has a signal: it is obeyed now.
func (c *Control) sendSignalled(ctx context.Context, key session.Key, newest journal.Entry) error {
	if newest.Until == nil || newest.Status != session.StatusRunning {
		return nil
	}
	return c.cfg.Sessions.Send(ctx, journal.NewWake(key, newest.Seq+1, journal.WakeStep))
}

// stopResting stops a task that waits, or that was interrupted. An interrupted one keeps its waits
// open, with their ids and nonces; otherwise answers are taken in, and what is open is closed.
func (c *Control) stopResting(ctx context.Context, p StopRequest, newest int64) (Stopped, error) {
	s, err := c.cfg.Sessions.LoadExisting(ctx, p.Key)
	if err != nil {
		return Stopped{}, err
	}
	defer func() { c.cfg.Sessions.PutBack(s) }()
	head, err := c.cfg.Sessions.Head(ctx, p.Key)
	if err != nil {
		return Stopped{}, err
	}
	if s.Version != newest {
		return Stopped{}, fmt.Errorf("session %s: it moved while it was read: %w", p.Key, store.ErrConflict)
	}
	signal := c.signal(p, s.Task)
	if there := head.Head.Signal; there != nil && there.Task == s.Task && there.Kind.Strength() >= signal.Kind.Strength() {
		signal = *there
	}
	out := Stopped{Outcome: session.StopDone, Task: s.Task, Status: endOf(signal.Kind)}
	items, err := p.Record(s.Next(), out)
	if err != nil {
		return Stopped{}, err
	}
	var gaveUp engine.StepOutcome
	if signal.Kind != journal.SignalInterrupt {
		waits, err := c.cfg.Sessions.WaitsAt(ctx, s.Key, stored.WaitsAtOf(s))
		if err != nil {
			return Stopped{}, err
		}
		answers, taken := stored.TakeWaits(s, waits, s.Next(), c.cfg.StepBytes)
		items = append(items, taken...)
		var ledgers []store.Item
		if gaveUp, ledgers, err = c.cfg.Worker.CloseOpenCalls(ctx, s, len(items)); err != nil {
			return Stopped{}, err
		}
		gaveUp.Answers, items = answers, append(items, ledgers...)
	}
	return out, c.cfg.Sessions.Commit(ctx, s, &head, engine.Stopped(s, signal, gaveUp, engine.Stamp{
		Now: c.cfg.Now(), By: p.Who, From: p.From, Attempt: session.Attempt{ID: c.cfg.NewID()}, Token: c.cfg.NewID(),
	}), items)
}
