package answers

import (
	"encoding/json"
	"slices"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// WithAnswer is an open wait with its answer, or with one more vote where the votes do not decide
// yet: then it stays open. Both are one conditional write of the wait. only says that no other wait was open before: an
// answer that is only stored is then known to be the last one. After any other answer the sweep
// continues the session if the caller's process dies before it does so.
func WithAnswer(item store.Item, answer session.Answer, hold, only bool) store.Item {
	record := answeredRecord(item)
	if answer.Kind == session.AnswerApproval && record.Wait.Votes() && !vote(&record, &answer) {
		return store.WaitItem(record, item.Rev)
	}
	if answer.Standing != nil { // an older program would lose it
		record.Wait.Needs = append(slices.Clone(record.Wait.Needs), session.NeedsStanding)
	}
	record.State, record.Answer, record.Held, record.HeldLast, record.Due = session.WaitAnswered, &answer, hold, hold && only, nil
	if !record.HeldLast {
		record.Due = new(answer.When.Add(engine.AnsweredGrace))
	}
	return store.WaitItem(record, item.Rev)
}

// answeredRecord returns a copy of a wait's record for an answer that is given now. A wait that a program without
// seals has opened gets one: whoever takes the answer in compares the wait with the entry that opened it.
func answeredRecord(item store.Item) journal.WaitRecord {
	record := *item.Wait
	if journal.SealOf(&record) == journal.SealNone {
		journal.SetSeal(&record, journal.SealWhole)
	}
	return record
}

// OnlyOpen reports whether of these waits a wait is the only open one. Waits are
// opened with their suspension and only close after that, so what is the only open
// one before it is answered is answered last.
func OnlyOpen(items []store.Item, item store.Item) bool {
	return !slices.ContainsFunc(items, func(other store.Item) bool {
		return other.ID != item.ID && other.Wait.State == session.WaitOpen
	})
}

// CheckSettled refuses an answer to a wait that is not open any more to who gives it, unless it says
// what was answered before.
func CheckSettled(key session.Key, record journal.WaitRecord, answer session.Answer, by Caller) error {
	given := Given(record, by)
	switch {
	case given == nil:
		return TooLate(key, record)
	case Same(*given, answer):
		return nil
	}
	return AnsweredDifferently(key, record.Wait, given, answer)
}

// SettledByPeople reports whether a person or a program answered a wait (it did not expire).
func SettledByPeople(record journal.WaitRecord) bool {
	return record.Answer != nil && record.State != session.WaitExpired && record.Answer.Kind != session.AnswerExpiry
}

// AnsweredDifferently refuses an answer because another one came first, which it names.
func AnsweredDifferently(key session.Key, w session.Wait, first *session.Answer, answer session.Answer) *refusal.Error {
	how := "differently"
	if onlyReason(*first, answer) {
		how = "with another reason"
	}
	e := refusal.New(codes.AlreadyAnswered, key, "%s was answered before, %s, by %s at %s. The first answer counts", Label(w), how, first.Who, first.When.Format("2006-01-02 15:04:05 MST"))
	e.Answer = first
	return e
}

// TooLate refuses an answer to a wait that has expired or was closed.
func TooLate(key session.Key, record journal.WaitRecord) error {
	if record.State == session.WaitClosed {
		return refusal.New(codes.SessionEnded, key, "%s was closed before this answer came: the session continued without it", Label(record.Wait))
	}
	at := ""
	if d := record.Wait.Deadline; d != nil {
		at = " at " + d.At.Format("2006-01-02 15:04:05 MST")
	}
	what := "what was declared for its deadline counted instead"
	if record.State != session.WaitTaken {
		what = "its declared outcome counts as soon as the session goes on; nothing has run yet"
	}
	return refusal.New(codes.Expired, key, "%s expired%s: %s", Label(record.Wait), at, what)
}

// Same reports whether two answers decide the same, whatever their authors, their times and
// the way they named the wait. Another reason is another answer; the order of a selection does
// not count.
func Same(a, b session.Answer) bool { return decisionDigest(a) == decisionDigest(b) }

// onlyReason reports whether two answers decide the same for different reasons.
func onlyReason(a, b session.Answer) bool {
	a.Reason = b.Reason
	return Same(a, b)
}

// decisionDigest identifies what an answer decides.
func decisionDigest(a session.Answer) string {
	selected := slices.Clone(a.Selected)
	slices.Sort(selected)
	if a.Standing != nil { // when it ends follows from when it is given
		a.Standing = &session.Standing{For: a.Standing.For, Conditions: a.Standing.Conditions}
	}
	raw, err := json.Marshal(session.Answer{
		Kind: a.Kind, Approved: a.Approved, Reason: a.Reason, EditedInput: a.EditedInput, Standing: a.Standing, Result: a.Result, Error: a.Error,
		Selected: selected, Text: a.Text, Message: a.Message, Status: a.Status, Verdict: a.Verdict, Outcome: a.Outcome,
	})
	if err != nil {
		return "" // an answer was checked before: its values are JSON
	}
	return journal.Digest(raw)
}
