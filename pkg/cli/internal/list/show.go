package list

import (
	"context"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// commandsOf names verbs as the commands that carry them out.
func commandsOf(verbs []session.Verb) []string {
	other := map[session.Verb]string{session.VerbStart: "run --session", session.VerbGoBack: "resume --from-checkpoint"}
	words := texts(verbs)
	for i, verb := range verbs {
		if word, is := other[verb]; is {
			words[i] = word
		}
	}
	return words
}

// Show prints what happened in a session, and what it waits for.
func (l *Lists) Show(ctx context.Context, id string, full bool) error {
	e, err := l.OpenReading(ctx)
	if err != nil {
		return err
	}
	defer report.Close(l.Screen, l.Place, e)
	entries, err := e.Entries(ctx, id)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return exit.Refusef(client.CodeInternal, id, "its journal is empty, which no session's is: its data is damaged, or what answered is no Adjourn server")
	}
	if l.Form == screen.FormJSON {
		l.JSON(entries)
		return nil
	}
	v, err := report.Load(ctx, l.Place, e, id)
	if err != nil {
		return err
	}
	l.Write(l.Stdout, report.Timeline(l.Screen, v.Session, entries, full))
	l.sayForks(ctx, e, id)
	if len(v.Allowed) > 0 {
		l.Say("\nIt takes now: %s", screen.CleanLine(strings.Join(commandsOf(v.Allowed), ", ")))
	}
	if v.CancelAt != nil {
		at, say := v.CancelAt.Local().Format(time.DateTime), "It is cancelled at %s, unless it has ended by then."
		if !l.now().Before(*v.CancelAt) {
			say = "Its time was over at %s: who works next cancels it."
		}
		l.Say(say, at)
	}
	switch v.Outcome {
	case session.OutcomePaused:
	case session.OutcomeRunning, session.OutcomeInterrupted:
		if v.ResumeHint == "" && !l.Remote() {
			l.Say("\n%s", report.Elsewhere(v.Agent))
			return nil
		}
		if v.ResumeHint == "" {
			l.Say("\nNobody goes on with it here: %s.", report.NotServed(l.Place, v.Session))
			return nil
		}
		if report.GoesOn(v.Session) {
			return l.sayGoesOn(ctx, e, v)
		}
		if v.Outcome == session.OutcomeInterrupted {
			return l.sayInterrupted(ctx, e, v)
		}
		if v.Halted != nil {
			l.Say("\n%s", l.Halted(*v.Halted))
			return nil
		}
		l.Say("\nIt is running. If no worker works on it any more, go on:\n  %s", v.ResumeHint)
		return nil
	case session.OutcomeFailed:
		l.Say("")
		for _, line := range report.AfterFailure(l.Place, v) {
			l.Say("%s", line)
		}
		return nil
	case session.OutcomeCompleted, session.OutcomeCancelled, session.OutcomeError:
		return nil
	}
	waits, err := e.Waits(ctx, id)
	if err != nil {
		return err
	}
	if v.Pause == nil {
		l.Say("\nEverything it waited for is answered, and the last answer was only stored:")
		l.Write(l.Stdout, report.StoredLines(report.Stored(waits), "  ", l.now()))
		if v.ResumeHint == "" {
			l.Say("\n%s", report.Elsewhere(v.Agent))
			return nil
		}
		l.Say("\nTo go on:\n  %s", v.ResumeHint)
		return nil
	}
	l.sayOpen(v, report.Stored(waits), entries[len(entries)-1].At)
	return nil
}

// shownForks is how many forks show names.
const shownForks = 10

// sayForks names the forks of a session. What else is shown of it does not depend on them.
func (l *Lists) sayForks(ctx context.Context, e *place.Connection, id string) {
	forks, err := e.Sessions(ctx, client.SessionsParams{ForkedFrom: id, Page: client.Page{Limit: shownForks}})
	if err != nil {
		l.Complain("its forks cannot be listed: %v", err)
		return
	}
	var ids []string
	for _, fork := range forks.Items {
		ids = append(ids, screen.CleanLine(fork.ID))
	}
	if len(ids) == 0 {
		return
	}
	l.Say("\nForks of it: %s", strings.Join(ids, ", "))
	if forks.Cursor != "" {
		l.Say("and more: %s", l.Command("sessions", "--forked-from", id))
	}
}

// sayGoesOn prints what was answered, or expired, of a session that has not gone on since.
func (l *Lists) sayGoesOn(ctx context.Context, e *place.Connection, v report.View) error {
	waits, err := e.Waits(ctx, v.ID)
	if err != nil {
		return err
	}
	l.Say("\nNothing it waited for is open any more, and no process has gone on with it yet:")
	l.Write(l.Stdout, report.StoredLines(report.Stored(waits), "  ", l.now()))
	if v.ResumeHint == "" {
		l.Say("\n%s", report.Elsewhere(v.Agent))
		return nil
	}
	l.Say("\nTo go on:\n  %s", v.ResumeHint)
	return nil
}

// sayInterrupted prints what was answered since a session was interrupted.
func (l *Lists) sayInterrupted(ctx context.Context, e *place.Connection, v report.View) error {
	waits, err := e.Waits(ctx, v.ID)
	if err != nil {
		return err
	}
	if stored := report.Stored(waits); len(stored) > 0 {
		l.Say("\nStored until it goes on:")
		l.Write(l.Stdout, report.StoredLines(stored, "  ", l.now()))
	}
	l.Say("\nTo go on:\n  %s", v.ResumeHint)
	return nil
}

// sayOpen prints what a session still waits for, beside what was answered of the same pause.
func (l *Lists) sayOpen(v report.View, answered []client.Wait, asked time.Time) {
	l.Say("\nWaiting for %s, asked %s.", report.Things(report.Pending(v.Session)), l.ago(asked))
	l.Write(l.Stdout, report.Beside(answered, l.now()))
	// Whole: the lines above may have been shortened, and what follows may approve, or answers.
	waits, width := report.Pending(v.Session), screen.Width(l.Stdout)
	bold := func(text string) string { return l.Bold(l.Stdout, text) }
	l.Write(l.Stdout, report.ApprovalBlocks(report.Approvals(v.Session), l.now(), width, bold))
	for _, w := range waits {
		if w.Kind == session.WaitApproval {
			continue
		}
		l.Write(l.Stdout, "\n"+report.Block(w, l.now(), width, bold))
		if w.Kind == session.WaitInput && w.Text != "" {
			l.Write(l.Stdout, screen.QuoteBlock(w.Text, "    ", width))
		}
	}
	l.Say("\nTo go on%s:\n  %s", report.HintOnly(l.Place, v.Session), v.ResumeHint)
	if v.AgentElsewhere {
		l.Say("\n%s", report.Elsewhere(v.Agent))
	}
}
