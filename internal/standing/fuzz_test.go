package standing_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/adjourn/adjourn/internal/standing"
	"github.com/adjourn/adjourn/pkg/session"
)

// FuzzCovers: what is covered a plain reading covers too. That takes an argument that a condition names out
// of both, and compares what is left.
func FuzzCovers(f *testing.F) {
	for _, seed := range [][4]string{
		{`{"amount":50,"order":"A-1"}`, `{"amount":60,"order":"A-1"}`, "amount", "100"},
		{`{"amount":50,"order":"A-1"}`, `{"amount":6e1,"order":"A-2"}`, "amount", "100"},
		{`{"a":"xy"}`, `{"a":"xz"}`, "a", `"x"`},
		{`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, "b", "1"},
		{`{"a":1,"A":2}`, `{"A":2,"a":1}`, "a", "1"},
		{`{"a":1}`, `{"a":1,"a":2}`, "a", "3"},
		{`{"a":"\ud800"}`, `{"a":"\udfff"}`, "a", `"x"`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, approved, is, name, bound string) {
		c := session.Condition{Field: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}
		text := ""
		if json.Unmarshal([]byte(bound), &text) == nil && strings.HasPrefix(bound, `"`) {
			c.Prefix = &text
		} else {
			c.AtMost = json.RawMessage(bound)
		}
		for _, conditions := range [][]session.Condition{nil, {c}} {
			if !standing.Covers(conditions, json.RawMessage(approved), json.RawMessage(is)) {
				continue
			}
			was, now := members(t, approved), members(t, is)
			if conditions != nil {
				v, there := now[name]
				if _, before := was[name]; !there || !before || !plain(c, v) {
					t.Fatalf("%s covers %s after %s", c.Field, is, approved)
				}
				delete(was, name)
				delete(now, name)
			}
			if !reflect.DeepEqual(was, now) {
				t.Fatalf("%v covers %s after %s", conditions, is, approved)
			}
		}
	})
}

func members(t *testing.T, raw string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%s is covered, and no object: %v", raw, err)
	}
	return out
}

func plain(c session.Condition, v any) bool {
	if c.Prefix != nil {
		text, ok := v.(string)
		return ok && *c.Prefix != "" && strings.HasPrefix(text, *c.Prefix)
	}
	number, ok := v.(json.Number)
	if !ok {
		return false
	}
	is, ok := new(big.Rat).SetString(number.String())
	most, fine := new(big.Rat).SetString(string(c.AtMost))
	return ok && fine && is.Sign() >= 0 && is.Cmp(most) <= 0
}
