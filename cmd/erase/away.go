package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// awayName is the tenant's record of who stands in for whom, as runtime keeps it.
const awayName = "away"

// away is what the record holds.
type away struct {
	StandIns []session.StandIn       `json:"standIns,omitempty"`
	Changes  []session.StandInChange `json:"changes,omitempty"`
}

// without leaves out the lines in which a person's name stands, and says how many there were.
func (a away) without(person string) (away, int) {
	before := len(a.StandIns) + len(a.Changes)
	a.StandIns = slices.DeleteFunc(a.StandIns, func(s session.StandIn) bool { return s.Person == person || s.StandIn == person })
	a.Changes = slices.DeleteFunc(a.Changes, func(c session.StandInChange) bool { return c.Person == person || c.StandIn == person })
	return a, before - len(a.StandIns) - len(a.Changes)
}

// awayLines is how many lines of the record the person's name stands in.
func (e *eraser) awayLines(ctx context.Context) (int, error) {
	_, is, err := e.readAway(ctx)
	_, lines := is.without(e.person)
	return lines, err
}

func (e *eraser) readAway(ctx context.Context) (item store.Item, is away, err error) {
	for item, err = range e.store.Items(ctx, session.Key{Tenant: e.tenant}, store.KindTenantRecord, awayName) {
		if err != nil {
			return item, is, err
		}
		if err := json.Unmarshal(item.TenantRecord.Value, &is); err != nil {
			return item, is, fmt.Errorf("record %s of tenant %s: %w", awayName, e.tenant, err)
		}
	}
	return item, is, nil
}

// leaveAway takes the person out of the record, also beside people who change it.
func (e *eraser) leaveAway(ctx context.Context) error {
	for {
		item, is, err := e.readAway(ctx)
		if err != nil {
			return err
		}
		left, lines := is.without(e.person)
		if lines == 0 {
			return nil
		}
		record := journal.TenantRecord{Name: awayName}
		if record.Value, err = json.Marshal(left); err != nil {
			return err
		}
		if _, err = e.store.Update(ctx, session.Key{Tenant: e.tenant}, store.TenantItem(record, item.Rev)); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
