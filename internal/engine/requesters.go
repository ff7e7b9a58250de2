package engine

import (
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// takeRequesters notes who asks for what a session does: who began a task of it, and who told it something
// since. Those of an earlier task stay, for the agent goes on reading what they said; going back takes nobody
// off. A child's are also those that its first entry names.
func takeRequesters(s *session.Session, e *journal.Entry) {
	var asks []string
	switch byVerb := e.Attempt.N == 0; {
	case e.Kind == session.KindStarted:
		if e.Parent == nil {
			asks = append(asks, e.By)
		}
	case e.Kind == session.KindForked, e.Kind == session.KindRestored, byVerb && e.Trigger == session.TriggerMessage:
		asks = append(asks, e.By)
	}
	for _, a := range e.Answers {
		if a.Kind == session.AnswerMessage && e.Base == nil {
			asks = append(asks, a.Who)
		}
	}
	if asks = append(asks, e.Requesters...); len(asks) > 0 {
		s.Requesters = distinct(s.Requesters, asks)
	}
}

// addRequesters adds to who may not answer a wait because they asked for its task.
func addRequesters(w *session.Wait, who []string) {
	if w.Rule != nil && w.Rule.NotRequester {
		w.Requesters = distinct(w.Requesters, who)
	}
}

// distinct returns the names in all lists, each once; the empty name is nobody's.
func distinct(lists ...[]string) []string {
	var names []string
	for _, list := range lists {
		for _, name := range list {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
