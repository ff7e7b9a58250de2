// Package report puts sessions into words: where one stands, what it waits for, how it goes on.
package report

import (
	"fmt"
	"math"
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
func Print(s *screen.Screen, where *place.Place, v View, answered []client.Wait) {
	p := printer{s, where}
	if p.Form == screen.FormJSON {
		p.JSON(NewManifest(v))
		return
	}
	switch v.Outcome {
	case session.OutcomeCompleted:
		p.completed(v.Session)
	case session.OutcomePaused:
		p.paused(v, answered)
	case session.OutcomeFailed, session.OutcomeError:
		text := "no reason was recorded"
		if v.Failure != nil {
			text = v.Failure.Message + " (" + v.Failure.Code + ")"
		}
		p.Complain("session %s failed: %s", v.ID, text)
		p.Talk("what happened: %s", p.Command(place.Target("show", v.ID)...))
		for _, line := range AfterFailure(p.Place, v) {
			p.Talk("%s", line)
		}
	case session.OutcomeCancelled:
		p.Complain("session %s was cancelled%s", v.ID, stopped(v.Session))
		p.Talk("what happened: %s", p.Command(place.Target("show", v.ID)...))
	case session.OutcomeInterrupted:
		if v.CutOff {
			p.Say("Session %s was interrupted%s. A tool with an effect may have been cut off; its outcome may be unknown.", v.ID, stopped(v.Session))
		} else {
			p.Say("Session %s was interrupted%s; nothing is lost.", v.ID, stopped(v.Session))
		}
		p.goOn(v)
	case session.OutcomeRunning:
		if p.Remote() {
			if place.AgentMissing(v.Session) {
				p.Say("Session %s has work left, and nobody goes on with it here: %s", v.ID, NotServed(p.Place, v.Session))
				return
			}
			if v.Step == 0 { // it may be in its first step, or its server's chain is off
				p.Say("Session %s has not begun yet, or is in its first step: nothing was written since its start.", v.ID)
			} else {
				p.Say("The server is working on session %s.", v.ID)
			}
			p.Say("Wait for it: %s", v.ResumeHint)
			return
		}
		if v.CutOff {
			p.Say("Session %s has work left. A tool with an effect may have been interrupted; its outcome may be unknown.", v.ID)
		} else {
			p.Say("Session %s has work left; nothing is lost.", v.ID)
		}
		p.goOn(v)
	}
}

// goOn prints the command that goes on, or who does where this program cannot.
func (p printer) goOn(v View) {
	if v.ResumeHint == "" {
		p.Say("%s", Elsewhere(v.Agent))
		return
	}
	p.Say("Go on: %s", v.ResumeHint)
}

// Elsewhere says who goes on with a session whose agent this program has not.
func Elsewhere(agent string) string {
	return "Its agent " + screen.CleanLine(agent) + " is not in this program: it goes on where the program works that has it."
}

// NotServed says of a session whose agent a server does not have who goes on with it.
func NotServed(where *place.Place, s client.Session) string {
	agent := screen.CleanLine(s.Agent)
	if client.Code(s.ResumeCode) != client.CodeAgentNotOffered {
		return "this server does not have agent " + agent + ". It goes on where the program works that has it"
	}
	return "this server does not offer agent " + agent + ". On this machine: " + where.Called("dev", "--lab") + "; on AWS: the stack parameter Lab=true"
}

func (p printer) completed(s client.Session) {
	switch {
	case s.Text != "":
		p.Write(p.Stdout, strings.TrimRight(s.Text, "\n")+"\n")
	case len(s.Output) > 0:
		p.Write(p.Stdout, screen.PrettyJSON(s.Output)+"\n")
	}
	p.Talk("Session %s completed after %s%s. Its journal: %s", s.ID, screen.Count(s.Step, "step"), tokens(s.Usage), p.Command(place.Target("show", s.ID)...))
}

func (p printer) paused(v View, answered []client.Wait) {
	waits := Pending(v.Session)
	if len(waits) == 0 {
		p.Say("%s Everything session %s waited for is answered, but only stored.", p.Bold(p.Stdout, "Paused."), v.ID)
		p.Write(p.Stdout, StoredLines(answered, "  ", p.Now()))
		p.goOn(v)
		return
	}
	p.Say("%s Session %s waits for %s. Nothing is running.", p.Bold(p.Stdout, "Paused."), v.ID, Things(waits))
	p.Write(p.Stdout, Beside(answered, p.Now()))
	if v.Text != "" && !Claimed(v.Session) {
		p.Say("\n%s says:", AgentName(v.Agent))
		p.Write(p.Stdout, screen.QuoteBlock(v.Text, "  ", screen.Width(p.Stdout)))
	}
	approvals := Approvals(v.Session)
	p.Write(p.Stdout, ApprovalBlocks(approvals, p.Now(), screen.Width(p.Stdout), p.bold))
	late := anyLate(waits, p.Place)
	for _, w := range waits {
		if w.Kind == session.WaitApproval {
			continue
		}
		p.Write(p.Stdout, "\n"+Block(w, p.Now(), screen.Width(p.Stdout), p.bold))
		if text := OwnText(v.Session, w); text != "" {
			p.Write(p.Stdout, screen.QuoteBlock(text, "    ", screen.Width(p.Stdout)))
		}
		if !late {
			p.Say("    answer%s:  %s", OnlyOf(w), AnswerHint(p.Place, v.ID, w))
		}
	}
	if v.AgentElsewhere {
		defer p.Say("\n%s", Elsewhere(v.Agent))
	}
	only := HintOnly(p.Place, v.Session)
	decide := func(flag string) string { return p.Command("resume", "-c", v.CheckpointID, flag, approvals[0].WaitID) }
	switch {
	case late:
		p.Say("\nGo on: %s", v.ResumeHint)
	case len(approvals) > 0 && singly(v.Session):
		p.oneByOne(v.Session)
	case len(approvals) == 1:
		p.Say("\nApprove%s: %s", only, decide("--approve"))
		p.Say("Reject%s:  %s", only, decide("--reject"))
	case len(approvals) > 1:
		p.Say("\nApprove all%s:  %s", only, p.Command("resume", "-c", v.CheckpointID, "--approve-all"))
		some := []string{"resume", "-c", v.CheckpointID, "--approve", approvals[0].WaitID}
		if len(approvals) > 2 { // two flags show that each wait has its own
			some = append(some, "--approve", approvals[1].WaitID)
		}
		p.Say("Approve some, and reject those you do not name%s:\n              %s", only, p.Command(some...))
		p.Say("Reject all%s:   %s", only, p.Command("resume", "-c", v.CheckpointID, "--reject-all"))
	}
}

// oneByOne prints the commands that answer each approval by itself: beside some others
// are decided already, and a decision would be about those, too; or nobody may answer all.
func (p printer) oneByOne(s client.Session) {
	for _, w := range Approvals(s) {
		p.Say("\nApprove%s: %s", OnlyOf(w), AnswerHint(p.Place, s.ID, w))
		p.Say("Reject%s:  %s", OnlyOf(w), p.Command(place.TargetWait("submit", s.ID, w.WaitID, "--reject")...))
	}
}

func (p printer) bold(text string) string { return p.Bold(p.Stdout, text) }

// Block shows one wait as a block, whole.
func Block(w client.Wait, now time.Time, width int, bold func(string) string) string {
	return "  " + bold(Headline(w)) + "  " + screen.CleanLine(w.WaitID) + "\n" + Details(w, now, "    ", width)
}

// few is up to how many approvals each is shown as a block of its own.
const few = 3

// ApprovalBlocks shows approvals, whole: each as a block or, where there are many, each
// on a line if it fits there.
func ApprovalBlocks(approvals []client.Wait, now time.Time, width int, bold func(string) string) string {
	var b strings.Builder
	block := true // as the one before
	for i, w := range approvals {
		if i+1 < len(approvals) && approvals[i+1].Claim == w.Claim {
			w.Claim = "" // it is about several calls: said once, below them
		}
		line := "  " + line(w)
		short := len(approvals) > few && w.Deadline == nil && w.Preview == nil && w.Claim == "" && screen.Columns(line) <= lineRoom(width)
		if i == 0 || block || !short {
			b.WriteByte('\n')
		}
		if block = !short; short {
			b.WriteString(line + "\n")
			continue
		}
		b.WriteString(Block(w, now, width, bold))
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

// line is one wait on one line, whole.
func line(w client.Wait) string {
	text := screen.CleanLine(w.WaitID) + "  " + Headline(w)
	if len(w.Arguments) > 0 {
		text += "  " + screen.Compact(w.Arguments, math.MaxInt)
	}
	if who := may(w); len(who) > 0 {
		text += "  " + mayAnswer(who)
	}
	if lines := rules(w); len(lines) > 0 {
		text += "  " + strings.Join(lines, "; ")
	}
	return text
}

// Lines is one line for each of several waits.
func Lines(waits []client.Wait) string {
	lines := make([]string, len(waits))
	for i, w := range waits {
		lines[i] = line(w)
	}
	return strings.Join(lines, "\n")
}

// Headline says what one wait is, in a few words.
func Headline(w client.Wait) string {
	name := screen.Short(w.Tool, nameRoom)
	switch w.Kind {
	case session.WaitApproval:
		return "approval of " + name
	case session.WaitClientTool:
		return "result of " + name + ", which runs on your side"
	case session.WaitQuestion:
		return "question of " + name
	case session.WaitInput:
		return "your answer"
	case session.WaitChild:
		return "sub-agent " + screen.CleanLine(w.ChildSessionID)
	case session.WaitUnknown:
		return "verdict: nobody knows whether " + name + " happened"
	case "":
		return "something that was left out of the list"
	}
	return screen.Short(string(w.Kind), nameRoom)
}

// Brief is [Details] for one of n waits: among many, arguments that fit on a line
// stand on one, and long ones are summed up.
func Brief(w client.Wait, now time.Time, indent string, width, n int) string {
	line := screen.Compact(w.Arguments, math.MaxInt)
	if n > few && screen.Columns(indent+"| "+line) <= lineRoom(width) {
		return details(w, now, line, indent, width)
	}
	arguments, _ := SumUp(w.Arguments)
	return details(w, now, arguments, indent, width)
}

// Details are what a person needs to see of a wait, as a block nobody can fake.
func Details(w client.Wait, now time.Time, indent string, width int) string {
	return details(w, now, screen.PrettyJSON(w.Arguments), indent, width)
}

func details(w client.Wait, now time.Time, arguments, indent string, width int) string {
	var b strings.Builder
	if q := w.Question; q != nil {
		b.WriteString(screen.QuoteBlock(q.Text, indent, width))
		for _, choice := range q.Choices {
			line := "- " + screen.CleanLine(choice.ID)
			if choice.Label != "" && choice.Label != choice.ID {
				line += "  " + screen.CleanLine(choice.Label)
			}
			b.WriteString(screen.QuoteBlock(line, indent, width))
			if choice.Description != "" {
				b.WriteString(screen.QuoteBlock("  "+screen.CleanLine(choice.Description), indent, width))
			}
		}
		if q.Kind == session.QuestionMultiChoice {
			b.WriteString(indent + ofSeveral + "\n")
		}
	} else if w.Text != "" && w.Kind != session.WaitInput {
		b.WriteString(screen.QuoteBlock(w.Text, indent, width))
	}
	b.WriteString(preview(w.Preview, indent, width))
	bare := string(w.Arguments) == "{}" && w.Kind != session.WaitApproval
	if len(w.Arguments) > 0 && w.Question == nil && !bare {
		if w.Preview != nil {
			b.WriteString(indent + "arguments:\n") // so that no line of a preview passes for them
		}
		b.WriteString(screen.QuoteBlock(arguments, indent, width))
	}
	b.WriteString(claim(w.Claim, indent, width))
	if who := may(w); len(who) > 0 {
		b.WriteString(indent + mayAnswer(who) + "\n")
	}
	for _, line := range rules(w) {
		b.WriteString(indent + line + "\n")
	}
	b.WriteString(escalated(w, indent, now))
	switch {
	case Late(w, now):
		b.WriteString(indent + Passed(w) + "\n")
	case w.Deadline != nil:
		fmt.Fprintf(&b, "%suntil %s, then: %s\n", indent, w.Deadline.At.Format(time.RFC3339), onDeadline(w.Kind, *w.Deadline))
	}
	return b.String()
}

// Things says what a session waits for, in a few words.
func Things(waits []client.Wait) string {
	if len(waits) == 1 {
		switch waits[0].Kind {
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
	for _, w := range waits {
		if w.Kind != session.WaitApproval {
			return screen.Count(int64(len(waits)), "thing")
		}
	}
	return screen.Count(int64(len(waits)), "approval")
}

// AgentName names an agent at the beginning of a sentence.
func AgentName(agent string) string {
	if agent == "" {
		return "The agent"
	}
	return screen.Short(agent, nameRoom)
}

// nameRoom is how long a name is printed at most: an agent's, a tool's.
const nameRoom = 200

func tokens(u client.Usage) string {
	if u.TotalTokens == 0 {
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
		notes += ", may ask first" // its rule decides, by the arguments
	}
	return notes
}

// Stands says where a session stands, as the runtime says it.
func Stands(status session.Status) string {
	if status == session.StatusFailed {
		return "it has failed"
	}
	return "it is " + string(status)
}
