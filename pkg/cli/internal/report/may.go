package report

import (
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/session"
)

// MayAnswer says who may answer a pending thing; "" where everybody may who sees it.
func MayAnswer(who []string) string {
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

// together returns who may answer all of the items, in one decision; nil means
// everybody. It reports false where nobody may.
func together(items []PendingItem) (who []string, somebody bool) {
	for _, item := range items {
		switch {
		case len(item.Who) == 0:
		case who == nil:
			who = slices.Clone(item.Who)
		default:
			who = slices.DeleteFunc(who, func(name string) bool { return !slices.Contains(item.Who, name) })
		}
	}
	return who, who == nil || len(who) > 0
}

// singly reports whether a decision on all approvals would be refused: some are
// decided already, or nobody may answer all that are open.
func singly(m Manifest) bool {
	_, somebody := together(openApprovals(Pending(m)))
	return !somebody || m.PauseReason != nil && m.PauseReason.Decided > 0
}

// openApprovals are those of the pending items that are approvals.
func openApprovals(items []PendingItem) []PendingItem {
	return slices.DeleteFunc(slices.Clone(items), func(item PendingItem) bool { return item.Kind != session.WaitApproval })
}

// HintOnly is the [Only] of the [ResumeHint] of a paused session.
func HintOnly(where *place.Place, m Manifest) string {
	items := Pending(m)
	approvals := openApprovals(items)
	switch {
	case len(items) == 0 || late(items, where):
		return ""
	case len(approvals) == 0:
		return Only(items[0].Who)
	case singly(m):
		return Only(approvals[0].Who)
	}
	who, _ := together(approvals)
	return Only(who)
}
