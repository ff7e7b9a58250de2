package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// without leaves out the lines in which a person's name stands, and says how many there were.
func without(a journal.Absences, person string) (journal.Absences, int) {
	before := len(a.StandIns) + len(a.Changes)
	a.StandIns = slices.DeleteFunc(a.StandIns, func(s session.StandIn) bool { return s.Person == person || s.StandIn == person })
	a.Changes = slices.DeleteFunc(a.Changes, func(c session.StandInChange) bool { return c.Person == person || c.StandIn == person })
	return a, before - len(a.StandIns) - len(a.Changes)
}

// awayLines is how many lines of the record of who is away the person's name stands in.
func (e *eraser) awayLines(ctx context.Context) (int, error) {
	_, is, err := e.readAway(ctx)
	_, lines := without(is, e.person)
	return lines, err
}

func (e *eraser) readAway(ctx context.Context) (item store.Item, is journal.Absences, err error) {
	item, err = store.ReadTenantRecord(ctx, e.store, e.tenant, journal.AbsencesRecord, &is)
	return item, is, err
}

// leaveAway takes the person out of the record, also beside people who change it.
func (e *eraser) leaveAway(ctx context.Context) error {
	for {
		item, is, err := e.readAway(ctx)
		if err != nil {
			return err
		}
		left, lines := without(is, e.person)
		if lines == 0 {
			return nil
		}
		record := *item.TenantRecord
		if record.Value, err = json.Marshal(left); err != nil {
			return err
		}
		if _, err = e.store.Update(ctx, session.Key{Tenant: e.tenant}, store.TenantItem(record, item.Rev)); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
