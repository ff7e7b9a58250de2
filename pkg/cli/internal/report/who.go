package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// mayAnswer says who may answer a wait; "" where everybody may who sees it.
func mayAnswer(who []string) string {
	if len(who) == 0 {
		return ""
	}
	return "may be answered by " + named(who) + " only"
}

// may returns who may answer a wait, by name or by role; nil where everybody may.
func may(w client.Wait) []string {
	who := slices.Clone(w.Who)
	if w.Rule != nil {
		for _, role := range w.Rule.Roles {
			who = append(who, "the role "+role)
		}
	}
	return who
}

// rules says to whom a wait was delegated, what else is asked of who answers it, and who has voted; each on
// a line.
func rules(w client.Wait) []string {
	lines := delegations(w)
	if w.Rule == nil {
		return lines
	}
	if w.Rule.NotRequester {
		asked := "who asked for the task"
		if len(w.Requesters) > 0 {
			asked = named(w.Requesters) + ", who asked for the task,"
		}
		lines = append(lines, "not by "+asked+" or told it something since")
	}
	if w.Rule.Assurance == session.AssuranceSignedIn {
		lines = append(lines, "only by who has signed in")
	}
	if w.Rule.Need < 2 && w.Rule.Noes < 2 {
		return lines
	}
	text := fmt.Sprintf("%s must approve, %s to end it", people(max(w.Rule.Need, 1)), noes(max(w.Rule.Noes, 1)))
	if w.State == session.WaitOpen {
		text += fmt.Sprintf("; %d more must approve", w.VotesMissing)
	}
	lines = append(lines, text)
	for _, v := range w.Votes {
		said := "no"
		if v.Approved {
			said = "yes"
		}
		text := screen.CleanLine(v.Who) + " said " + said
		if v.Reason != "" {
			text += ": " + screen.Short(v.Reason, reasonRoom)
		}
		lines = append(lines, text)
	}
	if len(w.MayVote) > 0 && len(w.Votes) > 0 {
		lines = append(lines, "may still vote: "+named(w.MayVote))
	}
	return lines
}

// delegations says to whom a wait was delegated, by whom, and why; each on a line.
func delegations(w client.Wait) (lines []string) {
	for _, a := range w.Acts {
		if a.Kind != session.ActDelegated {
			continue
		}
		text := "delegated to " + screen.CleanLine(a.To) + " by " + screen.CleanLine(a.Who)
		if a.Reason != "" {
			text += ": " + screen.Short(a.Reason, reasonRoom)
		}
		lines = append(lines, text)
	}
	return lines
}

// reasonRoom is how much of the reason of a vote or a delegation is shown.
const reasonRoom = 160

func people(n int) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}

func noes(n int) string {
	if n == 1 {
		return "1 no is enough"
	}
	return fmt.Sprintf("%d noes are needed", n)
}

// OnlyOf stands behind the name of a command that not everybody may give: " (ada only)".
// Who pastes it may be somebody else than who was shown it, so it is printed for all.
func OnlyOf(w client.Wait) string { return Only(may(w)) }

// Only is [OnlyOf] for names.
func Only(who []string) string {
	if len(who) == 0 {
		return ""
	}
	return " (" + named(who) + " only)"
}

func named(who []string) string {
	names := make([]string, len(who))
	for i, name := range who {
		names[i] = screen.CleanLine(name)
	}
	return strings.Join(names, ", ")
}

// together returns who may answer all of the waits, in one decision; nil means
// everybody. It reports false where nobody may.
func together(waits []client.Wait) (who []string, somebody bool) {
	for _, w := range waits {
		switch {
		case len(may(w)) == 0:
		case who == nil:
			who = may(w)
		default:
			who = slices.DeleteFunc(who, func(name string) bool { return !slices.Contains(may(w), name) })
		}
	}
	return who, who == nil || len(who) > 0
}

// singly reports whether a decision on all approvals would be refused: some are
// decided already, or nobody may answer all that are open.
func singly(s client.Session) bool {
	_, somebody := together(Approvals(s))
	return !somebody || s.Pause != nil && s.Pause.Decided > 0
}

// HintOnly is the [Only] of the resume hint of a paused session.
func HintOnly(where *place.Place, s client.Session) string {
	waits := Pending(s)
	approvals := Approvals(s)
	switch {
	case len(waits) == 0 || anyLate(waits, where):
		return ""
	case len(approvals) == 0:
		return Only(may(waits[0]))
	case singly(s):
		return Only(may(approvals[0]))
	}
	who, _ := together(approvals)
	return Only(who)
}
