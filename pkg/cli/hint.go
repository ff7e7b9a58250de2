package cli

import (
	"regexp"
	"strings"

	"github.com/adjourn/adjourn/pkg/session"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$`)

// quote returns a word as a POSIX shell has to read it.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// command returns a command line that works when pasted: the program as it was
// called, --url or --data when the default would lead elsewhere, then the words.
func (c *cli) command(words ...string) string {
	all := []string{quote(c.Program)}
	for _, word := range c.ProgramArgs {
		all = append(all, quote(word))
	}
	for _, word := range c.whereFlags() {
		all = append(all, quote(word))
	}
	for _, word := range words {
		all = append(all, quote(word))
	}
	return strings.Join(all, " ")
}

// target returns the words that name a session: behind -- if it looks like a flag.
func target(verb, id string, words ...string) []string {
	if strings.HasPrefix(id, "-") {
		return append(append([]string{verb}, words...), "--", id)
	}
	return append([]string{verb, id}, words...)
}

// resumeHint returns the one command that takes a paused session on.
func (c *cli) resumeHint(m session.Manifest) string {
	switch m.Outcome {
	case session.OutcomeRunning, session.OutcomeInterrupted:
		return c.command(target("resume", m.SessionID)...)
	case session.OutcomePaused:
	case session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
		return ""
	}
	items := pending(m)
	var approvals []session.PendingItem
	for _, item := range items {
		if item.Kind == session.WaitApproval {
			approvals = append(approvals, item)
		}
	}
	switch {
	case len(approvals) == 1:
		return c.command("resume", "-c", m.CheckpointID, "--approve", approvals[0].ID)
	case len(approvals) > 1:
		return c.command("resume", "-c", m.CheckpointID, "--approve-all")
	case len(items) > 0 && items[0].Kind == session.WaitInput:
		// Bound to what was asked: pasted again it is a repeat, not the next answer.
		return c.command("resume", "-c", m.CheckpointID, "your answer")
	case len(items) > 0:
		return c.answerHint(m.SessionID, items[0])
	}
	return c.command(target("resume", m.SessionID)...)
}

// pending returns everything a manifest waits for.
func pending(m session.Manifest) []session.PendingItem {
	if m.PauseReason == nil {
		return nil
	}
	return append(append([]session.PendingItem{}, m.PauseReason.PendingToolCalls...), m.PauseReason.Pending...)
}

// answerHint returns a command that answers one wait and no other. It names the
// wait, whose id is never used again: what is answered is what was shown.
func (c *cli) answerHint(id string, item session.PendingItem) string {
	submit := func(words ...string) string {
		return c.command(target("submit", id, append([]string{"--call", item.WaitID}, words...)...)...)
	}
	switch item.Kind {
	case session.WaitApproval:
		return submit("--approve")
	case session.WaitClientTool:
		return submit("--result", "{}")
	case session.WaitQuestion:
		if words := sampleReply(item.Question); words != nil {
			return submit(words...)
		}
	case session.WaitUnknown:
		return submit("--verdict", string(session.VerdictHappened))
	case session.WaitInput:
		return submit("--reply", "your answer")
	case session.WaitChild:
		return c.command(target("show", item.Session)...)
	}
	return c.command(target("show", id)...)
}

// sampleReply is an answer that fits. It shows only a choice that reads as it is
// written: ids are the tool's own, and a printed command must hide nothing. Nil
// when there is no such choice.
func sampleReply(q *session.Question) []string {
	if q == nil || q.Kind == session.QuestionText || len(q.Choices) == 0 {
		return []string{"--reply", "your answer"}
	}
	for _, choice := range q.Choices {
		if plainWord.MatchString(choice.ID) {
			return []string{"--select", choice.ID}
		}
	}
	return nil
}
