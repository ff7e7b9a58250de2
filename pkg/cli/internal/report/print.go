// Package report puts sessions into words: where one stands, what it waits for, how it goes on.
package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// printer prints on a screen, with commands that lead to a place.
type printer struct {
	*screen.Screen
	*place.Place
}

// Print says where a session stands, in the form that was asked for. What was
// answered of its pause is told in words.
func Print(s *screen.Screen, where *place.Place, m Manifest, answered []client.Wait) {
	p := printer{s, where}
	if p.Form == screen.FormJSON {
		p.JSON(m)
		return
	}
	switch m.Outcome {
	case session.OutcomeCompleted:
		p.completed(m)
	case session.OutcomePaused:
		p.paused(m, answered)
	case session.OutcomeFailed, session.OutcomeError:
		text := "no reason was recorded"
		if m.Error != nil {
			text = m.Error.Message + " (" + m.Error.Code + ")"
		}
		p.Complain("session %s failed: %s", m.SessionID, text)
		p.Talk("what happened: %s", p.Command(place.Target("show", m.SessionID)...))
	case session.OutcomeCancelled:
		p.Complain("session %s was cancelled", m.SessionID)
	case session.OutcomeInterrupted:
		p.Say("Session %s was interrupted; nothing is lost.", m.SessionID)
		p.goOn(m)
	case session.OutcomeRunning:
		if p.Remote() {
			if m.StepsTaken == 0 { // it may be in its first step, or its server's chain is off
				p.Say("Session %s has not begun yet, or is in its first step: nothing was written since its start.", m.SessionID)
			} else {
				p.Say("The server is working on session %s.", m.SessionID)
			}
			p.Say("Wait for it: %s", m.ResumeHint)
			return
		}
		p.Say("Session %s has work left; nothing is lost.", m.SessionID)
		p.goOn(m)
	}
}

// goOn prints the command that goes on, or who does where this program cannot.
func (p printer) goOn(m Manifest) {
	if m.ResumeHint == "" {
		p.Say("%s", Elsewhere(m.Agent))
		return
	}
	p.Say("Go on: %s", m.ResumeHint)
}

// Elsewhere says who goes on with a session whose agent this program has not.
func Elsewhere(agent string) string {
	return "Its agent " + screen.CleanLine(agent) + " is not in this program: it goes on where the program works that has it."
}

func (p printer) completed(m Manifest) {
	switch {
	case m.FinalMessage != "":
		p.Write(p.Stdout, strings.TrimRight(m.FinalMessage, "\n")+"\n")
	case len(m.Output) > 0:
		p.Write(p.Stdout, screen.PrettyJSON(m.Output)+"\n")
	}
	p.Talk("Session %s completed after %s%s. Its journal: %s", m.SessionID, screen.Count(m.StepsTaken, "step"), tokens(m.Usage), p.Command(place.Target("show", m.SessionID)...))
}

func (p printer) paused(m Manifest, answered []client.Wait) {
	items := Pending(m)
	if len(items) == 0 {
		p.Say("%s Everything session %s waited for is answered, but only stored.", p.Bold(p.Stdout, "Paused."), m.SessionID)
		p.Write(p.Stdout, StoredLines(answered, "  ", p.Now()))
		p.goOn(m)
		return
	}
	p.Say("%s Session %s waits for %s. Nothing is running.", p.Bold(p.Stdout, "Paused."), m.SessionID, Things(items))
	p.Write(p.Stdout, Beside(answered, p.Now()))
	if m.AgentMessage != "" {
		p.Say("\n%s says:", Who(m.Agent))
		p.Write(p.Stdout, screen.QuoteBlock(m.AgentMessage, "  ", screen.Width(p.Stdout)))
	}
	approvals := openApprovals(items)
	p.Write(p.Stdout, Approvals(items, p.Now(), screen.Width(p.Stdout), p.bold))
	late := late(items, p.Place)
	for _, item := range items {
		if item.Kind == session.WaitApproval {
			continue
		}
		p.Write(p.Stdout, "\n"+Item(item, p.Now(), screen.Width(p.Stdout), p.bold))
		if !late {
			p.Say("    answer%s:  %s", Only(item.Who), AnswerHint(p.Place, m.SessionID, item))
		}
	}
	only := HintOnly(p.Place, m)
	decide := func(flag string) string { return p.Command("resume", "-c", m.CheckpointID, flag, approvals[0].WaitID) }
	switch {
	case late:
		p.Say("\nGo on: %s", m.ResumeHint)
	case len(approvals) > 0 && singly(m):
		p.oneByOne(m)
	case len(approvals) == 1:
		p.Say("\nApprove%s: %s", only, decide("--approve"))
		p.Say("Reject%s:  %s", only, decide("--reject"))
	case len(approvals) > 1:
		p.Say("\nApprove all%s:  %s", only, p.Command("resume", "-c", m.CheckpointID, "--approve-all"))
		p.Say("Approve some, and reject those you do not name%s:\n              %s", only, decide("--approve"))
		p.Say("Reject all%s:   %s", only, p.Command("resume", "-c", m.CheckpointID, "--reject-all"))
	}
}

// oneByOne prints the commands that answer each approval by itself: beside some others
// are decided already, and a decision would be about those, too; or nobody may answer all.
func (p printer) oneByOne(m Manifest) {
	for _, item := range openApprovals(Pending(m)) {
		p.Say("\nApprove%s: %s", Only(item.Who), AnswerHint(p.Place, m.SessionID, item))
		p.Say("Reject%s:  %s", Only(item.Who), p.Command(place.TargetWait("submit", m.SessionID, item.WaitID, "--reject")...))
	}
}

func (p printer) bold(text string) string { return p.Bold(p.Stdout, text) }

// Item shows one pending thing as a block, whole.
func Item(item PendingItem, now time.Time, width int, bold func(string) string) string {
	return "  " + bold(Headline(item)) + "  " + screen.CleanLine(item.WaitID) + "\n" + Details(item, now, "    ", width)
}

// few is up to how many approvals each is shown as a block of its own.
const few = 3

// Approvals shows those of the items that are approvals, whole: each as a block or,
// where there are many, each on a line if it fits there.
func Approvals(items []PendingItem, now time.Time, width int, bold func(string) string) string {
	approvals := openApprovals(items)
	var b strings.Builder
	block := true // as the one before
	for i, item := range approvals {
		line := "  " + Line(item)
		short := len(approvals) > few && item.Deadline == nil && screen.Columns(line) <= lineRoom(width)
		if i == 0 || block || !short {
			b.WriteByte('\n')
		}
		if block = !short; short {
			b.WriteString(line + "\n")
			continue
		}
		b.WriteString(Item(item, now, width, bold))
	}
	return b.String()
}

// lineRoom is how wide a line of a list may be; without a terminal what people read.
func lineRoom(width int) int {
	if width == 0 {
		return 160
	}
	return width - 1
}

// Line is one pending thing on one line, whole.
func Line(item PendingItem) string {
	line := screen.CleanLine(item.WaitID) + "  " + Headline(item)
	if len(item.Arguments) > 0 {
		line += "  " + screen.Compact(item.Arguments, math.MaxInt)
	}
	if len(item.Who) > 0 {
		line += "  " + MayAnswer(item.Who)
	}
	return line
}

// Lines is one line for each of several.
func Lines(items []PendingItem) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = Line(item)
	}
	return strings.Join(lines, "\n")
}

// HeadlineOf is the [Headline] of a wait.
func HeadlineOf(w client.Wait) string { return Headline(NewPendingItem(w)) }

// The is [HeadlineOf] a wait, inside a sentence.
func The(w client.Wait) string {
	switch w.Kind {
	case session.WaitInput:
		return "the wait for your answer"
	case "":
		return HeadlineOf(w)
	case session.WaitApproval, session.WaitClientTool, session.WaitQuestion, session.WaitChild, session.WaitUnknown:
	}
	return "the " + HeadlineOf(w)
}

// Headline says what one pending thing is, in a few words.
func Headline(item PendingItem) string {
	name := screen.Short(item.Name, nameRoom)
	switch item.Kind {
	case session.WaitApproval:
		return "approval of " + name
	case session.WaitClientTool:
		return "result of " + name + ", which runs on your side"
	case session.WaitQuestion:
		return "question of " + name
	case session.WaitInput:
		return "your answer"
	case session.WaitChild:
		return "sub-agent " + screen.CleanLine(item.Session)
	case session.WaitUnknown:
		return "verdict: nobody knows whether " + name + " happened"
	case "":
		return "something that was left out of the list"
	}
	return screen.Short(string(item.Kind), nameRoom)
}

// Brief is [Details] for one of n things: among many, arguments that fit on a line
// stand on one. Nothing is left out.
func Brief(item PendingItem, now time.Time, indent string, width, n int) string {
	line := screen.Compact(item.Arguments, math.MaxInt)
	if n > few && screen.Columns(indent+"| "+line) <= lineRoom(width) {
		return details(item, now, line, indent, width)
	}
	return Details(item, now, indent, width)
}

// Details are what a person needs to see of a pending thing, as a block nobody can fake.
func Details(item PendingItem, now time.Time, indent string, width int) string {
	return details(item, now, screen.PrettyJSON(item.Arguments), indent, width)
}

func details(item PendingItem, now time.Time, arguments, indent string, width int) string {
	var b strings.Builder
	if q := item.Question; q != nil {
		b.WriteString(screen.QuoteBlock(q.Text, indent, width))
		for _, choice := range q.Choices {
			line := "- " + screen.CleanLine(choice.ID)
			if choice.Label != "" && choice.Label != choice.ID {
				line += "  " + screen.CleanLine(choice.Label)
			}
			b.WriteString(screen.QuoteBlock(line, indent, width))
		}
		if q.Kind == session.QuestionMultiChoice {
			b.WriteString(indent + ofSeveral + "\n")
		}
	} else if item.Text != "" && item.Kind != session.WaitInput {
		b.WriteString(screen.QuoteBlock(item.Text, indent, width))
	}
	bare := string(item.Arguments) == "{}" && item.Kind != session.WaitApproval
	if len(item.Arguments) > 0 && item.Question == nil && !bare {
		b.WriteString(screen.QuoteBlock(arguments, indent, width))
	}
	if len(item.Who) > 0 {
		b.WriteString(indent + MayAnswer(item.Who) + "\n")
	}
	switch at := item.Deadline; {
	case Late(item, now):
		b.WriteString(indent + Passed(item) + "\n")
	case at != nil:
		fmt.Fprintf(&b, "%suntil %s, then: %s\n", indent, at.Format(time.RFC3339), onDeadline(item.OnDeadline))
	}
	return b.String()
}

// Late reports whether the deadline of a pending thing has passed: nobody can answer it
// any more, and it ends as soon as anybody goes on with its session.
func Late(item PendingItem, now time.Time) bool {
	return item.Deadline != nil && !now.Before(*item.Deadline)
}

// late reports whether a deadline of some has passed.
func late(items []PendingItem, where *place.Place) bool {
	return slices.ContainsFunc(items, func(item PendingItem) bool { return Late(item, where.Now()) })
}

// Passed says of a pending thing whose deadline has passed what that means.
func Passed(item PendingItem) string {
	return fmt.Sprintf("its deadline passed at %s: %s as soon as the session goes on", item.Deadline.Format(time.RFC3339), onDeadline(item.OnDeadline))
}

// onDeadline says what happens to a wait that nobody answers in time.
func onDeadline(outcome session.DeadlineOutcome) string {
	switch outcome {
	case session.ExpireDeny:
		return "it counts as a no"
	case session.ExpireDefault:
		return "its default counts"
	case session.ExpireFail:
		return "the task fails"
	case session.ExpireReask:
		return "it is asked again"
	}
	return screen.CleanLine(string(outcome))
}

// Things says what a session waits for, in a few words.
func Things(items []PendingItem) string {
	if len(items) == 1 {
		switch items[0].Kind {
		case session.WaitApproval:
			return "an approval"
		case session.WaitClientTool:
			return "the result of a tool that runs on your side"
		case session.WaitQuestion:
			return "an answer to a question"
		case session.WaitInput:
			return "your answer"
		case session.WaitChild:
			return "a sub-agent"
		case session.WaitUnknown:
			return "your verdict on a tool whose outcome is not known"
		}
	}
	for _, item := range items {
		if item.Kind != session.WaitApproval {
			return screen.Count(int64(len(items)), "thing")
		}
	}
	return screen.Count(int64(len(items)), "approval")
}

// Who names an agent at the beginning of a sentence.
func Who(agent string) string {
	if agent == "" {
		return "The agent"
	}
	return screen.Short(agent, nameRoom)
}

// nameRoom is how long a name is printed at most: an agent's, a tool's.
const nameRoom = 200

func tokens(u *ManifestUsage) string {
	if u == nil || u.TotalTokens == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d tokens)", u.TotalTokens)
}

// ToolNotes says what running a tool means to a person, in a few words.
func ToolNotes(effect session.Effect, approval, client bool) string {
	if client {
		return "runs on your side"
	}
	notes := strings.ReplaceAll(string(effect), "_", " ")
	if approval {
		notes += ", asks first"
	}
	return notes
}
