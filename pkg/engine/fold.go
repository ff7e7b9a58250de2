package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// ErrBrokenJournal says that an entry cannot follow the ones before it.
var ErrBrokenJournal = errors.New("broken journal")

// ErrNeedsHistory says that an entry goes back to an earlier one, so that it can
// only be folded together with the whole journal ([Fold]).
var ErrNeedsHistory = errors.New("entry goes back to an earlier one: fold the whole journal")

// Fold folds a whole journal, entry 1 first. Errors wrap [ErrBrokenJournal].
func Fold(key session.Key, entries []session.Entry) (*session.Session, error) {
	s := &session.Session{Key: key}
	for i := range entries {
		err := Apply(s, &entries[i])
		if errors.Is(err, ErrNeedsHistory) {
			err = applyBack(s, entries[:i], &entries[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// applyBack folds an entry whose base is an earlier entry of the same journal.
func applyBack(s *session.Session, before []session.Entry, e *session.Entry) error {
	if e.Base.Seq < 0 || e.Base.Seq > int64(len(before)) {
		return broken(s, e, "base %d is not an earlier entry", e.Base.Seq)
	}
	old, err := Fold(s.Key, before[:e.Base.Seq])
	if err != nil {
		return err
	}
	based := *e
	based.Base = &session.Base{Seq: e.Base.Seq, Messages: old.Messages, State: old.State.Snapshot()}
	if based.Base.Messages == nil {
		based.Base.Messages = []llm.Message{}
	}
	if err := Apply(s, &based); err != nil {
		return err
	}
	if s.Status.Ended() {
		return nil
	}
	s.Calls, s.ReplySeq = old.Calls, old.ReplySeq
	return nil
}

// statuses says which statuses an entry of a kind may leave behind. Deleted entries keep what was.
var statuses = map[session.Kind][]session.Status{
	session.KindStarted:     {session.StatusRunning},
	session.KindReplied:     {session.StatusRunning},
	session.KindStepped:     {session.StatusRunning},
	session.KindSuspended:   {session.StatusSuspended},
	session.KindResumed:     {session.StatusRunning},
	session.KindDelayed:     {session.StatusRunning},
	session.KindInterrupted: {session.StatusInterrupted},
	session.KindCancelled:   {session.StatusCancelled},
	session.KindCompleted:   {session.StatusCompleted},
	session.KindFailed:      {session.StatusFailed},
	session.KindRestored:    {session.StatusRunning, session.StatusSuspended},
	session.KindForked:      {session.StatusRunning, session.StatusSuspended, session.StatusInterrupted},
	session.KindDeleted:     session.Statuses(),
}

// Apply folds the next entry into s. It changes s only if it returns nil; it
// takes time in proportion to the entry, not to the session. Errors wrap
// [ErrBrokenJournal], or are [ErrNeedsHistory].
func Apply(s *session.Session, e *session.Entry) error {
	if err := Check(s, e); err != nil {
		return err
	}
	s.InputExpired = nil
	switch {
	case e.Base == nil:
	case e.Base.Messages == nil:
		return ErrNeedsHistory
	default:
		if err := rebase(s, e); err != nil {
			return err
		}
	}
	if e.Rules != nil {
		s.Rules, s.RulesAt = *e.Rules, e.Seq
	}
	if e.Parent != nil {
		s.Parent = e.Parent
	}
	if e.Task != s.Task {
		s.TaskUsage, s.Delays, s.Failures = llm.Usage{}, nil, 0
		s.Output, s.Failure = nil, nil
	}
	if e.Run != s.Run {
		s.RunRecord = session.Run{
			ID: e.Run, Task: e.Task, Trigger: trigger(e), StartedAt: e.At, FirstEntry: e.Seq, PreviousRun: e.Run - 1,
		}
	}
	s.TaskUsage, s.RunRecord.Usage = s.TaskUsage.Add(e.Usage), s.RunRecord.Usage.Add(e.Usage)
	s.RunRecord.Status = e.Status
	if e.Status.Resting() && s.RunRecord.EndedAt == nil {
		at := e.At
		s.RunRecord.EndedAt, s.RunRecord.LastEntry = &at, e.Seq
	}
	s.Status, s.Task, s.Run, s.Step, s.Left = e.Status, e.Task, e.Run, e.Step, e.Limits
	takeAnswers(s, e)
	takeMessages(s, e)
	openWaits(s, e)
	if len(e.StateOps) > 0 {
		state, err := s.State.With(e.StateOps)
		if err != nil {
			return broken(s, e, "%v", err)
		}
		s.State = state
	}
	for _, child := range e.Children {
		takeChild(s, child)
	}
	for _, id := range e.Mail {
		if s.Mail == nil {
			s.Mail = map[string]bool{}
		}
		s.Mail[id] = true
	}
	if e.Kind == session.KindDelayed {
		s.Delays = append(s.Delays, len(s.Messages))
		s.Failures++
	}
	if e.Output != nil {
		s.Output = e.Output
	}
	if e.Status.Ended() {
		s.Failure = e.Failure
	}
	s.Version = e.Seq
	s.Newest = session.Newest{
		Kind: e.Kind, At: e.At, Attempt: e.Attempt, GoesOn: e.GoesOn, Hash: e.Hash, Token: e.Token, Until: e.Until,
	}
	return nil
}

func broken(s *session.Session, e *session.Entry, format string, args ...any) error {
	return fmt.Errorf("session %s: entry %d (%s): %w: %s", s.Key, e.Seq, e.Kind, ErrBrokenJournal, fmt.Sprintf(format, args...))
}

// Check refuses an entry that cannot follow s, so that nothing is ever written
// that could not be folded again. Errors wrap [ErrBrokenJournal].
func Check(s *session.Session, e *session.Entry) error {
	if e.Seq != s.Version+1 {
		return broken(s, e, "follows entry %d", s.Version)
	}
	if e.Prev != s.Newest.Hash {
		return broken(s, e, "does not hold the hash of the entry before: the journal was changed")
	}
	if !slices.Contains(statuses[e.Kind], e.Status) {
		return broken(s, e, "status %q does not go with it", e.Status)
	}
	if e.Kind != session.KindDeleted && e.Kind != session.KindForked && !s.Status.CanBecome(e.Status) {
		return broken(s, e, "status goes from %q to %q", s.Status, e.Status)
	}
	newTask := s.Status == "" || s.Status.Ended()
	switch {
	case e.Kind == session.KindDeleted, e.Kind == session.KindForked:
	case newTask && e.Task != s.Task+1:
		return broken(s, e, "task %d follows task %d", e.Task, s.Task)
	case !newTask && e.Task != s.Task && e.Kind != session.KindRestored:
		return broken(s, e, "task %d inside task %d", e.Task, s.Task)
	}
	if e.Run != s.Run && e.Run != s.Run+1 {
		return broken(s, e, "run %d follows run %d", e.Run, s.Run)
	}
	if l := e.Limits; min(l.Steps, l.Tokens, l.ActiveMillis, l.CostMicros, l.Depth, l.Children) < session.Unlimited {
		return broken(s, e, "limits below zero")
	}
	for _, op := range e.StateOps {
		var scratch session.State
		if err := scratch.Apply(op); err != nil {
			return broken(s, e, "%v", err)
		}
	}
	return checkMessages(s, e)
}

// checkMessages holds that every declared call ends in exactly one result before the next reply.
func checkMessages(s *session.Session, e *session.Entry) error {
	open := map[string]bool{}
	rebased := e.Base != nil
	if !rebased {
		for _, c := range s.Calls {
			open[c.ID] = true
		}
	}
	for _, m := range e.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			if len(open) > 0 {
				return broken(s, e, "a reply while calls have no result")
			}
			for _, c := range m.ToolCalls() {
				if c.ID == "" || open[c.ID] {
					return broken(s, e, "call id %q is empty or used twice", c.ID)
				}
				open[c.ID] = true
			}
		case llm.RoleTool:
			for _, p := range m.Parts {
				if p.ToolResult == nil {
					return broken(s, e, "a tool message without a result")
				}
				if !open[p.ToolResult.CallID] && !rebased {
					return broken(s, e, "a result for call %q, which is not open", p.ToolResult.CallID)
				}
				delete(open, p.ToolResult.CallID)
			}
		case llm.RoleUser:
		default:
			return broken(s, e, "a message of role %q", m.Role)
		}
	}
	if len(open) > 0 && e.Status.Ended() && !rebased {
		return broken(s, e, "the task ends while calls have no result")
	}
	return nil
}

func rebase(s *session.Session, e *session.Entry) error {
	var state session.State
	for key, value := range e.Base.State {
		if err := state.Apply(session.StateOp{Op: session.StateReplace, Key: key, Value: value}); err != nil {
			return broken(s, e, "%v", err)
		}
	}
	s.Messages = slices.Clone(e.Base.Messages)
	s.State = state
	s.Calls, s.ReplySeq, s.Waits, s.Held, s.Delays, s.Failures = nil, 0, nil, nil, nil, 0
	return nil
}

func takeMessages(s *session.Session, e *session.Entry) {
	for _, m := range e.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			s.Messages = append(s.Messages, m)
			s.ReplySeq, s.Failures = e.Seq, 0
			for _, c := range m.ToolCalls() {
				s.Calls = append(s.Calls, session.Call{ID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Arguments: c.Arguments})
			}
		case llm.RoleTool:
			takeResults(s, m)
		case llm.RoleUser:
			if len(s.Calls) > 0 {
				s.Held = append(s.Held, m)
				continue
			}
			s.Messages = append(s.Messages, m)
		}
	}
	if len(s.Calls) == 0 && len(s.Held) > 0 {
		s.Messages = append(s.Messages, s.Held...)
		s.Held = nil
	}
}

// takeResults appends the results of a tool message to those of the same reply,
// in the order of the calls.
func takeResults(s *session.Session, m llm.Message) {
	done := map[string]bool{}
	for _, p := range m.Parts {
		done[p.ToolResult.CallID] = true
	}
	s.Calls = slices.DeleteFunc(s.Calls, func(c session.Call) bool { return done[c.ID] })
	s.Waits = slices.DeleteFunc(s.Waits, func(w session.Wait) bool { return done[w.Call] })
	last := len(s.Messages) - 1
	if last < 0 || s.Messages[last].Role != llm.RoleTool {
		s.Messages = append(s.Messages, m)
		return
	}
	order := map[string]int{}
	if last > 0 {
		for i, c := range s.Messages[last-1].ToolCalls() {
			order[c.ID] = i
		}
	}
	merged := slices.Concat(s.Messages[last].Parts, m.Parts)
	slices.SortStableFunc(merged, func(a, b llm.Part) int { return order[a.ToolResult.CallID] - order[b.ToolResult.CallID] })
	s.Messages[last] = llm.Message{Role: llm.RoleTool, Parts: merged}
}

// trigger says what began the run whose first entry this is.
func trigger(e *session.Entry) session.Trigger {
	switch e.Kind {
	case session.KindStarted:
		return session.TriggerStart
	case session.KindRestored, session.KindForked:
		return session.TriggerRetry
	case session.KindReplied, session.KindStepped, session.KindSuspended, session.KindResumed, session.KindDelayed, session.KindInterrupted,
		session.KindCancelled, session.KindCompleted, session.KindFailed, session.KindDeleted:
	}
	if len(e.Answers) == 0 {
		return session.TriggerResume
	}
	switch e.Answers[len(e.Answers)-1].Kind {
	case session.AnswerExpiry:
		return session.TriggerExpiry
	case session.AnswerChild:
		return session.TriggerChild
	case session.AnswerMessage:
		return session.TriggerMessage
	case session.AnswerClientTool, session.AnswerApproval, session.AnswerReply, session.AnswerVerdict:
	}
	return session.TriggerSubmit
}

func openWaits(s *session.Session, e *session.Entry) {
	for _, w := range e.Waits {
		s.Waits = append(s.Waits, w)
		for i := range s.Calls {
			if s.Calls[i].ID == w.Call {
				s.Calls[i].Waits = append(s.Calls[i].Waits, w)
			}
		}
	}
}

// takeAnswers hands answers to their calls. What leaves a suspension closes what is still open.
func takeAnswers(s *session.Session, e *session.Entry) {
	for i, a := range e.Answers {
		if a.Kind == session.AnswerExpiry && a.ToolCallID == "" && a.Outcome != session.ExpireDefault {
			s.InputExpired = &e.Answers[i]
		}
		for i := range s.Calls {
			if s.Calls[i].ID == a.ToolCallID {
				s.Calls[i].Answers = append(s.Calls[i].Answers, a)
			}
		}
		s.Waits = slices.DeleteFunc(s.Waits, func(w session.Wait) bool { return w.ID == a.Wait })
	}
	switch e.Kind {
	case session.KindResumed, session.KindRestored, session.KindCancelled, session.KindFailed, session.KindStarted:
		s.Waits = nil
	case session.KindReplied, session.KindStepped, session.KindSuspended, session.KindDelayed, session.KindInterrupted,
		session.KindCompleted, session.KindForked, session.KindDeleted:
	}
}

func takeChild(s *session.Session, child session.Child) {
	for i := range s.Children {
		if s.Children[i].Session == child.Session {
			s.Children[i] = child
			return
		}
	}
	s.Children = append(s.Children, child)
}
