package main

import (
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
)

// config is one search: how much of everything there is, and what is switched off.
type config struct {
	name   string
	breaks []string
	world  world
	off    func(r *rules)
}

func (f config) model() model {
	c := &chain{world: f.world, rules: allRules()}
	if f.off != nil {
		f.off(&c.rules)
	}
	return c.space(f.name, f.breaks)
}

// configs are those of the chain, in the order of the design.
func configs() []config {
	return slices.Concat(orderConfigs(), rowConfigs(), effectConfigs(), deadConfigs(), signalConfigs(), waitConfigs(), callConfigs(), backConfigs(), allConfigs())
}

// models are all there are.
func models() []model {
	var all []model
	for _, f := range configs() {
		all = append(all, f.model())
	}
	return append(all, smallModels()...)
}

// budget says how often of each.
type budget = map[int]uint8

func times(of budget) (b [budgets]uint8) {
	for i, n := range of {
		b[i] = n
	}
	return b
}

func breaks(properties ...string) []string { return properties }

var bothAnswer = [answerers]bool{answersApproval: true, answersResult: true}

// A: order, the lease, who sends.
func orderConfigs() []config {
	steps := func(of budget) world { of[plainSteps] = 2; return world{budget: times(of), apart: true, grace: true} }
	several := steps(budget{plainSteps: 2, crashes: 1, freezes: 1, duplicates: 1})
	several.severalSteps = true
	oneWrite := several
	oneWrite.oneWrite = true
	quick := world{budget: times(budget{plainSteps: 2}), economy: true}
	effect := func(of budget) world {
		of[effectSteps] = 1
		return world{budget: times(of), apart: true, grace: true}
	}
	waits := func(of budget) world { return world{budget: times(of), suspensions: 1, answers: bothAnswer} }
	lastTwo := waits(nil)
	lastTwo.economy, lastTwo.grace = true, true
	lastTwoOld := lastTwo
	lastTwoOld.grace = false
	noSweep := func(r *rules) { r.Sweep = false }
	return []config{
		{name: "A1 all rules: crash, freeze, duplicate, lost visibility, haste", world: steps(budget{crashes: 1, freezes: 1, duplicates: 1, lostVisibility: 1, haste: 1})},
		{name: "A2 all rules: several steps per invocation, crash, freeze, duplicate", world: several},
		{name: "A3 all rules: the same, the store moves the lease with the entry", world: oneWrite},
		{name: "A4 redelivery alone, no sweep: 2 crashes, duplicate", world: steps(budget{crashes: 2, duplicates: 1}), off: noSweep},
		{name: "A5 redelivery alone, no sweep: an effect, freeze, duplicate", world: effect(budget{freezes: 1, duplicates: 1}), off: noSweep},
		{name: "A6 all rules: two last answers at once, no faults", world: lastTwo},
		{name: "A7 all rules: a clock far ahead, crash, freeze", world: steps(budget{clocksAhead: 1, crashes: 1, freezes: 1})},
		{name: "A10 acknowledged before sent, no sweep", breaks: breaks(stuck), world: steps(budget{crashes: 1}), off: func(r *rules) { r.CommitFirst, r.Sweep = false, false }},
		{name: "A11 only time ends a lease", breaks: breaks("waited"), world: quick, off: func(r *rules) { r.ClosedByEntry = false }},
		{name: "A12 lease.seq goes back: nothing breaks, claims that died are only counted anew", world: steps(budget{crashes: 1, freezes: 1, duplicates: 1}), off: func(r *rules) { r.NeverBack = false }},
		{name: "A13 the lease does not move on", breaks: breaks("needless"), world: lastTwoOld, off: func(r *rules) { r.MoveLease = false }},
		{name: "A14 a refusal by our own write is taken for another's", breaks: breaks("needless"), world: effect(budget{lostAnswers: 1}), off: func(r *rules) { r.OwnRefusal = false }},
		{name: "A15 a lease by a clock far ahead stands till then", breaks: breaks(stuck), world: steps(budget{clocksAhead: 1, crashes: 1}), off: func(r *rules) { r.Bounded = false }},
		{name: "A16 the winner that lost the lease sends for nobody, no sweep", breaks: breaks(stuck), world: effect(budget{freezes: 1, duplicates: 1}), off: func(r *rules) { r.WinnerSends, r.Sweep = false, false }},
		{name: "A17 no sweep: the last answerer dies", breaks: breaks(stuck), world: waits(budget{crashes: 1}), off: noSweep},
		{name: "A18 answerers look before they answer, no sweep", breaks: breaks(stuck), world: waits(nil), off: func(r *rules) { r.LookAfter, r.Sweep = false, false }},
	}
}

// R: the rows of the table.
func rowConfigs() []config {
	steps := func(of budget) world { of[plainSteps] = 2; return world{budget: times(of), apart: true, grace: true} }
	stale := world{budget: times(budget{plainSteps: 1, duplicates: 1}), verbs: []uint8{interrupt}}
	waits := world{budget: times(budget{duplicates: 1}), suspensions: 2, answers: bothAnswer, verbs: []uint8{interrupt, goBack}}
	storms := steps(budget{plainSteps: 2, duplicates: 1})
	storms.count = 7
	queued := steps(budget{plainSteps: 2, copies: 1})
	queued.count = 7 // three messages, and the copy beside each of their steps
	return []config{
		{name: "R0 ended: worked on", breaks: breaks("forbidden"), world: stale, off: func(r *rules) { r.EndedRow = false }},
		{name: "R1 step; suspended or interrupted: worked on", breaks: breaks("unanswered"), world: stale, off: func(r *rules) { r.StaleStep = false }},
		{name: "R2 resume; suspended with a wait open: resumed", breaks: breaks("unanswered"), world: waits, off: func(r *rules) { r.OpenWait = false }},
		{name: "R3 resume; interrupted: resumed", breaks: breaks("undone"), world: waits, off: func(r *rules) { r.StayInterrupted = false }},
		{name: "R4 k ≤ n, lease live: acknowledged, no sweep", breaks: breaks(stuck), world: world{budget: times(budget{effectSteps: 1, crashes: 2, freezes: 1, duplicates: 1})}, off: func(r *rules) { r.KeepOld, r.Sweep = false, false }},
		{name: "R5 all rules: a duplicate does not multiply", world: storms},
		{name: "R6 k ≤ n, entry n for another message: sends all the same", breaks: breaks("storm"), world: storms, off: func(r *rules) { r.OtherMessage = false }},
		{name: "R7 k ≤ n, entry n for this message: acknowledged, no sweep", breaks: breaks(stuck), world: steps(budget{crashes: 1}), off: func(r *rules) { r.SendAgain, r.Sweep = false, false }},
		{name: "R8 entry n is young: sends at once", breaks: breaks("storm"), world: storms, off: func(r *rules) { r.Grace = false }},
		{name: "R9 k = n+1, lease live elsewhere: acknowledged, no sweep", breaks: breaks(stuck), world: steps(budget{crashes: 1}), off: func(r *rules) { r.KeepNext, r.Sweep = false, false }},
		{name: "R11 all rules: a message that the sweep sent again does not multiply", world: queued},
		{name: "R12 which of two messages for one entry it was written for is not looked at", breaks: breaks("storm"), world: queued, off: func(r *rules) { r.ByName = false }},
		{name: "R13 redelivery alone, no sweep: duplicates and copies, 2 crashes", world: world{budget: times(budget{plainSteps: 2, crashes: 2, duplicates: 1, copies: 1}), apart: true, grace: true}},
		{name: "R10 who was refused works once the lease has lapsed", breaks: breaks("unclaimed"), world: steps(budget{crashes: 1}), off: func(r *rules) { r.ClaimToWork = false }},
	}
}

// E: effects of tools.
func effectConfigs() []config {
	effect := func(policy session.UnknownPolicy, of budget) world {
		of[effectSteps] = 1
		return world{budget: times(of), policy: policy}
	}
	rough := func() budget { return budget{crashes: 1, freezes: 2, duplicates: 1} }
	off := func(first, clock bool) func(*rules) {
		return func(r *rules) { r.MarkFirst, r.OwnClock = first, clock }
	}
	return []config{
		{name: "E1 all rules, tell: crash, 2 freezes, duplicate, lost answer", world: effect(session.UnknownTell, budget{crashes: 1, freezes: 2, duplicates: 1, lostAnswers: 1})},
		{name: "E2 all rules, probe: crash, 2 freezes, duplicate", world: effect(session.UnknownProbe, rough())},
		{name: "E3 all rules, retry: crash, 2 freezes, duplicate", world: effect(session.UnknownRetry, rough())},
		{name: "E10 no mark", breaks: breaks("twice"), world: effect(session.UnknownTell, budget{freezes: 1}), off: func(r *rules) { r.Mark = false }},
		{name: "E11 whoever finds a mark tells the outcome as unknown", breaks: breaks("hasty"), world: effect(session.UnknownTell, rough()), off: func(r *rules) { r.OwnerTells = false }},
		{name: "E12 probe: renew, mark, run", breaks: breaks("overlap", "twice"), world: effect(session.UnknownProbe, rough()), off: off(false, false)},
		{name: "E13 probe: mark, renew, run", breaks: breaks("overlap", "twice"), world: effect(session.UnknownProbe, rough()), off: off(true, false)},
		{name: "E14 retry: mark, renew, run", breaks: breaks("overlap"), world: effect(session.UnknownRetry, rough()), off: off(true, false)},
	}
}

// D: dead letters.
func deadConfigs() []config {
	letters := func(of budget) world {
		of[plainSteps] = 1
		return world{budget: times(of), MaxReceives: 2, Claims: 3, grace: true}
	}
	misfit := letters(budget{misfits: 2, crashes: 1, throttles: 1})
	withWaits := letters(budget{throttles: 2, duplicates: 1})
	withWaits.suspensions, withWaits.answers = 1, bothAnswer
	withCancel := letters(budget{crashes: 2, throttles: 2})
	withCancel.Claims, withCancel.verbs = 2, []uint8{cancel}
	withInterrupt := withCancel
	withInterrupt.verbs = []uint8{interrupt, cancel}
	return []config{
		{name: "D1 all rules: crash, 2 throttled, duplicate, haste", world: letters(budget{crashes: 1, throttles: 2, duplicates: 1, haste: 1})},
		{name: "D2 all rules: a suspension, 2 throttled, duplicate", world: withWaits},
		{name: "D3 all rules: interrupt, cancel, 2 crashes, 2 throttled", world: withInterrupt},
		{name: "D4 all rules: a program that lacks the agent gives the lease back twice, crash", world: misfit},
		{name: "D10 deliveries are counted, not claims", breaks: breaks("healthy"), world: letters(budget{throttles: 2}), off: func(r *rules) { r.CountClaims = false }},
		{name: "D12 a claim that was given back counts as one that died", breaks: breaks("healthy"), world: misfit, off: func(r *rules) { r.GivenBack = false }},
		{name: "D11 a step given up passes over a signal", breaks: breaks("passed over"), world: withCancel, off: func(r *rules) { r.ObeySame = false }},
	}
}
