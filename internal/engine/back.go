package engine

import (
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// GoingBack is how a task begins from a checkpoint: with its history, and nothing that came after.
type GoingBack struct {
	// To is the session folded up to the checkpoint.
	To      *session.Session
	Rules   session.Rules
	Trigger session.Trigger
	// Results of calls that are open at the checkpoint and have run since, with their changes of
	// the state and their events. They have the ids that the calls have there.
	Results  []llm.ToolResult
	StateOps []session.StateOp
	Events   []session.CustomEvent
	// Message to go on with; nil for none. With one, what is asked at the checkpoint is not asked
	// again: its calls are closed.
	Message *llm.Message
	// Answers to what the session waits for now; they are kept on record and count for nothing.
	Answers []session.Answer
	// AsksLater leaves it to the step that follows to ask anew what the checkpoint asks: there is more
	// of it than one entry can open beside what it closes.
	AsksLater bool
}

// Restored begins a task of s with the history of a checkpoint of s (docs/design/chain.md). What is
// asked there is asked anew: the calls have new ids, the waits new ids and nonces. A call with a
// result is not asked again.
func Restored(s *session.Session, p GoingBack, st Stamp) Move {
	e := next(s, session.KindRestored, session.StatusRunning, st)
	p.begin(&e, s)
	e.Base, e.Answers = &journal.Base{Seq: p.To.Version}, p.Answers
	results := p.settled()
	if len(results) > 0 {
		outcomes := toolMessage(callOrder(p.To, nil), results)
		ids := newIDs(p.To.Calls, e.Seq)
		for _, part := range outcomes.Parts {
			part.ToolResult.CallID = ids[part.ToolResult.CallID]
		}
		e.Messages = append(e.Messages, outcomes)
	}
	if p.Message != nil {
		e.Messages = append(e.Messages, *p.Message)
	}
	e.StateOps, e.Events = p.StateOps, p.Events
	p.askAnew(&e, results, newIDs(p.To.Calls, e.Seq), distinct(s.Requesters, p.To.Requesters, []string{e.By}))
	return seal(s, e, p.Rules.Agent)
}

// TextForked is the result of a call that a fork does not make.
const TextForked = "Not run: this session is a copy, and the call belongs to the session that it was copied from"

// AskedAnew returns, by their ids at the checkpoint, those that the open calls have after the entry
// seq which goes back to it. Calls that the entry settles are not among them.
func (p *GoingBack) AskedAnew(seq int64) map[string]string {
	ids := newIDs(p.To.Calls, seq)
	for _, r := range p.settled() {
		delete(ids, r.CallID)
	}
	return ids
}

// Forked begins a session of its own with a copy of what a checkpoint of another one holds. Where
// that had ended, or was interrupted, and nothing new is said, the fork rests until it is resumed.
func Forked(key session.Key, p GoingBack, st Stamp) (m Move, asked map[string]string) {
	s := &session.Session{Key: key}
	e := next(s, session.KindForked, session.StatusRunning, st)
	p.begin(&e, s)
	copied := &session.Session{Messages: slices.Clone(p.To.Messages), Calls: slices.Clone(p.To.Calls), Held: slices.Clone(p.To.Held)}
	results := p.settled()
	if len(results) > 0 {
		takeMessages(copied, e.Seq, []llm.Message{toolMessage(callOrder(p.To, nil), results)})
	}
	state := p.To.State
	if len(p.StateOps) > 0 {
		state = mustState(state.With(p.StateOps))
	}
	messages := append(make([]llm.Message, 0, len(copied.Messages)+len(copied.Held)), slices.Concat(copied.Messages, copied.Held)...)
	e.Base = &journal.Base{Session: p.To.Key.ID, Seq: p.To.Version, State: state.Snapshot(), Messages: copiedCalls(messages)}
	if p.Message != nil {
		e.Messages = []llm.Message{*p.Message}
	}
	e.Metadata, e.Requesters = p.To.Metadata, p.To.Requesters
	if p.Message == nil && (p.To.Status.Ended() || p.To.Status == session.StatusInterrupted) {
		e.Status = session.StatusInterrupted
	}
	asked = newIDs(copied.Calls, e.Seq) // those that are settled are not open in the copy
	p.askAnew(&e, results, asked, append(slices.Clip(e.Requesters), e.By))
	return seal(s, e, p.Rules.Agent), asked
}

// copiedCalls gives every call of copied messages, and its result, an id that no entry of the copy
// gives: there is no entry 0.
func copiedCalls(messages []llm.Message) []llm.Message {
	n, ids := 0, map[string]string{}
	for i, m := range messages {
		parts := slices.Clone(m.Parts)
		for j, part := range parts {
			switch {
			case part.ToolCall != nil:
				n++
				call := *part.ToolCall
				ids[call.ID] = callID(0, n)
				call.ID = ids[call.ID]
				parts[j].ToolCall = &call
			case part.ToolResult != nil:
				result := *part.ToolResult
				result.CallID = ids[result.CallID]
				parts[j].ToolResult = &result
			}
		}
		messages[i].Parts = parts
	}
	return messages
}

// begin makes an entry the first of a task and of a run.
func (p *GoingBack) begin(e *journal.Entry, s *session.Session) {
	e.Task, e.Run, e.Step, e.Trigger = s.Task+1, s.Run+1, 0, p.Trigger
	hold(e, p.Rules)
}

// settled returns the results of the calls that are open at the checkpoint: those that have run
// since, and, where a message goes on, those that are closed for it.
func (p *GoingBack) settled() []llm.ToolResult {
	if p.Message == nil {
		return slices.Clone(p.Results)
	}
	return closeRest(p.To, StepOutcome{}, slices.Clone(p.Results))
}

// askAnew opens the waits of the checkpoint whose calls have no result; where there are any, the entry
// suspends.
func (p *GoingBack) askAnew(e *journal.Entry, results []llm.ToolResult, ids map[string]string, requesters []string) {
	done := map[string]bool{}
	for _, r := range results {
		done[r.CallID] = true
	}
	for _, w := range p.To.Waits {
		if done[w.Call] || w.Call == "" && p.Message != nil || w.Call != "" && (p.AsksLater || p.leavesOut(w)) {
			continue
		}
		if w.Call != "" {
			w.Call = ids[w.Call]
		}
		w.Nonce = ""
		e.Waits = append(e.Waits, w)
	}
	if len(e.Waits) > 0 {
		e.Status, e.KeepsLease = session.StatusSuspended, false
		openAll(e, requesters...)
	}
}

// leavesOut reports whether the rules of the task do not let a wait be opened anew: the step that
// follows says what becomes of its call.
func (p *GoingBack) leavesOut(w session.Wait) bool {
	return !slices.Contains(p.Rules.Tools, w.Tool) || p.Rules.ModeOf(w.Tool) == session.ToolNever || w.Kind == session.WaitApproval && p.Rules.Asked.DeniesApprovals()
}

// Made is a call that a session has made, with what its journal says of it.
type Made struct {
	Call session.Call
	// Entry is the seq of the entry after which it was open, or that settled it at once.
	Entry int64
	// Run is the last run of its tool, nil for none. ByClient says that a client brought the result.
	Run      *journal.ToolRun
	ByClient bool
	// At is when a client brought it.
	At time.Time
	// Result, nil for none.
	Result *llm.ToolResult
}

// BroughtBy notes that a client's answer has brought the result of the call.
func (m *Made) BroughtBy(a session.Answer) {
	m.ByClient, m.Result, m.At = true, clientResult(m.Call, a), a.When
}

// LeftBehind returns the calls that a journal has made or run after a checkpoint, in their order. What
// came before it, and is not in its history, was left behind by an earlier way back. Errors wrap [ErrBrokenJournal].
func LeftBehind(key session.Key, entries []journal.Entry, checkpoint int64) ([]Made, error) {
	made := map[string]*Made{}
	var order []string
	note := func(c session.Call, seq int64) {
		if made[c.ID] == nil {
			made[c.ID] = &Made{Call: c, Entry: seq}
			order = append(order, c.ID)
		}
	}
	after := map[string]bool{}
	_, err := foldEach(key, entries, func(s *session.Session, e *journal.Entry) {
		for _, m := range e.Messages {
			for _, c := range m.ToolCalls() {
				note(session.Call{ID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Arguments: c.Arguments}, e.Seq)
			}
		}
		for _, c := range s.Calls {
			note(c, e.Seq)
		}
		noteOutcomes(made, e, func(call string) { after[call] = after[call] || e.Seq > checkpoint })
	})
	if err != nil {
		return nil, err
	}
	var left []Made
	for _, id := range order {
		if m := made[id]; m.Entry > checkpoint || after[id] {
			left = append(left, *m)
		}
	}
	return left, nil
}

// MadeIn returns the calls that some entries made or settled, in their order, and what of open calls they
// say. Of a call that entries before made, and that is not open, its name and outcome are known alone.
func MadeIn(entries []journal.Entry, open []session.Call) []Made {
	made := map[string]*Made{}
	var order []string
	note := func(c session.Call, seq int64) {
		if made[c.ID] == nil {
			made[c.ID] = &Made{Call: c, Entry: seq}
			order = append(order, c.ID)
		}
	}
	for i := range entries {
		e := &entries[i]
		for _, m := range e.Messages {
			for _, c := range m.ToolCalls() {
				note(session.Call{ID: c.ID, ProviderID: c.ProviderID, Name: c.Name, Arguments: c.Arguments}, e.Seq)
			}
			for _, p := range m.Parts {
				if r := p.ToolResult; r != nil {
					note(session.Call{ID: r.CallID, Name: r.Name}, e.Seq)
				}
			}
		}
		noteOutcomes(made, e, func(string) {})
	}
	for _, c := range open {
		note(c, 0)
	}
	out := make([]Made, len(order))
	for i, id := range order {
		out[i] = *made[id]
	}
	return out
}

// noteOutcomes adds what an entry says of calls, and says of which.
func noteOutcomes(made map[string]*Made, e *journal.Entry, says func(call string)) {
	for _, a := range e.Answers {
		m := made[a.ToolCallID]
		if m == nil || e.Base != nil && a.Kind != session.AnswerClientTool {
			continue
		}
		if a.EditedInput != nil {
			m.Call.Arguments = a.EditedInput
		}
		switch {
		case e.Base != nil: // it counts for nothing, and yet the client has done it
			m.BroughtBy(a)
		case a.Kind == session.AnswerClientTool:
			m.ByClient, m.At = true, a.When
		}
		says(a.ToolCallID)
	}
	for i := range e.Calls {
		if m := made[e.Calls[i].Call]; m != nil {
			m.Run = &e.Calls[i]
			says(m.Call.ID)
		}
	}
	for _, message := range e.Messages {
		for _, p := range message.Parts {
			if p.ToolResult == nil {
				continue
			}
			if m := made[p.ToolResult.CallID]; m != nil {
				m.Result = p.ToolResult
				says(m.Call.ID)
			}
		}
	}
}
