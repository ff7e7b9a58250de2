package main

// S: signals and mail.
func signalConfigs() []config {
	waits := func(of budget, verbs ...uint8) world {
		return world{budget: times(of), suspensions: 1, answers: bothAnswer, verbs: verbs}
	}
	alone := func(of budget, verbs ...uint8) world { return world{budget: times(of), verbs: verbs} }
	return []config{
		{name: "S1 all rules: interrupt, cancel, 2 answers, crash", world: waits(budget{crashes: 1}, interrupt, cancel)},
		{name: "S2 all rules: cancel, abort, 2 answers, freeze", world: waits(budget{freezes: 1}, cancel, abort)},
		{name: "S3 all rules: interrupt, abort, 2 answers, freeze", world: waits(budget{freezes: 1}, interrupt, abort)},
		{name: "S4 all rules: interrupt, cancel, abort, crash, freeze, duplicate", world: alone(budget{crashes: 1, freezes: 1, duplicates: 1}, interrupt, cancel, abort)},
		{name: "S5 all rules: an effect, interrupt, cancel, continue, crash, freeze", world: alone(budget{effectSteps: 1, crashes: 1, freezes: 1}, interrupt, cancel, proceed)},
		{name: "S6 all rules: mail, interrupt, cancel, 2 renewals, crash", world: alone(budget{plainSteps: 1, renewals: 2, crashes: 1}, mail, interrupt, cancel)},
		{name: "S7 all rules: mail, cancel, 2 answers, 2 renewals, freeze", world: waits(budget{renewals: 2, freezes: 1}, mail, cancel)},
		{name: "S8 all rules: delayed, interrupt, cancel, continue, crash, freeze", world: alone(budget{delays: 2, crashes: 1, freezes: 1}, interrupt, cancel, proceed)},
		{name: "S9 all rules: several steps per invocation, mail, interrupt, cancel, freeze", world: world{budget: times(budget{plainSteps: 2, freezes: 1}), severalSteps: true, verbs: []uint8{mail, interrupt, cancel}}},
		{name: "S9b all rules: an effect that may end the task, mail, cancel, crash", world: world{budget: times(budget{effectSteps: 1, crashes: 1}), finishes: true, verbs: []uint8{cancel, mail}}},
		{name: "S10 a claim clears the signal", breaks: breaks("passed over"), world: alone(budget{crashes: 1, plainSteps: 1}, cancel), off: func(r *rules) { r.KeepSignal = false }},
		{name: "S11 a revision is taken over unseen by a renewal", breaks: breaks("passed over", "mail"), world: alone(budget{renewals: 1}, cancel, mail), off: func(r *rules) { r.LookAtHead = false }},
		{name: "S12 a revision is taken over unseen by the lease's move after replied", breaks: breaks("passed over", "mail"), world: world{budget: times(budget{effectSteps: 1}), finishes: true, verbs: []uint8{cancel, mail}}, off: func(r *rules) { r.LookAtHead = false }},
		{name: "S13 mail is put without HEAD", breaks: breaks("mail"), world: alone(budget{}, mail), off: func(r *rules) { r.MailWithHead = false }},
		{name: "S14 suspending does not see the signal", breaks: breaks("sleeps", "passed over"), world: waits(budget{}, cancel), off: func(r *rules) { r.EndSeesSignal = false }},
		{name: "S15 delayed does not see the signal", breaks: breaks("passed over"), world: alone(budget{delays: 1}, cancel), off: func(r *rules) { r.DelaySeesHead = false }},
		{name: "S16 a weaker signal replaces a stronger one", breaks: breaks("passed over"), world: alone(budget{plainSteps: 1}, interrupt, cancel), off: func(r *rules) { r.Stronger = false }},
		{name: "S17 strength across tasks: holds while every end clears the signal", world: alone(budget{failures: 1, freezes: 1}, cancel, interrupt, restart), off: func(r *rules) { r.SameTask = false }},
		{name: "S18 a signal is written onto a revision that nobody read", breaks: breaks("sleeps"), world: waits(budget{delays: 1}, cancel), off: func(r *rules) { r.SameRevision = false }},
		{name: "S19 a signal is left where nobody works", breaks: breaks("sleeps"), world: waits(budget{}, cancel), off: func(r *rules) { r.NobodyWorks = false }},
		{name: "S20 obeying is not conditioned on the signal", breaks: breaks("sleeps"), world: alone(budget{}, interrupt, cancel), off: func(r *rules) { r.ObeySame = false }},
		{name: "S22 an interrupt rolls a committed reply back", breaks: breaks("dangling"), world: alone(budget{effectSteps: 1}, interrupt, proceed), off: func(r *rules) { r.KeepReply = false }},
		{name: "S21 a verb does not look at HEAD's signal", breaks: breaks("sleeps"), world: waits(budget{crashes: 1}, interrupt, cancel), off: func(r *rules) { r.Strongest = false }},
	}
}

// W: waits, answers, interrupted with open waits.
func waitConfigs() []config {
	all := [answerers]bool{true, true, true, true}
	three := [answerers]bool{true, true, true, false}
	waits := func(who [answerers]bool, of budget, verbs ...uint8) world {
		return world{budget: times(of), suspensions: 1, answers: who, verbs: verbs}
	}
	back := waits(bothAnswer, budget{crashes: 1}, cancel, abort, goBack)
	return []config{
		{name: "W1 all rules: 2 answers, one twice, expiry, 2 crashes", world: waits(all, budget{crashes: 2})},
		{name: "W2 all rules: the same, crash, freeze, duplicate", world: waits(all, budget{crashes: 1, freezes: 1, duplicates: 1})},
		{name: "W3 all rules: cancel, abort, going back, 2 answers, crash", world: back},
		{name: "W4 all rules: interrupt, continue, 2 answers, expiry, crash", world: waits(three, budget{crashes: 1}, interrupt, proceed)},
		{name: "W5 all rules: interrupt, continue, 2 answers, freeze, duplicate", world: waits(bothAnswer, budget{freezes: 1, duplicates: 1}, interrupt, proceed)},
		{name: "W10 the sweep leaves the due of an interrupted session", breaks: breaks("unending"), world: waits(bothAnswer, budget{}, interrupt, proceed), off: func(r *rules) { r.ClearDue = false }},
		{name: "W11 continue neither looks nor sets due", breaks: breaks(stuck), world: waits(bothAnswer, budget{}, interrupt, proceed), off: func(r *rules) { r.LookAgain, r.DueAgain = false, false }},
		{name: "W12 continue looks and sets no due", breaks: breaks(stuck), world: waits(bothAnswer, budget{crashes: 1}, interrupt, proceed), off: func(r *rules) { r.DueAgain = false }},
		{name: "W13 the sweep takes a due away that it did not see", breaks: breaks(stuck), world: waits(bothAnswer, budget{crashes: 1}, interrupt, proceed), off: func(r *rules) { r.ClearSeen = false }},
		{name: "W14 leaving a suspension leaves its waits open", breaks: breaks("forgotten"), world: waits(bothAnswer, budget{}, cancel), off: func(r *rules) { r.CloseWaits = false }},
		{name: "W15 and is not conditioned on what was seen", breaks: breaks("forgotten"), world: waits(bothAnswer, budget{}, cancel), off: func(r *rules) { r.WaitsAsSeen = false }},
	}
}

// C: closing calls that have not run.
func callConfigs() []config {
	waits := world{budget: times(budget{crashes: 1, freezes: 1}), suspensions: 1, answers: bothAnswer, verbs: []uint8{cancel}}
	calm := waits
	calm.budget = times(budget{crashes: 2})
	effect := world{budget: times(budget{effectSteps: 1, crashes: 1, freezes: 1}), verbs: []uint8{cancel, abort}}
	return []config{
		{name: "C1 all rules: an approved call, cancel, crash, freeze", world: waits},
		{name: "C2 all rules: an effect, cancel, abort, crash, freeze", world: effect},
		{name: "C10 the ledger is not closed", breaks: breaks("lies"), world: effect, off: func(r *rules) { r.CloseCall = false }},
		{name: "C11 the ledger is closed before the commit", breaks: breaks("denied"), world: waits, off: func(r *rules) { r.CloseInCommit = false }},
		{name: "C12 and a closed call stands everybody back", breaks: breaks(stuck), world: calm, off: func(r *rules) { r.CloseInCommit, r.ClosedResult = false, false }},
		{name: "C13 what is found started or finished counts as not run", breaks: breaks("lies"), world: effect, off: func(r *rules) { r.AsFound = false }},
	}
}

// B: going back, retry; X: deleting.
func backConfigs() []config {
	back := func(of budget, verbs ...uint8) world {
		return world{budget: times(of), suspensions: 3, answers: bothAnswer, denyAgain: true, verbs: verbs}
	}
	once := func(of budget, verbs ...uint8) world {
		w := back(of, verbs...)
		w.suspensions = 1
		return w
	}
	waits := func(of budget, verbs ...uint8) world {
		return world{budget: times(of), suspensions: 2, answers: bothAnswer, verbs: verbs}
	}
	frozen := func() budget { return budget{freezes: 1} }
	return []config{
		{name: "B1 all rules: interrupt, going back, 2 answers, the second time denied, freeze", world: back(frozen(), interrupt, goBack)},
		{name: "B2 all rules: the same, crash", world: back(budget{crashes: 1}, interrupt, goBack)},
		{name: "B3 all rules: interrupt, going back, continue, duplicate", world: back(budget{duplicates: 1}, interrupt, goBack, proceed)},
		{name: "B4 all rules: two ways back at once, 2 answers, crash", world: once(budget{crashes: 1}, goBack, restart)},
		{name: "B5 all rules: going back against cancel, 2 answers, freeze", world: once(frozen(), goBack, cancel)},
		{name: "B6 all rules: going back against abort, 2 answers, crash", world: once(budget{crashes: 1}, goBack, abort)},
		{name: "B7 all rules: retry, cancel, abort, crash, freeze, duplicate", world: world{budget: times(budget{failures: 2, crashes: 1, freezes: 1, duplicates: 1}), verbs: []uint8{restart, cancel, abort}}},
		{name: "B8 all rules: retry with a suspension, abort", world: waits(budget{failures: 1}, restart, abort)},
		{name: "B10 going back closes no ledger", breaks: breaks("unlisted"), world: back(frozen(), interrupt, goBack), off: func(r *rules) { r.CloseLeft = false }},
		{name: "B11 and asks under the same call id", breaks: breaks("unapproved"), world: back(frozen(), interrupt, goBack), off: func(r *rules) { r.CloseLeft, r.NewCall, r.TakeOutcome = false, false, false }},
		{name: "B12 going back is not conditioned on the ledgers it listed", breaks: breaks("unlisted"), world: back(frozen(), interrupt, goBack), off: func(r *rules) { r.AsListed = false }},
		{name: "X1 all rules: delete, 2 answers, 2 freezes", world: waits(budget{freezes: 2}, remove)},
		{name: "X2 all rules: delete, interrupt, 2 answers, crash", world: waits(budget{crashes: 1}, remove, interrupt)},
		{name: "X3 all rules: delete against going back, 2 answers, duplicate", world: once(budget{duplicates: 1}, remove, goBack)},
		{name: "X10 entries and ledgers are removed, only HEAD stays", breaks: breaks("after delete", "run deleted", "twice"), world: waits(budget{freezes: 2}, remove), off: func(r *rules) { r.Stubs = false }},
		{name: "X11 delete closes no call", breaks: breaks("run deleted"), world: waits(frozen(), remove), off: func(r *rules) { r.DeleteCloses = false }},
	}
}

// Z: much at once.
func allConfigs() []config {
	both := func(of budget, verbs ...uint8) world {
		of[effectSteps] = 1
		return world{budget: times(of), suspensions: 1, answers: bothAnswer, verbs: verbs}
	}
	probe := both(budget{freezes: 2}, cancel, interrupt)
	probe.policy, probe.suspensions = "probe", 0
	apart := both(budget{crashes: 1, duplicates: 1}, interrupt, proceed)
	apart.apart = true
	return []config{
		{name: "Z1 all rules: an effect, a suspension, 2 answers, cancel, crash", world: both(budget{crashes: 1}, cancel)},
		{name: "Z2 all rules: an effect, a suspension, 2 answers, interrupt, continue, crash, duplicate", world: apart},
		{name: "Z3 all rules: an effect that is probed, interrupt, cancel, 2 freezes", world: probe},
		{name: "Z4 all rules: an effect, a suspension, mail, cancel, 2 answers", world: both(budget{renewals: 1}, mail, cancel)},
	}
}
