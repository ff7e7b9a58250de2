package main

import "github.com/adjourn/adjourn/pkg/session"

// config is one search: how much of everything there is, and what is switched off.
type config struct {
	name   string
	breaks []string
	world  func(w *world)
	off    func(r *rules)
}

func (f config) model() model {
	c := &chain{rules: allRules()}
	f.world(&c.world)
	if f.off != nil {
		f.off(&c.rules)
	}
	return c.space(f.name, f.breaks)
}

// models are all there are, in the order of the design.
func models() []model {
	var all []model
	for _, list := range [][]config{chainConfigs(), stopConfigs(), backConfigs()} {
		for _, f := range list {
			all = append(all, f.model())
		}
	}
	return all
}

// faults sets how often each of some may strike.
func (w *world) faults(each map[int]uint8) {
	for b, n := range each {
		w.budget[b] = n
	}
}

func chainConfigs() []config {
	plain := func(n uint8, faults map[int]uint8) func(*world) {
		return func(w *world) {
			w.budget[plainSteps] = n
			w.faults(faults)
		}
	}
	effect := func(policy session.UnknownPolicy, faults map[int]uint8) func(*world) {
		return func(w *world) {
			w.budget[effectSteps], w.policy = 1, policy
			w.faults(faults)
		}
	}
	with := func(f func(*world), more func(*world)) func(*world) {
		return func(w *world) { f(w); more(w) }
	}
	apart := func(w *world) { w.apart, w.grace = true, true }
	return []config{
		{name: "A1 chain, all rules: crash, freeze, duplicate, lost visibility, haste", world: with(plain(2, map[int]uint8{crashes: 1, freezes: 1, duplicates: 1, lostVisibility: 1, haste: 1}), apart)},
		{name: "A2 chain, all rules: several steps per invocation", world: with(plain(3, map[int]uint8{crashes: 1, freezes: 1, duplicates: 1}), func(w *world) { apart(w); w.goesOn = true })},
		{name: "B1 effects, all rules: crash, 2 freezes, duplicate, lost answer", world: effect(session.UnknownTell, map[int]uint8{crashes: 1, freezes: 2, duplicates: 1, lostAnswers: 1})},
		{name: "Q1 probe, all rules: crash, 2 freezes, duplicate", world: effect(session.UnknownProbe, map[int]uint8{crashes: 1, freezes: 2, duplicates: 1})},
	}
}

func stopConfigs() []config { return nil }
func backConfigs() []config { return nil }
