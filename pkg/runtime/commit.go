package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// commit writes a move for any writer, folds it into s, sends the wake. head is
// HEAD as the writer saw it; it is moved along. An error that is
// [store.ErrConflict] means that nothing was written: read again.
func (r *Runtime) commit(ctx context.Context, s *session.Session, head *store.Item, m engine.Move, extra []store.Item) error {
	if err := checkHead(s, head, m, math.MaxInt64); err != nil { // mail waits for the next step
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	committed, err := r.write(ctx, s, head, m, extra, nil)
	if err != nil || sent(m, committed) {
		return err
	}
	return r.send(ctx, *m.Wake)
}

// sent reports whether a move that was committed needs no wake any more.
func sent(m engine.Move, committed store.Committed) bool { return m.Wake == nil || committed.Enqueued }

// write is commit without the wake, if the store did not send it along with the
// entry: what follows a write must not be taken for a part of it when it fails.
// The store may also grant a claim along with it: then head is HEAD after it.
func (r *Runtime) write(ctx context.Context, s *session.Session, head *store.Item, m engine.Move, extra []store.Item, claim *store.ClaimParams) (store.Committed, error) {
	if err := engine.Check(s, &m.Entry); err != nil {
		return store.Committed{}, err // nothing is written that could not be read again
	}
	p := store.CommitParams{Key: s.Key, Entry: m.Entry, Items: slices.Clone(extra), Claim: claim}
	var newHead *journal.Head
	if m.MovesHead {
		newHead = r.headAfter(s, head.Head, m)
		p.Items = append(p.Items, store.HeadItem(*newHead, head.Rev))
	}
	for _, w := range m.Waits {
		if newHead != nil && newHead.Root() != s.Key.ID {
			w.Root = newHead.Root()
		}
		p.Items = append(p.Items, store.WaitItem(w, 0))
	}
	if m.Run != nil {
		item, err := r.runAfter(ctx, s.Key, m)
		if err != nil {
			return store.Committed{}, err
		}
		p.Items = append(p.Items, item)
	}
	if m.Wake != nil {
		p.Wakes = []journal.Wake{*m.Wake}
	}
	entry := m.Entry
	committed, err := r.cfg.Store.Commit(ctx, p)
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) && ours(conflict, &entry) {
		// An earlier try of this very write succeeded and its answer was lost.
		committed, err = store.Committed{Hash: conflict.Entry.Hash}, nil
	}
	if err != nil {
		return store.Committed{}, fmt.Errorf("session %s: commit entry %d (%s): %w", s.Key, entry.Seq, entry.Kind, err)
	}
	entry.Hash = committed.Hash
	if err := engine.Apply(s, &entry); err != nil {
		return store.Committed{}, fmt.Errorf("session %s: fold own entry: %w", s.Key, err)
	}
	if newHead != nil {
		head.Head, head.Rev = newHead, head.Rev+1
	}
	if committed.Head != nil {
		*head = *committed.Head
	}
	r.notify(s, &entry)
	return committed, nil
}

func ours(conflict *store.ConflictError, e *journal.Entry) bool {
	return conflict.Entry != nil && conflict.Entry.Attempt.ID == e.Attempt.ID && conflict.Entry.Token == e.Token
}

// runAfter returns the record to write for a move's run: that of a new run, or the stored one
// with its end. The stored one may have fields of a newer program, and they are kept.
func (r *Runtime) runAfter(ctx context.Context, key session.Key, m engine.Move) (store.Item, error) {
	if m.RunIsNew {
		return store.RunItem(*m.Run, 0), nil
	}
	ended := store.RunItem(*m.Run, 1)
	item, err := r.item(ctx, key, store.KindRun, ended.ID)
	if err != nil || item.Run == nil {
		return ended, err
	}
	run := *item.Run
	run.Status, run.EndedAt, run.LastEntry, run.Usage = m.Run.Status, m.Run.EndedAt, m.Run.LastEntry, m.Run.Usage
	return store.RunItem(run, item.Rev), nil
}

// besideMove is how many items go with every move: the entry, HEAD, the run.
const besideMove = 3

// headAfter returns HEAD after a move.
func (r *Runtime) headAfter(s *session.Session, before *journal.Head, m engine.Move) *journal.Head {
	e := &m.Entry
	var head journal.Head
	if before != nil {
		head = *before
	} else {
		head = journal.Head{Key: s.Key, Title: m.Title, CreatedAt: e.At, Parent: e.Parent, StartedBy: e.By}
	}
	head.Status, head.Task, head.StatusSeq, head.UpdatedAt = e.Status, e.Task, e.Seq, e.At
	head.Resent, head.ResentAfter = 0, 0
	if len(e.Tags) > 0 {
		head.Tags = e.Tags
	}
	if e.Rules != nil {
		head.Agent = e.Rules.Agent
	}
	if len(e.Waits) > 0 {
		head.WaitsAt = e.Seq
	}
	if head.Signal != nil && (e.Signal != nil && head.Signal.ID == e.Signal.ID || e.Status.Ended()) {
		head.Signal = nil
	}
	head.Due = nil
	switch {
	case e.Status == session.StatusRunning:
		head.Due = ptr(r.dueAfter(e.At, e.Until, e.At))
	case e.Kind == session.KindSuspended && s.Status == session.StatusInterrupted:
		// What it waits for may be answered by now, and then nothing else is due.
		head.Due = ptr(e.At.Add(engine.AnsweredGrace))
	}
	return &head
}

// dueAfter returns when the sweep should look at a running session whose newest
// entry was written at a time and puts its retry off, or not: soon after something
// should have happened, and at once where no message is sent that makes it. It is
// never further ahead than [journal.MaxAhead], so that no due time of a running
// session may be: what is to happen later is looked at on the way.
func (r *Runtime) dueAfter(at time.Time, until *time.Time, now time.Time) time.Time {
	left := journal.PutOff(at, until, now)
	if !noMessage(at, until) {
		left += r.cfg.SweepAfter
	}
	return now.Add(min(left, journal.MaxAhead)).UTC()
}

// noMessage reports whether an entry puts its retry off further than a queue
// delays: then the sweep sends for it when its time has come.
func noMessage(at time.Time, until *time.Time) bool {
	return until != nil && until.Sub(at) > journal.MaxAhead
}

func (r *Runtime) notify(s *session.Session, e *journal.Entry) {
	if r.cfg.OnEntry != nil {
		r.cfg.OnEntry(s.Key, NewProgress(e))
	}
}

// NewProgress returns the progress that is reported for an entry.
func NewProgress(e *journal.Entry) Progress {
	p := Progress{Kind: e.Kind, Seq: e.Seq, Step: e.Step, Status: e.Status}
	if e.Status == session.StatusFailed && e.Failure != nil {
		p.Failure = e.Failure.Type
	}
	for _, m := range e.Messages {
		for _, part := range m.Parts {
			if r := part.ToolResult; r != nil && (r.Status == llm.ResultError || r.Status == llm.ResultTimedOut || r.Status == llm.ResultUnknown) {
				p.Failed = append(p.Failed, r.Name)
			}
		}
		if m.Role != llm.RoleAssistant {
			continue
		}
		p.Text = m.Text()
		for _, c := range m.ToolCalls() {
			p.Calls = append(p.Calls, c.Name)
		}
	}
	return p
}

func ptr(t time.Time) *time.Time { return &t }
