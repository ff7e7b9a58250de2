package main

import (
	"slices"

	"github.com/adjourn/adjourn/model/internal/chain"
	"github.com/adjourn/adjourn/model/internal/rules"
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// config is one search: how much of everything there is, and what is switched off.
type config struct {
	name   string
	breaks []string
	world  world
	off    func(r *rules.Rules)
}

func (f config) model() search.Model {
	on := rules.All()
	if f.off != nil {
		f.off(&on)
	}
	return chain.Model(f.name, f.breaks, f.world, on)
}

// configs are those of the chain, in the order of the design.
func configs() []config {
	return slices.Concat(orderConfigs(), rowConfigs(), effectConfigs(), deadConfigs(), signalConfigs(), waitConfigs(), callConfigs(), backConfigs(), haltConfigs(), allConfigs())
}

// models are all there are.
func models() []search.Model {
	var all []search.Model
	for _, f := range configs() {
		all = append(all, f.model())
	}
	return append(all, smallModels()...)
}

// The words of a configuration.
type (
	world  = chain.World
	budget = chain.Budget
)

func breaks(properties ...string) []string { return properties }

var bothAnswer = chain.Answers{true, true} // the approval, and the client's result

// A: order, the lease, who sends.
func orderConfigs() []config {
	steps := func(of budget) world { of.PlainSteps = 2; return world{Budget: of, Apart: true, Grace: true} }
	several := steps(budget{PlainSteps: 2, Crashes: 1, Freezes: 1, Duplicates: 1})
	several.SeveralSteps = true
	oneWrite := several
	oneWrite.OneWrite = true
	quick := world{Budget: budget{PlainSteps: 2}, Economy: true}
	effect := func(of budget) world {
		of.EffectSteps = 1
		return world{Budget: of, Apart: true, Grace: true}
	}
	waits := func(of budget) world { return world{Budget: of, Suspensions: 1, Answers: bothAnswer} }
	lastTwo := waits(budget{})
	lastTwo.Economy, lastTwo.Grace = true, true
	lastTwoOld := lastTwo
	lastTwoOld.Grace = false
	noSweep := func(r *rules.Rules) { r.Sweep = false }
	return []config{
		{name: "A1 all rules: crash, freeze, duplicate, lost visibility, haste", world: steps(budget{Crashes: 1, Freezes: 1, Duplicates: 1, LostVisibility: 1, Haste: 1})},
		{name: "A2 all rules: several steps per invocation, crash, freeze, duplicate", world: several},
		{name: "A3 all rules: the same, the store moves the lease with the entry", world: oneWrite},
		{name: "A4 redelivery alone, no sweep: 2 crashes, duplicate", world: steps(budget{Crashes: 2, Duplicates: 1}), off: noSweep},
		{name: "A5 redelivery alone, no sweep: an effect, freeze, duplicate", world: effect(budget{Freezes: 1, Duplicates: 1}), off: noSweep},
		{name: "A6 all rules: two last answers at once, no faults", world: lastTwo},
		{name: "A7 all rules: a clock far ahead, crash, freeze", world: steps(budget{ClocksAhead: 1, Crashes: 1, Freezes: 1})},
		{name: "A10 acknowledged before sent, no sweep", breaks: breaks(search.Stuck), world: steps(budget{Crashes: 1}), off: func(r *rules.Rules) { r.CommitFirst, r.Sweep = false, false }},
		{name: "A11 only time ends a lease", breaks: breaks("waited"), world: quick, off: func(r *rules.Rules) { r.ClosedByEntry = false }},
		{name: "A12 lease.seq goes back: nothing breaks, claims that died are only counted anew", world: steps(budget{Crashes: 1, Freezes: 1, Duplicates: 1}), off: func(r *rules.Rules) { r.NeverBack = false }},
		{name: "A13 the lease does not move on", breaks: breaks("needless"), world: lastTwoOld, off: func(r *rules.Rules) { r.MoveLease = false }},
		{name: "A14 a refusal by our own write is taken for another's", breaks: breaks("needless"), world: effect(budget{LostAnswers: 1}), off: func(r *rules.Rules) { r.OwnRefusal = false }},
		{name: "A15 a lease by a clock far ahead stands till then", breaks: breaks(search.Stuck), world: steps(budget{ClocksAhead: 1, Crashes: 1}), off: func(r *rules.Rules) { r.Bounded = false }},
		{name: "A16 the winner that lost the lease sends for nobody, no sweep", breaks: breaks(search.Stuck), world: effect(budget{Freezes: 1, Duplicates: 1}), off: func(r *rules.Rules) { r.WinnerSends, r.Sweep = false, false }},
		{name: "A17 no sweep: the last answerer dies", breaks: breaks(search.Stuck), world: waits(budget{Crashes: 1}), off: noSweep},
		{name: "A18 answerers look before they answer, no sweep", breaks: breaks(search.Stuck), world: waits(budget{}), off: func(r *rules.Rules) { r.LookAfter, r.Sweep = false, false }},
	}
}

// R: the rows of the table.
func rowConfigs() []config {
	steps := func(of budget) world { of.PlainSteps = 2; return world{Budget: of, Apart: true, Grace: true} }
	stale := world{Budget: budget{PlainSteps: 1, Duplicates: 1}, Verbs: []uint8{chain.Interrupt}}
	waits := world{Budget: budget{Duplicates: 1}, Suspensions: 2, Answers: bothAnswer, Verbs: []uint8{chain.Interrupt, chain.GoBack}}
	storms := steps(budget{PlainSteps: 2, Duplicates: 1})
	storms.Count = 7
	queued := steps(budget{PlainSteps: 2, Copies: 1})
	queued.Count = 7 // three messages, and the copy beside each of their steps
	return []config{
		{name: "R0 ended: worked on", breaks: breaks("forbidden"), world: stale, off: func(r *rules.Rules) { r.EndedRow = false }},
		{name: "R1 step; suspended or interrupted: worked on", breaks: breaks("unanswered"), world: stale, off: func(r *rules.Rules) { r.StaleStep = false }},
		{name: "R2 resume; suspended with a wait open: resumed", breaks: breaks("unanswered"), world: waits, off: func(r *rules.Rules) { r.OpenWait = false }},
		{name: "R3 resume; interrupted: resumed", breaks: breaks("undone"), world: waits, off: func(r *rules.Rules) { r.StayInterrupted = false }},
		{name: "R4 k ≤ n, lease live: acknowledged, no sweep", breaks: breaks(search.Stuck), world: world{Budget: budget{EffectSteps: 1, Crashes: 2, Freezes: 1, Duplicates: 1}}, off: func(r *rules.Rules) { r.KeepOld, r.Sweep = false, false }},
		{name: "R5 all rules: a duplicate does not multiply", world: storms},
		{name: "R6 k ≤ n, entry n for another message: sends all the same", breaks: breaks("storm"), world: storms, off: func(r *rules.Rules) { r.OtherMessage = false }},
		{name: "R7 k ≤ n, entry n for this message: acknowledged, no sweep", breaks: breaks(search.Stuck), world: steps(budget{Crashes: 1}), off: func(r *rules.Rules) { r.SendAgain, r.Sweep = false, false }},
		{name: "R8 entry n is young: sends at once", breaks: breaks("storm"), world: storms, off: func(r *rules.Rules) { r.Grace = false }},
		{name: "R9 k = n+1, lease live elsewhere: acknowledged, no sweep", breaks: breaks(search.Stuck), world: steps(budget{Crashes: 1}), off: func(r *rules.Rules) { r.KeepNext, r.Sweep = false, false }},
		{name: "R11 all rules: a message that the sweep sent again does not multiply", world: queued},
		{name: "R12 which of two messages for one entry it was written for is not looked at", breaks: breaks("storm"), world: queued, off: func(r *rules.Rules) { r.ByName = false }},
		{name: "R13 redelivery alone, no sweep: duplicates and copies, 2 crashes", world: world{Budget: budget{PlainSteps: 2, Crashes: 2, Duplicates: 1, Copies: 1}, Apart: true, Grace: true}},
		{name: "R10 who was refused works once the lease has lapsed", breaks: breaks("unclaimed"), world: steps(budget{Crashes: 1}), off: func(r *rules.Rules) { r.ClaimToWork = false }},
	}
}

// E: effects of tools.
func effectConfigs() []config {
	effect := func(policy session.UnknownPolicy, of budget) world {
		of.EffectSteps = 1
		return world{Budget: of, Policy: policy}
	}
	rough := func() budget { return budget{Crashes: 1, Freezes: 2, Duplicates: 1} }
	marks := func(w world, verbs ...uint8) world {
		w.OneWrite, w.Marks, w.Verbs = true, true, verbs
		return w
	}
	ends := func(w world) world {
		w.Finishes = true
		return w
	}
	// Two replies: of the worker that gets no answer, and of another.
	lost := func(policy session.UnknownPolicy, of budget, verbs ...uint8) world {
		w := marks(effect(policy, of), verbs...)
		w.Budget.EffectSteps, w.Budget.LostReplies = 2, 1
		return w
	}
	off := func(first, clock bool) func(*rules.Rules) {
		return func(r *rules.Rules) { r.MarkFirst, r.OwnClock = first, clock }
	}
	return []config{
		{name: "E1 all rules, tell: crash, 2 freezes, duplicate, lost answer", world: effect(session.UnknownTell, budget{Crashes: 1, Freezes: 2, Duplicates: 1, LostAnswers: 1})},
		{name: "E2 all rules, probe: crash, 2 freezes, duplicate", world: effect(session.UnknownProbe, rough())},
		{name: "E3 all rules, retry: crash, 2 freezes, duplicate", world: effect(session.UnknownRetry, rough())},
		{name: "E4 all rules, marks with the entries, tell: crash, 2 freezes, duplicate", world: marks(effect(session.UnknownTell, rough()))},
		{name: "E5 all rules, marks with the entries, probe: crash, 2 freezes, duplicate", world: marks(effect(session.UnknownProbe, rough()))},
		{name: "E6 all rules, marks with the entries, retry: crash, 2 freezes, duplicate", world: marks(effect(session.UnknownRetry, rough()))},
		{name: "E7 all rules, marks with the entries: interrupt, cancel, continue, crash, freeze", world: marks(effect(session.UnknownTell, budget{Crashes: 1, Freezes: 1}), chain.Interrupt, chain.Cancel, chain.Proceed)},
		{name: "E8 all rules, marks with the entries, probe: interrupt, cancel, freeze", world: marks(effect(session.UnknownProbe, budget{Freezes: 1}), chain.Interrupt, chain.Cancel)},
		{name: "E9 all rules, marks with the entries: an effect that may end the task, mail, cancel, crash, renewal", world: ends(marks(effect(session.UnknownTell, budget{Crashes: 1, Renewals: 1}), chain.Cancel, chain.Mail))},
		{name: "E9b all rules, marks with the entries: cancel, abort, delete, freeze", world: marks(effect(session.UnknownTell, budget{Freezes: 1}), chain.Cancel, chain.Abort, chain.Remove)},
		{name: "E15 marks with the entries: a mark of a call that has not begun is left", breaks: breaks("needless"), world: marks(effect(session.UnknownTell, budget{}), chain.Interrupt, chain.Proceed), off: func(r *rules.Rules) { r.TakeBack = false }},
		{name: "E10 no mark", breaks: breaks("twice"), world: effect(session.UnknownTell, budget{Freezes: 1}), off: func(r *rules.Rules) { r.Mark = false }},
		{name: "E11 whoever finds a mark tells the outcome as unknown", breaks: breaks("hasty"), world: effect(session.UnknownTell, rough()), off: func(r *rules.Rules) { r.OwnerTells = false }},
		{name: "E12 probe: renew, mark, run", breaks: breaks("overlap", "twice"), world: effect(session.UnknownProbe, rough()), off: off(false, false)},
		{name: "E13 probe: mark, renew, run", breaks: breaks("overlap", "twice"), world: effect(session.UnknownProbe, rough()), off: off(true, false)},
		{name: "E14 retry: mark, renew, run", breaks: breaks("overlap"), world: effect(session.UnknownRetry, rough()), off: off(true, false)},
		{name: "E16 all rules, no answer to a reply with marks, tell: crash, freeze, duplicate", world: lost(session.UnknownTell, budget{Crashes: 1, Freezes: 1, Duplicates: 1})},
		{name: "E17 all rules, no answer to a reply with marks, retry: crash, freeze, duplicate", world: lost(session.UnknownRetry, budget{Crashes: 1, Freezes: 1, Duplicates: 1})},
		{name: "E18 all rules, no answer to a reply with marks: interrupt, continue, freeze", world: lost(session.UnknownTell, budget{Freezes: 1}, chain.Interrupt, chain.Proceed)},
		{name: "E18b all rules, no answer to a reply with marks: cancel, crash, freeze", world: lost(session.UnknownTell, budget{Crashes: 1, Freezes: 1}, chain.Cancel)},
		{name: "E19 all rules, no answer to a reply with marks costs no outcome, duplicate", world: lost(session.UnknownTell, budget{Duplicates: 1})},
		{name: "E20 what may be an own mark is taken back, whosever it is", breaks: breaks("twice"), world: lost(session.UnknownTell, budget{Freezes: 1}), off: func(r *rules.Rules) { r.OwnMark = false }},
		{name: "E21 what may be an own mark is left", breaks: breaks("needless"), world: lost(session.UnknownTell, budget{}), off: func(r *rules.Rules) { r.TakeBack = false }},
	}
}

// D: dead letters.
func deadConfigs() []config {
	letters := func(of budget) world {
		of.PlainSteps = 1
		return world{Budget: of, MaxReceives: 2, Claims: 3, Grace: true}
	}
	misfit := letters(budget{Misfits: 2, Crashes: 1, Throttles: 1})
	withWaits := letters(budget{Throttles: 2, Duplicates: 1})
	withWaits.Suspensions, withWaits.Answers = 1, bothAnswer
	withCancel := letters(budget{Crashes: 2, Throttles: 2})
	withCancel.Claims, withCancel.Verbs = 2, []uint8{chain.Cancel}
	withInterrupt := withCancel
	withInterrupt.Verbs = []uint8{chain.Interrupt, chain.Cancel}
	return []config{
		{name: "D1 all rules: crash, 2 throttled, duplicate, haste", world: letters(budget{Crashes: 1, Throttles: 2, Duplicates: 1, Haste: 1})},
		{name: "D2 all rules: a suspension, 2 throttled, duplicate", world: withWaits},
		{name: "D3 all rules: interrupt, cancel, 2 crashes, 2 throttled", world: withInterrupt},
		{name: "D4 all rules: a program that lacks the agent gives the lease back twice, crash", world: misfit},
		{name: "D10 deliveries are counted, not claims", breaks: breaks("healthy"), world: letters(budget{Throttles: 2}), off: func(r *rules.Rules) { r.CountClaims = false }},
		{name: "D12 a claim that was given back counts as one that died", breaks: breaks("healthy"), world: misfit, off: func(r *rules.Rules) { r.GivenBack = false }},
		{name: "D11 a step given up passes over a signal", breaks: breaks("passed over"), world: withCancel, off: func(r *rules.Rules) { r.ObeySame = false }},
	}
}
