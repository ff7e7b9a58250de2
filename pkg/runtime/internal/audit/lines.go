package audit

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// all returns every line.
func (r *records) all() []session.AuditLine {
	lines := []session.AuditLine{}
	for i := range r.waits {
		lines = append(lines, r.ofWait(&r.waits[i])...)
	}
	return slices.Concat(lines, r.denied(), r.covered(), r.allowed())
}

// actLines are the kinds of line of what was done to a wait without deciding it. A dismissal is an answer.
var actLines = map[session.WaitActKind]session.AuditKind{
	session.ActExtended: session.AuditExtended, session.ActDelegated: session.AuditDelegated,
	session.ActReminded: session.AuditReminded, session.ActEscalated: session.AuditEscalated,
	session.ActStoodIn: session.AuditStoodIn,
}

// ofWait returns the lines of one wait: what was asked, then by their times what is recorded beside it, the
// acts, the votes and the answer, then what became of it.
func (r *records) ofWait(record *journal.WaitRecord) []session.AuditLine {
	w := &record.Wait
	line := func(kind session.AuditKind, at time.Time, data any) session.AuditLine {
		return session.AuditLine{Kind: kind, At: at, Wait: w.ID, Call: w.Call, Tool: w.Tool, Data: encoded(data)}
	}
	opened := r.entry(openedAt(w.ID))
	asked := line(session.AuditAsked, w.OpenedAt, r.asked(w, opened))
	if opened != nil {
		asked.Who, asked.From, asked.Entry = opened.By, opened.From, opened.Seq
	}
	var between []session.AuditLine
	for _, a := range r.lines[w.ID] {
		l := line(a.Kind, a.At, nil)
		l.Who, l.From, l.N, l.Hash, l.Prev, l.Data = a.Who, a.From, a.N, a.Hash(), a.Prev, a.Data
		between = append(between, l)
	}
	insert := func(kind session.AuditKind, at time.Time, who, from string, data any) {
		l := line(kind, at, data)
		l.Who, l.From = who, from
		i := slices.IndexFunc(between, func(l session.AuditLine) bool { return l.At.After(at) })
		if i < 0 {
			i = len(between)
		}
		between = slices.Insert(between, i, l)
	}
	for _, act := range record.Acts {
		insert(actLines[act.Kind], act.At, act.Who, act.From, act)
	}
	for _, v := range record.Votes {
		insert(session.AuditVoted, v.When, v.Who, v.From, v)
	}
	if v := record.Revoked; v != nil {
		insert(session.AuditRevoked, v.At, v.Who, v.From, v)
	}
	if a := record.Answer; a != nil {
		kind := session.AuditAnswered
		if a.Kind == session.AnswerExpiry {
			kind = session.AuditExpired
		}
		insert(kind, a.When, a.Who, a.From, a)
	}
	lines := append([]session.AuditLine{asked}, between...)
	if record.Unrecorded > 0 {
		at := w.OpenedAt
		if n := len(between); n > 0 {
			at = between[n-1].At
		}
		lines = append(lines, line(session.AuditUnrecorded, at, map[string]int64{"atLeast": record.Unrecorded}))
	}
	if e := r.entry(record.TakenBy); e != nil {
		kind := session.AuditClosed
		if answerIn(e, w.ID) != nil {
			kind = session.AuditTaken
		}
		ended := line(kind, e.At, nil)
		ended.Who, ended.From, ended.Entry = e.By, e.From, e.Seq
		lines = append(lines, ended)
	}
	return lines
}

// opening is what is said of a wait that was opened.
type opening struct {
	Kind   session.WaitKind `json:"kind"`
	Digest string           `json:"digest,omitempty"`
	Who    []string         `json:"who,omitempty"`
	// Rule says who may answer beside Who, and how many must.
	Rule *session.AnswerRule `json:"rule,omitempty"`
	// Requesters asked for the task, where they may not answer.
	Requesters []string          `json:"requesters,omitempty"`
	Deadline   *session.Deadline `json:"deadline,omitempty"`
	// ByPolicy says that the policy of the task has calls of the tool wait for an approval.
	ByPolicy bool `json:"byPolicy,omitempty"`
}

func (r *records) asked(w *session.Wait, opened *journal.Entry) opening {
	if opened != nil {
		if i := slices.IndexFunc(opened.Waits, func(o session.Wait) bool { return o.ID == w.ID }); i >= 0 {
			w = &opened.Waits[i] // the record has the people and the deadline that count now
		}
	}
	o := opening{Kind: w.Kind, Digest: w.Digest, Who: w.Who, Rule: w.Rule, Requesters: w.Requesters, Deadline: w.Deadline}
	if rules := r.rulesOf(opened); rules != nil {
		o.ByPolicy = w.Kind == session.WaitApproval && rules.ModeOf(w.Tool) == session.ToolPrompt
	}
	return o
}

// rulesOf returns the rules that an entry is held to, nil if they cannot be read.
func (r *records) rulesOf(e *journal.Entry) *session.Rules {
	if e == nil {
		return nil
	}
	if at := r.entry(e.RulesAt); at != nil {
		return at.Rules
	}
	return nil
}

// denied are the calls that the policy of their task denied without asking.
func (r *records) denied() []session.AuditLine {
	var lines []session.AuditLine
	for i := range r.entries {
		e := &r.entries[i]
		for _, m := range e.Messages {
			for _, p := range m.Parts {
				if m.Role == llm.RoleTool && p.ToolResult != nil && deniedByPolicy(p.ToolResult) && !r.decided(p.ToolResult.CallID) {
					lines = append(lines, session.AuditLine{
						Kind: session.AuditDenied, At: e.At, Call: p.ToolResult.CallID, Tool: p.ToolResult.Name, Who: "policy", From: journal.FromRules, Entry: e.Seq, Data: p.ToolResult.Output,
					})
				}
			}
		}
	}
	return lines
}

// allowed are the calls that the policy of the program let run without the approval that their tool asks
// for, one line each. The journal names their tools.
func (r *records) allowed() []session.AuditLine {
	var lines []session.AuditLine
	for i := range r.entries {
		e := &r.entries[i]
		for _, run := range e.Calls {
			if !run.ByPolicy || slices.ContainsFunc(lines, func(l session.AuditLine) bool { return l.Call == run.Call }) {
				continue
			}
			lines = append(lines, session.AuditLine{
				Kind: session.AuditAllowed, At: run.At, Call: run.Call, Tool: r.toolOf(run.Call), Who: "policy", From: journal.FromRules, Entry: e.Seq,
				Data: encoded(map[string]any{"digest": run.Digest, "byPolicy": true}),
			})
		}
	}
	return lines
}

// toolOf returns the tool of a call: from the reply that asked for it, from its result, or, where going
// back has given it another id, from what it waited for; "" if nothing tells.
func (r *records) toolOf(call string) string {
	for i := range r.entries {
		e := &r.entries[i]
		for _, m := range e.Messages {
			for _, p := range m.Parts {
				switch {
				case p.ToolCall != nil && p.ToolCall.ID == call:
					return p.ToolCall.Name
				case p.ToolResult != nil && p.ToolResult.CallID == call:
					return p.ToolResult.Name
				}
			}
		}
		for _, w := range e.Waits {
			if w.Call == call {
				return w.Tool
			}
		}
	}
	return ""
}

// decided reports whether somebody rejected a call, who may have given the policy's words as the reason.
func (r *records) decided(call string) bool {
	return slices.ContainsFunc(r.waits, func(w journal.WaitRecord) bool {
		return w.Wait.Call == call && w.Answer != nil && w.Answer.Approved != nil && !*w.Answer.Approved
	})
}

func deniedByPolicy(result *llm.ToolResult) bool {
	var text string
	if result.Status != llm.ResultDenied || json.Unmarshal(result.Output, &text) != nil {
		return false
	}
	why, ok := strings.CutPrefix(text, engine.TextDenied+": ")
	return ok && (why == engine.TextNever || why == engine.TextNoPause)
}

func encoded(data any) json.RawMessage {
	if data == nil {
		return nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil // it was decoded from JSON
	}
	return raw
}
