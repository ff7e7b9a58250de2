package session

import (
	"cmp"
	"slices"
	"time"
)

// AnswerRule says who may answer what a tool waits for, beside the names in [Wait.Who], and how many
// must. It is the tool's, and a wait has a copy of it.
type AnswerRule struct {
	// Roles may answer, any one of them, beside whom Who names.
	Roles []string `json:"roles,omitempty"`
	// Need is how many different people must approve, Noes how many noes end it; 0 is one. They are
	// for approvals.
	Need int `json:"need,omitempty"`
	Noes int `json:"noes,omitempty"`
	// NotRequester keeps whoever asked for the task from answering.
	NotRequester bool `json:"notRequester,omitempty"`
	// Assurance is how sure it must be who answers; empty is [AssuranceLink].
	Assurance Assurance `json:"assurance,omitempty"`
}

// Assurance says how sure it is who somebody is.
type Assurance string

// The assurances. A signed link proves that it was delivered to somebody, and not who uses it.
const (
	AssuranceLink     Assurance = "link"
	AssuranceSignedIn Assurance = "signed_in"
)

// MaxVotes is how many yeses or noes a rule may ask for.
const MaxVotes = 10

// NeedsAnswerRule is the word in the needs of a wait that has a rule: a program that does not know
// the rule would let one answer decide, or anybody's.
const NeedsAnswerRule = "answer_rule"

// Vote is what one person said on an approval that needs several. Its digest is that of the
// arguments it is about.
type Vote struct {
	Who string `json:"who"`
	// For is the person in whose place Who voted, to whom the wait was delegated or who stood in for them.
	For      string    `json:"for,omitempty"`
	When     time.Time `json:"when"`
	From     string    `json:"from"`
	Approved bool      `json:"approved"`
	Reason   string    `json:"reason,omitempty"`
	Digest   string    `json:"digest"`
}

// Person returns whose vote it is: of somebody to whom the wait was delegated, that of who delegated it.
func (v Vote) Person() string { return cmp.Or(v.For, v.Who) }

// IsZero reports whether the rule asks for nothing.
func (r *AnswerRule) IsZero() bool {
	return r == nil || len(r.Roles) == 0 && r.Need < 2 && r.Noes < 2 && !r.NotRequester && (r.Assurance == "" || r.Assurance == AssuranceLink)
}

// NeedsPeople reports whether the rule asks for people that a deadline cannot stand for: several, others
// than who asked for the task, or people who have signed in.
func (r *AnswerRule) NeedsPeople() bool {
	return r != nil && (r.Need > 1 || r.Noes > 1 || r.NotRequester || r.Assurance != "" && r.Assurance != AssuranceLink)
}

// Hold puts a rule on a wait, with the people who asked for the task where it keeps them from
// answering. Need and Noes are for approvals, and are left out of other kinds.
func (w *Wait) Hold(rule *AnswerRule, requesters []string) {
	if rule.IsZero() {
		return
	}
	own := *rule
	if own.Roles = slices.Clone(rule.Roles); w.Kind != WaitApproval {
		own.Need, own.Noes = 0, 0
	}
	if own.IsZero() {
		return
	}
	w.Rule = &own
	w.Needs = append(slices.Clip(w.Needs), NeedsAnswerRule)
	if own.NotRequester {
		w.Requesters = slices.Clone(requesters)
	}
}

// rule returns the rule of a wait; the zero rule where it has none.
func (w *Wait) rule() AnswerRule {
	if w.Rule == nil {
		return AnswerRule{}
	}
	return *w.Rule
}

// Votes reports whether answers to the wait are votes: more than one yes, or more than one no, is needed.
func (w *Wait) Votes() bool { return w.rule().Need > 1 || w.rule().Noes > 1 }

// NeedsSeveral reports whether more than one person must approve.
func (w *Wait) NeedsSeveral() bool { return w.rule().Need > 1 }

// TakesEdits reports whether who approves may put other arguments in the place of what was shown. They ask
// for the call then, so that others would have to approve it where several must, or not who asked.
func (w *Wait) TakesEdits() bool { return !w.NeedsSeveral() && !w.rule().NotRequester }

// NeedsSignIn reports whether only who has signed in may answer the wait.
func (w *Wait) NeedsSignIn() bool {
	a := w.rule().Assurance
	return w.Votes() || a != "" && a != AssuranceLink
}

// IsNamed reports whether a wait lets somebody answer: by name, by a role, or because it names nobody.
func (w *Wait) IsNamed(who string, roles []string) bool {
	may := w.rule().Roles
	return len(w.Who) == 0 && len(may) == 0 || slices.Contains(w.Who, who) || slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(may, role) })
}

// IsFor reports whether somebody of that name may be among those a wait lets answer: which roles they
// have is not known here.
func (w *Wait) IsFor(who string) bool { return len(w.rule().Roles) > 0 || w.IsNamed(who, nil) }

// Tally is what the votes on a wait come to.
type Tally struct {
	Decided, Approved bool
	// Missing is how many more must approve.
	Missing int
}

// Tally counts votes, one for each person, on a wait with these acts. Of several yeses each counts for the
// arguments that were shown only, and not of somebody who asked for the task. Where so many noes have come
// that those who are named cannot approve any more, that is a no; who delegated it and whom they delegated
// it to are one voice of them.
func (w *Wait) Tally(votes []Vote, acts []WaitAct) Tally {
	yes, no, heard := map[string]bool{}, map[string]bool{}, map[string]bool{}
	need, noes := max(w.rule().Need, 1), max(w.rule().Noes, 1)
	for _, v := range votes {
		switch person := v.Person(); {
		case heard[person] || heard[v.Who]:
			continue
		case !v.Approved:
			no[person] = true
		case (v.Digest == w.Digest || need == 1) && !slices.Contains(w.Requesters, person) && !slices.Contains(w.Requesters, v.Who):
			yes[person] = true
		default:
			continue
		}
		heard[v.Person()], heard[v.Who] = true, true
	}
	t := Tally{Approved: len(yes) >= need, Missing: max(need-len(yes), 0)}
	t.Decided = t.Approved || len(no) >= noes
	if left := w.leftOrToCome(votes, acts); !t.Decided && len(no) > 0 && left != nil {
		voices := map[string]bool{}
		for _, who := range left {
			voices[voiceOf(acts, who)] = true
		}
		t.Decided = len(voices) < t.Missing
	}
	return t
}

// Left returns whom of those it names a wait with these acts may still hear: whose voice has not been heard,
// theirs or that of who delegated it to them. It is nil where the wait goes by roles, or names nobody.
func (w *Wait) Left(votes []Vote, acts []WaitAct) []string {
	if len(w.rule().Roles) > 0 || len(w.Who) == 0 {
		return nil
	}
	left := []string{}
	for _, who := range w.Who {
		person := voiceOf(acts, who)
		voted := slices.ContainsFunc(votes, func(v Vote) bool { return v.Who == who || v.Person() == person })
		if !voted && !slices.Contains(w.Requesters, who) && !slices.Contains(left, who) {
			left = append(left, who)
		}
	}
	return left
}

// leftOrToCome is [Wait.Left] with those whom the deadline of the wait is still to let answer.
func (w *Wait) leftOrToCome(votes []Vote, acts []WaitAct) []string {
	if !w.Escalates() {
		return w.Left(votes, acts)
	}
	wide := *w
	wide.admit(w.Deadline.Escalate)
	return wide.Left(votes, acts)
}

// voiceOf is the first of those who delegated a wait on to who; who itself where nobody did.
func voiceOf(acts []WaitAct, who string) string {
	for _, act := range slices.Backward(acts) {
		switch {
		case escalatedTo(act, who):
			return who // for themselves
		case act.Kind == ActDelegated && act.To == who:
			who = act.Who
		}
	}
	return who
}

// HeldTo reports whether an answer to a wait is known to keep to what the tool asks now, which may be
// stricter than what the wait asked. Whom a question names, and whom it is escalated to, is the question's
// own. An answer that came after the escalation may be of those whom the tool escalates to now.
func (w *Wait) HeldTo(a Answer, who []string, rule *AnswerRule, escalate *Escalation) bool {
	now := Wait{Who: who, Rule: rule}
	if a.Escalated && w.Kind != WaitQuestion {
		asked := *w
		if now.admit(escalate); w.Escalates() {
			asked.admit(w.Deadline.Escalate)
		}
		w, who = &asked, now.Who
	}
	was, is := w.rule(), now.rule()
	votes := []Vote{{Who: a.Who, For: a.For, Approved: true}}
	if len(a.Votes) > 0 {
		votes = a.Votes
	}
	// Whoever answers in the place of a person is held to be that person where only that one is named now.
	var authors []string
	for _, v := range votes {
		author := v.Who
		if v.For != "" && slices.Contains(who, v.For) {
			author = v.For
		}
		if v.Approved && !slices.Contains(authors, author) {
			authors = append(authors, author)
		}
	}
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
	}
	if named := len(who)+len(is.Roles) > 0; named && !within(authors, who) {
		if len(w.Who)+len(was.Roles) == 0 || !within(was.Roles, is.Roles) || w.Kind != WaitQuestion && !within(w.Who, who) {
			return false
		}
	}
	switch {
	case w.Kind == WaitApproval && is.Need > max(1, len(authors)):
		return false
	case is.NotRequester && !was.NotRequester:
		return false
	}
	return is.Assurance != AssuranceSignedIn || was.Assurance == AssuranceSignedIn || w.Votes()
}
