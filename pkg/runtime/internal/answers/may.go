package answers

import (
	"errors"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Caller is the user of a verb and the place the request came from; both are recorded. Callers see it
// as the type of package runtime.
type Caller struct {
	Who  string
	From string
	// Roles that are known of who answers.
	Roles []string
	// ByLink says that the request came by a signed link, which proves delivery and not who somebody is.
	// Who is then whom the link was made for.
	ByLink bool
	// OneUser says that the caller is the one user of a data file, whose name tells nobody apart.
	OneUser bool
	// NotSignedIn says that it is known who this is by a way that is not counted as having signed in.
	NotSignedIn bool
	// Unverified says that nobody has verified who this is.
	Unverified bool

	// standIns are those in force, of somebody who may answer a wait only as who stands in ([Checker.StandingIn]).
	standIns []session.StandIn
}

// CheckWho refuses a caller who may not answer a wait. Every door comes by here, for every kind of
// answer, right before it is written, and a message that would abandon the wait.
func CheckWho(key session.Key, w session.Wait, by Caller) error {
	if err := mayAnswer(key, w, by); err != nil {
		return err
	}
	return nil
}

// MayAnswer reports whether a caller may answer a wait.
func MayAnswer(w session.Wait, by Caller) bool { return mayAnswer(session.Key{}, w, by) == nil }

func mayAnswer(key session.Key, w session.Wait, by Caller) *refusal.Error {
	rule := w.Rule
	if rule == nil {
		rule = new(session.AnswerRule)
	}
	people, requester := by.places(w)
	switch {
	case !w.IsNamed(by.Who, by.Roles) && len(people) == 0 && requester != "":
		return refusal.New(codes.RequesterMayNotAnswer, key, "%s may not be answered in the place of %q, who asked for the task, nor by whom they have named", Label(w), requester)
	case !w.IsNamed(by.Who, by.Roles) && len(people) == 0:
		return refusal.New(codes.NotAllowed, key, "%s may be answered by %s only, not by %q", Label(w), whom(w), by.Who)
	case by.Who == "" && (w.Votes() || rule.NotRequester):
		return refusal.New(codes.NotAllowed, key, "%s may be answered by somebody with a name only", Label(w))
	case by.Unverified && (w.Votes() || rule.NotRequester || rule.Assurance == session.AssuranceSignedIn):
		return refusal.New(codes.SignInRequired, key, "%s may be answered by who has signed in only, and nobody does here", Label(w))
	case by.ByLink && w.NeedsSignIn():
		return refusal.New(codes.SignInRequired, key, "%s may be answered by who has signed in only: a link proves that it was delivered, and not who uses it", Label(w))
	case by.NotSignedIn && w.NeedsSignIn():
		return refusal.New(codes.SignInRequired, key, "%s may be answered by who has signed in only, and to be known in %s is not counted as that here", Label(w), by.From)
	case !rule.NotRequester:
		return nil
	case by.OneUser:
		return refusal.New(codes.RequesterMayNotAnswer, key, "%s may not be answered by who asked for the task, and a data file knows one user only, %q. Serve it with adjourn dev and a file of api-keys that has a key for each person, and answer with theirs", Label(w), by.Who)
	case len(w.Requesters) == 0:
		return refusal.New(codes.RequesterMayNotAnswer, key, "%s may not be answered by who asked for the task, and it is not known who that was", Label(w))
	case slices.Contains(w.Requesters, by.Who):
		return refusal.New(codes.RequesterMayNotAnswer, key, "%s may not be answered by %q, who asked for the task", Label(w), by.Who)
	}
	return nil
}

// whom says who may answer a wait that not everybody may.
func whom(w session.Wait) string {
	who := slices.Clone(w.Who)
	if w.Rule != nil && len(w.Rule.Roles) > 0 {
		who = append(who, "the role "+strings.Join(w.Rule.Roles, " or "))
	}
	return strings.Join(who, ", ")
}

// Given returns what counts of what was said on a wait before: of one who has voted the vote, else
// the answer of a person or a program; nil for none.
func Given(record journal.WaitRecord, by Caller) *session.Answer {
	i := voteOf(record, by)
	switch {
	case i >= 0 && (record.Answer == nil || record.Answer.Who != record.Votes[i].Who || record.Answer.Kind == session.AnswerExpiry):
		w, v := record.Wait, record.Votes[i]
		return &session.Answer{
			Wait: w.ID, Kind: session.AnswerApproval, ToolCallID: w.Call, ApprovalID: w.Nonce, Approved: &v.Approved, Reason: v.Reason, Digest: v.Digest,
			Who: v.Who, For: v.For, When: v.When, From: v.From,
		}
	case SettledByPeople(record):
		return record.Answer
	}
	return nil
}

// TakesFrom reports whether a wait is open to somebody, who has not voted on it.
func TakesFrom(record journal.WaitRecord, by Caller) bool {
	return record.State == session.WaitOpen && voteOf(record, by) < 0
}

// voteOf returns which vote is somebody's, or that of a person in whose place they answer; -1 for none.
func voteOf(record journal.WaitRecord, by Caller) int {
	mine := voices(record, by)
	return slices.IndexFunc(record.Votes, func(v session.Vote) bool { return anyOf(heard(record, v), mine) })
}

// voices are the people who have one voice together when somebody answers a wait. Who may answer it anyway
// speaks for themselves, whoever delegated to them: else it could be delegated to them to take their no away.
// Anybody else speaks for all who delegated it on to them, or for who is away and those who delegated it to that one.
func voices(record journal.WaitRecord, by Caller) []string {
	if mayAnyway(record, by) {
		return []string{by.Who}
	}
	people := chain(record.Acts, by.Who)
	if person := standsFor(record, by); person != "" {
		people = append(people, chain(record.Acts, person)...)
	}
	return people
}

// mayAnyway reports whether a wait lets somebody answer without anybody's delegating it to them.
func mayAnyway(record journal.WaitRecord, by Caller) bool {
	w := record.Wait
	w.Who = slices.DeleteFunc(slices.Clone(w.Who), func(who string) bool {
		return !session.EscalatedTo(record.Acts, who) &&
			slices.ContainsFunc(record.Acts, func(act session.WaitAct) bool { return act.Kind == session.ActDelegated && act.To == who })
	})
	return w.IsNamed(by.Who, by.Roles)
}

// chain is who, the person who delegated to them, the one who did to that one, and so on.
func chain(acts []session.WaitAct, who string) []string {
	people := []string{who}
	for _, act := range slices.Backward(acts) {
		if act.Kind == session.ActDelegated && act.To == people[len(people)-1] {
			people = append(people, act.Who)
		}
	}
	return people
}

// InPlaceOf is the person in whose place somebody answers a wait; empty for who answers for themselves.
func InPlaceOf(record journal.WaitRecord, by Caller) string {
	people := voices(record, by)
	if first := people[len(people)-1]; first != by.Who {
		return first
	}
	return ""
}

// Missing returns how many more must approve a wait that is open to votes; 0 of any other.
func Missing(record journal.WaitRecord) int {
	if record.State != session.WaitOpen || !record.Wait.Votes() {
		return 0
	}
	return record.Wait.Tally(record.Votes, record.Acts).Missing
}

// vote adds the vote that an answer is, and reports whether the votes decide. The answer is then that
// of all who voted.
func vote(record *journal.WaitRecord, answer *session.Answer) bool {
	record.Votes = append(slices.Clip(record.Votes), session.Vote{
		Who: answer.Who, For: answer.For, When: answer.When, From: answer.From, Approved: *answer.Approved, Reason: answer.Reason, Digest: answer.Digest,
	})
	tally := record.Wait.Tally(record.Votes, record.Acts)
	answer.Votes, answer.Approved = record.Votes, &tally.Approved
	return tally.Decided
}

// checkVote refuses a vote that changes what it is about, or says more than votes have room for.
func checkVote(key session.Key, w session.Wait, a session.Answer) error {
	switch {
	case a.EditedInput == nil || w.TakesEdits():
	case w.NeedsSeveral():
		return errors.New("several people must approve just what was shown, so it cannot be edited: reject it, and ask for another call")
	default:
		return refusal.New(codes.NotAllowed, key, "%s may not be approved by who asks for it, and who edits it asks for something else: reject it, with the reason", Label(w))
	}
	if !w.Votes() {
		return nil
	}
	return refusal.CheckReason(key, a.Reason)
}
