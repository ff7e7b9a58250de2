package tool

import (
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// The words of a tool's definition. Each is an alias of the type or constant of the
// same name in package session, so that a program that defines tools imports tool alone.
type (
	// Effect says what a tool does to the world: [ReadOnly], [Idempotent] or [SideEffect].
	Effect = session.Effect
	// UnknownPolicy says what happens when it is not known whether a side effect happened:
	// [UnknownTell], [UnknownAsk], [UnknownProbe] or [UnknownRetry].
	UnknownPolicy = session.UnknownPolicy
	// DeadlineOutcome says what happens when a deadline passes without an answer:
	// [ExpireDeny], [ExpireDefault], [ExpireFail] or [ExpireReask].
	DeadlineOutcome = session.DeadlineOutcome
	// Escalation is whom a deadline asks as well when it has passed, and how long they have.
	Escalation = session.Escalation
	// Choice is one answer to choose from: ID is what [Reply].Selected holds, Label what
	// is shown to people beside it.
	Choice = session.Choice
	// Preview is what [Spec].Show returns: a title, a risk, money, a diff of two texts, links.
	Preview = session.Preview
	// Diff is a text before and after a call.
	Diff = session.Diff
	// Link leads to more about a call: its URL is http or https.
	Link = session.Link
	// Money is an amount as decimal text and the three letters of its currency.
	Money = session.Money
	// Risk says how much a person should mind a call: [RiskLow], [RiskMedium] or [RiskHigh].
	Risk = session.Risk
	// Assurance says how sure it must be who answers: [AssuranceLink] or [AssuranceSignedIn].
	Assurance = session.Assurance
)

// Standing lets a person who approves a call allow later ones beside it.
type Standing struct {
	// MaxAge is how long such a permission lasts at most; zero means 24 hours, which is the most.
	MaxAge time.Duration
}

// The risks. A [Preview] that names none says nothing about it.
const (
	RiskLow    = session.RiskLow
	RiskMedium = session.RiskMedium
	RiskHigh   = session.RiskHigh
)

// The effects. A [Spec] that names none means SideEffect.
const (
	// ReadOnly tools change nothing: after a crash the step is done again.
	ReadOnly = session.ReadOnly
	// Idempotent tools may run again with the same idempotency key.
	Idempotent = session.Idempotent
	// SideEffect tools run at most once.
	SideEffect = session.SideEffect
)

// The policies for a side effect of which it is not known whether it happened, because
// its worker died. A [Spec] that names none means UnknownTell.
const (
	// UnknownTell tells the model.
	UnknownTell = session.UnknownTell
	// UnknownAsk asks a person what they found out.
	UnknownAsk = session.UnknownAsk
	// UnknownProbe asks the tool's Probe.
	UnknownProbe = session.UnknownProbe
	// UnknownRetry runs the tool again: it then runs at least once.
	UnknownRetry = session.UnknownRetry
)

// The assurances. A [Spec] that names none means AssuranceLink.
const (
	// AssuranceLink lets a signed link answer as well, which proves that it was delivered.
	AssuranceLink = session.AssuranceLink
	// AssuranceSignedIn lets only those answer who have signed in.
	AssuranceSignedIn = session.AssuranceSignedIn
)

// The outcomes of a deadline.
const (
	// ExpireDeny counts as a denial: an approval is refused, Ask returns [ErrExpired].
	ExpireDeny = session.ExpireDeny
	// ExpireDefault answers with the value of the [Expiry].
	ExpireDefault = session.ExpireDefault
	// ExpireFail fails the task.
	ExpireFail = session.ExpireFail
	// ExpireReask asks again.
	ExpireReask = session.ExpireReask
)
