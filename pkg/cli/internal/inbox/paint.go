package inbox

import (
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	listKeys = "j k move   Enter open   r read again   q quit"
	cardKeys = "a approve   d reject   e edit   g delegate   x extend   space more   q back"
)

// bottom is how many lines below the list, or the card, are for what was done and for the keys.
const bottom = 3

// page is how many lines of a card the terminal has room for.
func (w *walker) page() int { return max(screen.Height(w.out)-bottom, 3) }

// paint shows the list or the card, and what may be pressed.
func (w *walker) paint() {
	var lines []string
	keys := listKeys
	if w.card != nil {
		lines, keys = w.cardLines(), cardKeys
	} else {
		lines = w.listLines()
	}
	last := keys
	if w.typed != nil {
		last = w.typed.label + screen.CleanLine(string(w.typed.text))
	}
	w.s.Paint(w.out, strings.Join(lines, "\n")+"\n"+screen.Fit(screen.CleanLine(w.note), max(screen.Width(w.out)-1, 20))+"\n"+last)
}

func (w *walker) bold(text string) string { return w.s.Bold(w.out, text) }

// listLines are the waits around the one it is at.
func (w *walker) listLines() []string {
	room, width := w.page()-1, max(screen.Width(w.out)-1, 20)
	from := max(min(w.at-room/2, len(w.waits)-room), 0)
	head := screen.Count(int64(len(w.waits)), "thing") + " to decide"
	if w.more {
		head += ", and more"
	}
	lines := []string{w.bold(head)}
	for i := from; i < min(from+room, len(w.waits)); i++ {
		of := w.waits[i]
		line := report.Headline(of) + "  session " + screen.CleanLine(of.SessionID) + ", " + report.AgentName(of.Agent) + ", " + report.Ago(w.now(), of.OpenedAt)
		if len(of.Arguments) > 0 {
			line += "  " + screen.Compact(of.Arguments, 60)
		}
		if line = screen.Fit("  "+line, width); i == w.at {
			line = w.bold("> " + strings.TrimPrefix(line, "  "))
		}
		lines = append(lines, line)
	}
	return lines
}

// cardLines are the lines of the card that are on the screen; it notes how far the person has seen it.
func (w *walker) cardLines() []string {
	c := w.card
	view := c.view
	if c.edited != nil {
		view.Wait.Arguments, view.Wait.Preview = c.edited, nil // the preview is of what was shown before
	}
	text := card(view, w.now(), max(screen.Width(w.out)-1, 20), w.bold)
	if c.edited != nil {
		text = "With arguments that you changed:\n" + text
	}
	if view.Wait.State != session.WaitOpen {
		text = "It does not wait any more.\n" + text
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	c.lines = len(all)
	to := min(c.top+w.page(), len(all))
	c.end = max(c.end, to)
	return all[min(c.top, len(all)):to]
}
