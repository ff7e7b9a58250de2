// Package away keeps who stands in for whom while people are away.
//
// All of a tenant's is in one record, so that one read says everything, and a change sees what it would
// contradict. It is read where somebody would not be allowed to answer otherwise, and never kept: what a
// person ends does not count a moment later.
package away

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Config is what it needs; all of it is required.
type Config struct {
	Store store.Store
	Now   func() time.Time
}

// Away says who stands in for whom. Its methods are safe for concurrent use.
type Away struct{ cfg Config }

// New returns what a store has of it.
func New(cfg Config) *Away { return &Away{cfg: cfg} }

// Record is what is kept of a tenant.
type Record = journal.Absences

// InForce returns who stands in for whom now.
func (a *Away) InForce(ctx context.Context, tenant string) ([]session.StandIn, error) {
	r, _, err := a.load(ctx, tenant)
	now := a.cfg.Now()
	return slices.DeleteFunc(r.StandIns, func(s session.StandIn) bool { return !s.InForce(now) }), err
}

// People are those whose waits somebody may answer: nil where that is themselves alone.
func (a *Away) People(ctx context.Context, tenant, user string) ([]string, error) {
	if user == "" {
		return nil, nil
	}
	all, err := a.InForce(ctx, tenant)
	if err != nil {
		return nil, err
	}
	people := []string{user}
	for _, s := range all {
		if session.StandInPath(all, s.Person, user) != nil {
			people = append(people, s.Person)
		}
	}
	if len(people) == 1 {
		return nil, nil
	}
	return people, nil
}

// Read returns what is in force and what is to come, with the newest changes.
func (a *Away) Read(ctx context.Context, tenant string) (Record, error) {
	r, _, err := a.load(ctx, tenant)
	r.StandIns = notOver(r.StandIns, a.cfg.Now())
	return r, err
}

func notOver(all []session.StandIn, now time.Time) []session.StandIn {
	return slices.DeleteFunc(all, func(s session.StandIn) bool { return !now.Before(s.Until) })
}

// load reads the record as it is, with the item it is in.
func (a *Away) load(ctx context.Context, tenant string) (r Record, item store.Item, err error) {
	if item, err = store.ReadTenantRecord(ctx, a.cfg.Store, tenant, journal.AbsencesRecord, &r); err != nil {
		return Record{}, item, fmt.Errorf("read who is away: %w", err)
	}
	return r, item, nil
}
