package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// recordName is the tenant's record of the sessions whose deletion has begun.
const recordName = "erasing"

// begun is what the record holds: ids alone, and none once a run is over.
type begun struct {
	Sessions []string `json:"sessions"`
}

// unfinished returns the sessions that earlier runs have begun to delete.
func (e *eraser) unfinished(ctx context.Context) ([]string, error) {
	_, is, err := e.record(ctx)
	return is.Sessions, err
}

func (e *eraser) record(ctx context.Context) (rev int64, is begun, err error) {
	item, err := store.ReadTenantRecord(ctx, e.store, e.tenant, recordName, &is)
	return item.Rev, is, err
}

// change writes the record as to has it, also beside another run that does.
func (e *eraser) change(ctx context.Context, to func([]string) []string) error {
	for {
		rev, is, err := e.record(ctx)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		next := begun{Sessions: []string{}}
		for _, id := range to(is.Sessions) {
			if !seen[id] {
				seen[id] = true
				next.Sessions = append(next.Sessions, id)
			}
		}
		value, err := json.Marshal(next)
		if err != nil {
			return err
		}
		_, err = e.store.Update(ctx, session.Key{Tenant: e.tenant}, store.TenantItem(journal.TenantRecord{Name: recordName, Value: value}, rev))
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
