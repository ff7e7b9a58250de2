// Package rules lists the sentences of the design that a configuration can switch off.
package rules

// Rules are all of them, and on in [All]; the comment says what the rule is, in the order of docs/design/chain.md.
type Rules struct {
	// CommitFirst: commit, send, acknowledge, in this order.
	CommitFirst bool
	// ClosedByEntry: an entry with seq ≥ lease.seq closes the lease unless it carries keepsLease; otherwise only time does.
	ClosedByEntry bool
	// NeverBack: lease.seq never goes back.
	NeverBack bool
	// MoveLease: the lease goes on to the next entry with the invocation that goes on, and the entry says keepsLease.
	MoveLease bool
	// Bounded: a lease further ahead than leases last counts as lapsed.
	Bounded bool
	// ClaimToWork: k = n+1: claim, work; who was refused does not work, whatever became of the lease since.
	ClaimToWork bool
	// OwnRefusal: a refusal that shows our own attempt id is a success whose answer was lost.
	OwnRefusal bool

	// The rows of the table. EndedRow: ended: acknowledge.
	EndedRow bool
	// StaleStep: step; suspended or interrupted.
	StaleStep bool
	// OpenWait: resume; suspended with a wait open: acknowledge.
	OpenWait bool
	// StayInterrupted: resume; interrupted: acknowledge.
	StayInterrupted bool
	// KeepOld: k ≤ n, running, lease live: keep the message.
	KeepOld bool
	// OtherMessage: k ≤ n, no live lease, entry n written for another message: acknowledge.
	OtherMessage bool
	// ByName: a message that was sent again is another one, though it asks for the same entry.
	ByName bool
	// SendAgain: k ≤ n, no live lease, entry n written for this one: send n+1.
	SendAgain bool
	// Grace: the same, while entry n is young: come back after it.
	Grace bool
	// KeepNext: k = n+1, lease live elsewhere: keep the message.
	KeepNext bool

	// WinnerSends: whoever wins an entry and has lost the lease sends n+1 before it acknowledges.
	WinnerSends bool
	// Sweep: it finds what was committed and never sent.
	Sweep bool
	// LookAfter: an answerer reads the open waits after its own update.
	LookAfter bool

	// KeepSignal: a claim reads the signal; only the entry that obeys it clears it.
	KeepSignal bool
	// LookAtHead: a revision of HEAD taken over during the step is looked at.
	LookAtHead bool
	// MailWithHead: mail is put in one transaction with HEAD, and suspending and finishing are conditioned on its count.
	MailWithHead bool
	// StopTakesMail: the entry that obeys a signal takes the mail of HEAD's revision in, and is conditioned on its count.
	StopTakesMail bool
	// EndSeesSignal: suspending and finishing are conditioned on HEAD's signal.
	EndSeesSignal bool
	// DelaySeesHead: so is delayed, on signal and mail.
	DelaySeesHead bool
	// Stronger: a stronger signal replaces a weaker one, never the reverse.
	Stronger bool
	// SameTask: strength is compared within one task.
	SameTask bool
	// SameRevision: a signal is written only onto the revision of HEAD that was read.
	SameRevision bool
	// NobodyWorks: where nobody works the verb commits the consequence itself.
	NobodyWorks bool
	// ObeySame: the entry that obeys is conditioned on HEAD's signal being the one it obeys.
	ObeySame bool
	// Strongest: a verb obeys the stronger of its own signal and HEAD's.
	Strongest bool
	// StopClaims: a verb that stops a step that nobody works on claims it, and its entry is conditioned on that claim.
	StopClaims bool

	// ClearDue: the sweep takes the due of an answered wait away while interrupted.
	ClearDue bool
	// ClearSeen: and only from the wait on which it saw that due.
	ClearSeen bool
	// DueAgain: continue's suspended sets HEAD's due.
	DueAgain bool
	// LookAgain: continue looks at the open waits after its commit, like an answerer.
	LookAgain bool

	// CloseWaits: leaving a suspension closes its open waits in the same transaction.
	CloseWaits bool
	// WaitsAsSeen: and is conditioned on the waits that the writer saw.
	WaitsAsSeen bool

	// CloseCall: a call that is given up is closed in the ledger, if it has not run.
	CloseCall bool
	// CloseInCommit: in the transaction of the entry that says so.
	CloseInCommit bool
	// AsFound: found started it is unknown, found finished its result counts.
	AsFound bool
	// ClosedResult: the owner of the lease that finds its call closed takes "not run" as its result.
	ClosedResult bool

	// CloseLeft: going back closes the calls left behind that have not run.
	CloseLeft bool
	// AsListed: and is conditioned on the ledgers that the list of effects showed.
	AsListed bool
	// NewCall: what is asked anew gets a new call id.
	NewCall bool
	// TakeOutcome: a call found started or finished is not asked again.
	TakeOutcome bool

	// DeleteCloses: deleted closes calls that have not run.
	DeleteCloses bool
	// Stubs: entries and ledgers of a deleted session are replaced by stubs, not removed.
	Stubs bool
	// SweepRemoves: what is deleted and not removed yet is due, and the sweep removes it.
	SweepRemoves bool
	// ExpireSeen: retention deletes only the session that it saw: what has moved on stays.
	ExpireSeen bool

	// HaltHolds: no step begins, and no suspension is left, while a halt holds the session: the worker
	// gives its lease back and acknowledges its message.
	HaltHolds bool
	// HaltBetween: nor does the next one of an invocation that goes on.
	HaltBetween bool
	// HaltSweep: the sweep sends nothing for what is held, and so finds it when the halt is lifted.
	HaltSweep bool
	// HaltObeys: a signal is obeyed nevertheless, and sent for.
	HaltObeys bool

	// KeepReply: a committed reply is never rolled back.
	KeepReply bool
	// Mark: a side effect is marked as started, if absent, before it runs.
	Mark bool
	// TakeBack: an own mark of a call that has not begun is taken back with the entry that obeys a signal.
	TakeBack bool
	// OwnMark: a mark that may have been written is taken back only where it is the worker's own.
	OwnMark bool
	// OwnerTells: unknown is said only by the owner of the lease.
	OwnerTells bool
	// MarkFirst: at-least-once tools: mark, then renew; otherwise renew, then mark.
	MarkFirst bool
	// OwnClock: start only while the worker's own clock says that the renewal is fresh.
	OwnClock bool

	// CountClaims: dead letters fail a task by claims that died, and nothing else.
	CountClaims bool
	// GivenBack: a claim that was given back did not die.
	GivenBack bool
}

// All returns them switched on.
func All() Rules {
	return Rules{
		CommitFirst: true, ClosedByEntry: true, NeverBack: true, MoveLease: true, Bounded: true, ClaimToWork: true, OwnRefusal: true,
		EndedRow: true, StaleStep: true, OpenWait: true, StayInterrupted: true, KeepOld: true, OtherMessage: true, ByName: true, SendAgain: true, Grace: true, KeepNext: true,
		WinnerSends: true, Sweep: true, LookAfter: true,
		KeepSignal: true, LookAtHead: true, MailWithHead: true, StopTakesMail: true, EndSeesSignal: true, DelaySeesHead: true, Stronger: true, SameTask: true,
		SameRevision: true, NobodyWorks: true, ObeySame: true, Strongest: true, StopClaims: true,
		ClearDue: true, ClearSeen: true, DueAgain: true, LookAgain: true, CloseWaits: true, WaitsAsSeen: true,
		CloseCall: true, CloseInCommit: true, AsFound: true, ClosedResult: true, CloseLeft: true, AsListed: true, NewCall: true, TakeOutcome: true,
		DeleteCloses: true, Stubs: true, SweepRemoves: true, ExpireSeen: true,
		HaltHolds: true, HaltBetween: true, HaltSweep: true, HaltObeys: true,
		KeepReply: true, Mark: true, TakeBack: true, OwnMark: true, OwnerTells: true, MarkFirst: true, OwnClock: true, CountClaims: true, GivenBack: true,
	}
}
