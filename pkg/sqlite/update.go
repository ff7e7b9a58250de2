package sqlite

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

type updateOp struct {
	job
	records  []record
	conflict *standing
	gone     bool
	lease    session.Lease // HEAD's, if it is among the records
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
		if stored[i], err = o.stored(&o.records[i], dead); err != nil {
			return nil, fail("update", key, err)
		}
	}
	return stored, nil
}

func newUpdate(key session.Key, items []store.Item) (*updateOp, error) {
	if err := store.ValidateUpdate(items); err != nil {
		return nil, err
	}
	o := &updateOp{job: job{durable: true}, records: make([]record, len(items))}
	for i := range items {
		err := validateKey(key, items[i].Kind)
		if err != nil {
			return nil, err
		}
		if o.records[i], err = encodeItem(key, &items[i]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// stored returns an item as it now is.
func (o *updateOp) stored(r *record, dead func(owner string) bool) (store.Item, error) {
	if r.kind == store.KindHead {
		return (&headRow{rev: r.rev + 1, text: []byte(r.text), lease: o.lease}).item(dead)
	}
	return store.NewItem(r.kind, r.id, r.rev+1, []byte(r.text))
}

var errDeleted = fmt.Errorf("%w: it was deleted", store.ErrNotFound)

// validateKey lets the tenant's own key (no id) be used for what belongs to it.
func validateKey(key session.Key, kind store.ItemKind) error {
	if kind == store.KindIdempotency {
		return session.Key{Tenant: key.Tenant, ID: "any"}.Validate()
	}
	return key.Validate()
}

func (o *updateOp) run(w *writer) error {
	o.conflict, o.gone, o.lease = nil, false, session.Lease{}
	for i := range o.records { // all conditions before the first write
		if err := o.check(w, &o.records[i]); err != nil || o.conflict != nil {
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

// check finds out what stands in the way of a record, if anything does.
func (o *updateOp) check(w *writer, r *record) error {
	var err error
	if o.conflict, err = w.check(r); err != nil || o.conflict != nil {
		return err
	}
	sid, err := w.sid(r.key)
	if err != nil {
		return err
	}
	gone, err := w.deleted(sid)
	if err != nil {
		return err
	}
	o.gone = o.gone || gone
	if r.kind == store.KindHead && sid != 0 {
		head, err := w.head(sid)
		if err != nil {
			return err
		}
		o.lease = head.lease
	}
	return nil
}
