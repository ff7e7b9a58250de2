package answers

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// MaxExtension is how far ahead an extended deadline may be.
const MaxExtension = 30 * 24 * time.Hour

// maxName is how long the name of a person may be to whom a wait is delegated, in characters.
const maxName = 256

// CheckAct refuses an act that is not complete, whatever wait it is about, and tidies it up.
func CheckAct(key session.Key, act *session.WaitAct) error {
	act.Reason, act.To = strings.TrimSpace(act.Reason), strings.TrimSpace(act.To)
	if err := refusal.CheckReason(key, act.Reason); err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return refusal.New(codes.InvalidInput, key, format, args...) }
	switch act.Kind {
	case session.ActDismissed:
		if act.Reason == "" {
			return bad("to dismiss needs a reason: the agent is told, and who looks later")
		}
	case session.ActExtended:
		if act.Deadline == nil || act.Deadline.IsZero() {
			return bad("to extend needs a deadline: say until when it is to wait")
		}
		// As it is stored: a request that is repeated has the same.
		act.Deadline = new(act.Deadline.UTC().Truncate(time.Millisecond))
	case session.ActDelegated:
		switch {
		case act.To == "":
			return bad("to delegate needs a person: say to whom")
		case !utf8.ValidString(act.To) || utf8.RuneCountInString(act.To) > maxName || strings.ContainsFunc(act.To, unicode.IsControl):
			return bad("the person to delegate to has to be a name of at most %d characters, in one line", maxName)
		case act.To == act.Who:
			return bad("%q cannot delegate to themselves", act.Who)
		}
	case session.ActReminded, session.ActEscalated, session.ActStoodIn: // nobody asks for those
		fallthrough
	default:
		return bad("there is no act called %q", act.Kind)
	}
	if act.Kind != session.ActExtended && act.Deadline != nil || act.Kind != session.ActDelegated && act.To != "" {
		return bad("a deadline goes with an extension, a person with a delegation")
	}
	return nil
}

// Apply returns the record of an open wait with an act, which who asks for it may do. repeated says
// that the very same was done before, so that nothing is left to do. The caller has refused a wait
// that is overdue.
func Apply(key session.Key, record journal.WaitRecord, act session.WaitAct, by Caller) (changed journal.WaitRecord, repeated bool, err error) {
	if err := CheckWho(key, record.Wait, by); err != nil {
		return record, false, err
	}
	if doneBefore(record, act) {
		return record, true, nil
	}
	switch {
	case record.State == session.WaitOpen:
	case SettledByPeople(record):
		e := refusal.New(codes.AlreadyAnswered, key, "%s was answered before, by %s at %s. Nothing is left to do about it", Label(record.Wait), record.Answer.Who, record.Answer.When.Format("2006-01-02 15:04:05 MST"))
		e.Answer = record.Answer
		return record, false, e
	default:
		return record, false, TooLate(key, record)
	}
	// A dismissal is the answer, and takes no room among the acts.
	if done := ofPeople(record.Acts); act.Kind != session.ActDismissed && done >= session.MaxWaitActs {
		return record, false, refusal.New(codes.TooManyActs, key, "%s was extended and delegated %d times, and no more is kept. Answer it, or dismiss it", Label(record.Wait), done)
	}
	if person := standsFor(record, by); person != "" && act.Kind == session.ActDelegated {
		return record, false, refusal.New(codes.NotAllowed, key, "%s is not delegated by who stands in for %q: that would last for longer than they are away. Answer it, or leave it", Label(record.Wait), person)
	}
	record = *StoodIn(store.WaitItem(record, 0), act, by).Wait
	switch act.Kind {
	case session.ActDismissed:
		err = dismiss(key, &record, act, by)
	case session.ActExtended:
		err = extend(key, &record, act)
	case session.ActDelegated:
		err = delegate(key, &record, act)
	case session.ActReminded, session.ActEscalated, session.ActStoodIn: // nobody asks for them
	}
	return record, false, err
}

// ofPeople counts the acts of people.
func ofPeople(acts []session.WaitAct) (n int) {
	for _, act := range acts {
		if act.OfPeople() {
			n++
		}
	}
	return n
}

// doneBefore reports whether the same person has done the same to a wait.
func doneBefore(record journal.WaitRecord, act session.WaitAct) bool {
	if act.Kind == session.ActDismissed {
		a := record.Answer
		return a != nil && a.Kind == session.AnswerDismissal && a.Reason == act.Reason && a.Who == act.Who
	}
	return slices.ContainsFunc(record.Acts, func(did session.WaitAct) bool {
		return did.Kind == act.Kind && did.Who == act.Who && did.Reason == act.Reason && did.To == act.To &&
			(act.Deadline == nil || did.Deadline != nil && did.Deadline.Equal(*act.Deadline))
	})
}

// dismiss answers a wait with a dismissal. An older program would not know what that means, so the
// record names it.
func dismiss(key session.Key, record *journal.WaitRecord, act session.WaitAct, by Caller) error {
	switch w := record.Wait; w.Kind {
	case session.WaitChild:
		return refusal.New(codes.WrongKind, key, "%s is another session, which ends by itself: cancel that one", Label(w))
	case session.WaitInput:
		return refusal.New(codes.WrongKind, key, "%s asks for a message, of no call: cancel the session instead, or send it a message", Label(w))
	case session.WaitApproval, session.WaitQuestion, session.WaitClientTool, session.WaitUnknown:
	}
	if w := record.Wait; w.Rule != nil && w.Rule.Noes > 1 {
		return refusal.New(codes.NotAllowed, key, "%s is ended by %d noes, so that nobody dismisses it alone", Label(w), w.Rule.Noes)
	}
	answer := session.Answer{
		Wait: record.Wait.ID, Kind: session.AnswerDismissal, ToolCallID: record.Wait.Call, Reason: act.Reason,
		Who: act.Who, For: InPlaceOf(*record, by), When: act.At, From: act.From, Votes: record.Votes, Escalated: session.Escalated(record.Acts),
	}
	if record.Wait.Question != nil {
		answer.QuestionID = record.Wait.Question.ID
	}
	record.Answer = &answer
	record.Wait.Needs = append(slices.Clone(record.Wait.Needs), session.NeedsDismissal)
	return nil
}

// extend moves the deadline of the record, and with it when the sweep looks. Whoever reads the record
// goes by the new one, also a program that does not know acts.
func extend(key session.Key, record *journal.WaitRecord, act session.WaitAct) error {
	was, until := record.Wait.Deadline, *act.Deadline
	switch {
	case was == nil:
		return refusal.New(codes.NoDeadline, key, "%s has no deadline: it waits until somebody answers", Label(record.Wait))
	case !until.After(was.At):
		return refusal.New(codes.InvalidInput, key, "%s waits until %s: an extension has to be later", Label(record.Wait), was.At.Format(time.RFC3339))
	case until.After(act.At.Add(MaxExtension)):
		return refusal.New(codes.InvalidInput, key, "a deadline can be extended to %d days from now at most, which is %s", int(MaxExtension/(24*time.Hour)), act.At.Add(MaxExtension).Format(time.RFC3339))
	}
	later := *was
	later.At = until
	record.Wait.Deadline = &later
	record.Acts = append(slices.Clone(record.Acts), act)
	record.Due = record.Wait.Due(record.Acts)
	return nil
}

// delegate lets another person answer in the place of who delegates. Where the record lists who may
// answer, that person is added; where everyone may, it only says to whom the wait is now.
func delegate(key session.Key, record *journal.WaitRecord, act session.WaitAct) error {
	w := &record.Wait
	switch {
	case w.Kind == session.WaitChild:
		return refusal.New(codes.WrongKind, key, "%s is another session, which ends by itself: nobody answers it", Label(*w))
	case len(w.Who) > 0 && slices.Contains(w.Who, act.To):
		return refusal.New(codes.InvalidInput, key, "%s may be answered by %q already", Label(*w), act.To)
	case len(w.Who) > 0 || w.Rule != nil && len(w.Rule.Roles) > 0:
		w.Who = append(slices.Clone(w.Who), act.To)
	}
	// A rule that keeps a person out keeps them out here too: whoever may not answer what the list of
	// people says now cannot be delegated to.
	if !MayAnswer(*w, Caller{Who: act.To}) {
		return refusal.New(codes.NotAllowed, key, "%s cannot be delegated to %q, who may not answer it", Label(*w), act.To)
	}
	record.Acts = append(slices.Clone(record.Acts), act)
	return nil
}
