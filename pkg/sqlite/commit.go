package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

// seqBits is how many bits of an entry's key hold its seq.
const seqBits = 32

type commitOp struct {
	job
	key     session.Key
	entry   journal.Entry
	at      string
	payload []byte
	records []row.Record
	marks   []row.Record
	marked  bool
	wakes   []journal.Wake
	claim   *claimOp
	// owner, if set, is who must have the session's lease.
	owner string
	dead  func(owner string) bool

	// The cause of a refusal.
	taken    []byte // the entry that is there
	conflict *conflictItem
	gone     bool
}

// conflictItem is an item as it was when a condition on it failed.
type conflictItem struct {
	record *row.Record
	rev    int64
	text   []byte
	head   *row.Head
}

// refusal returns the [*store.ConflictError] that shows the item.
func (s *conflictItem) refusal(op string, key session.Key, dead func(owner string) bool) error {
	item := store.Item{Kind: s.record.Kind, ID: s.record.ID, Rev: s.rev}
	var err error
	switch {
	case s.head != nil:
		item, err = s.head.Item(dead)
	case s.rev > 0:
		item, err = store.NewItem(s.record.Kind, s.record.ID, s.rev, s.text)
	}
	if err != nil {
		return fail(op, s.record.Key, err)
	}
	item.Key = s.record.Named
	return &store.ConflictError{Key: key, Item: &item}
}

// Commit writes an entry with its items and enqueues its wakes in the same
// transaction; see [store.Store].
func (s *Store) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	o, err := s.newCommit(&p)
	if err != nil {
		return store.Committed{}, fail("commit", p.Key, err)
	}
	if err := s.db.do(ctx, o); err != nil {
		return store.Committed{}, fail("commit", p.Key, err)
	}
	switch {
	case o.taken != nil:
		there, err := store.DecodeEntry(o.taken, p.Entry.Seq)
		if err != nil {
			return store.Committed{}, fail("commit", p.Key, err)
		}
		return store.Committed{}, &store.ConflictError{Key: p.Key, Entry: &there}
	case o.conflict != nil:
		return store.Committed{}, o.conflict.refusal("commit", p.Key, o.dead)
	case o.gone:
		return store.Committed{}, fail("commit", p.Key, errDeleted)
	}
	out := store.Committed{Hash: o.entry.Hash, Bytes: len(o.payload), Enqueued: true, Marked: o.marked}
	if c := o.claim; c != nil && c.found && !c.held {
		// HEAD that cannot be read is found out by the claim the caller then makes.
		if head, err := c.head.Item(o.dead); err == nil {
			out.Head = &head
		}
	}
	return out, nil
}

func (s *Store) newCommit(p *store.CommitParams) (*commitOp, error) {
	if err := p.Validate(1 << seqBits); err != nil {
		return nil, err
	}
	o := &commitOp{key: p.Key, entry: p.Entry, wakes: p.Wakes, owner: p.LeaseOwner, dead: s.db.deadOwners(), job: job{durable: true}}
	payload, err := journal.Encode(&o.entry)
	if err != nil {
		return nil, err
	}
	o.payload, o.at = payload, p.Entry.At.UTC().Format("2006-01-02T15:04:05.000Z")
	if p.Claim != nil {
		if err := p.Claim.Validate(); err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		if p.Claim.Key != p.Key {
			return nil, fmt.Errorf("claim of another session: %s", p.Claim.Key)
		}
		o.claim = &claimOp{p: *p.Claim, dead: o.dead}
	}
	if o.records, err = encodeItems(p.Key, p.Items); err != nil {
		return nil, err
	}
	o.marks, err = encodeItems(p.Key, p.Marks)
	return o, err
}

func encodeItems(own session.Key, items []store.Item) ([]row.Record, error) {
	if len(items) == 0 {
		return nil, nil
	}
	records := make([]row.Record, len(items))
	for i := range items {
		var err error
		if records[i], err = row.Encode(own, &items[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func (o *commitOp) run(w *writer) error {
	o.taken, o.conflict, o.gone, o.marked = nil, nil, false, false
	sid, err := w.sid(o.key)
	if err != nil {
		return err
	}
	if len(o.records) > 0 {
		// More than one row: all conditions before the first write.
		if stop, err := o.check(w, sid); err != nil || stop {
			return err
		}
	}
	if sid == 0 {
		if sid, err = w.newSID(o.key); err != nil {
			return err
		}
	}
	n, err := w.c.Exec(stmtAddEntry, sid<<seqBits|o.entry.Seq, string(o.entry.Kind), o.entry.Run, o.entry.Step,
		string(o.entry.Status), o.at, o.payload, sid)
	if err != nil {
		return err
	}
	if n == 0 {
		_, err := o.check(w, sid)
		return err
	}
	for i := range o.records {
		if err := w.put(&o.records[i]); err != nil {
			return err
		}
	}
	if err := w.send(false, o.wakes); err != nil || o.claim == nil {
		return err
	}
	if err := o.claim.run(w); err != nil || !o.claim.found || o.claim.held {
		return err
	}
	return o.putMarks(w)
}

// putMarks puts the marks of a caller that has its claim, unless one of them is there already.
func (o *commitOp) putMarks(w *writer) error {
	for i := range o.marks {
		if conflict, err := w.check(&o.marks[i]); err != nil || conflict != nil {
			return err
		}
	}
	for i := range o.marks {
		if err := w.put(&o.marks[i]); err != nil {
			return err
		}
	}
	o.marked = len(o.marks) > 0
	return nil
}

// check finds out whether an entry or an item conflicts with the commit.
func (o *commitOp) check(w *writer, sid int64) (stop bool, err error) {
	if sid != 0 {
		values, err := w.c.One(stmtEntry, sid<<seqBits|o.entry.Seq)
		if err != nil {
			return false, err
		}
		if values != nil {
			o.taken = values.Bytes(0)
			return true, nil
		}
	}
	if o.gone, err = w.deleted(sid); err != nil {
		return false, err
	}
	if o.gone && !o.makesHead() {
		return true, nil
	}
	for i := range o.records {
		if o.conflict, err = w.check(&o.records[i]); err == nil && o.conflict == nil {
			o.conflict, err = o.checkOwner(w, &o.records[i])
		}
		if err != nil || o.conflict != nil {
			o.gone = false
			return true, err
		}
	}
	return o.gone, nil
}

// checkOwner returns HEAD as it is if the lease must be an owner's and is not.
func (o *commitOp) checkOwner(w *writer, r *row.Record) (*conflictItem, error) {
	if o.owner == "" || r.Kind != store.KindHead || r.Key != o.key {
		return nil, nil //nolint:nilnil // no conflict, as check says it
	}
	sid, err := w.sid(r.Key)
	if err != nil {
		return nil, err
	}
	head, err := w.head(sid)
	if err != nil || head.Lease.Owner == o.owner {
		return nil, err
	}
	return &conflictItem{record: r, head: &head, rev: head.Rev}, nil
}

// makesHead reports whether the commit is to create the session: then the conflict is with its
// tombstone.
func (o *commitOp) makesHead() bool {
	return slices.ContainsFunc(o.records, func(r row.Record) bool { return r.Kind == store.KindHead && r.Rev == 0 })
}

// deleted reports whether the session was deleted: a worker that was frozen
// meanwhile must not bring any of it back.
func (w *writer) deleted(sid int64) (bool, error) {
	if sid == 0 {
		return false, nil
	}
	h, err := w.head(sid)
	return h.Deleted, err
}

// check returns the item that conflicts with a record, or nil.
func (w *writer) check(r *row.Record) (*conflictItem, error) {
	s := &conflictItem{record: r}
	sid, err := w.sid(r.Key)
	if err != nil {
		return nil, err
	}
	var deleted bool
	switch {
	case sid == 0:
	case r.Kind == store.KindHead:
		head, err := w.head(sid)
		if err != nil {
			return nil, err
		}
		s.head, s.rev, deleted = &head, head.Rev, head.Deleted
	default:
		values, err := w.c.One(stmtItem, sid, string(r.Kind), r.ID)
		if err != nil {
			return nil, err
		}
		if values != nil {
			s.rev, s.text = values.Int(0), values.Bytes(1)
		}
	}
	if s.rev != r.Rev || deleted {
		return s, nil
	}
	return nil, nil
}

// put writes a record whose condition has been checked in this transaction.
func (w *writer) put(r *row.Record) error {
	sid, err := w.sid(r.Key)
	if err == nil && sid == 0 {
		sid, err = w.newSID(r.Key)
	}
	if err != nil {
		return err
	}
	if r.Kind == store.KindHead {
		delete(w.heads, sid)
		_, err = w.c.Exec(stmtPutHead, r.Rev+1, string(r.Status), r.Moved, r.Due, r.Text, sid)
		return err
	}
	if r.Kind == store.KindWait {
		if err := w.addInboxes(); err != nil {
			return err
		}
	}
	s := stmtPutItem
	if r.Rev == 0 {
		s = stmtAddItem
	}
	_, err = w.c.Exec(s, r.Rev+1, r.Due, r.Tenant, r.Deadline, r.Opened, r.Text, sid, string(r.Kind), r.ID)
	return err
}
