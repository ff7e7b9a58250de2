package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// rule says from which statuses an entry of a kind may lead, and to which.
type rule struct {
	from, to []session.Status
	// newRun says that the entry begins a run; all others belong to the one before.
	newRun bool
}

// rules has one row per kind; together they are the table of [session.Status.CanBecome].
// Deleted entries keep the status that was.
var rules = map[session.Kind]rule{
	session.KindStarted: {
		from:   []session.Status{"", session.StatusCompleted, session.StatusFailed, session.StatusCancelled},
		to:     []session.Status{session.StatusRunning},
		newRun: true,
	},
	session.KindReplied:   {from: []session.Status{session.StatusRunning}, to: []session.Status{session.StatusRunning}},
	session.KindStepped:   {from: []session.Status{session.StatusRunning}, to: []session.Status{session.StatusRunning}},
	session.KindSuspended: {from: []session.Status{session.StatusRunning, session.StatusInterrupted}, to: []session.Status{session.StatusSuspended}},
	session.KindResumed: {
		from:   []session.Status{session.StatusSuspended, session.StatusInterrupted},
		to:     []session.Status{session.StatusRunning},
		newRun: true,
	},
	session.KindDelayed:     {from: []session.Status{session.StatusRunning}, to: []session.Status{session.StatusRunning}},
	session.KindInterrupted: {from: []session.Status{session.StatusRunning, session.StatusSuspended}, to: []session.Status{session.StatusInterrupted}},
	session.KindCancelled:   {from: unended, to: []session.Status{session.StatusCancelled}},
	session.KindCompleted:   {from: []session.Status{session.StatusRunning}, to: []session.Status{session.StatusCompleted}},
	session.KindFailed:      {from: unended, to: []session.Status{session.StatusFailed}},
	session.KindRestored: {
		from: []session.Status{
			session.StatusSuspended, session.StatusInterrupted, session.StatusCompleted, session.StatusFailed, session.StatusCancelled,
		},
		to:     []session.Status{session.StatusRunning, session.StatusSuspended},
		newRun: true,
	},
	session.KindForked: {
		from:   []session.Status{""},
		to:     []session.Status{session.StatusRunning, session.StatusSuspended, session.StatusInterrupted},
		newRun: true,
	},
	session.KindDeleted: {from: session.Statuses(), to: session.Statuses()},
}

// unended lists the statuses of a task that is under way.
var unended = []session.Status{session.StatusRunning, session.StatusSuspended, session.StatusInterrupted}

func broken(s *session.Session, e *journal.Entry, format string, args ...any) error {
	return fmt.Errorf("session %s: entry %d (%s): %w: %s", s.Key, e.Seq, e.Kind, ErrBrokenJournal, fmt.Sprintf(format, args...))
}

// Check refuses an entry that cannot follow s, so that nothing is ever written
// that could not be folded again. Errors wrap [ErrBrokenJournal].
func Check(s *session.Session, e *journal.Entry) error {
	switch {
	case e.Seq != s.Version+1:
		return broken(s, e, "follows entry %d", s.Version)
	case e.Prev != s.Newest.Hash:
		return broken(s, e, "does not hold the hash of the entry before: the journal was changed")
	case s.Newest.Kind == session.KindDeleted:
		return broken(s, e, "the session was deleted")
	}
	for _, check := range [...]func(*session.Session, *journal.Entry) error{
		checkStatus, checkNumbers, checkUsed, checkContent, checkBase, checkMessages,
	} {
		if err := check(s, e); err != nil {
			return err
		}
	}
	return nil
}

func checkStatus(s *session.Session, e *journal.Entry) error {
	r := rules[e.Kind]
	switch {
	case !slices.Contains(r.to, e.Status):
		return broken(s, e, "status %q does not go with it", e.Status)
	case !slices.Contains(r.from, s.Status), e.Kind == session.KindDeleted && e.Status != s.Status:
		return broken(s, e, "status goes from %q to %q", s.Status, e.Status)
	}
	return nil
}

// beginsTask reports whether an entry is the first of a task.
func beginsTask(e *journal.Entry) bool {
	return e.Kind == session.KindStarted || e.Kind == session.KindForked || e.Kind == session.KindRestored
}

func checkNumbers(s *session.Session, e *journal.Entry) error {
	task, run := s.Task, s.Run
	if beginsTask(e) {
		task++
	}
	if rules[e.Kind].newRun {
		run++
	}
	switch {
	case e.Task != task:
		return broken(s, e, "task %d follows task %d", e.Task, s.Task)
	case e.Run != run:
		return broken(s, e, "run %d follows run %d", e.Run, s.Run)
	case (e.Trigger != "") != (e.Run != s.Run):
		return broken(s, e, "trigger %q: the first entry of a run says what began it, and no other", e.Trigger)
	case e.Rules != nil && e.RulesAt != e.Seq, e.Rules == nil && (e.RulesAt != s.RulesAt || e.RulesAt == 0):
		return broken(s, e, "its rules are not at entry %d", e.RulesAt)
	}
	return nil
}

// checkUsed holds that what a task used grows by what its entries used, and by nothing else.
func checkUsed(s *session.Session, e *journal.Entry) error {
	amounts := func(a session.Amounts) [4]int64 {
		return [...]int64{a.Steps, a.Tokens, a.ActiveMillis, a.CostMicros}
	}
	before, used, after := amounts(s.Used), amounts(e.Used.Amounts), amounts(e.Used.Task)
	if beginsTask(e) {
		before = [4]int64{}
	}
	for i := range after {
		switch {
		case used[i] < 0 || after[i] < before[i]:
			return broken(s, e, "what was used of the limits shrinks inside a task")
		case after[i]-before[i] != used[i]:
			return broken(s, e, "what the task used does not grow by what the entry used")
		}
	}
	return nil
}

func checkContent(s *session.Session, e *journal.Entry) error {
	for _, op := range e.StateOps {
		var scratch session.State
		if err := scratch.Apply(op); err != nil {
			return broken(s, e, "%v", err)
		}
	}
	for _, w := range e.Waits {
		if !strings.HasPrefix(w.ID, fmt.Sprintf("w%d-", e.Seq)) {
			return broken(s, e, "wait id %q is not one of this entry", w.ID)
		}
	}
	switch {
	case len(e.Waits) > 0 && e.Status != session.StatusSuspended:
		return broken(s, e, "opens waits without suspending")
	case len(e.Waits) > session.MaxWaits:
		return broken(s, e, "opens %d waits, more than %d", len(e.Waits), session.MaxWaits)
	case (e.Kind == session.KindFailed || e.Kind == session.KindDelayed) && e.Failure == nil:
		return broken(s, e, "does not say what failed")
	case (e.Kind == session.KindDelayed) != (e.Until != nil):
		return broken(s, e, "a retry later is what delayed means")
	}
	return nil
}

func checkBase(s *session.Session, e *journal.Entry) error {
	back := e.Kind == session.KindRestored || e.Kind == session.KindForked
	b := e.Base
	switch {
	case b == nil && back:
		return broken(s, e, "does not say where it goes back to")
	case b == nil:
		return nil
	case b.Messages != nil && (b.Session == "") == (e.Kind == session.KindForked):
		return broken(s, e, "a fork, and nothing else, copies another session")
	case b.Messages == nil && (e.Kind != session.KindRestored || b.Session != "" || b.State != nil):
		return broken(s, e, "its base has no messages")
	case b.Messages == nil && (b.Seq < 1 || b.Seq > s.Version):
		return broken(s, e, "base %d is not an earlier entry", b.Seq)
	}
	for key, value := range b.State {
		var scratch session.State
		if err := scratch.Apply(session.StateOp{Op: session.StateReplace, Key: key, Value: value}); err != nil {
			return broken(s, e, "%v", err)
		}
	}
	open := map[string]bool{}
	if err := checkHistory(s, e, b.Messages, open, ""); err != nil {
		return err
	}
	if !back && len(open)+len(s.Calls) > 0 {
		return broken(s, e, "history is shortened while calls have no result")
	}
	return nil
}

// checkMessages holds that every declared call ends in exactly one result before the next reply.
func checkMessages(s *session.Session, e *journal.Entry) error {
	open := map[string]bool{}
	if e.Base == nil {
		for _, c := range s.Calls {
			open[c.ID] = true
		}
	}
	if e.Kind == session.KindRestored || e.Kind == session.KindForked {
		return checkFirstWords(s, e)
	}
	if err := checkHistory(s, e, e.Messages, open, callPrefix(e.Seq)); err != nil {
		return err
	}
	if len(open) > 0 && e.Status.Ended() {
		return broken(s, e, "the task ends while calls have no result")
	}
	return nil
}

// checkFirstWords holds what is said right after going back: first the outcomes of calls that were
// open there, under the ids that they have now, then what people say. [checkTakenIn] holds the rest.
func checkFirstWords(s *session.Session, e *journal.Entry) error {
	for i, m := range e.Messages {
		outcomes := m.Role == llm.RoleTool && i == 0 && e.Kind == session.KindRestored
		if m.Role != llm.RoleUser && !outcomes {
			return broken(s, e, "a message of role %q right after going back", m.Role)
		}
	}
	return nil
}

// checkTakenIn holds that an entry that goes back has outcomes only of calls that are open there.
func checkTakenIn(s *session.Session, e *journal.Entry, back *history) error {
	if back == nil || len(e.Messages) == 0 || e.Messages[0].Role != llm.RoleTool {
		return nil
	}
	open := map[string]bool{}
	for i := range back.calls {
		open[callID(e.Seq, i+1)] = true
	}
	return checkHistory(s, e, e.Messages[:1], open, "")
}

// checkHistory walks through messages and leaves in open the calls without a result.
func checkHistory(s *session.Session, e *journal.Entry, messages []llm.Message, open map[string]bool, prefix string) error {
	for _, m := range messages {
		switch m.Role {
		case llm.RoleAssistant:
			if len(open) > 0 {
				return broken(s, e, "a reply while calls have no result")
			}
			for _, c := range m.ToolCalls() {
				if c.ID == "" || open[c.ID] || !strings.HasPrefix(c.ID, prefix) {
					return broken(s, e, "call id %q is empty, used twice or not one of this entry", c.ID)
				}
				open[c.ID] = true
			}
		case llm.RoleTool:
			for _, p := range m.Parts {
				if p.ToolResult == nil {
					return broken(s, e, "a tool message without a result")
				}
				if !open[p.ToolResult.CallID] {
					return broken(s, e, "a result for call %q, which is not open", p.ToolResult.CallID)
				}
				delete(open, p.ToolResult.CallID)
			}
		case llm.RoleUser:
		default:
			return broken(s, e, "a message of role %q", m.Role)
		}
	}
	return nil
}

// callID is our id of the i-th call, from 1, of the reply in an entry.
func callID(seq int64, i int) string { return callPrefix(seq) + strconv.Itoa(i) }

// callPrefix is what the ids of all calls of an entry begin with.
func callPrefix(seq int64) string { return "c" + strconv.FormatInt(seq, 10) + "-" }
