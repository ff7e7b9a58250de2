package report

import (
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
)

// mayAnswer says who may answer a wait; "" where everybody may who sees it.
func mayAnswer(who []string) string {
	if len(who) == 0 {
		return ""
	}
	return "may be answered by " + named(who) + " only"
}

// Only stands behind the name of a command that not everybody may give: " (ada only)".
// Who pastes it may be somebody else than who was shown it, so it is printed for all.
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
		case len(w.Who) == 0:
		case who == nil:
			who = slices.Clone(w.Who)
		default:
			who = slices.DeleteFunc(who, func(name string) bool { return !slices.Contains(w.Who, name) })
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
		return Only(waits[0].Who)
	case singly(s):
		return Only(approvals[0].Who)
	}
	who, _ := together(approvals)
	return Only(who)
}
