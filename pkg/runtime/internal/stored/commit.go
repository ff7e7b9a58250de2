package stored

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Commit writes a move for any writer, folds it into s, sends the wake. head is
// HEAD as the writer saw it; it is moved along. An error that is
// [store.ErrConflict] means that nothing was written: read again.
func (st *Sessions) Commit(ctx context.Context, s *session.Session, head *store.Item, m engine.Move, extra []store.Item) error {
	if err := CheckHead(s, head, m, math.MaxInt64); err != nil { // a session that rests has taken its mail in
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	committed, err := st.Write(ctx, s, head, m, extra, Next{})
	if err != nil || Sent(m, committed) {
		return err
	}
	return st.Send(ctx, *m.Wake)
}

// Sent reports whether a move that was committed needs no wake any more.
func Sent(m engine.Move, committed store.Committed) bool { return m.Wake == nil || committed.Enqueued }

// Next is what a writer does after a commit, if the store does not do it along with the commit.
type Next struct {
	Claim *store.ClaimParams
	Marks []store.Item
	// LeaseOwner is no part of that: it is who must have the lease, if set.
	LeaseOwner string
}

// Write is [Sessions.Commit] without the wake, if the store did not send it along with the
// entry: what follows a write must not be taken for a part of it when it fails.
// The store may also grant a claim along with it: then head is HEAD after it.
func (st *Sessions) Write(ctx context.Context, s *session.Session, head *store.Item, m engine.Move, extra []store.Item, next Next) (store.Committed, error) {
	if err := engine.Check(s, &m.Entry); err != nil {
		return store.Committed{}, err // nothing is written that could not be read again
	}
	p := store.CommitParams{Key: s.Key, Entry: m.Entry, Items: slices.Clone(extra), Claim: next.Claim, Marks: next.Marks, LeaseOwner: next.LeaseOwner}
	var newHead *journal.Head
	if m.MovesHead {
		newHead = st.headAfter(s, head.Head, m)
		if err := vouch(newHead, &m.Entry); err != nil {
			return store.Committed{}, fmt.Errorf("session %s: %w", s.Key, err)
		}
		p.Items = append(p.Items, store.HeadItem(*newHead, head.Rev))
	}
	for _, w := range m.Waits {
		if newHead != nil && newHead.Root() != s.Key.ID {
			w.Root = newHead.Root()
		}
		p.Items = append(p.Items, store.WaitItem(w, 0))
	}
	if m.Run != nil {
		item, err := st.runAfter(ctx, s.Key, m)
		if err != nil {
			return store.Committed{}, err
		}
		p.Items = append(p.Items, item)
	}
	if m.Wake != nil {
		p.Wakes = []journal.Wake{*m.Wake}
	}
	entry := &p.Entry
	committed, err := st.cfg.Store.Commit(ctx, p)
	st.hub.wrote(s.Key, entry.Status) // an error does not say that nothing was written
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) && ours(conflict, entry) {
		// An earlier try of this very write succeeded and its answer was lost.
		committed, err = store.Committed{Hash: conflict.Entry.Hash}, nil
	}
	if err != nil {
		return store.Committed{}, fmt.Errorf("session %s: commit entry %d (%s): %w", s.Key, entry.Seq, entry.Kind, err)
	}
	entry.Hash = committed.Hash
	// What goes back to an earlier entry is folded with the whole journal, by who needs the session next.
	if err := engine.ApplyChecked(s, entry); err != nil && !errors.Is(err, engine.ErrNeedsHistory) {
		return store.Committed{}, fmt.Errorf("session %s: fold own entry: %w", s.Key, err)
	}
	if newHead != nil {
		head.Head, head.Rev = newHead, head.Rev+1
	}
	if committed.Head != nil {
		*head = *committed.Head
	}
	if st.cfg.OnEntry != nil {
		st.cfg.OnEntry(s.Key, entry)
	}
	st.waitsOver(&p)
	return committed, nil
}

// waitsOver tells of the waits that an entry has taken in or closed: of each once, for no other entry does
// that to it.
func (st *Sessions) waitsOver(p *store.CommitParams) {
	for i := range p.Items {
		if w := p.Items[i].Wait; w != nil && st.cfg.OnWait != nil {
			if over, ok := w.Over(p.Entry.At); ok {
				st.cfg.OnWait(p.Key, over)
			}
		}
	}
}

func ours(conflict *store.ConflictError, e *journal.Entry) bool {
	return conflict.Entry != nil && conflict.Entry.Attempt.ID == e.Attempt.ID && conflict.Entry.Token == e.Token
}

// runAfter returns the record to write for a move's run: that of a new run, or the stored one
// with its end. The stored one may have fields of a newer program, and they are kept.
func (st *Sessions) runAfter(ctx context.Context, key session.Key, m engine.Move) (store.Item, error) {
	if m.RunIsNew {
		return store.RunItem(*m.Run, 0), nil
	}
	ended := store.RunItem(*m.Run, 1)
	item, err := st.Item(ctx, key, store.KindRun, ended.ID)
	if err != nil || item.Run == nil {
		return ended, err
	}
	run := *item.Run
	run.Status, run.EndedAt, run.LastEntry, run.Usage, run.Used = m.Run.Status, m.Run.EndedAt, m.Run.LastEntry, m.Run.Usage, m.Run.Used
	return store.RunItem(run, item.Rev), nil
}

// BesideMove is how many items go with every move: the entry, HEAD, the run, the notice.
const BesideMove = 4

// headAfter returns HEAD after a move.
func (st *Sessions) headAfter(s *session.Session, before *journal.Head, m engine.Move) *journal.Head {
	e := &m.Entry
	var head journal.Head
	if before != nil {
		head = *before
	} else {
		head = journal.Head{Key: s.Key, Title: m.Title, CreatedAt: e.At, Parent: e.Parent, StartedBy: e.By, ForkedFrom: m.ForkedFrom}
	}
	head.Status, head.Task, head.StatusSeq, head.UpdatedAt = e.Status, e.Task, e.Seq, e.At
	head.Resent, head.ResentAfter = 0, 0
	if len(e.Tags) > 0 {
		head.Tags = e.Tags
	}
	rules := &s.Rules
	if e.Rules != nil {
		rules = e.Rules
		head.Agent, head.CancelAt = rules.Agent, rules.CancelAt
	}
	if len(e.Waits) > 0 {
		head.WaitsAt = e.Seq
	}
	if head.Signal != nil && (e.Signal != nil && head.Signal.ID == e.Signal.ID || e.Status.Ended()) {
		head.Signal = nil
	}
	head.Retention = 0
	switch {
	case e.Kind == session.KindDeleted: // who deletes it removes it next, and may die before
		head.Removing, head.Signal, head.Due = true, nil, new(e.At.Add(engine.AnsweredGrace))
	case e.Status.Ended():
		head.CancelAt, head.Retention = nil, rules.Retention
		head.Due = head.ExpiresAt()
	case e.Status == session.StatusRunning:
		head.LookAt(new(st.DueAfter(e.At, e.Until, e.At)))
	case e.Kind == session.KindSuspended && s.Status == session.StatusInterrupted:
		// What it waits for may be answered by now, and then nothing else is due.
		head.LookAt(new(e.At.Add(engine.AnsweredGrace)))
	default:
		head.LookAt(nil)
	}
	return &head
}

// DueAfter returns when the sweep should look at a running session whose newest
// entry was written at a time and puts its retry off, or not: soon after something
// should have happened, and at once where no message is sent that makes it. It is
// never further ahead than [journal.MaxAhead], so that no due time of a running
// session may be: what is to happen later is looked at on the way.
func (st *Sessions) DueAfter(at time.Time, until *time.Time, now time.Time) time.Time {
	left := journal.PutOff(at, until, now)
	if !NoMessage(at, until) {
		left += st.cfg.SweepAfter
	}
	return now.Add(min(left, journal.MaxAhead)).UTC()
}

// NoMessage reports whether an entry puts its retry off further than a queue
// delays: then the sweep sends for it when its time has come.
func NoMessage(at time.Time, until *time.Time) bool {
	return until != nil && until.Sub(at) > journal.MaxAhead
}
