package away

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// maxStandIns is how many people of a tenant may be away, now or later.
	maxStandIns = 100
	// maxChanges is how many changes are kept, the newest.
	maxChanges = 100
	// longest is how far ahead an absence may end.
	longest = 366 * 24 * time.Hour
	// maxName is how long the name of a person may be, in characters.
	maxName = 256
	// maxTries is how often a change is tried while others change the record too.
	maxTries = 20
)

// Params say who is away, and who stands in for them.
type Params struct {
	Tenant string
	// Who is away, who is who asks, and From where.
	Who, From string
	// OneUser, Unverified and ByLink say what is not known of who asks.
	OneUser, Unverified, ByLink bool
	// To stands in from Begins, which is now where it is zero, until Until.
	To            string
	Begins, Until time.Time
	// Reason is kept with it; optional.
	Reason string
}

// Changed is the result of a change.
type Changed struct {
	// StandIn that was set or ended; nil where there was none to end.
	StandIn *session.StandIn
	// Already says that just that was set before.
	Already bool
}

// Set says who stands in for a person who is away, in the place of what they said before.
func (a *Away) Set(ctx context.Context, p Params) (Changed, error) {
	p.To, p.Reason = strings.TrimSpace(p.To), strings.TrimSpace(p.Reason)
	now := a.cfg.Now().UTC()
	if p.Begins.IsZero() {
		p.Begins = now
	}
	// As it is stored: a request that is repeated has the same.
	p.Begins, p.Until = p.Begins.UTC().Truncate(time.Millisecond), p.Until.UTC().Truncate(time.Millisecond)
	if err := check(p, now); err != nil {
		return Changed{}, err
	}
	set := session.StandIn{Person: p.Who, StandIn: p.To, Begins: p.Begins, Until: p.Until, Reason: p.Reason, SetAt: now, From: p.From}
	var out Changed
	err := a.change(ctx, p.Tenant, now, func(r *Record) (bool, error) {
		own := slices.IndexFunc(r.StandIns, func(s session.StandIn) bool { return s.Person == p.Who })
		if own >= 0 {
			if same(r.StandIns[own], set, now) {
				out = Changed{StandIn: new(r.StandIns[own]), Already: !r.StandIns[own].SetAt.Equal(now)}
				return false, nil
			}
			r.StandIns = slices.Delete(r.StandIns, own, own+1)
		}
		if len(r.StandIns) >= maxStandIns {
			return false, refusal.New(codes.TooManyStandIns, session.Key{}, "%d people are away, and no more may be", len(r.StandIns))
		}
		if round := cycle(r.StandIns, set); round != nil {
			return false, refusal.New(codes.StandInCycle, session.Key{}, "nobody would be left to answer: %s would stand in for each other in a cycle", strings.Join(round, ", "))
		}
		r.StandIns = append(r.StandIns, set)
		r.Changes = append(r.Changes, changeOf(session.StandInSet, set, now, p.From))
		out = Changed{StandIn: &set}
		return true, nil
	})
	if err != nil {
		return Changed{}, err
	}
	return out, nil
}

// same reports whether what is set now was set before.
func same(was, set session.StandIn, now time.Time) bool {
	begins := was.Begins.Equal(set.Begins) || !was.Begins.After(now) && !set.Begins.After(now)
	return was.StandIn == set.StandIn && was.Until.Equal(set.Until) && was.Reason == set.Reason && begins
}

// End says that a person is back.
func (a *Away) End(ctx context.Context, p Params) (Changed, error) {
	if err := checkWho(p); err != nil {
		return Changed{}, err
	}
	now := a.cfg.Now().UTC()
	var out Changed
	err := a.change(ctx, p.Tenant, now, func(r *Record) (bool, error) {
		i := slices.IndexFunc(r.StandIns, func(s session.StandIn) bool { return s.Person == p.Who })
		if i < 0 {
			return false, nil // also where an earlier try of this call has ended it
		}
		out.StandIn = new(r.StandIns[i])
		r.StandIns = slices.Delete(r.StandIns, i, i+1)
		r.Changes = append(r.Changes, changeOf(session.StandInEnded, *out.StandIn, now, p.From))
		return true, nil
	})
	if err != nil {
		return Changed{}, err
	}
	return out, nil
}

func changeOf(kind session.StandInChangeKind, s session.StandIn, at time.Time, from string) session.StandInChange {
	return session.StandInChange{Kind: kind, At: at, From: from, Person: s.Person, StandIn: s.StandIn, Begins: s.Begins, Until: s.Until}
}

// checkWho refuses whoever is not known to be who they say: nobody gives away the answers of another.
func checkWho(p Params) error {
	switch {
	case p.OneUser:
		return refusal.New(codes.NotAllowed, session.Key{}, "a data file knows one user only, %q, so that nobody stands in for anybody. Serve it with adjourn dev and a file of api-keys that has a key for each person, and say so with yours", p.Who)
	case p.Who == "":
		return refusal.New(codes.NotAllowed, session.Key{}, "only somebody with a name says who stands in for them")
	case p.Unverified, p.ByLink:
		return refusal.New(codes.SignInRequired, session.Key{}, "only who has signed in says who stands in for them")
	}
	return store.ValidateTenant(p.Tenant)
}

// check refuses what nobody may say, whatever else is said.
func check(p Params, now time.Time) error {
	if err := checkWho(p); err != nil {
		return err
	}
	if err := refusal.CheckReason(session.Key{}, p.Reason); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return refusal.New(codes.InvalidInput, session.Key{}, format, args...)
	}
	isName := func(name string) bool {
		return utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxName && !strings.ContainsFunc(name, unicode.IsControl)
	}
	switch {
	case p.To == "":
		return bad("say who stands in for you")
	case !isName(p.To) || !isName(p.Who):
		return bad("people have names of at most %d characters, in one line", maxName)
	case p.To == p.Who:
		return bad("%q cannot stand in for themselves", p.Who)
	case p.Until.IsZero():
		return bad("say until when you are away")
	case !p.Until.After(now) || !p.Until.After(p.Begins):
		return bad("it would be over before it begins: %s is not later than %s", p.Until.Format(time.RFC3339), later(now, p.Begins).Format(time.RFC3339))
	case p.Until.After(now.Add(longest)):
		return bad("it has to end at most %d days from now, which is %s", int(longest/(24*time.Hour)), now.Add(longest).Format(time.RFC3339))
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// cycle returns the people who would stand in for each other in a cycle at some time if this were set; nil
// where none would. What is there has none.
func cycle(all []session.StandIn, set session.StandIn) []string {
	people := []string{set.Person, set.StandIn}
	begins, until := set.Begins, set.Until
	for range all {
		i := slices.IndexFunc(all, func(s session.StandIn) bool { return s.Person == people[len(people)-1] })
		if i < 0 {
			return nil
		}
		begins = later(begins, all[i].Begins)
		if all[i].Until.Before(until) {
			until = all[i].Until
		}
		if !begins.Before(until) {
			return nil // never all at once
		}
		if all[i].StandIn == set.Person {
			return people
		}
		people = append(people, all[i].StandIn)
	}
	return nil
}

// change writes what the function makes of the record of a tenant, unless it says that nothing changes.
// What is over is left out.
func (a *Away) change(ctx context.Context, tenant string, now time.Time, change func(*Record) (bool, error)) error {
	for range maxTries {
		r, item, err := a.load(ctx, tenant)
		if err != nil {
			return err
		}
		r.StandIns = notOver(r.StandIns, now)
		changed, err := change(&r)
		if err != nil || !changed {
			return err
		}
		r.Changes = r.Changes[max(len(r.Changes)-maxChanges, 0):]
		record := *item.TenantRecord
		if record.Value, err = json.Marshal(r); err != nil {
			return fmt.Errorf("who is away: %w", err)
		}
		_, err = a.cfg.Store.Update(ctx, session.Key{Tenant: tenant}, store.TenantItem(record, item.Rev))
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("write who is away: %w", err)
		}
	}
	return &refusal.Error{Code: codes.StoreUnavailable, Message: "who is away was changed by others each time. Try again", Cause: store.ErrConflict}
}
