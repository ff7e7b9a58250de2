package answers

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// StandingIn returns a caller with whom they stand in for now, where a wait does not let them answer for
// themselves.
func (c *Checker) StandingIn(ctx context.Context, key session.Key, record journal.WaitRecord, by Caller) (Caller, error) {
	all, err := c.StandingInAt(ctx, key, []journal.WaitRecord{record}, by)
	if err != nil {
		return by, err
	}
	return all[0], nil
}

// StandingInAt returns a caller as they come to each of several waits. Who is away is read once, and only where
// one of them does not let the caller answer for themselves. Whoever has stood in on a wait and comes again is
// told what was answered, also when the person is back.
func (c *Checker) StandingInAt(ctx context.Context, key session.Key, records []journal.WaitRecord, by Caller) ([]Caller, error) {
	var standIns []session.StandIn
	var read bool
	all := make([]Caller, len(records))
	for i, record := range records {
		if all[i] = by; !mayStandIn(record.Wait, by) {
			continue
		}
		if all[i].standIns = stoodIn(record, by); all[i].standIns != nil {
			continue
		}
		if !read {
			var err error
			if standIns, err = c.cfg.Away.InForce(ctx, key.Tenant); err != nil {
				return nil, err
			}
			read = true
		}
		all[i].standIns = standIns
	}
	return all, nil
}

// stoodIn says for whom a caller stood in on a wait that takes nothing more from them; nil where they did not.
func stoodIn(record journal.WaitRecord, by Caller) []session.StandIn {
	if TakesFrom(record, by) {
		return nil
	}
	for _, act := range record.Acts {
		if act.Kind == session.ActStoodIn && act.Who == by.Who {
			return []session.StandIn{{Person: act.For, StandIn: act.Who}}
		}
	}
	return nil
}

// Among returns a caller as they come to a wait, of whom it is known who stands in for whom now.
func Among(standIns []session.StandIn, w session.Wait, by Caller) Caller {
	if mayStandIn(w, by) {
		by.standIns = standIns
	}
	return by
}

// mayStandIn reports whether somebody may answer a wait only as who stands in for a person that it names.
// Roles are nobody's to pass on, and whoever is not known to be who they say stands in for nobody.
func mayStandIn(w session.Wait, by Caller) bool {
	return by.Who != "" && !by.OneUser && !by.Unverified && len(w.Who) > 0 && !w.IsNamed(by.Who, by.Roles)
}

// places are the people whom a wait names and in whose place a caller may answer because they stand in for
// them. Where one who asked for the task and may not answer has named who does, none of them has: that one is
// the requester.
func (by Caller) places(w session.Wait) (people []string, requester string) {
	for _, person := range w.Who {
		path := session.StandInPath(by.standIns, person, by.Who)
		if len(path) == 0 || slices.Contains(people, person) {
			continue
		}
		i := -1
		if w.Rule != nil && w.Rule.NotRequester {
			i = slices.IndexFunc(path[:len(path)-1], func(who string) bool { return slices.Contains(w.Requesters, who) })
		}
		if i < 0 {
			people = append(people, person)
		} else if requester == "" {
			requester = path[i]
		}
	}
	return people, requester
}

// standsFor is the person in whose place a caller answers who stands in: of several the first who has not been
// heard. It is empty for everybody else.
func standsFor(record journal.WaitRecord, by Caller) string {
	people, _ := by.places(record.Wait)
	for _, person := range people {
		mine := chain(record.Acts, person)
		if !slices.ContainsFunc(record.Votes, func(v session.Vote) bool { return anyOf(heard(record, v), mine) }) {
			return person
		}
	}
	if len(people) > 0 {
		return people[0]
	}
	return ""
}

// heard are the people whose voice a vote is.
func heard(record journal.WaitRecord, v session.Vote) []string {
	if v.For == "" {
		return []string{v.Who}
	}
	people := chain(record.Acts, v.Who)
	for _, act := range record.Acts {
		if act.Kind != session.ActStoodIn || act.Who != v.Who {
			continue
		}
		if away := chain(record.Acts, act.For); away[len(away)-1] == v.For {
			people = append(people, away...)
		}
	}
	return people
}

func anyOf(some, all []string) bool {
	return slices.ContainsFunc(some, func(one string) bool { return slices.Contains(all, one) })
}

// StoodIn returns an open wait with the act that says in whose place its caller answers or acts, where they
// stand in: without it nobody could tell later why they were allowed to.
func StoodIn(item store.Item, a session.WaitAct, by Caller) store.Item {
	record := *item.Wait
	person := standsFor(record, by)
	if person == "" || slices.ContainsFunc(record.Acts, func(did session.WaitAct) bool {
		return did.Kind == session.ActStoodIn && did.Who == by.Who && did.For == person
	}) {
		return item
	}
	act := session.WaitAct{Kind: session.ActStoodIn, Who: by.Who, For: person, At: a.At, From: a.From}
	if i := slices.IndexFunc(by.standIns, func(s session.StandIn) bool { return s.Person == person }); i >= 0 {
		act.Reason, act.Until = by.standIns[i].Reason, new(by.standIns[i].Until)
	}
	record.Acts = append(slices.Clone(record.Acts), act)
	return store.WaitItem(record, item.Rev)
}
