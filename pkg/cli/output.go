package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/adjourn/adjourn/pkg/session"
)

// json prints one value on stdout, safe on a terminal and the same to a program.
func (c *cli) json(v any) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		c.complain("print JSON: %v", err)
		return
	}
	c.write(c.Stdout, string(cleanJSON(b.Bytes())))
}

// say prints a line of data on stdout.
func (c *cli) say(format string, args ...any) {
	c.write(c.Stdout, fmt.Sprintf(format, args...)+"\n")
}

// talk prints a line for people on stderr, unless they asked for quiet.
func (c *cli) talk(format string, args ...any) {
	if !c.quiet {
		c.write(c.Stderr, clean(fmt.Sprintf(format, args...))+"\n")
	}
}

// complain prints an error on stderr, always.
func (c *cli) complain(format string, args ...any) {
	c.grumble(width(c.Stderr), fmt.Sprintf(format, args...))
}

// suggest prints what to do about an error. It is not wrapped: a command in it is
// there to be pasted.
func (c *cli) suggest(format string, args ...any) {
	c.grumble(0, fmt.Sprintf(format, args...))
}

// grumble prints lines that begin as ours do, wrapped at width (0: not at all).
// Only the first line does: the rest may be somebody else's words.
func (c *cli) grumble(width int, text string) {
	name, room := cleanLine(c.name())+": ", 0
	if width > 0 {
		room = max(width-len(name)-1, 20)
	}
	var b strings.Builder
	indent := name
	for line := range strings.SplitSeq(strings.TrimRight(clean(text), "\n"), "\n") {
		for _, part := range wrapWords(line, room) {
			b.WriteString(indent + part + "\n")
			indent = "    "
		}
		indent = "  | "
	}
	c.write(c.Stderr, b.String())
}

// write prints text. That it cannot be printed is no reason to fail the work, but
// what was asked for on stdout and did not get there is told in the end.
func (c *cli) write(w io.Writer, text string) {
	c.progress.pause(func() {
		if _, err := io.WriteString(w, text); err != nil && w == c.Stdout {
			c.unwritten = err
		}
	})
}

// lineWriter lets the log and the progress share stderr.
type lineWriter struct{ c *cli }

func (w lineWriter) Write(p []byte) (int, error) {
	w.c.write(w.c.Stderr, string(p))
	return len(p), nil
}

// terminal returns the file descriptor of a stream that is a terminal.
func terminal(stream any) (fd int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// smart says that a stream is a terminal that can move its cursor.
func (c *cli) smart(stream any) bool {
	_, ok := terminal(stream)
	return ok && c.Env("TERM") != "dumb"
}

// width of the terminal behind a stream, 0 if there is none.
func width(stream any) int {
	fd, ok := terminal(stream)
	if !ok {
		return 0
	}
	if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
		return columns
	}
	return 80
}

// bold returns text that stands out where the stream can show it.
func (c *cli) bold(stream any, text string) string {
	if !c.smart(stream) || c.Env("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// manifest prints where a session stands, in the form that was asked for.
func (c *cli) manifest(m session.Manifest) {
	if c.output == outputJSON {
		c.json(m)
		return
	}
	switch m.Outcome {
	case session.OutcomeCompleted:
		c.completed(m)
	case session.OutcomePaused:
		c.paused(m)
	case session.OutcomeFailed, session.OutcomeError:
		text := "no reason was recorded"
		if m.Error != nil {
			text = m.Error.Message + " (" + m.Error.Code + ")"
		}
		c.complain("session %s failed: %s", m.SessionID, text)
		c.talk("what happened: %s", c.command(target("show", m.SessionID)...))
	case session.OutcomeCancelled:
		c.complain("session %s was cancelled", m.SessionID)
	case session.OutcomeInterrupted:
		c.say("Session %s was interrupted; nothing is lost.", m.SessionID)
		c.say("Go on: %s", m.ResumeHint)
	case session.OutcomeRunning:
		if c.remote() {
			c.say("The server is working on session %s.", m.SessionID)
			c.say("Wait for it: %s", m.ResumeHint)
			return
		}
		c.say("Session %s has work left; nothing is lost.", m.SessionID)
		c.say("Go on: %s", m.ResumeHint)
	}
}

func (c *cli) completed(m session.Manifest) {
	switch {
	case m.FinalMessage != "":
		c.say("%s", clean(strings.TrimRight(m.FinalMessage, "\n")))
	case len(m.Output) > 0:
		c.say("%s", prettyJSON(m.Output))
	}
	c.talk("Session %s completed after %s%s. Its journal: %s", m.SessionID, count(m.StepsTaken, "step"), tokens(m.Usage), c.command(target("show", m.SessionID)...))
}

func (c *cli) paused(m session.Manifest) {
	items := pending(m)
	if len(items) == 0 {
		c.say("%s Everything session %s waited for is answered.", c.bold(c.Stdout, "Paused."), m.SessionID)
		c.say("Go on: %s", m.ResumeHint)
		return
	}
	c.say("%s Session %s waits for %s. Nothing is running.", c.bold(c.Stdout, "Paused."), m.SessionID, things(items))
	if m.AgentMessage != "" {
		c.say("\n%s says:", who(m.Agent))
		c.write(c.Stdout, quoteBlock(m.AgentMessage, "  ", width(c.Stdout)))
	}
	approvals := 0
	for _, item := range items {
		if item.Kind == session.WaitApproval {
			approvals++
		}
	}
	for _, item := range items {
		c.say("")
		c.item(item)
		if item.Kind != session.WaitApproval {
			c.say("    answer:  %s", c.answerHint(m.SessionID, item))
		}
	}
	switch {
	case approvals == 1:
		c.say("\nApprove: %s", c.decisionHint(m, "--approve", items))
		c.say("Reject:  %s", c.decisionHint(m, "--reject", items))
	case approvals > 1:
		c.say("\nApprove all:  %s", c.command("resume", "-c", m.CheckpointID, "--approve-all"))
		c.say("Approve some, and reject those you do not name:\n              %s", c.decisionHint(m, "--approve", items))
		c.say("Reject all:   %s", c.command("resume", "-c", m.CheckpointID, "--reject-all"))
	}
}

// decisionHint decides the first approval of a manifest.
func (c *cli) decisionHint(m session.Manifest, flag string, items []session.PendingItem) string {
	for _, item := range items {
		if item.Kind == session.WaitApproval {
			return c.command("resume", "-c", m.CheckpointID, flag, item.ID)
		}
	}
	return ""
}

// item prints one pending thing.
func (c *cli) item(item session.PendingItem) {
	c.say("  %s  %s", c.bold(c.Stdout, headline(item)), cleanLine(item.ID))
	c.write(c.Stdout, details(item, "    ", width(c.Stdout)))
}

// headline says what one pending thing is, in a few words.
func headline(item session.PendingItem) string {
	name := cleanLine(item.Name)
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
		return "sub-agent " + cleanLine(item.Session)
	case session.WaitUnknown:
		return "verdict: nobody knows whether " + name + " happened"
	}
	return cleanLine(string(item.Kind))
}

// details are what a person needs to see of a pending thing, as a block nobody can fake.
func details(item session.PendingItem, indent string, width int) string {
	var b strings.Builder
	if q := item.Question; q != nil {
		b.WriteString(quoteBlock(q.Text, indent, width))
		for _, choice := range q.Choices {
			line := "- " + cleanLine(choice.ID)
			if choice.Label != "" && choice.Label != choice.ID {
				line += "  " + cleanLine(choice.Label)
			}
			b.WriteString(quoteBlock(line, indent, width))
		}
	} else if item.Text != "" && item.Kind != session.WaitInput {
		b.WriteString(quoteBlock(item.Text, indent, width))
	}
	bare := string(item.Arguments) == "{}" && item.Kind != session.WaitApproval
	if len(item.Arguments) > 0 && item.Question == nil && !bare {
		b.WriteString(quoteBlock(prettyJSON(item.Arguments), indent, width))
	}
	if item.Deadline != nil {
		fmt.Fprintf(&b, "%suntil %s, then: %s\n", indent, item.Deadline.Format(time.RFC3339), cleanLine(string(item.OnDeadline)))
	}
	return b.String()
}

// prettyJSON returns JSON as people read it, safe to print.
func prettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return clean(string(raw))
	}
	return clean(plainAngles(b.String()))
}

// escapedAngle is what Go's encoder writes for <, > and & for the sake of web
// pages; the pair of backslashes is matched so that a literal one is left alone.
var escapedAngle = regexp.MustCompile(`\\\\|\\u003[ceCE]|\\u0026`)

func plainAngles(text string) string {
	return escapedAngle.ReplaceAllStringFunc(text, func(escape string) string {
		switch strings.ToLower(escape) {
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		case `\u0026`:
			return "&"
		}
		return escape
	})
}

func things(items []session.PendingItem) string {
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
			return count(int64(len(items)), "thing")
		}
	}
	return count(int64(len(items)), "approval")
}

func who(agent string) string {
	if agent == "" {
		return "The agent"
	}
	return cleanLine(agent)
}

func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func tokens(u *session.ManifestUsage) string {
	if u == nil || u.TotalTokens == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d tokens)", u.TotalTokens)
}
