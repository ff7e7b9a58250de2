package report

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/session"
)

// failureLimit is the code of a task that has used up a limit.
const failureLimit = "limit_reached"

// AfterFailure says what can be done with a session that has failed.
func AfterFailure(where *place.Place, v View) []string {
	retry := func(flags ...string) string { return withMessage(where, "retry", v.ID, v.Message, flags...) }
	lines := []string{"to try it again: " + retry()}
	if f := v.Failure; f != nil {
		var at session.LimitUse
		switch {
		case f.Code == session.FailureAborted:
			lines[0] = "it was aborted; to go back to one of its checkpoints: " + withMessage(where, "resume", v.ID, v.Message, "--from-checkpoint", WordEntry)
		case f.Code == failureLimit && json.Unmarshal(f.Data, &at) == nil && limitNamed(session.Limits{}, at.Limit) != nil:
			lines = afterLimit(where, v, at, retry)
		}
	}
	return append(lines, "to start another session: "+where.Command("run", "--session", WordSession, "--agent", v.Agent, WordMessage))
}

// afterLimit says how a task is tried again that has used a limit up, and where that limit stands.
func afterLimit(where *place.Place, v View, at session.LimitUse, retry func(flags ...string) string) (lines []string) {
	limit := screen.CleanLine(at.Limit)
	if at.OfSession {
		return []string{"the limit is one of all tasks of the session together, which only the agent's definition raises; to try it again then: " + retry()}
	}
	var asked int64
	if v.Rules != nil {
		asked = *limitNamed(session.Limits(v.Rules.Limits), at.Limit)
	}
	higher := retry("--limit", at.Limit+"="+twice(max(cmp.Or(asked, of(v.Warnings, at.Limit)), at.Used)))
	if at.Limit == "repeatedCalls" {
		lines = append(lines, "to try it again, and tell it what to do instead: "+withMessage(where, "retry", v.ID, cmp.Or(v.Message, WordMessage)))
	}
	if asked > 0 {
		return append(lines,
			screen.Sprintf("the limit %s=%d was asked for with the task (it is in the rules of the task, not in the agent's definition)", limit, asked),
			"to try it again with a higher one: "+higher)
	}
	if at.Limit != "repeatedCalls" && at.Limit != "stateBytes" { // those that a task counts from zero
		lines = append(lines, "to try it again, with as much of "+limit+" once more: "+retry())
	}
	return append(lines, "with a higher limit, as far as the agent lets callers ask for one: "+higher)
}

// limitNamed is one of the limits by its name; nil where there is none.
func limitNamed(limits session.Limits, name string) *int64 {
	for _, l := range limits.Named() {
		if l.Name == name {
			return l.Value
		}
	}
	return nil
}

// of is how much a limit of the task was, if the task was warned of it; else 0.
func of(warnings []session.LimitUse, limit string) int64 {
	at := slices.IndexFunc(warnings, func(use session.LimitUse) bool { return use.Limit == limit && !use.OfSession })
	if at < 0 {
		return 0
	}
	return warnings[at].Of
}

// twice is the limit that a command proposes; a word to replace where it is not known what it was.
func twice(limit int64) string {
	if limit <= 0 || limit > math.MaxInt64/2 {
		return WordNumber
	}
	return strconv.FormatInt(2*limit, 10)
}

// withMessage is a command about a session, with a message if there is one.
func withMessage(where *place.Place, verb, id, message string, flags ...string) string {
	last := []string{id}
	if message != "" {
		last = append(last, message)
	}
	if strings.HasPrefix(id, "-") || strings.HasPrefix(message, "-") {
		return where.Command(slices.Concat([]string{verb}, flags, []string{"--"}, last)...)
	}
	return where.Command(slices.Concat([]string{verb, id}, flags, last[1:])...)
}
