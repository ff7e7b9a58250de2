package list

import (
	"context"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

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
	m, err := report.Stand(ctx, l.Place, e, id)
	if err != nil {
		return err
	}
	l.Write(l.Stdout, report.Timeline(l.Screen, m, entries, full))
	switch m.Outcome {
	case session.OutcomePaused:
	case session.OutcomeRunning:
		l.Say("\nIt is running. If no worker works on it any more, go on:\n  %s", m.ResumeHint)
		return nil
	case session.OutcomeInterrupted:
		l.Say("\nTo go on:\n  %s", m.ResumeHint)
		return nil
	case session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
		return nil
	}
	waits, err := e.Waits(ctx, id)
	if err != nil {
		return err
	}
	if m.PauseReason == nil {
		l.Say("\nEverything it waited for is answered, and the last answer was only stored:")
		l.Write(l.Stdout, report.StoredLines(report.Stored(waits), "  ", l.now()))
		if m.ResumeHint == "" {
			l.Say("\n%s", report.Elsewhere(m.Agent))
			return nil
		}
		l.Say("\nTo go on:\n  %s", m.ResumeHint)
		return nil
	}
	l.sayOpen(m, report.Stored(waits), entries[len(entries)-1].At)
	return nil
}

// sayOpen prints what a session still waits for, beside what was answered of the same pause.
func (l *Lists) sayOpen(m report.Manifest, answered []client.Wait, asked time.Time) {
	l.Say("\nWaiting for %s, asked %s.", report.Things(report.Pending(m)), l.ago(asked))
	l.Write(l.Stdout, report.Beside(answered, l.now()))
	// Whole: the lines above may have been shortened, and what follows may approve, or answers.
	items, width := report.Pending(m), screen.Width(l.Stdout)
	bold := func(text string) string { return l.Bold(l.Stdout, text) }
	l.Write(l.Stdout, report.Approvals(items, l.now(), width, bold))
	for _, item := range items {
		if item.Kind == session.WaitApproval {
			continue
		}
		l.Write(l.Stdout, "\n"+report.Item(item, l.now(), width, bold))
		if item.Kind == session.WaitInput && item.Text != "" {
			l.Write(l.Stdout, screen.QuoteBlock(item.Text, "    ", width))
		}
	}
	l.Say("\nTo go on%s:\n  %s", report.HintOnly(l.Place, m), m.ResumeHint)
}
