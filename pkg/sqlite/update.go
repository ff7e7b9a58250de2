package sqlite

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

type updateOp struct {
	job
	records  []row.Record
	leases   []journal.Lease // of the HEADs among the records, by their places
	conflict *conflictItem
	gone     bool
}

// Update writes items that are not entries in one transaction; see [store.Store].
func (s *Store) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	o, err := newUpdate(key, items)
	if err != nil {
		return nil, fail("update", key, err)
	}
	if len(items) == 0 {
		return nil, nil
	}
	if err := s.db.do(ctx, o); err != nil {
		return nil, fail("update", key, err)
	}
	dead := s.db.deadOwners()
	switch {
	case o.conflict != nil:
		return nil, o.conflict.refusal("update", key, dead)
	case o.gone:
		return nil, fail("update", key, errDeleted)
	}
	stored := make([]store.Item, len(o.records))
	for i := range o.records {
		if stored[i], err = o.stored(i, dead); err != nil {
			return nil, fail("update", key, err)
		}
	}
	return stored, nil
}

func newUpdate(key session.Key, items []store.Item) (*updateOp, error) {
	if err := store.ValidateUpdate(key, items); err != nil {
		return nil, err
	}
	records, err := encodeItems(key, items)
	if err != nil {
		return nil, err
	}
	return &updateOp{job: job{durable: true}, records: records, leases: make([]journal.Lease, len(items))}, nil
}

// stored returns an item as it now is.
func (o *updateOp) stored(i int, dead func(owner string) bool) (item store.Item, err error) {
	r := &o.records[i]
	if r.Kind == store.KindHead {
		item, err = (&row.Head{Rev: r.Rev + 1, Text: []byte(r.Text), Lease: o.leases[i]}).Item(dead)
	} else {
		item, err = store.NewItem(r.Kind, r.ID, r.Rev+1, []byte(r.Text))
	}
	item.Key = r.Named
	return item, err
}

var errDeleted = fmt.Errorf("%w: it was deleted", store.ErrNotFound)

func (o *updateOp) run(w *writer) error {
	o.conflict, o.gone = nil, false
	for i := range o.records { // all conditions before the first write
		if err := o.check(w, i); err != nil || o.conflict != nil {
			return err
		}
	}
	if o.gone {
		return nil
	}
	for i := range o.records {
		if err := w.put(&o.records[i]); err != nil {
			return err
		}
	}
	return nil
}

// check finds out whether an item conflicts with a record.
func (o *updateOp) check(w *writer, i int) (err error) {
	r := &o.records[i]
	if o.conflict, err = w.check(r); err != nil || o.conflict != nil {
		return err
	}
	sid, err := w.sid(r.Key)
	if err != nil {
		return err
	}
	gone, err := w.deleted(sid)
	if err != nil {
		return err
	}
	o.gone = o.gone || gone
	if r.Kind == store.KindHead && sid != 0 {
		head, err := w.head(sid)
		if err != nil {
			return err
		}
		o.leases[i] = head.Lease
	}
	return nil
}
