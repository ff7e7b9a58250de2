// Package standing says which calls a standing permission covers. Whatever it is not sure about is
// not covered.
package standing

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Bounds of what a person gives.
const (
	maxField  = 256
	maxValue  = 4 << 10 // of an equal or a prefix, in bytes
	maxNumber = 40      // characters of a number
	maxPower  = 64      // of a number with an exponent
)

// Until returns when a permission ends that is given now, for a tool whose permissions last so long at most.
func Until(s session.Standing, now time.Time, longest time.Duration) (time.Time, error) {
	if s.For == session.StandingSession {
		return now.Add(longest), nil
	}
	d, err := time.ParseDuration(s.For)
	switch {
	case err != nil || d <= 0:
		return time.Time{}, fmt.Errorf("standing.for is %q: use %q or a duration such as 2h", s.For, session.StandingSession)
	case d > longest:
		return time.Time{}, fmt.Errorf("standing.for is %s: a permission for this tool lasts %s at most", s.For, longest)
	}
	return now.Add(d), nil
}

// Check refuses conditions that are not whole, contradict each other, or do not hold for the call with
// which they are given.
func Check(s session.Standing, approved json.RawMessage) error {
	if len(s.Conditions) > session.MaxConditions {
		return fmt.Errorf("there are %d conditions: give %d at most", len(s.Conditions), session.MaxConditions)
	}
	for i, c := range s.Conditions {
		if err := checkCondition(c); err != nil {
			return fmt.Errorf("condition of %q: %w", c.Field, err)
		}
		for _, other := range s.Conditions[:i] {
			if c.Field != other.Field && (strings.HasPrefix(c.Field, other.Field+"/") || strings.HasPrefix(other.Field, c.Field+"/")) {
				return fmt.Errorf("conditions of %q and %q: one is inside the other", other.Field, c.Field)
			}
		}
	}
	root, ok := parse(approved)
	if !ok || root.kind != object {
		return errors.New("the arguments of the call cannot be compared with others")
	}
	for _, c := range s.Conditions {
		at := root.at(c.Field)
		switch {
		case at == nil:
			return fmt.Errorf("condition of %q: the call that is approved has no such argument", c.Field)
		case !holds(c, at):
			return fmt.Errorf("condition of %q: it does not hold for the call that is approved, which has %.200s", c.Field, at.raw)
		}
	}
	return nil
}

func checkCondition(c session.Condition) error {
	given := 0
	for _, is := range []bool{c.Equal != nil, c.Prefix != nil, c.AtMost != nil} {
		if is {
			given++
		}
	}
	switch {
	case !strings.HasPrefix(c.Field, "/") || len(c.Field) > maxField || !utf8.ValidString(c.Field) || !escaped(c.Field):
		return errors.New("field is a JSON pointer, as /amount is")
	case given != 1:
		return errors.New("give one of equal, prefix and atMost")
	case c.Prefix != nil && (*c.Prefix == "" || len(*c.Prefix) > maxValue || !utf8.ValidString(*c.Prefix) || strings.ContainsRune(*c.Prefix, utf8.RuneError)):
		return errors.New("prefix is a text that is not empty")
	case len(c.Equal) > maxValue:
		return fmt.Errorf("equal has more than %d bytes", maxValue)
	case c.AtMost != nil:
		if n := number(string(c.AtMost)); n == nil || n.Sign() < 0 {
			return errors.New("atMost is a number that is not negative")
		}
	case c.Equal != nil:
		if _, ok := parse(c.Equal); !ok {
			return errors.New("equal is one JSON value")
		}
	}
	return nil
}

// escaped reports whether each ~ of a JSON pointer is ~0 or ~1.
func escaped(field string) bool {
	for i, c := range field {
		if c == '~' && (i+1 == len(field) || field[i+1] != '0' && field[i+1] != '1') {
			return false
		}
	}
	return true
}

// Covers reports whether a call with these arguments is one that conditions allow beside the call that
// was approved: the conditions hold, and whatever none of them names is as it was approved.
func Covers(conditions []session.Condition, approved, arguments json.RawMessage) bool {
	was, ok := parse(approved)
	if !ok || was.kind != object {
		return false
	}
	is, ok := parse(arguments)
	if !ok {
		return false
	}
	for _, c := range conditions {
		if checkCondition(c) != nil || was.at(c.Field) == nil || !holds(c, was.at(c.Field)) {
			return false // it was never allowed
		}
	}
	return same(conditions, "", was, is)
}

// same reports whether two values are the same but for what conditions name.
func same(conditions []session.Condition, at string, was, is *value) bool {
	named := false
	for _, c := range conditions {
		if c.Field == at {
			if named = true; !holds(c, is) {
				return false
			}
		}
	}
	switch {
	case named:
		return true
	case was.kind != is.kind || len(was.items) != len(is.items):
		return false
	case was.kind == scalar:
		return was.raw == is.raw
	}
	for i, item := range was.items {
		other := is.items[i] // members of an object are sorted
		if item.key != other.key || !same(conditions, at+Field(item.key), item, other) {
			return false
		}
	}
	return true
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// Field is the JSON pointer to an argument by its name.
func Field(name string) string { return "/" + pointer.Replace(name) }

// holds reports whether a value is as a condition says.
func holds(c session.Condition, v *value) bool {
	switch {
	case c.Equal != nil:
		return journal.Digest(json.RawMessage(v.raw)) == journal.Digest(c.Equal)
	case c.Prefix != nil:
		return v.text != nil && strings.HasPrefix(*v.text, *c.Prefix)
	case c.AtMost != nil:
		is, most := number(v.raw), number(string(c.AtMost))
		return v.kind == scalar && is != nil && most != nil && is.Sign() >= 0 && is.Cmp(most) <= 0
	}
	return false
}

// number reads a JSON number of a bounded length exactly; nil for anything else.
func number(raw string) *big.Rat {
	if raw == "" || len(raw) > maxNumber || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || !json.Valid([]byte(raw)) {
		return nil
	}
	if i := strings.IndexAny(raw, "eE"); i >= 0 {
		power, ok := new(big.Int).SetString(strings.TrimPrefix(raw[i+1:], "+"), 10)
		if !ok || power.CmpAbs(big.NewInt(maxPower)) > 0 {
			return nil
		}
	}
	n, ok := new(big.Rat).SetString(raw)
	if !ok {
		return nil
	}
	return n
}

// Words says of each condition what it lets an argument be, and what all others are.
func Words(tool string, s session.Standing, approved json.RawMessage) []string {
	words := []string{}
	named := map[string]bool{}
	for _, c := range s.Conditions {
		name := strings.TrimPrefix(c.Field, "/")
		named[c.Field] = true
		switch {
		case c.Equal != nil:
			words = append(words, fmt.Sprintf("%s is %s", name, c.Equal))
		case c.Prefix != nil:
			words = append(words, fmt.Sprintf("%s begins with %q", name, *c.Prefix))
		case c.AtMost != nil:
			words = append(words, fmt.Sprintf("%s is a number from 0 to %s", name, c.AtMost))
		}
	}
	rest := "all other arguments are those of this call"
	if len(named) == 0 {
		rest = "all arguments are those of this call"
	} else if root, ok := parse(approved); ok && !slices.ContainsFunc(root.items, func(v *value) bool { return !named[Field(v.key)] }) {
		rest = "there are no other arguments"
	}
	return append([]string{"calls of " + tool}, append(words, rest)...)
}
