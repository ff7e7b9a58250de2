package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// ErrBrokenJournal says that an entry cannot follow the ones before it.
var ErrBrokenJournal = errors.New("broken journal")

// ErrNeedsHistory says that an entry goes back to an earlier one, so that it can
// only be folded together with the whole journal ([Fold]).
var ErrNeedsHistory = errors.New("entry goes back to an earlier one: fold the whole journal")

// history is what an entry that goes back takes from an earlier one.
type history struct {
	messages []llm.Message
	state    session.State
	delays   []int
	// calls have no result there. What was answered for them before counts.
	calls []session.Call
	// inputExpired as in [session.Session].
	inputExpired *session.Answer
	// requesters asked for the task there: what goes back to it asks for the same.
	requesters []string
}

// Fold folds a whole journal, entry 1 first. Errors wrap [ErrBrokenJournal].
func Fold(key session.Key, entries []journal.Entry) (*session.Session, error) {
	return foldEach(key, entries, func(*session.Session, *journal.Entry) {})
}

// foldEach is [Fold], and shows the session after each entry.
func foldEach(key session.Key, entries []journal.Entry, show func(*session.Session, *journal.Entry)) (*session.Session, error) {
	// What is gone back to is kept on the way, so that a journal that goes back
	// often is still read once.
	kept := map[int64]*history{}
	for i := range entries {
		if goesBack(&entries[i]) {
			kept[entries[i].Base.Seq] = nil
		}
	}
	s := &session.Session{Key: key}
	for i := range entries {
		e := &entries[i]
		if err := Check(s, e); err != nil {
			return nil, err
		}
		var back *history
		if goesBack(e) {
			back = kept[e.Base.Seq]
		}
		if err := checkTakenIn(s, e, back); err != nil {
			return nil, err
		}
		apply(s, e, back)
		show(s, e)
		if _, wanted := kept[s.Version]; wanted {
			kept[s.Version] = historyOf(s)
		}
	}
	return s, nil
}

func historyOf(s *session.Session) *history {
	h := &history{
		messages: slices.Concat(s.Messages, s.Held), state: s.State, delays: slices.Clone(s.Delays), calls: slices.Clone(s.Calls), inputExpired: s.InputExpired,
		requesters: slices.Clone(s.Requesters),
	}
	for i := range h.calls {
		c := &h.calls[i]
		c.Answers = slices.Clone(c.Answers)
		c.Waits = slices.DeleteFunc(slices.Clone(c.Waits), func(w session.Wait) bool {
			return !slices.ContainsFunc(c.Answers, func(a session.Answer) bool { return a.Wait == w.ID })
		})
	}
	return h
}

func goesBack(e *journal.Entry) bool { return e.Base != nil && e.Base.Messages == nil }

// Apply folds the next entry into s. It changes s only if it returns nil; it
// takes time in proportion to the entry (and to the number of keys of the custom
// state, if the entry changes that), not to the session. Errors wrap
// [ErrBrokenJournal], or are [ErrNeedsHistory].
func Apply(s *session.Session, e *journal.Entry) error {
	if err := Check(s, e); err != nil {
		return err
	}
	return ApplyChecked(s, e)
}

// ApplyChecked is [Apply] for an entry that [Check] has accepted for s as it is now.
func ApplyChecked(s *session.Session, e *journal.Entry) error {
	var back *history
	if goesBack(e) {
		if e.Base.Seq != s.Version {
			return ErrNeedsHistory
		}
		back = historyOf(s) // it goes on from where it stood
		if err := checkTakenIn(s, e, back); err != nil {
			return err
		}
	}
	apply(s, e, back)
	return nil
}

// apply folds an entry that was checked: it cannot fail.
func apply(s *session.Session, e *journal.Entry, back *history) {
	takePermissions(s, e)
	s.InputExpired = nil
	if e.Task != s.Task {
		s.TaskUsage, s.Delays, s.Failures = llm.Usage{}, nil, 0
		s.Output, s.Failure = nil, nil
		s.Counts.BeginTask()
	}
	rebase(s, e, back)
	takeRequesters(s, e)
	if e.Rules != nil {
		s.Rules, s.RulesAt = *e.Rules, e.Seq
		forgetWarnings(s)
	}
	if e.Parent != nil {
		s.Parent = e.Parent
	}
	if e.Metadata != nil {
		s.Metadata = e.Metadata
	}
	applyRun(s, e)
	s.TaskUsage = s.TaskUsage.Add(e.Usage)
	s.Status, s.Task, s.Run, s.Step, s.Used = e.Status, e.Task, e.Run, e.Step, e.Used.Task
	count(s, e)
	takeAnswers(s, e)
	takeMessages(s, e.Seq, e.Messages)
	openWaits(s, e)
	if len(e.StateOps) > 0 {
		s.State = mustState(s.State.With(e.StateOps))
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
	if e.Failure != nil && e.Kind == session.KindFailed {
		s.Failure = e.Failure
	}
	s.Version = e.Seq
	if e.IsCheckpoint() {
		s.CheckpointSeq, s.CheckpointToken = e.Seq, e.Token
	}
	s.Newest = session.Newest{
		Kind: e.Kind, At: e.At, Attempt: e.Attempt, KeepsLease: e.KeepsLease, Hash: e.Hash, Token: e.Token, Until: e.Until, Stopped: e.Signal.StoppedBy(),
	}
}

// applyRun keeps the record of the run. A run that ended at a suspension stays as
// it ended, whatever happens to the session before the next one.
func applyRun(s *session.Session, e *journal.Entry) {
	if e.Run != s.Run {
		s.RunRecord = session.Run{
			ID: e.Run, Task: e.Task, Trigger: e.Trigger, StartedAt: e.At, FirstEntry: e.Seq, PreviousRun: e.Run - 1,
		}
		s.RunUsed = session.Amounts{}
	}
	if s.RunRecord.EndedAt != nil {
		return
	}
	s.RunRecord.Usage, s.RunUsed = s.RunRecord.Usage.Add(e.Usage), s.RunUsed.Add(e.Used.Amounts)
	s.RunRecord.Status = e.Status
	if e.Status.Resting() {
		at := e.At
		s.RunRecord.EndedAt, s.RunRecord.LastEntry = &at, e.Seq
	}
}

// mustState takes the state of operations that were checked one by one before.
func mustState(state session.State, err error) session.State {
	if err != nil {
		panic(fmt.Sprintf("engine: state operations were checked and yet: %v", err))
	}
	return state
}

// rebase puts the history of an entry's base in the place of that of the entry before.
func rebase(s *session.Session, e *journal.Entry, back *history) {
	if e.Base == nil {
		return
	}
	from := history{messages: e.Base.Messages, state: s.State}
	switch {
	case back != nil:
		from = *back
	case e.Base.State != nil:
		from.state = session.State{}
		for _, key := range slices.Sorted(maps.Keys(e.Base.State)) {
			op := session.StateOp{Op: session.StateReplace, Key: key, Value: e.Base.State[key]}
			from.state = mustState(from.state.With([]session.StateOp{op}))
		}
	}
	s.State, s.Delays, s.Requesters = from.state, slices.Clone(from.delays), distinct(s.Requesters, from.requesters)
	s.Messages, s.MessagesSize, s.Calls, s.ReplySeq, s.Waits, s.Held, s.Failures = nil, 0, nil, 0, nil, nil, 0
	takeMessages(s, e.Seq, from.messages)
	for i := range s.Calls {
		for _, c := range from.calls {
			if c.ID == s.Calls[i].ID {
				s.Calls[i].First, s.Calls[i].Answers, s.Calls[i].Waits = c.First, slices.Clone(c.Answers), slices.Clone(c.Waits)
			}
		}
	}
	if len(e.Messages) == 0 {
		s.InputExpired = from.inputExpired
	}
	renameCalls(s, e.Seq)
}

// renameCalls gives the calls a base left open ids of the entry that has the base.
func renameCalls(s *session.Session, seq int64) {
	if len(s.Calls) == 0 {
		return
	}
	ids := newIDs(s.Calls, seq)
	for i := range s.Calls {
		s.Calls[i].First, s.Calls[i].ID = s.Calls[i].FirstID(), ids[s.Calls[i].ID]
	}
	at := len(s.Messages) - 1
	if s.Messages[at].Role == llm.RoleTool {
		at--
	}
	parts := slices.Clone(s.Messages[at].Parts)
	for i, p := range parts {
		if p.Kind != llm.PartToolCall || p.ToolCall == nil || ids[p.ToolCall.ID] == "" {
			continue
		}
		call := *p.ToolCall
		call.ID = ids[call.ID]
		parts[i].ToolCall = &call
	}
	s.Messages[at] = llm.Message{Role: llm.RoleAssistant, Parts: parts}
}

// newIDs returns, by their old ids, those that open calls have after entry seq went back to them.
func newIDs(calls []session.Call, seq int64) map[string]string {
	ids := map[string]string{}
	for i, c := range calls {
		ids[c.ID] = callID(seq, i+1)
	}
	return ids
}

func takeMessages(s *session.Session, seq int64, messages []llm.Message) {
	for _, m := range messages {
		s.MessagesSize += m.Size()
		switch m.Role {
		case llm.RoleAssistant:
			s.Messages = append(s.Messages, m)
			s.ReplySeq, s.Failures = seq, 0
			for _, c := range m.ToolCalls() {
				s.Calls = append(s.Calls, session.Call{ID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Arguments: c.Arguments})
			}
		case llm.RoleTool:
			takeResults(s, m)
			if len(s.Calls) == 0 {
				s.Messages = append(s.Messages, s.Held...)
				s.Held = nil
			}
		case llm.RoleUser:
			if len(s.Calls) > 0 {
				s.Held = append(s.Held, m)
				continue
			}
			s.Messages = append(s.Messages, m)
		}
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
	if s.Messages[last].Role != llm.RoleTool {
		s.Messages = append(s.Messages, m)
		return
	}
	order := map[string]int{}
	for i, c := range s.Messages[last-1].ToolCalls() {
		order[c.ID] = i
	}
	merged := slices.Concat(s.Messages[last].Parts, m.Parts)
	slices.SortStableFunc(merged, func(a, b llm.Part) int { return order[a.ToolResult.CallID] - order[b.ToolResult.CallID] })
	s.Messages[last] = llm.Message{Role: llm.RoleTool, Parts: merged}
}

func openWaits(s *session.Session, e *journal.Entry) {
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
// Going back keeps the answers of what it leaves behind on record; they count for nothing.
func takeAnswers(s *session.Session, e *journal.Entry) {
	if e.Base != nil {
		return
	}
	for i, a := range e.Answers {
		// Where a message came with it, the planner has that to go on with.
		if a.Kind == session.AnswerExpiry && a.ToolCallID == "" && a.Outcome != session.ExpireDefault && e.Trigger != session.TriggerMessage {
			s.InputExpired = &e.Answers[i]
		}
		for i := range s.Calls {
			if s.Calls[i].ID == a.ToolCallID {
				s.Calls[i].Answers = append(s.Calls[i].Answers, a)
			}
		}
		s.Waits = slices.DeleteFunc(s.Waits, func(w session.Wait) bool { return w.ID == a.Wait })
	}
	if e.Status != session.StatusSuspended && e.Status != session.StatusInterrupted && e.Kind != session.KindDeleted {
		s.Waits = nil
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
