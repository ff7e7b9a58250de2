package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Timeline returns a session's journal as people read it: when, what, how long it
// took. Unless it is to be full, texts, arguments and results are shortened.
func Timeline(s *screen.Screen, about client.Session, entries []journal.Entry, full bool) string {
	t := newTimeline(s, full)
	t.head(about, entries)
	for i := range entries {
		t.entry(&entries[i])
	}
	return t.b.String()
}

// Messages returns a conversation as people read it, in the lines of a timeline.
func Messages(s *screen.Screen, messages []llm.Message, full bool) string {
	t := newTimeline(s, full)
	for _, m := range messages {
		t.message(m)
	}
	return t.b.String()
}

func newTimeline(s *screen.Screen, full bool) *timeline {
	t := &timeline{screen: s, room: 160, asked: map[string]session.Wait{}, calls: map[string]json.RawMessage{}}
	if full {
		t.room = 1 << 20
	}
	return t
}

// timeline writes a journal for people.
type timeline struct {
	screen *screen.Screen
	b      strings.Builder
	room   int
	last   time.Time
	asked  map[string]session.Wait    // waits by id, to say what was answered
	given  []session.Answer           // in order
	calls  map[string]json.RawMessage // arguments of calls by id, as the agent gave them
}

func (t *timeline) linef(format string, args ...any) {
	t.b.WriteString(screen.Sprintf(format, args...) + "\n")
}

// head sums the session up.
func (t *timeline) head(s client.Session, entries []journal.Entry) {
	var all, waited, worked time.Duration
	tasks := map[int64]time.Duration{} // what each has used, up to its last entry
	for i, e := range entries {
		tasks[e.Task] = time.Duration(e.Used.Task.ActiveMillis) * time.Millisecond
		if i == 0 {
			continue
		}
		d := e.At.Sub(entries[i-1].At)
		all += d
		if entries[i-1].Status.Resting() {
			waited += d
		}
	}
	for _, used := range tasks {
		worked += used
	}
	idle := "" // with work to do: a worker was still to come, or to come again
	if rest := all - waited - worked; rest >= time.Second {
		idle = ", " + screen.Span(rest) + " with no worker"
	}
	stands := string(s.Outcome)
	if GoesOn(s) {
		stands = string(s.Status)
	}
	t.linef("session %s  %s  %s  %s%s", t.screen.Bold(t.screen.Stdout, s.ID), AgentName(s.Agent), stands, screen.Count(s.Step, "step"), tokens(s.Usage))
	t.linef("%s at work, %s waiting%s", screen.Span(worked), screen.Span(waited), idle)
	t.about(s)
	t.linef("")
}

// entry writes one entry: when, what, and everything it brought.
func (t *timeline) entry(e *journal.Entry) {
	passed := ""
	if !t.last.IsZero() {
		passed = "+" + screen.Span(e.At.Sub(t.last))
	}
	t.last = e.At
	used := ""
	if total := e.Usage.Total(); total > 0 {
		used = fmt.Sprintf("  %d tokens (%s)", total, tokenKinds(e.Usage))
	}
	t.linef("%4d  %s  %-9s %s%s", e.Seq, e.At.Local().Format("2006-01-02 15:04:05"), passed, t.screen.Bold(t.screen.Stdout, t.title(e)), used)
	if e.Rules != nil && e.Rules.Asked != nil {
		if rules := askedRules(*e.Rules.Asked, t.room); rules != "" {
			t.detail("asked", "%s", rules)
		}
	}
	if e.Rules != nil && e.Rules.ProgramPolicy != nil {
		policy, _ := json.Marshal(e.Rules.ProgramPolicy) // of texts
		t.detail("policy", "%s", screen.Compact(policy, t.room))
	}
	for _, a := range e.Answers {
		t.answer(a, e.Kind == session.KindRestored)
	}
	for _, m := range e.Messages {
		t.message(m)
	}
	for _, op := range e.StateOps {
		t.detail("state", "%s %s: %s", op.Op, screen.CleanLine(op.Key), screen.Compact(op.Value, t.room))
	}
	for _, event := range e.Events {
		var use session.LimitUse
		if event.Name == session.EventLimitWarning && event.Call == "" && json.Unmarshal(event.Data, &use) == nil {
			whose := "the task's"
			if use.OfSession {
				whose = "the session's"
			}
			t.detail("warning", "%d of %s %d %s are used", use.Used, whose, use.Of, screen.CleanLine(use.Limit))
			continue
		}
		t.detail("event", "%s %s", screen.CleanLine(event.Name), screen.Compact(event.Data, t.room))
	}
	for _, w := range e.Waits {
		headline := Headline(client.Wait{Kind: w.Kind, Tool: w.Tool, ChildSessionID: w.Child})
		t.detail("waits", "%s for %s%s%s", screen.CleanLine(w.ID), headline, ofCall(w), deadline(w))
		t.again(w)
		t.asked[w.ID] = w
		if given, known := t.calls[w.Call]; known && len(w.Arguments) > 0 && journal.Digest(given) != journal.Digest(w.Arguments) {
			// An answer counts for these, not for those of the call above.
			t.detail("shown", "%s with other arguments than %s: %s", screen.CleanLine(w.ID), screen.CleanLine(w.Call), screen.Compact(w.Arguments, t.room))
		}
	}
	if s := e.Signal; s != nil {
		t.detail(screen.CleanLine(string(s.Kind)), "by %s%s", by(s.Who), reasonOf(s.Reason, t.room))
	}
	if e.Failure != nil {
		t.detail("reason", "%s: %s", screen.CleanLine(e.Failure.Type), screen.Short(e.Failure.Message, t.room))
	}
	if e.Until != nil {
		t.detail("until", "%s", e.Until.Local().Format("2006-01-02 15:04:05"))
	}
	if len(e.Output) > 0 {
		t.detail("output", "%s", screen.Compact(e.Output, t.room))
	}
}

// again says why something is asked that was answered before.
func (t *timeline) again(w session.Wait) {
	for _, a := range slices.Backward(t.given) {
		if was := t.asked[a.Wait]; changed(was, a, w) {
			t.detail("again", "%s", again(was, w))
			return
		}
	}
}

func (t *timeline) detail(label, format string, args ...any) {
	line := screen.Sprintf("      %-9s "+format, append([]any{label}, args...)...)
	t.b.WriteString(screen.Hang(line, 16, screen.Width(t.screen.Stdout)) + "\n")
}

func (t *timeline) title(e *journal.Entry) string {
	switch e.Kind {
	case session.KindStarted:
		return fmt.Sprintf("started by %s: task %d, run %d", by(e.By), e.Task, e.Run)
	case session.KindReplied:
		return fmt.Sprintf("step %d: the agent replied", e.Step)
	case session.KindStepped:
		return fmt.Sprintf("step %d: done", e.Step)
	case session.KindSuspended:
		return fmt.Sprintf("step %d: paused, nothing runs", e.Step)
	case session.KindResumed:
		return fmt.Sprintf("resumed: run %d", e.Run)
	case session.KindDelayed:
		return fmt.Sprintf("step %d: put off", e.Step+1) // e.Step are those that are done
	case session.KindInterrupted:
		return "interrupted"
	case session.KindCancelled:
		return "cancelled"
	case session.KindCompleted:
		return fmt.Sprintf("step %d: completed", e.Step)
	case session.KindFailed:
		return "failed"
	case session.KindRestored:
		return backTitle(e)
	case session.KindForked:
		if e.Base == nil {
			return "forked"
		}
		return screen.Sprintf("forked from session %s, entry %d: task %d", e.Base.Session, e.Base.Seq, e.Task)
	case session.KindDeleted:
		return "deleted"
	}
	return screen.CleanLine(string(e.Kind))
}

// backTitle says where a task begins that has the history of a checkpoint.
func backTitle(e *journal.Entry) string {
	what := "back to"
	if e.Trigger == session.TriggerRetry {
		what = "tried again from"
	}
	if e.Base == nil {
		return what + " an earlier entry"
	}
	return fmt.Sprintf("%s entry %d, by %s: task %d, run %d", what, e.Base.Seq, by(e.By), e.Task, e.Run)
}

// reasonOf is what a caller gave as the reason of a signal.
func reasonOf(text string, room int) string {
	if text == "" {
		return ""
	}
	return ": " + screen.Short(text, room)
}

func by(who string) string {
	if who == "" {
		return "an unknown caller"
	}
	return screen.CleanLine(who)
}

// author says who gave an answer: somebody, or the deadline that its wait had.
func author(a session.Answer) string {
	if a.Kind == session.AnswerExpiry {
		return "its deadline"
	}
	if a.For != "" {
		return by(a.Who) + " for " + by(a.For)
	}
	return by(a.Who)
}

// ofCall names the call a wait belongs to, as the lines above it do.
func ofCall(w session.Wait) string {
	if w.Call == "" {
		return ""
	}
	return " (" + screen.CleanLine(w.Call) + ")"
}

func deadline(w session.Wait) string {
	if w.Deadline == nil {
		return ""
	}
	return fmt.Sprintf(", until %s, then: %s", w.Deadline.At.Local().Format("2006-01-02 15:04:05"), onDeadline(w.Kind, *w.Deadline))
}

// answer writes what a person, or a deadline, brought, and how long it took to come; left says that it
// was to what going back leaves behind.
func (t *timeline) answer(a session.Answer, left bool) {
	t.given = append(t.given, a)
	w, known := t.asked[a.Wait]
	after := ""
	if known && !a.When.IsZero() && !w.OpenedAt.IsZero() {
		after = ", after " + screen.Span(a.When.Sub(w.OpenedAt))
	}
	if left {
		after += "; it counts for nothing"
	}
	what := said(a, t.room)
	name := a.ToolCallID
	if known && w.Tool != "" {
		name = w.Tool + " " + a.ToolCallID
	}
	t.detail("answer", "%s %s by %s%s", screen.CleanLine(name), screen.Short(what, t.room), author(a), after)
}

// Said is what an answer says, in a few words, for a sentence about it.
func Said(a session.Answer) string {
	const room = 120
	return screen.Short(said(a, room), room)
}

// said is what an answer says, in a few words.
func said(a session.Answer, room int) string {
	what := ""
	switch a.Kind {
	case session.AnswerApproval:
		what = "rejected"
		if a.Approved != nil && *a.Approved {
			what = "approved"
		}
		if len(a.EditedInput) > 0 {
			what += " with other arguments " + screen.Compact(a.EditedInput, room)
		}
		if a.Reason != "" {
			what += ": " + screen.Short(a.Reason, room)
		}
	case session.AnswerReply:
		what = "replied " + strings.Join(a.Selected, ", ")
		if a.Text != nil {
			what = "replied " + *a.Text
		}
	case session.AnswerClientTool, session.AnswerChild:
		what = "result " + screen.Compact(a.Result, room)
		if a.Error != "" {
			what = "error " + a.Error
		}
	case session.AnswerMessage:
		what = "message"
	case session.AnswerVerdict:
		what = "verdict " + string(a.Verdict)
	case session.AnswerDismissal:
		what = "dismissed: " + screen.Short(a.Reason, room)
	case session.AnswerExpiry:
		what = expired(a, room)
	}
	return what
}

// message writes the parts of a message.
func (t *timeline) message(m llm.Message) {
	for _, p := range m.Parts {
		switch p.Kind {
		case llm.PartText:
			t.detail(string(m.Role), "%s", screen.Short(p.Text, t.room))
		case llm.PartReasoning:
			if p.Text != "" {
				t.detail("thought", "%s", screen.Short(p.Text, t.room))
			}
		case llm.PartToolCall:
			if p.ToolCall != nil {
				t.calls[p.ToolCall.ID] = p.ToolCall.Arguments
				t.detail("call", "%s %s %s", screen.CleanLine(p.ToolCall.ID), screen.CleanLine(p.ToolCall.Name), screen.Compact(p.ToolCall.Arguments, t.room))
			}
		case llm.PartToolResult:
			if r := p.ToolResult; r != nil {
				t.detail("result", "%s %s %s: %s", screen.CleanLine(r.CallID), screen.CleanLine(r.Name), r.Status, screen.Compact(r.Output, t.room))
			}
		case llm.PartImage, llm.PartFile:
			if p.File != nil {
				t.detail(string(p.Kind), "%s %s", screen.CleanLine(p.File.Name), screen.CleanLine(p.File.MediaType))
			}
		}
	}
}
