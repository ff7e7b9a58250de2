package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

func (c *cli) showCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "show session",
		Short: "Show a session's journal as a timeline",
		Long: `Show what happened in a session, entry by entry: steps, tools, waits, how long
each took and what it used. With --output json the entries are printed as they are stored.`,
		Args:              exactly(1, "session"),
		ValidArgsFunction: c.completeFirst(c.completeSessions),
		RunE: c.do(func(ctx context.Context, args []string) error {
			return c.show(ctx, args[0], full)
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "do not shorten texts, arguments and results")
	return cmd
}

func (c *cli) show(ctx context.Context, id string, full bool) error {
	e, err := c.OpenReading(ctx)
	if err != nil {
		return c.noSession(err, id)
	}
	defer c.close(e)
	entries, err := e.Entries(ctx, id)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return exit.Refusef(client.CodeInternal, id, "its journal is empty, which no session's is: its data is damaged, or what answered is no Adjourn server")
	}
	if c.Form == screen.FormJSON {
		c.JSON(entries)
		return nil
	}
	m, err := c.stand(ctx, e, id)
	if err != nil {
		return err
	}
	c.Write(c.Stdout, report.Timeline(c.Screen, m, entries, full))
	switch m.Outcome {
	case session.OutcomePaused:
	case session.OutcomeRunning:
		c.Say("\nIt is running. If no worker works on it any more, go on:\n  %s", m.ResumeHint)
		return nil
	case session.OutcomeInterrupted:
		c.Say("\nTo go on:\n  %s", m.ResumeHint)
		return nil
	case session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
		return nil
	}
	waits, err := e.Waits(ctx, id)
	if err != nil {
		return err
	}
	if m.PauseReason == nil {
		c.Say("\nEverything it waited for is answered, and the last answer was only stored:")
		c.Write(c.Stdout, report.StoredLines(report.Stored(waits), "  ", c.Now()))
		if m.ResumeHint == "" {
			c.Say("\n%s", report.Elsewhere(m.Agent))
			return nil
		}
		c.Say("\nTo go on:\n  %s", m.ResumeHint)
		return nil
	}
	c.sayOpen(m, report.Stored(waits), entries[len(entries)-1].At)
	return nil
}

// sayOpen prints what a session still waits for, beside what was answered of the same pause.
func (c *cli) sayOpen(m report.Manifest, answered []client.Wait, asked time.Time) {
	c.Say("\nWaiting for %s, asked %s.", report.Things(report.Pending(m)), c.ago(asked))
	c.Write(c.Stdout, report.Beside(answered, c.Now()))
	// Whole: the lines above may have been shortened, and what follows may approve, or answers.
	items, width := report.Pending(m), screen.Width(c.Stdout)
	bold := func(text string) string { return c.Bold(c.Stdout, text) }
	c.Write(c.Stdout, report.Approvals(items, c.Now(), width, bold))
	for _, item := range items {
		if item.Kind == session.WaitApproval {
			continue
		}
		c.Write(c.Stdout, "\n"+report.Item(item, c.Now(), width, bold))
		if item.Kind == session.WaitInput && item.Text != "" {
			c.Write(c.Stdout, screen.QuoteBlock(item.Text, "    ", width))
		}
	}
	c.Say("\nTo go on%s:\n  %s", report.HintOnly(c.Place, m), m.ResumeHint)
}
