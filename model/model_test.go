package main

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/model/internal/rules"
	"github.com/adjourn/adjourn/model/internal/search"
)

// small is how many states of each configuration are searched here; make model searches all.
const small = 15_000

// TestModel searches each configuration up to a small bound: what must hold does
// so far, and what is seen whole breaks where a rule is switched off.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, m := range models() {
		t.Run(m.Title(), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			o := m.Search(search.Bounds{States: small, Trace: true, Out: &out})
			verdict, ok := o.Verdict(m.Expects())
			if !ok {
				t.Errorf("%s\n%s", verdict, out.String())
			}
			t.Logf("%d states: %s", o.States, verdict)
		})
	}
}

// TestModel_names: a configuration is chosen by the beginning of its name.
func TestModel_names(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range models() {
		require.False(t, seen[m.Title()], m.Title())
		seen[m.Title()] = true
		for _, p := range m.Expects() {
			_, known := allProperties()[p]
			require.True(t, known, "%s: %s", m.Title(), p)
		}
	}
}

// TestRules: each rule is on by default, and switched off by a configuration that breaks by it.
func TestRules(t *testing.T) {
	t.Parallel()
	off, on := map[string]bool{}, reflect.ValueOf(rules.All())
	for _, f := range configs() {
		if f.off == nil {
			require.Empty(t, f.breaks, f.name)
			continue
		}
		r := rules.All()
		f.off(&r)
		for i := range on.NumField() {
			if !reflect.ValueOf(r).Field(i).Bool() {
				off[on.Type().Field(i).Name] = true
			}
		}
	}
	for i := range on.NumField() {
		name := on.Type().Field(i).Name
		require.True(t, on.Field(i).Bool(), name)
		require.True(t, off[name], "no configuration switches %s off", name)
	}
}
