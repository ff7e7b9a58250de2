package standing_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/pkg/session"
)

func equal(field, value string) session.Condition {
	return session.Condition{Field: field, Equal: json.RawMessage(value)}
}

func prefix(field, text string) session.Condition {
	return session.Condition{Field: field, Prefix: &text}
}

func atMost(field, number string) session.Condition {
	return session.Condition{Field: field, AtMost: json.RawMessage(number)}
}

// TestCovers: what conditions allow, and that everything else has to be as it was approved.
func TestCovers(t *testing.T) {
	t.Parallel()
	const approved = `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["x","y"]}}`
	const deep = `"to":{"name":"Ann","tags":["x","y"]}}`
	amount := []session.Condition{atMost("/amount", "100")}
	for name, c := range map[string]struct {
		conditions []session.Condition
		approved   string
		is         string
		want       bool
	}{
		"the same":                    {nil, approved, approved, true},
		"the same in another order":   {nil, approved, `{"order":"A-1", "amount":50, ` + deep, true},
		"another amount":              {nil, approved, `{"amount":51,"order":"A-1",` + deep, false},
		"up to":                       {amount, approved, `{"amount":100,"order":"A-1",` + deep, true},
		"none":                        {amount, approved, `{"amount":0,"order":"A-1",` + deep, true},
		"minus none":                  {amount, approved, `{"amount":-0,"order":"A-1",` + deep, true},
		"more":                        {amount, approved, `{"amount":100.0000000000000000001,"order":"A-1",` + deep, false},
		"with an exponent":            {amount, approved, `{"amount":1e2,"order":"A-1",` + deep, true},
		"a large exponent":            {amount, approved, `{"amount":1e999999999,"order":"A-1",` + deep, false},
		"a small exponent":            {amount, approved, `{"amount":1e-999999999,"order":"A-1",` + deep, false},
		"below nothing":               {amount, approved, `{"amount":-1,"order":"A-1",` + deep, false},
		"a long number":               {amount, approved, `{"amount":0.` + strings.Repeat("1", 60) + `,"order":"A-1",` + deep, false},
		"a number as text":            {amount, approved, `{"amount":"50","order":"A-1",` + deep, false},
		"NaN":                         {amount, approved, `{"amount":"NaN","order":"A-1",` + deep, false},
		"NaN, bare":                   {amount, approved, `{"amount":NaN,"order":"A-1",` + deep, false},
		"null":                        {amount, approved, `{"amount":null,"order":"A-1",` + deep, false},
		"an object":                   {amount, approved, `{"amount":{},"order":"A-1",` + deep, false},
		"a list of it":                {amount, approved, `{"amount":[50],"order":"A-1",` + deep, false},
		"true":                        {amount, approved, `{"amount":true,"order":"A-1",` + deep, false},
		"missing":                     {amount, approved, `{"order":"A-1",` + deep, false},
		"missing, not named":          {amount, approved, `{"amount":50,` + deep, false},
		"one more":                    {amount, approved, `{"admin":true,"amount":50,"order":"A-1",` + deep, false},
		"one more that is null":       {amount, approved, `{"admin":null,"amount":50,"order":"A-1",` + deep, false},
		"another case":                {amount, approved, `{"Amount":50,"order":"A-1",` + deep, false},
		"twice":                       {amount, approved, `{"amount":5000,"amount":50,"order":"A-1",` + deep, false},
		"other order":                 {amount, approved, `{"amount":50,"order":"A-2",` + deep, false},
		"other inside":                {amount, approved, `{"amount":50,"order":"A-1","to":{"name":"Bob","tags":["x","y"]}}`, false},
		"more inside":                 {amount, approved, `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["x","y"],"iban":"X"}}`, false},
		"shorter list":                {amount, approved, `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["x"]}}`, false},
		"longer list":                 {amount, approved, `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["x","y","z"]}}`, false},
		"list in another order":       {amount, approved, `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["y","x"]}}`, false},
		"prefix":                      {[]session.Condition{prefix("/order", "A-")}, approved, `{"amount":50,"order":"A-77",` + deep, true},
		"prefix is all":               {[]session.Condition{prefix("/order", "A-1")}, approved, approved, true},
		"no prefix":                   {[]session.Condition{prefix("/order", "A-")}, approved, `{"amount":50,"order":"a-1",` + deep, false},
		"prefix of a number":          {[]session.Condition{prefix("/amount", "5")}, approved, approved, false},
		"prefix inside":               {[]session.Condition{prefix("/to/name", "An")}, approved, `{"amount":50,"order":"A-1","to":{"name":"Anton","tags":["x","y"]}}`, true},
		"prefix inside, and other":    {[]session.Condition{prefix("/to/name", "An")}, approved, `{"amount":51,"order":"A-1","to":{"name":"Anton","tags":["x","y"]}}`, false},
		"prefix of half a character":  {[]session.Condition{prefix("/x", "é")}, `{"x":"été"}`, `{"x":"\ud800"}`, false},
		"prefix, escaped":             {[]session.Condition{prefix("/x", "é")}, `{"x":"été"}`, `{"x":"\u00e9t"}`, true},
		"prefix, decomposed":          {[]session.Condition{prefix("/x", "é")}, `{"x":"été"}`, `{"x":"e\u0301t"}`, false},
		"prefix of every text":        {[]session.Condition{prefix("/order", "")}, approved, approved, false},
		"in a list":                   {[]session.Condition{prefix("/to/tags/1", "y")}, approved, `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["x","yy"]}}`, true},
		"in a list, another":          {[]session.Condition{prefix("/to/tags/1", "y")}, approved, `{"amount":50,"order":"A-1","to":{"name":"Ann","tags":["z","yy"]}}`, false},
		"equal":                       {[]session.Condition{equal("/to/tags", `["x", "y"]`)}, approved, approved, true},
		"not equal":                   {[]session.Condition{equal("/to/tags", `["x"]`)}, approved, approved, false},
		"equal to null":               {[]session.Condition{equal("/x", `null`)}, `{"x":null}`, `{"x":null}`, true},
		"equal to null, missing":      {[]session.Condition{equal("/x", `null`)}, `{"x":null}`, `{}`, false},
		"1 and 1.0":                   {nil, `{"x":1}`, `{"x":1.0}`, false},
		"a name with a slash":         {[]session.Condition{atMost("/a~1b", "2")}, `{"a/b":1}`, `{"a/b":2}`, true},
		"a name with a tilde":         {[]session.Condition{atMost("/a~0b", "2")}, `{"a~b":1}`, `{"a~b":2}`, true},
		"an empty name":               {[]session.Condition{atMost("/", "2")}, `{"":1}`, `{"":2}`, true},
		"a list as an object":         {nil, `{"x":["a"]}`, `{"x":{"0":"a"}}`, false},
		"a condition with two":        {[]session.Condition{{Field: "/amount", AtMost: json.RawMessage("100"), Equal: json.RawMessage("50")}}, approved, approved, false},
		"a condition of nothing":      {[]session.Condition{{Field: "/amount"}}, approved, approved, false},
		"a condition on everything":   {[]session.Condition{equal("", approved)}, approved, approved, false},
		"two that hold":               {[]session.Condition{atMost("/amount", "100"), atMost("/amount", "60")}, approved, `{"amount":60,"order":"A-1",` + deep, true},
		"two of which one does":       {[]session.Condition{atMost("/amount", "100"), atMost("/amount", "60")}, approved, `{"amount":61,"order":"A-1",` + deep, false},
		"it did not hold":             {[]session.Condition{atMost("/amount", "10")}, approved, `{"amount":5,"order":"A-1",` + deep, false},
		"what was approved is broken": {nil, `{`, `{`, false},
		"nothing":                     {nil, `{}`, ``, false},
		"two values":                  {nil, `{}`, `{} {}`, false},
		"no arguments":                {nil, `{}`, ` { } `, true},
		"no object":                   {nil, `[]`, `[]`, false},
	} {
		require.Equal(t, c.want, standing.Covers(c.conditions, json.RawMessage(c.approved), json.RawMessage(c.is)), name)
	}
}

// TestCheck: a permission that is not whole, or does not fit what is approved, is refused.
func TestCheck(t *testing.T) {
	t.Parallel()
	approved := json.RawMessage(`{"amount":50,"to":{"name":"Ann"}}`)
	require.NoError(t, standing.Check(session.Standing{}, approved))
	require.NoError(t, standing.Check(session.Standing{Conditions: []session.Condition{atMost("/amount", "50"), prefix("/to/name", "A")}}, approved))
	for name, c := range map[string]session.Condition{
		"no such argument": atMost("/price", "100"),
		"does not hold":    atMost("/amount", "49"),
		"no pointer":       atMost("amount", "100"),
		"JSON pointer":     atMost("/a~2", "100"),
		"atMost":           atMost("/amount", `"100"`),
		"not negative":     atMost("/amount", "-1"),
		"one of":           {Field: "/amount"},
		"is not empty":     prefix("/to/name", ""),
		"one JSON value":   equal("/amount", `{"a":1,"a":2}`),
		"has more":         equal("/amount", `"`+strings.Repeat("x", 5000)+`"`),
		"other member":     prefix("/to/surname", "A"),
	} {
		require.Error(t, standing.Check(session.Standing{Conditions: []session.Condition{c}}, approved), name)
	}
	inside := session.Standing{Conditions: []session.Condition{equal("/to", `{"name":"Ann"}`), prefix("/to/name", "A")}}
	require.ErrorContains(t, standing.Check(inside, approved), "inside the other")
	require.ErrorContains(t, standing.Check(session.Standing{Conditions: make([]session.Condition, 17)}, approved), "16 at most")
}

func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for given, want := range map[string]time.Duration{"session": 2 * time.Hour, "2h": 2 * time.Hour, "90m": 90 * time.Minute} {
		until, err := standing.Until(session.Standing{For: given}, now, 2*time.Hour)
		require.NoError(t, err, given)
		require.Equal(t, now.Add(want), until)
	}
	for _, given := range []string{"", "2h1s", "0s", "-1h", "for ever", "24", "Session"} {
		_, err := standing.Until(session.Standing{For: given}, now, 2*time.Hour)
		require.Error(t, err, given)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	some := session.Standing{Conditions: []session.Condition{atMost("/amount", "100"), prefix("/order", "A-")}}
	approved := json.RawMessage(`{"amount":1,"order":"A-1"}`)
	require.Equal(t, []string{"calls of pay", "amount is a number from 0 to 100", `order begins with "A-"`, "there are no other arguments"}, standing.Words("pay", some, approved))
	require.Equal(t, "all arguments are those of this call", standing.Words("pay", session.Standing{}, approved)[1])
	some.Conditions = some.Conditions[:1]
	require.Equal(t, "all other arguments are those of this call", standing.Words("pay", some, approved)[2])
}
