package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Show prints a wait with what a person needs to decide.
func (b *Inbox) Show(ctx context.Context, id, wait string) error {
	s := b.cfg.Screen
	e, err := b.cfg.Place.OpenReading(ctx)
	if err != nil {
		return b.cfg.NoSession(err, id)
	}
	defer report.Close(s, b.cfg.Place, e)
	v, err := e.Wait(ctx, id, wait)
	if err != nil {
		return err
	}
	if s.Form == screen.FormJSON {
		s.JSON(v)
		return nil
	}
	s.Write(s.Stdout, card(v, b.cfg.Now(), screen.Width(s.Stdout), func(text string) string { return s.Bold(s.Stdout, text) }))
	if v.Wait.State == session.WaitOpen && !report.Late(v.Wait, b.cfg.Now()) {
		s.Say("\nanswer: %s", report.AnswerHint(b.cfg.Place, id, v.Wait))
	}
	return nil
}

// card is what a person reads of a wait: first what is to be decided, then what was said about it and
// what the task has done.
func card(v client.WaitView, now time.Time, width int, bold func(string) string) string {
	var out strings.Builder
	line := func(format string, args ...any) { out.WriteString(screen.Sprintf(format, args...) + "\n") }
	w := v.Wait
	line("%s  session %s, %s, %s", bold(report.Headline(w)), screen.CleanLine(w.SessionID), report.AgentName(w.Agent), report.Ago(now, w.OpenedAt))
	out.WriteString(report.Details(w, now, "  ", width))
	if w.Kind == session.WaitInput && w.Text != "" {
		out.WriteString(screen.QuoteBlock(w.Text, "  ", width))
	}
	switch {
	case w.State == session.WaitOpen && !v.MayAnswer:
		line("  You may not answer it.")
	case w.State == session.WaitOpen && v.For != "":
		line("  You answer in the place of %s.", screen.CleanLine(v.For))
	case w.Answer != nil:
		line("  %s by %s", report.Said(*w.Answer), screen.CleanLine(w.Answer.Who))
	case w.State == session.WaitClosed:
		line("  It was closed: the session went on without an answer.")
	}
	for _, s := range v.StandIns {
		line("  %s", standsIn(s))
	}
	out.WriteString(actLines(w.Acts, now))
	if len(v.Messages) > 0 {
		out.WriteString("\n")
		if v.Earlier > 0 {
			line("  (%d messages before)", v.Earlier)
		}
	}
	for _, m := range v.Messages {
		text := m.Text
		if m.Cut {
			text += " …"
		}
		line("  %s:", m.Role)
		out.WriteString(screen.QuoteBlock(text, "    ", width))
	}
	out.WriteString(soFar(v, now, width))
	return out.String()
}

// soFar is what the task has used and done.
func soFar(v client.WaitView, now time.Time, width int) string {
	used := []string{screen.Count(v.Used.Steps, "step"), screen.Count(v.Usage.TotalTokens, "token")}
	if v.Used.CostMicros > 0 {
		used = append(used, fmt.Sprintf("$%.4f", float64(v.Used.CostMicros)/1e6))
	}
	if v.Open > 1 {
		used = append(used, fmt.Sprintf("it waits for %d things", v.Open))
	}
	text := "\n  Task " + fmt.Sprint(v.Task) + " so far: " + strings.Join(used, ", ") + "\n"
	if v.Effects.Count > 0 {
		text += report.Effects(v.Effects, now, width)
	}
	return text
}

// actLines say what people, and the deadline, did to a wait, beside what report tells of who may answer it: that
// it was delegated, or escalated.
func actLines(acts []session.WaitAct, now time.Time) string {
	var out strings.Builder
	for _, a := range acts {
		if a.Kind == session.ActDelegated || a.Kind == session.ActEscalated {
			continue
		}
		what := string(a.Kind)
		switch {
		case a.Kind == session.ActStoodIn:
			what = "stood in for " + screen.CleanLine(a.For)
		case a.Deadline != nil:
			what += " until " + a.Deadline.Local().Format(time.DateTime)
		}
		line := fmt.Sprintf("  %s by %s %s", what, screen.CleanLine(a.Who), report.Ago(now, a.At))
		if a.Reason != "" {
			line += ": " + screen.Short(a.Reason, 200)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
