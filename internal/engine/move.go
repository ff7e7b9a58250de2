package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Stamp is what a writer adds to an entry: the time, the author, the attempt id, a random token.
type Stamp struct {
	Now time.Time
	By  string
	// From is where the caller of a verb was; empty for workers.
	From    string
	Attempt session.Attempt
	// Token is 96 random bits in base64url.
	Token string
	// KeepsLease says that the writer will go on with the next entry itself.
	KeepsLease bool
}

// Move is the next entry with the records that go with it.
type Move struct {
	Entry journal.Entry
	// MovesHead says that the session's status or task changes, so that HEAD has to be written too.
	MovesHead bool
	// Waits opened by the entry, in the same transaction.
	Waits []journal.WaitRecord
	// Run to be written: a new one (RunIsNew), or the current one at its end.
	Run      *session.Run
	RunIsNew bool
	// Wake that has to follow the commit; nil when nothing does, or when the writer goes on itself.
	Wake *journal.Wake
	// Title for HEAD, of a new session; ForkedFrom of one that is a fork.
	Title      string
	ForkedFrom *session.Fork
}

// AnsweredGrace is how long after the last answer the sweep waits for the
// resumption before it sends one itself.
const AnsweredGrace = 10 * time.Second

func next(s *session.Session, kind session.Kind, status session.Status, st Stamp) journal.Entry {
	return journal.Entry{
		V: journal.Format, Seq: s.Next(), Kind: kind, At: st.Now.UTC(), By: st.By, From: st.From, Attempt: st.Attempt, KeepsLease: st.KeepsLease,
		Prev: s.Newest.Hash, Token: st.Token, Task: s.Task, Run: s.Run, Step: s.Step, RulesAt: s.RulesAt, Status: status,
		Used: journal.Used{Task: s.Used},
	}
}

// seal makes a move of a finished entry: what its status says about runs, HEAD and the wake.
func seal(s *session.Session, e journal.Entry, agentName string) Move {
	if slices.ContainsFunc(e.Answers, func(a session.Answer) bool { return a.Kind == session.AnswerDismissal }) {
		e.Needs = append(e.Needs, session.NeedsDismissal)
	}
	if slices.ContainsFunc(e.Answers, func(a session.Answer) bool { return a.Standing != nil }) {
		e.Needs = append(e.Needs, session.NeedsStanding)
	}
	m := Move{Entry: e, MovesHead: e.Status != s.Status || e.Task != s.Task || e.Signal != nil}
	switch {
	case e.Run != s.Run:
		m.RunIsNew = true
		m.Run = &session.Run{
			ID: e.Run, Task: e.Task, Trigger: e.Trigger, Status: e.Status, StartedAt: e.At, FirstEntry: e.Seq,
			PreviousRun: e.Run - 1, Usage: e.Usage, Used: e.Used.Amounts,
		}
		if e.Status.Resting() { // it only asks
			m.Run.EndedAt, m.Run.LastEntry = &e.At, e.Seq
		}
	case e.Status.Resting() && s.Status == session.StatusRunning:
		run, at := s.RunRecord, e.At
		run.Status, run.EndedAt, run.LastEntry = e.Status, &at, e.Seq
		run.Usage, run.Used = run.Usage.Add(e.Usage), s.RunUsed.Add(e.Used.Amounts)
		m.Run = &run
	}
	for _, w := range e.Waits {
		m.Waits = append(m.Waits, journal.WaitRecord{Wait: w, State: session.WaitOpen, Agent: agentName, Due: w.Due(nil)})
	}
	if e.Status == session.StatusRunning && !e.KeepsLease {
		wake := journal.NewWake(s.Key, e.Seq+1, journal.WakeStep)
		wake.Delay = journal.PutOff(e.At, e.Until, e.At)
		if wake.Delay <= journal.MaxAhead { // else no queue takes it, and HEAD is due then
			m.Wake = &wake
		}
	}
	return m
}

// Start begins a task with a user message: a new session, or the next turn of one that ended.
func Start(s *session.Session, rules session.Rules, message llm.Message, st Stamp) Move {
	e := next(s, session.KindStarted, session.StatusRunning, st)
	e.Task, e.Run, e.Step, e.Trigger = s.Task+1, s.Run+1, 0, session.TriggerStart
	hold(&e, rules)
	e.Messages = []llm.Message{message}
	m := seal(s, e, rules.Agent)
	if s.Version == 0 {
		m.Title = title(message.Text())
	}
	return m
}

// titleRunes is how much of the first message names a session in lists.
const titleRunes = 80

func title(text string) string {
	start := strings.ToValidUTF8(text[:min(len(text), 8*titleRunes)], "") // the cut may go through a rune
	runes := []rune(strings.Join(strings.Fields(start), " "))
	if len(runes) > titleRunes {
		return string(runes[:titleRunes-1]) + "…"
	}
	return string(runes)
}

// Used is what a step took from the limits beside its one step.
type Used struct {
	Usage      llm.Usage
	CostMicros int64
	Active     time.Duration
	// Models and Runs say the same call by call.
	Models []journal.ModelCall
	Runs   []journal.ToolRun
}

func spend(e *journal.Entry, used Used, replies int64) {
	e.Usage, e.Models, e.Calls = used.Usage, used.Models, used.Runs
	e.Used.Amounts = session.Amounts{
		Steps: replies, Tokens: used.Usage.Total(), ActiveMillis: used.Active.Milliseconds(), CostMicros: used.CostMicros,
	}
	e.Used.Task = e.Used.Task.Add(e.Used.Amounts)
}

// WithCallIDs returns the reply with our ids on its calls: c<seq>-<i>, i from 1.
func WithCallIDs(reply llm.Message, seq int64) llm.Message {
	parts := slices.Clone(reply.Parts)
	i := 0
	for j, p := range parts {
		if p.Kind != llm.PartToolCall || p.ToolCall == nil {
			continue
		}
		i++
		call := *p.ToolCall
		call.ID = callID(seq, i)
		parts[j].ToolCall = &call
	}
	return llm.Message{Role: llm.RoleAssistant, Parts: parts}
}

// StepOutcome is what came of a step.
type StepOutcome struct {
	// Mail taken in before the reply.
	Mail         []string
	MailMessages []llm.Message
	Requesters   []string // who sent it, and the late mail
	// Reply with our call ids; nil when it is committed already.
	Reply      *llm.Message
	NeedsInput bool
	// Results of calls, in any order.
	Results []llm.ToolResult
	// Answers that a signal takes in when it ends a suspension.
	Answers []session.Answer
	// Output of a finish tool that succeeded: the task is complete.
	Output json.RawMessage
	// Waits to open, without ids and times.
	Waits    []session.Wait
	StateOps []session.StateOp
	Events   []session.CustomEvent
	Failure  *session.Failure
	Used     Used
	// LateMail came while the step was ending: it follows the reply, which had not
	// seen it, and keeps the task going, unless that waits, fails or is stopped.
	LateMail         []string
	LateMailMessages []llm.Message
	// InputExpiry bounds an input wait.
	InputExpiry *Expiry
}

// Replied commits a reply before its tools with effects run, so that the ids of
// its calls are fixed. The writer goes on.
func Replied(s *session.Session, out StepOutcome, st Stamp) Move {
	st.KeepsLease = true
	e := next(s, session.KindReplied, session.StatusRunning, st)
	addReply(&e, out)
	e.StateOps = out.StateOps
	spend(&e, out.Used, 1)
	return seal(s, e, s.Rules.Agent)
}

func addReply(e *journal.Entry, out StepOutcome) {
	e.Messages = append(e.Messages, out.MailMessages...)
	e.Mail, e.Requesters = out.Mail, distinct(out.Requesters)
	if out.Reply != nil {
		e.Messages = append(e.Messages, *out.Reply)
		e.Step++
	}
}

func addLateMail(e *journal.Entry, out StepOutcome) {
	e.Messages = append(e.Messages, out.LateMailMessages...)
	e.Mail = slices.Concat(e.Mail, out.LateMail)
}

// Close commits what came of a step: stepped, suspended, completed or failed.
// After a failure the calls without a result get one that says so.
func Close(s *session.Session, out StepOutcome, st Stamp) Move {
	kind, status := session.KindStepped, session.StatusRunning
	switch {
	case out.Failure != nil:
		kind, status = session.KindFailed, session.StatusFailed
	case len(out.Waits) > 0 && !out.mailAnswers():
		kind, status = session.KindSuspended, session.StatusSuspended
	case len(out.LateMail) > 0:
	case out.needsInput():
		kind, status = session.KindSuspended, session.StatusSuspended
	case out.Output != nil || out.Reply != nil && len(out.Reply.ToolCalls()) == 0:
		kind, status = session.KindCompleted, session.StatusCompleted
	}
	if status != session.StatusRunning {
		st.KeepsLease = false
	}
	e := next(s, kind, status, st)
	addReply(&e, out)
	results := out.Results
	if out.Failure != nil {
		results = answered(s, nil, closeRest(s, out, results))
	}
	if len(results) > 0 {
		e.Messages = append(e.Messages, toolMessage(callOrder(s, out.Reply), results))
	}
	addLateMail(&e, out)
	e.StateOps, e.Events, e.Failure = out.StateOps, out.Events, out.Failure
	if kind == session.KindCompleted {
		e.Output = out.Output
	}
	if kind == session.KindSuspended {
		e.Waits = out.Waits
		if len(e.Waits) == 0 {
			e.Waits = []session.Wait{{Kind: session.WaitInput, Text: out.Reply.Text(), Deadline: out.InputExpiry.Deadline(time.Time{})}}
		}
		openAll(&e, out.Requesters...)
	}
	replies := int64(0)
	if out.Reply != nil {
		replies = 1
	}
	spend(&e, out.Used, replies)
	if out.Failure == nil {
		warn(s, &e)
	}
	return seal(s, e, s.Rules.Agent)
}

func (out StepOutcome) needsInput() bool {
	return out.NeedsInput && out.Reply != nil && len(out.Reply.ToolCalls()) == 0
}

// mailAnswers reports whether all that is waited for is a message, and one has come meanwhile.
func (out StepOutcome) mailAnswers() bool {
	return len(out.LateMail) > 0 && !slices.ContainsFunc(out.Waits, func(w session.Wait) bool { return w.Kind != session.WaitInput || w.Call != "" })
}

// openAll gives the waits of an entry their ids, nonces and times. At most
// MaxWaits are opened; the calls of the others are planned again. Requesters have come since then.
func openAll(e *journal.Entry, requesters ...string) {
	e.Waits = slices.Clone(e.Waits[:min(len(e.Waits), session.MaxWaits)])
	for i := range e.Waits {
		w := &e.Waits[i]
		w.ID = fmt.Sprintf("w%d-%d", e.Seq, i+1)
		w.OpenedAt = e.At
		if w.Kind == session.WaitApproval {
			w.Nonce = nonce(e.Token, w.ID)
		}
		addRequesters(w, requesters)
		if w.Deadline != nil {
			d := *w.Deadline
			d.At = e.At.Add(d.After)
			w.Deadline = &d
		}
		if w.Escalates() && !slices.Contains(w.Needs, session.NeedsEscalation) {
			w.Needs = append(slices.Clip(w.Needs), session.NeedsEscalation)
		}
	}
}

// nonce derives an unguessable approval id from the entry's random token. It begins
// with the wait's id, so that the approval is found by it in one read.
func nonce(token, wait string) string {
	sum := sha256.Sum256([]byte("approval\n" + token + "\n" + wait))
	return wait + "_" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

func callOrder(s *session.Session, reply *llm.Message) map[string]int {
	order := map[string]int{}
	if reply != nil {
		for i, c := range reply.ToolCalls() {
			order[c.ID] = i
		}
		return order
	}
	for i, c := range s.Calls {
		order[c.ID] = i
	}
	return order
}

func toolMessage(order map[string]int, results []llm.ToolResult) llm.Message {
	results = slices.Clone(results)
	slices.SortStableFunc(results, func(a, b llm.ToolResult) int { return cmp.Compare(order[a.CallID], order[b.CallID]) })
	m := llm.Message{Role: llm.RoleTool}
	for i := range results {
		m.Parts = append(m.Parts, llm.Part{Kind: llm.PartToolResult, ToolResult: &results[i]})
	}
	return m
}

// closeRest adds a result for every call that has none.
func closeRest(s *session.Session, out StepOutcome, results []llm.ToolResult) []llm.ToolResult {
	done := map[string]bool{}
	for _, r := range results {
		done[r.CallID] = true
	}
	calls := s.Calls
	if out.Reply != nil {
		calls = nil
		for _, c := range out.Reply.ToolCalls() {
			calls = append(calls, session.Call{ID: c.ID, ProviderID: c.ProviderID, Name: c.Name})
		}
	}
	for _, c := range calls {
		if !done[c.ID] {
			results = append(results, Result(c, llm.ResultCancelled, TextCancelled))
		}
	}
	return results
}

// answered puts what people, clients and children answered in the place of
// results that say no more than that a call was closed: an answer that was
// accepted is never forgotten.
func answered(s *session.Session, answers []session.Answer, results []llm.ToolResult) []llm.ToolResult {
	results = slices.Clone(results)
	for i, r := range results {
		if r.Status != llm.ResultCancelled && r.Status != llm.ResultUnknown {
			continue
		}
		for _, c := range s.Calls {
			if c.ID != r.CallID {
				continue
			}
			c.Answers = slices.Clone(c.Answers)
			for _, a := range answers {
				if a.ToolCallID == c.ID {
					c.Answers = append(c.Answers, a)
				}
			}
			t := takeCall(s, c, s.Rules.Digest, func() Traits { return Traits{} })
			if known := cmp.Or(t.result, t.told); known != nil { // no question is asked again
				results[i] = *known
			}
		}
	}
	return results
}

// Waiting goes back from interrupted to waiting for what is still open: the same
// waits, with their ids and nonces.
func Waiting(s *session.Session, st Stamp) Move {
	st.KeepsLease = false
	return seal(s, next(s, session.KindSuspended, session.StatusSuspended, st), s.Rules.Agent)
}

// Delayed puts a failed model call off until a later time, [journal.MaxDelay] at most.
func Delayed(s *session.Session, failure session.Failure, until time.Time, used Used, st Stamp) Move {
	st.KeepsLease = false
	e := next(s, session.KindDelayed, session.StatusRunning, st)
	if last := st.Now.Add(journal.MaxDelay); until.After(last) {
		until = last
	}
	until = until.UTC()
	e.Failure, e.Until = &failure, &until
	spend(&e, used, 1)
	m := seal(s, e, s.Rules.Agent)
	m.MovesHead = true // a signal does not wait for the retry
	return m
}

// Resumed leaves a suspension: the answers are taken in, a message follows them,
// a new run begins. The writer goes on with the step, unless it is a verb.
func Resumed(s *session.Session, answers []session.Answer, message *llm.Message, closed []llm.ToolResult, st Stamp) Move {
	e := next(s, session.KindResumed, session.StatusRunning, st)
	e.Run, e.Trigger = s.Run+1, trigger(answers, message)
	e.Answers = answers
	if len(closed) > 0 {
		e.Messages = append(e.Messages, toolMessage(callOrder(s, nil), answered(s, answers, closed)))
	}
	for _, a := range answers {
		if parts, ok := said(a); ok {
			e.Messages = append(e.Messages, llm.UserParts(parts))
		}
	}
	if message != nil {
		e.Messages = append(e.Messages, *message)
	}
	return seal(s, e, s.Rules.Agent)
}

// trigger says what began the run that takes answers in: a message, else the last answer.
func trigger(answers []session.Answer, message *llm.Message) session.Trigger {
	switch {
	case message != nil:
		return session.TriggerMessage
	case len(answers) == 0:
		return session.TriggerResume
	}
	switch answers[len(answers)-1].Kind {
	case session.AnswerExpiry:
		return session.TriggerExpiry
	case session.AnswerChild:
		return session.TriggerChild
	case session.AnswerMessage:
		return session.TriggerMessage
	case session.AnswerClientTool, session.AnswerApproval, session.AnswerReply, session.AnswerVerdict, session.AnswerDismissal:
	}
	return session.TriggerSubmit
}

// said returns the user message in an answer to an input wait.
func said(a session.Answer) ([]llm.Part, bool) {
	if a.Kind == session.AnswerMessage {
		return a.Message, true
	}
	var text string
	ok := a.Kind == session.AnswerExpiry && a.ToolCallID == "" && a.Outcome == session.ExpireDefault && json.Unmarshal(a.Result, &text) == nil
	return llm.TextParts(text), ok
}

// Stopped carries out a signal: the task is interrupted, cancelled or, by abort, failed for good.
// results hold the outcomes of the open calls. An interrupted task keeps the calls that have
// none; otherwise they are closed. A reply with calls that is not committed is kept with their
// results where the task ends; an interrupted one is given up, and planned again.
func Stopped(s *session.Session, signal journal.Signal, out StepOutcome, st Stamp) Move {
	st.KeepsLease = false
	kind, status := session.KindInterrupted, signal.Kind.LeadsTo()
	switch signal.Kind {
	case journal.SignalInterrupt:
	case journal.SignalCancel:
		kind = session.KindCancelled
	case journal.SignalAbort:
		kind = session.KindFailed
	}
	e := next(s, kind, status, st)
	if !out.KeepsReply(signal) {
		out.Reply = nil
	}
	e.Signal, e.Answers = &signal, out.Answers
	addReply(&e, out)
	results, replies := out.Results, int64(0)
	if out.Reply != nil {
		replies = 1
	}
	if status.Ended() {
		results = answered(s, out.Answers, closeRest(s, out, results))
	}
	if len(results) > 0 {
		e.Messages = append(e.Messages, toolMessage(callOrder(s, out.Reply), results))
	}
	addLateMail(&e, out)
	if status == session.StatusCancelled {
		e.Messages = append(e.Messages, llm.Assistant(TextClosing))
	}
	if status == session.StatusFailed {
		e.Failure = &session.Failure{Type: session.FailureAborted, Message: "Aborted by " + cmp.Or(signal.Who, "an unknown caller") + reason(signal.Reason)}
	}
	e.StateOps, e.Events = out.StateOps, out.Events
	spend(&e, out.Used, replies)
	return seal(s, e, s.Rules.Agent)
}

// KeepsReply reports whether a reply that is not committed goes with the entry that obeys a signal:
// one with calls, where the task ends. Its tools only read, and what they brought counts.
func (out StepOutcome) KeepsReply(signal journal.Signal) bool {
	return out.Reply != nil && len(out.Reply.ToolCalls()) > 0 && signal.Kind.LeadsTo().Ended()
}

func reason(text string) string {
	if text == "" {
		return "."
	}
	return ": " + text
}
