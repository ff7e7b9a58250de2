package session

import (
	"slices"
	"time"
)

// MaxStandInChain is how many people may stand in one for the other: of more the last stands in for nobody.
const MaxStandInChain = 8

// StandIn says who answers in the place of a person who is away, and until when.
type StandIn struct {
	// Person is away, and StandIn answers in their place.
	Person  string `json:"person"`
	StandIn string `json:"standIn"`
	// Begins and Until say when: Until is no part of it.
	Begins time.Time `json:"begins"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
	// SetAt is when the person said so, and From where.
	SetAt time.Time `json:"setAt"`
	From  string    `json:"from"`
}

// InForce reports whether it holds at a time.
func (s StandIn) InForce(at time.Time) bool { return !at.Before(s.Begins) && at.Before(s.Until) }

// StandInPath returns the people who lead from one who is away to who stands in for them: the person, whom
// they named, whom that one named who is away too, and so on up to who. It is nil where none leads there. All
// that is given is taken to be in force.
func StandInPath(standIns []StandIn, person, who string) []string {
	path := []string{person}
	for range MaxStandInChain {
		i := slices.IndexFunc(standIns, func(s StandIn) bool { return s.Person == path[len(path)-1] })
		if i < 0 || slices.Contains(path, standIns[i].StandIn) {
			return nil
		}
		if path = append(path, standIns[i].StandIn); standIns[i].StandIn == who {
			return path
		}
	}
	return nil
}

// StandInChangeKind says what was done about who stands in.
type StandInChangeKind string

// The kinds of change.
const (
	// StandInSet: a person said who stands in for them, in the place of what they had said before.
	StandInSet StandInChangeKind = "set"
	// StandInEnded: a person is back before the time.
	StandInEnded StandInChangeKind = "ended"
)

// StandInChange is one change, as it is kept.
type StandInChange struct {
	Kind StandInChangeKind `json:"kind"`
	// At and From are when and where the person said so.
	At   time.Time `json:"at"`
	From string    `json:"from"`
	// Person, StandIn, Begins and Until of what was set or ended.
	Person  string    `json:"person"`
	StandIn string    `json:"standIn"`
	Begins  time.Time `json:"begins"`
	Until   time.Time `json:"until"`
}
