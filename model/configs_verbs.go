package main

import (
	"github.com/adjourn/adjourn/model/internal/chain"
	"github.com/adjourn/adjourn/model/internal/rules"
	"github.com/adjourn/adjourn/model/internal/search"
)

// S: signals and mail.
func signalConfigs() []config {
	waits := func(of budget, verbs ...uint8) world {
		return world{Budget: of, Suspensions: 1, Answers: bothAnswer, Verbs: verbs}
	}
	alone := func(of budget, verbs ...uint8) world { return world{Budget: of, Verbs: verbs} }
	probed := alone(budget{EffectSteps: 1, Freezes: 2}, chain.Interrupt, chain.Cancel, chain.Proceed)
	probed.Policy, probed.OneWrite = "probe", true
	return []config{
		{name: "S1 all rules: interrupt, cancel, 2 answers, crash", world: waits(budget{Crashes: 1}, chain.Interrupt, chain.Cancel)},
		{name: "S2 all rules: cancel, abort, 2 answers, freeze", world: waits(budget{Freezes: 1}, chain.Cancel, chain.Abort)},
		{name: "S3 all rules: interrupt, abort, 2 answers, freeze", world: waits(budget{Freezes: 1}, chain.Interrupt, chain.Abort)},
		{name: "S4 all rules: interrupt, cancel, abort, crash, freeze, duplicate", world: alone(budget{Crashes: 1, Freezes: 1, Duplicates: 1}, chain.Interrupt, chain.Cancel, chain.Abort)},
		{name: "S5 all rules: an effect, interrupt, cancel, continue, crash, freeze", world: alone(budget{EffectSteps: 1, Crashes: 1, Freezes: 1}, chain.Interrupt, chain.Cancel, chain.Proceed)},
		{name: "S6 all rules: mail, interrupt, cancel, 2 renewals, crash", world: alone(budget{PlainSteps: 1, Renewals: 2, Crashes: 1}, chain.Mail, chain.Interrupt, chain.Cancel)},
		{name: "S7 all rules: mail, cancel, 2 answers, 2 renewals, freeze", world: waits(budget{Renewals: 2, Freezes: 1}, chain.Mail, chain.Cancel)},
		{name: "S8 all rules: delayed, interrupt, cancel, continue, crash, freeze", world: alone(budget{Delays: 2, Crashes: 1, Freezes: 1}, chain.Interrupt, chain.Cancel, chain.Proceed)},
		{name: "S9 all rules: several steps per invocation, mail, interrupt, cancel, freeze", world: world{Budget: budget{PlainSteps: 2, Freezes: 1}, SeveralSteps: true, Verbs: []uint8{chain.Mail, chain.Interrupt, chain.Cancel}}},
		{name: "S9b all rules: an effect that may end the task, mail, cancel, crash", world: world{Budget: budget{EffectSteps: 1, Crashes: 1}, Finishes: true, Verbs: []uint8{chain.Cancel, chain.Mail}}},
		{name: "S10 a claim clears the signal", breaks: breaks("passed over"), world: alone(budget{Crashes: 1, PlainSteps: 1}, chain.Cancel), off: func(r *rules.Rules) { r.KeepSignal = false }},
		{name: "S11 a revision is taken over unseen by a renewal", breaks: breaks("passed over", "mail"), world: alone(budget{Renewals: 1}, chain.Cancel, chain.Mail), off: func(r *rules.Rules) { r.LookAtHead = false }},
		{name: "S12 a revision is taken over unseen by the lease's move after replied", breaks: breaks("passed over", "mail"), world: world{Budget: budget{EffectSteps: 1}, Finishes: true, Verbs: []uint8{chain.Cancel, chain.Mail}}, off: func(r *rules.Rules) { r.LookAtHead = false }},
		{name: "S13 mail is put without HEAD", breaks: breaks("mail"), world: alone(budget{}, chain.Mail), off: func(r *rules.Rules) { r.MailWithHead = false }},
		{name: "S13b the entry that obeys a signal leaves mail behind", breaks: breaks("mail"), world: alone(budget{}, chain.Mail, chain.Cancel), off: func(r *rules.Rules) { r.StopTakesMail = false }},
		{name: "S13c all rules: mail twice, cancel, 2 answers", world: waits(budget{}, chain.Mail, chain.Mail, chain.Cancel)},
		{name: "S13d all rules: delayed, mail, interrupt, continue, crash, freeze", world: alone(budget{Delays: 1, Crashes: 1, Freezes: 1}, chain.Mail, chain.Interrupt, chain.Proceed)},
		{name: "S13e all rules: dead letters, mail, cancel, 2 renewals", world: world{Budget: budget{Crashes: 2, Renewals: 2}, MaxReceives: 2, Claims: 2, Verbs: []uint8{chain.Mail, chain.Cancel}}},
		{name: "S14 suspending does not see the signal", breaks: breaks("sleeps", "passed over"), world: waits(budget{}, chain.Cancel), off: func(r *rules.Rules) { r.EndSeesSignal = false }},
		{name: "S15 delayed does not see the signal", breaks: breaks("passed over"), world: alone(budget{Delays: 1}, chain.Cancel), off: func(r *rules.Rules) { r.DelaySeesHead = false }},
		{name: "S16 a weaker signal replaces a stronger one", breaks: breaks("passed over"), world: alone(budget{PlainSteps: 1}, chain.Interrupt, chain.Cancel), off: func(r *rules.Rules) { r.Stronger = false }},
		{name: "S17 strength across tasks: holds while every end clears the signal", world: alone(budget{Failures: 1, Freezes: 1}, chain.Cancel, chain.Interrupt, chain.Restart), off: func(r *rules.Rules) { r.SameTask = false }},
		{name: "S18 a signal is written onto a revision that nobody read", breaks: breaks("sleeps"), world: waits(budget{Delays: 1}, chain.Cancel), off: func(r *rules.Rules) { r.SameRevision = false }},
		{name: "S19 a signal is left where nobody works", breaks: breaks("sleeps"), world: waits(budget{}, chain.Cancel), off: func(r *rules.Rules) { r.NobodyWorks = false }},
		{name: "S20 obeying is not conditioned on the signal", breaks: breaks("sleeps"), world: alone(budget{}, chain.Interrupt, chain.Cancel), off: func(r *rules.Rules) { r.ObeySame = false }},
		{name: "S22 an interrupt rolls a committed reply back", breaks: breaks("dangling"), world: alone(budget{EffectSteps: 1}, chain.Interrupt, chain.Proceed), off: func(r *rules.Rules) { r.KeepReply = false }},
		{name: "S23 all rules: an effect that is probed, interrupt, cancel, continue, 2 freezes", world: probed},
		{name: "S24 all rules: delayed, interrupt, cancel, continue, freeze, duplicate", world: alone(budget{Delays: 1, Freezes: 1, Duplicates: 1}, chain.Interrupt, chain.Cancel, chain.Proceed)},
		{name: "S25 a verb stops a step without claiming it", breaks: breaks("twice"), world: probed, off: func(r *rules.Rules) { r.StopClaims = false }},
		{name: "S21 a verb does not look at HEAD's signal", breaks: breaks("sleeps"), world: waits(budget{Crashes: 1}, chain.Interrupt, chain.Cancel), off: func(r *rules.Rules) { r.Strongest = false }},
	}
}

// W: waits, answers, interrupted with open waits.
func waitConfigs() []config {
	all := chain.Answers{true, true, true, true}
	three := chain.Answers{true, true, true, false}
	waits := func(who chain.Answers, of budget, verbs ...uint8) world {
		return world{Budget: of, Suspensions: 1, Answers: who, Verbs: verbs}
	}
	back := waits(bothAnswer, budget{Crashes: 1}, chain.Cancel, chain.Abort, chain.GoBack)
	return []config{
		{name: "W1 all rules: 2 answers, one twice, expiry, 2 crashes", world: waits(all, budget{Crashes: 2})},
		{name: "W2 all rules: the same, crash, freeze, duplicate", world: waits(all, budget{Crashes: 1, Freezes: 1, Duplicates: 1})},
		{name: "W3 all rules: cancel, abort, going back, 2 answers, crash", world: back},
		{name: "W4 all rules: interrupt, continue, 2 answers, expiry, crash", world: waits(three, budget{Crashes: 1}, chain.Interrupt, chain.Proceed)},
		{name: "W5 all rules: interrupt, continue, 2 answers, freeze, duplicate", world: waits(bothAnswer, budget{Freezes: 1, Duplicates: 1}, chain.Interrupt, chain.Proceed)},
		{name: "W10 the sweep leaves the due of an interrupted session", breaks: breaks("unending"), world: waits(bothAnswer, budget{}, chain.Interrupt, chain.Proceed), off: func(r *rules.Rules) { r.ClearDue = false }},
		{name: "W11 continue neither looks nor sets due", breaks: breaks(search.Stuck), world: waits(bothAnswer, budget{}, chain.Interrupt, chain.Proceed), off: func(r *rules.Rules) { r.LookAgain, r.DueAgain = false, false }},
		{name: "W12 continue looks and sets no due", breaks: breaks(search.Stuck), world: waits(bothAnswer, budget{Crashes: 1}, chain.Interrupt, chain.Proceed), off: func(r *rules.Rules) { r.DueAgain = false }},
		{name: "W13 the sweep takes a due away that it did not see", breaks: breaks(search.Stuck), world: waits(bothAnswer, budget{Crashes: 1}, chain.Interrupt, chain.Proceed), off: func(r *rules.Rules) { r.ClearSeen = false }},
		{name: "W14 leaving a suspension leaves its waits open", breaks: breaks("forgotten"), world: waits(bothAnswer, budget{}, chain.Cancel), off: func(r *rules.Rules) { r.CloseWaits = false }},
		{name: "W15 and is not conditioned on what was seen", breaks: breaks("forgotten"), world: waits(bothAnswer, budget{}, chain.Cancel), off: func(r *rules.Rules) { r.WaitsAsSeen = false }},
	}
}

// C: closing calls that have not run.
func callConfigs() []config {
	waits := world{Budget: budget{Crashes: 1, Freezes: 1}, Suspensions: 1, Answers: bothAnswer, Verbs: []uint8{chain.Cancel}}
	calm := waits
	calm.Budget = budget{Crashes: 2}
	effect := world{Budget: budget{EffectSteps: 1, Crashes: 1, Freezes: 1}, Verbs: []uint8{chain.Cancel, chain.Abort}}
	return []config{
		{name: "C1 all rules: an approved call, cancel, crash, freeze", world: waits},
		{name: "C2 all rules: an effect, cancel, abort, crash, freeze", world: effect},
		{name: "C10 the ledger is not closed", breaks: breaks("lies"), world: effect, off: func(r *rules.Rules) { r.CloseCall = false }},
		{name: "C11 the ledger is closed before the commit", breaks: breaks("denied"), world: waits, off: func(r *rules.Rules) { r.CloseInCommit = false }},
		{name: "C12 and a closed call stands everybody back", breaks: breaks(search.Stuck), world: calm, off: func(r *rules.Rules) { r.CloseInCommit, r.ClosedResult = false, false }},
		{name: "C13 what is found started or finished counts as not run", breaks: breaks("lies"), world: effect, off: func(r *rules.Rules) { r.AsFound = false }},
	}
}

// B: going back, retry; X: deleting.
func backConfigs() []config {
	back := func(of budget, verbs ...uint8) world {
		return world{Budget: of, Suspensions: 3, Answers: bothAnswer, DenyAgain: true, Verbs: verbs}
	}
	once := func(of budget, verbs ...uint8) world {
		w := back(of, verbs...)
		w.Suspensions = 1
		return w
	}
	waits := func(of budget, verbs ...uint8) world {
		return world{Budget: of, Suspensions: 2, Answers: bothAnswer, Verbs: verbs}
	}
	frozen := func() budget { return budget{Freezes: 1} }
	return []config{
		{name: "B1 all rules: interrupt, going back, 2 answers, the second time denied, freeze", world: back(frozen(), chain.Interrupt, chain.GoBack)},
		{name: "B2 all rules: the same, crash", world: back(budget{Crashes: 1}, chain.Interrupt, chain.GoBack)},
		{name: "B3 all rules: interrupt, going back, continue, duplicate", world: back(budget{Duplicates: 1}, chain.Interrupt, chain.GoBack, chain.Proceed)},
		{name: "B4 all rules: two ways back at once, 2 answers, crash", world: once(budget{Crashes: 1}, chain.GoBack, chain.Restart)},
		{name: "B5 all rules: going back against cancel, 2 answers, freeze", world: once(frozen(), chain.GoBack, chain.Cancel)},
		{name: "B6 all rules: going back against abort, 2 answers, crash", world: once(budget{Crashes: 1}, chain.GoBack, chain.Abort)},
		{name: "B7 all rules: retry, cancel, abort, crash, freeze, duplicate", world: world{Budget: budget{Failures: 2, Crashes: 1, Freezes: 1, Duplicates: 1}, Verbs: []uint8{chain.Restart, chain.Cancel, chain.Abort}}},
		{name: "B8 all rules: retry with a suspension, abort", world: waits(budget{Failures: 1}, chain.Restart, chain.Abort)},
		{name: "B10 going back closes no ledger", breaks: breaks("unlisted"), world: back(frozen(), chain.Interrupt, chain.GoBack), off: func(r *rules.Rules) { r.CloseLeft = false }},
		{name: "B11 and asks under the same call id", breaks: breaks("unapproved"), world: back(frozen(), chain.Interrupt, chain.GoBack), off: func(r *rules.Rules) { r.CloseLeft, r.NewCall, r.TakeOutcome = false, false, false }},
		{name: "B12 going back is not conditioned on the ledgers it listed", breaks: breaks("unlisted"), world: back(frozen(), chain.Interrupt, chain.GoBack), off: func(r *rules.Rules) { r.AsListed = false }},
		{name: "X1 all rules: delete, 2 answers, 2 freezes", world: waits(budget{Freezes: 2}, chain.Remove)},
		{name: "X2 all rules: delete, interrupt, 2 answers, crash", world: waits(budget{Crashes: 1}, chain.Remove, chain.Interrupt)},
		{name: "X3 all rules: delete against going back, 2 answers, duplicate", world: once(budget{Duplicates: 1}, chain.Remove, chain.GoBack)},
		{name: "X4 all rules: delete, retention, retry, 2 answers, crash", world: world{Budget: budget{Failures: 1, Retention: 2, Crashes: 1}, Suspensions: 1, Answers: bothAnswer, Verbs: []uint8{chain.Remove, chain.Restart}}},
		{name: "X5 all rules: retention against retry, freeze, duplicate", world: world{Budget: budget{Failures: 2, Retention: 2, Freezes: 1, Duplicates: 1}, Verbs: []uint8{chain.Restart, chain.Remove}}},
		{name: "X12 who deletes dies before it removes, and nobody else does", breaks: breaks(search.Stuck), world: waits(budget{Crashes: 1}, chain.Remove), off: func(r *rules.Rules) { r.SweepRemoves = false }},
		{name: "X13 retention deletes what has moved on", breaks: breaks("kept short"), world: world{Budget: budget{Failures: 1, Retention: 1}, Verbs: []uint8{chain.Restart}}, off: func(r *rules.Rules) { r.ExpireSeen = false }},
		{name: "X10 entries and ledgers are removed, only HEAD stays", breaks: breaks("after delete", "run deleted", "twice"), world: waits(budget{Freezes: 2}, chain.Remove), off: func(r *rules.Rules) { r.Stubs = false }},
		{name: "X11 delete closes no call", breaks: breaks("run deleted"), world: waits(frozen(), chain.Remove), off: func(r *rules.Rules) { r.DeleteCloses = false }},
	}
}

// L: the kill switch.
func haltConfigs() []config {
	halts := func(of budget, verbs ...uint8) world {
		of.Halts = max(of.Halts, 1)
		return world{Budget: of, Verbs: verbs}
	}
	waits := halts(budget{Crashes: 1}, chain.Interrupt, chain.Proceed)
	waits.Suspensions, waits.Answers = 1, bothAnswer
	several := halts(budget{Halts: 2, PlainSteps: 2, Crashes: 1})
	several.SeveralSteps = true
	oneWrite := several
	oneWrite.OneWrite = true
	stays := func(of budget, verbs ...uint8) world {
		w := halts(of, verbs...)
		w.HaltStays = true
		return w
	}
	return []config{
		{name: "L1 all rules: 2 halts, an effect, crash, freeze, duplicate", world: halts(budget{Halts: 2, EffectSteps: 1, PlainSteps: 1, Crashes: 1, Freezes: 1, Duplicates: 1})},
		{name: "L2 all rules: a halt, 2 answers, interrupt, continue, crash", world: waits},
		{name: "L3 all rules: 2 halts, several steps per invocation, crash", world: several},
		{name: "L4 all rules: the same, the store moves the lease with the entry", world: oneWrite},
		{name: "L5 all rules: a halt, delayed, cancel, delete, freeze", world: halts(budget{Delays: 1, Freezes: 1}, chain.Cancel, chain.Remove)},
		{name: "L6 all rules: a halt that stays, interrupt, cancel, delete, crash", world: stays(budget{PlainSteps: 1, Crashes: 1}, chain.Interrupt, chain.Cancel, chain.Remove)},
		{name: "L10 a halt is not looked at", breaks: breaks("halted"), world: halts(budget{PlainSteps: 1}), off: func(r *rules.Rules) { r.HaltHolds = false }},
		{name: "L11 nor between two steps of an invocation", breaks: breaks("halted"), world: several, off: func(r *rules.Rules) { r.HaltBetween = false }},
		{name: "L12 the sweep sends for what is held", breaks: breaks(search.Spin), world: halts(budget{PlainSteps: 1}), off: func(r *rules.Rules) { r.HaltSweep = false }},
		{name: "L13 a halt holds signals up", breaks: breaks(search.Stuck), world: stays(budget{PlainSteps: 1}, chain.Cancel), off: func(r *rules.Rules) { r.HaltObeys = false }},
		{name: "L14 a halt, and no sweep", breaks: breaks(search.Stuck), world: halts(budget{PlainSteps: 1}), off: func(r *rules.Rules) { r.Sweep = false }},
	}
}

// Z: much at once.
func allConfigs() []config {
	both := func(of budget, verbs ...uint8) world {
		of.EffectSteps = 1
		return world{Budget: of, Suspensions: 1, Answers: bothAnswer, Verbs: verbs}
	}
	probe := both(budget{Freezes: 2}, chain.Cancel, chain.Interrupt)
	probe.Policy, probe.Suspensions = "probe", 0
	apart := both(budget{Crashes: 1, Duplicates: 1}, chain.Interrupt, chain.Proceed)
	apart.Apart = true
	return []config{
		{name: "Z1 all rules: an effect, a suspension, 2 answers, cancel, crash", world: both(budget{Crashes: 1}, chain.Cancel)},
		{name: "Z2 all rules: an effect, a suspension, 2 answers, interrupt, continue, crash, duplicate", world: apart},
		{name: "Z3 all rules: an effect that is probed, interrupt, cancel, 2 freezes", world: probe},
		{name: "Z4 all rules: an effect, a suspension, mail, cancel, 2 answers", world: both(budget{Renewals: 1}, chain.Mail, chain.Cancel)},
	}
}
