package control

import (
	"context"
	"errors"
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
	// Task that is to stop; 0 means the one that is present when the session is first read.
	Task int64
	// AtDeadline stops it only while HEAD says that its time is over, and in the memory of one entry,
	// however long the session is: one sweep is there for all.
	AtDeadline bool
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
func (c *Control) signal(p *StopRequest) journal.Signal {
	return journal.Signal{ID: c.cfg.NewID(), Task: p.Task, Kind: p.Kind, Reason: p.Reason, Who: p.Who, At: c.cfg.Now().UTC(), From: p.From}
}

// SendAgain sends for a task that a signal was left for, if it is put off still: who left it may
// have died before it could.
func (c *Control) SendAgain(ctx context.Context, key session.Key, task int64) error {
	head, err := c.cfg.Sessions.Head(ctx, key)
	if err != nil || head.Head.SignalFor(task) == nil {
		return err
	}
	newest, err := c.cfg.Sessions.Newest(ctx, *head.Head)
	if err != nil {
		return err
	}
	return c.sendSignalled(ctx, key, newest)
}

// Stop reads and writes once. An error that is [store.ErrConflict] means that another writer was
// first: the request is carried out again, for the task that it was about when it was first read.
func (c *Control) Stop(ctx context.Context, p *StopRequest) (Stopped, error) {
	head, newest, err := c.present(ctx, p.Key, &p.Task)
	if err != nil {
		return Stopped{}, err
	}
	h := head.Head
	switch status := newest.Status; {
	case p.AtDeadline && !h.Overdue(c.cfg.Now()): // it was put off, or somebody stops it
		return Stopped{}, movedOn(p.Key)
	case status.Ended(), p.Task < h.Task:
		return c.stopEnded(ctx, p, h.Task, newest)
	case status == session.StatusInterrupted && p.Kind == journal.SignalInterrupt:
		return c.stopNothing(ctx, p, newest)
	case status == session.StatusSuspended, status == session.StatusInterrupted:
		return c.stopResting(ctx, p, head, newest.Seq)
	}
	if !h.Lease.Live(c.cfg.Now(), newest.Seq, newest.KeepsLease) {
		status, err := c.cfg.Worker.Stop(ctx, p.Key, newest.Seq, c.signal(p), p.AtDeadline, func(status session.Status) ([]store.Item, error) {
			return p.Record(newest.Seq+1, Stopped{Outcome: session.StopDone, Task: p.Task, Status: status})
		})
		if err != nil || status != "" {
			return Stopped{Outcome: session.StopDone, Task: p.Task, Status: status}, err
		}
	}
	return c.leaveSignal(ctx, p, head, newest)
}

// StopAtDeadline cancels a task that has taken longer than it may, and says whether it did. One that
// has moved meanwhile is looked at again by the next sweep.
func (c *Control) StopAtDeadline(ctx context.Context, key session.Key, task int64) (bool, error) {
	_, err := c.Stop(ctx, &StopRequest{
		Key: key, Kind: journal.SignalCancel, Reason: journal.ReasonDeadline, Task: task, AtDeadline: true, Who: journal.Deadline, From: journal.FromRules,
		Record: func(int64, any) ([]store.Item, error) { return nil, nil },
	})
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// StopOverdue cancels a task whose time is over before the sweep comes to it, unless it is given more
// now. Then it is [store.ErrConflict]: read again.
func (c *Control) StopOverdue(ctx context.Context, s *session.Session, given session.TaskRules) error {
	if at := s.Rules.CancelAt; at == nil || c.cfg.Now().Before(*at) || given.CancelAfterMillis != 0 {
		return nil
	}
	stopped, err := c.StopAtDeadline(ctx, s.Key, s.Task)
	if err == nil && stopped {
		err = movedOn(s.Key)
	}
	return err
}

// present reads HEAD and the newest entry of a session for a request about one of its tasks: where
// that is 0, the present one, also when the request is carried out again.
func (c *Control) present(ctx context.Context, key session.Key, task *int64) (head store.Item, newest journal.Entry, err error) {
	if head, err = c.cfg.Sessions.ExistingHead(ctx, key); err != nil {
		return head, newest, err
	}
	h := head.Head
	if *task > h.Task {
		return head, newest, refusal.At(codes.InvalidInput, key, h.Status, "it has no task %d: its present one is %d", *task, h.Task)
	}
	if *task == 0 {
		*task = h.Task
	}
	newest, err = c.cfg.Sessions.Newest(ctx, *h)
	if err == nil && (newest.Task != h.Task || newest.Status != h.Status || newest.Status != session.StatusRunning && newest.Seq != h.StatusSeq) {
		err = movedOn(key)
	}
	return head, newest, err
}

func movedOn(key session.Key) error {
	return fmt.Errorf("session %s: it moved while it was read: %w", key, store.ErrConflict)
}

// stopEnded answers a request to stop a task that has ended.
func (c *Control) stopEnded(ctx context.Context, p *StopRequest, present int64, newest journal.Entry) (Stopped, error) {
	if p.Kind != journal.SignalInterrupt {
		return c.stopNothing(ctx, p, newest)
	}
	if p.Task == present {
		return Stopped{}, refusal.At(codes.SessionEnded, p.Key, newest.Status, "%s: there is nothing to interrupt", refusal.Stands(newest.Status))
	}
	return Stopped{}, refusal.At(codes.SessionEnded, p.Key, newest.Status, "its task %d has ended: there is nothing to interrupt. Its present task is %d", p.Task, present)
}

// stopNothing remembers that a request had nothing to do.
func (c *Control) stopNothing(ctx context.Context, p *StopRequest, newest journal.Entry) (Stopped, error) {
	out := Stopped{Outcome: session.StopNothing, Task: p.Task, Status: newest.Status}
	record, err := p.Record(newest.Seq, out)
	if err == nil && len(record) > 0 {
		err = c.cfg.Sessions.Update(ctx, p.Key, record)
	}
	return out, err
}

// leaveSignal leaves the signal on HEAD for the worker that has the step. It is written only onto
// the revision of HEAD that was read.
func (c *Control) leaveSignal(ctx context.Context, p *StopRequest, head store.Item, newest journal.Entry) (Stopped, error) {
	next := *head.Head
	out := Stopped{Outcome: session.StopSent, Task: p.Task, Status: newest.Status}
	writes, err := p.Record(newest.Seq, out)
	if err != nil {
		return Stopped{}, err
	}
	if there := next.SignalFor(p.Task); there == nil || there.Kind.Strength() < p.Kind.Strength() {
		signal := c.signal(p)
		next.Signal = &signal
		if newest.Until != nil { // who has the lease may give it back, to come again when the delay is over
			next.LookAt(new(c.cfg.Now().UTC()))
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
// open, with their ids and nonces; otherwise answers are taken in, and what is open is closed. HEAD
// holds no signal while a session rests, and the entry is refused if it does by then.
func (c *Control) stopResting(ctx context.Context, p *StopRequest, head store.Item, newest int64) (Stopped, error) {
	var s *session.Session
	var err error
	if p.AtDeadline {
		s, err = c.cfg.Sessions.LoadForEnd(ctx, p.Key)
	} else {
		s, err = c.cfg.Sessions.LoadExisting(ctx, p.Key)
		defer func() { c.cfg.Sessions.PutBack(s) }()
	}
	switch {
	case err != nil:
		return Stopped{}, err
	case s == nil || s.Version != newest:
		return Stopped{}, movedOn(p.Key)
	}
	out := Stopped{Outcome: session.StopDone, Task: p.Task, Status: p.Kind.LeadsTo()}
	items, err := p.Record(s.Next(), out)
	if err != nil {
		return Stopped{}, err
	}
	var gaveUp engine.StepOutcome
	if p.Kind != journal.SignalInterrupt {
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
	return out, c.cfg.Sessions.Commit(ctx, s, &head, engine.Stopped(s, c.signal(p), gaveUp, c.stamp(p.Who, p.From)), items)
}
