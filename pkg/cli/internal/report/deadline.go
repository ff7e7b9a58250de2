package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Passed says of a wait whose deadline has passed what that means.
func Passed(w client.Wait) string {
	return fmt.Sprintf("its deadline passed at %s: %s as soon as the session goes on", w.Deadline.At.Format(time.RFC3339), onDeadline(w.Kind, *w.Deadline))
}

// Whom says to whom a wait is escalated.
func Whom(e *session.Escalation) string {
	if e == nil {
		return "others"
	}
	names := slices.Clone(e.Who)
	for _, role := range e.Roles {
		names = append(names, "the role "+role)
	}
	return screen.CleanLine(strings.Join(names, ", "))
}

// escalated says of a wait to whom it was escalated; nothing of one that was not.
func escalated(w client.Wait, indent string, now time.Time) string {
	for _, act := range w.Acts {
		if act.Kind == session.ActEscalated {
			return indent + "escalated to " + Whom(act.Escalation) + " " + Ago(now, act.At) + "\n"
		}
	}
	return ""
}

// onDeadline says what happens to a wait that nobody answers in time.
func onDeadline(kind session.WaitKind, d session.Deadline) string {
	if to := d.Escalate; to != nil {
		d.Escalate = nil
		return fmt.Sprintf("it is escalated to %s for %s, and after that: %s", Whom(to), to.After, onDeadline(kind, d))
	}
	switch d.Outcome {
	case session.ExpireDeny:
		return "it counts as a no"
	case session.ExpireDefault:
		return byDefault(kind, d.Value)
	case session.ExpireFail:
		return "the task fails"
	case session.ExpireReask:
		return "it is asked again"
	}
	return screen.CleanLine(string(d.Outcome))
}

// valueRoom is how long the default of a deadline is printed at most.
const valueRoom = 160

// byDefault says what the default of a deadline does. Of an approval it is a yes or a no.
func byDefault(kind session.WaitKind, value json.RawMessage) string {
	if yes, known := verdict(value); kind == session.WaitApproval && known {
		if yes {
			return "it is approved"
		}
		return "it is denied"
	}
	if len(value) == 0 {
		return "its default counts" // a list may leave the value out
	}
	what := "the answer"
	if kind == session.WaitClientTool {
		what = "the result"
	}
	return what + " is " + screen.Compact(value, valueRoom)
}

func verdict(value json.RawMessage) (yes, known bool) {
	var v *bool
	known = json.Unmarshal(value, &v) == nil && v != nil
	return known && *v, known
}

// expired says what a deadline brought. The answer does not name the kind of its wait, but
// only that of an approval has the digest of the arguments it decided on.
func expired(a session.Answer, room int) string {
	if a.Outcome != session.ExpireDefault {
		return "expired: " + string(a.Outcome)
	}
	if yes, known := verdict(a.Result); a.Digest != "" && known {
		if yes {
			return "approved"
		}
		return "denied"
	}
	return "expired: " + screen.Compact(a.Result, room)
}
