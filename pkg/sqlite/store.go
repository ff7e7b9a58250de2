package sqlite

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

// Store is the store in the file. It can tell when an owner made by [NewOwner] is dead: then the
// owner's lease has no time left.
type Store struct {
	db *DB
}

var _ store.Store = (*Store)(nil)

// fail puts operation and key before an error on its way out of the adapter.
func fail(op string, key session.Key, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, key, datafile.Explain(err, store.ErrUnavailable))
}

type claimOp struct {
	job
	p     store.ClaimParams
	dead  func(owner string) bool
	found bool
	held  bool
	head  row.Head
}

// Claim takes, renews, moves or releases a lease; see [store.Store].
func (s *Store) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if err := p.Validate(); err != nil {
		return store.Item{}, fail("claim", p.Key, err)
	}
	// Not durable: if power loss undoes a claim, it also undoes all that the owner wrote under
	// it, because those writes are later in the log.
	o := &claimOp{p: p, dead: s.db.deadOwners()}
	if err := s.db.do(ctx, o); err != nil {
		return store.Item{}, fail("claim", p.Key, err)
	}
	if !o.found {
		return store.Item{}, fail("claim", p.Key, store.ErrNotFound)
	}
	item, err := o.head.Item(o.dead)
	switch {
	case err != nil:
		return store.Item{}, fail("claim", p.Key, err)
	case o.held:
		return store.Item{}, &store.LeaseError{Head: item}
	}
	return item, nil
}

func (o *claimOp) run(w *writer) error {
	o.found, o.held = false, false
	sid, err := w.sid(o.p.Key)
	if err != nil || sid == 0 {
		return err
	}
	if o.head, err = w.head(sid); err != nil {
		return err
	}
	if o.head.Rev == 0 || o.head.Deleted {
		return nil
	}
	o.found = true
	lease, granted := o.p.Grant(o.head.Lease, o.dead)
	if !granted {
		o.held = true
		return nil
	}
	if _, err := w.c.Exec(stmtClaim, lease.Owner, lease.Seq, lease.N, row.Nanos(lease.Until), int64(lease.For), lease.Died, sid); err != nil {
		return err
	}
	lease.Until = row.Time(row.Nanos(lease.Until))
	o.head.Lease = lease
	w.heads[sid] = o.head
	return nil
}

type deleteOp struct {
	job
	key   session.Key
	found bool
}

// Delete removes a session but for its tombstone; see [store.Store].
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	if err := key.Validate(); err != nil {
		return fail("delete", key, err)
	}
	o := &deleteOp{key: key, job: job{durable: true}}
	if err := s.db.do(ctx, o); err != nil {
		return fail("delete", key, err)
	}
	if !o.found {
		return fail("delete", key, store.ErrNotFound)
	}
	return nil
}

func (o *deleteOp) run(w *writer) error {
	o.found = false
	sid, err := w.sid(o.key)
	if err != nil || sid == 0 {
		return err
	}
	was, err := w.head(sid)
	if err != nil {
		return err
	}
	if was.Rev == 0 {
		return nil
	}
	o.found = true
	if was.Deleted {
		return nil
	}
	head, err := was.Item(func(string) bool { return false })
	if err != nil {
		// a HEAD that cannot be read still gets a tombstone.
		head.Head = new(journal.Head)
	}
	tomb, err := row.Encode(o.key, &store.Item{Kind: store.KindHead, Head: &journal.Head{
		Key: o.key, Status: head.Head.Status, Task: head.Head.Task, StatusSeq: head.Head.StatusSeq,
		CreatedAt: head.Head.CreatedAt, UpdatedAt: head.Head.UpdatedAt, Deleted: true,
	}})
	if err != nil {
		return err
	}
	if _, err := w.c.Exec(stmtDropEntries, sid); err != nil {
		return err
	}
	if _, err := w.c.Exec(stmtDropItems, sid); err != nil {
		return err
	}
	delete(w.heads, sid)
	_, err = w.c.Exec(stmtBury, tomb.Text, sid)
	return err
}
