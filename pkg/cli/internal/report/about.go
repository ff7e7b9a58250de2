package report

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// about says what a caller asked of the present task, and gave the session.
func (t *timeline) about(s client.Session) {
	if s.Rules != nil {
		if rules := askedRules(*s.Rules, t.room); rules != "" {
			t.linef("asked of task %d: %s", s.Task, rules)
		}
	}
	if s.ForkedFrom != nil {
		t.linef("a fork of session %s%s", screen.CleanLine(s.ForkedFrom.Session), atEntry(s.ForkedFrom.Checkpoint))
	}
	if len(s.Metadata) > 0 {
		var words []string
		for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
			words = append(words, screen.CleanLine(key)+"="+screen.Short(s.Metadata[key], t.room))
		}
		t.linef("metadata: %s", strings.Join(words, ", "))
	}
}

// stopped says who stopped a session, and why, if that is more than that its user did.
func stopped(s client.Session) string {
	if s.Stopped == nil || s.Stopped.Reason == "" {
		return ""
	}
	return screen.Sprintf(" by %s%s", by(s.Stopped.Who), reasonOf(s.Stopped.Reason, 160))
}

// atEntry says where a checkpoint is, if its id can be read.
func atEntry(checkpoint string) string {
	at, err := session.ParseCheckpoint(checkpoint)
	if err != nil {
		return ""
	}
	return screen.Sprintf(", entry %d", at.Seq)
}

// askedRules are rules of a task in the names of the API, each with its value; "" for none.
func askedRules(rules session.TaskRules, room int) string {
	raw, err := json.Marshal(rules)
	var fields, limits map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err == nil && fields["limits"] != nil {
		err = json.Unmarshal(fields["limits"], &limits)
	}
	if err != nil {
		return screen.Compact(raw, room)
	}
	delete(fields, "limits")
	var words []string
	for _, of := range []map[string]json.RawMessage{limits, fields} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			words = append(words, screen.CleanLine(name)+"="+screen.Compact(of[name], room))
		}
	}
	return strings.Join(words, ", ")
}
