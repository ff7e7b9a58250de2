package prompt

import (
	"context"
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
)

// AgreesToDelete shows a session and asks whether it is to be deleted for good. Only a yes is one;
// without anybody to ask it is a mistake in the words of the command.
func (p *Person) AgreesToDelete(ctx context.Context, s client.Session) (bool, error) {
	if !p.There() {
		return false, &exit.UsageError{
			Text:  fmt.Sprintf("there is no terminal to ask at. --yes says that session %s is to be deleted for good:\n%s", screen.CleanLine(s.ID), what(s)),
			Paste: p.Place.Command(place.Target("delete", s.ID, "--yes")...),
		}
	}
	p.print("\n" + p.bold("Session "+screen.CleanLine(s.ID)) + "\n" + screen.QuoteBlock(what(s), "  ", p.width()))
	yes, _, err := p.yes(ctx, "Delete it for good?", "Please answer y or n. What is deleted cannot be brought back, and its id is never used again.\n")
	return yes, err
}

// what says which session is to be deleted.
func what(s client.Session) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, task %d, %d entries\n", screen.CleanLine(s.Agent), s.Status, s.Task, s.Version)
	if s.Title != "" {
		fmt.Fprintf(&b, "%s\n", screen.CleanLine(s.Title))
	}
	if s.Pause != nil && len(s.Pause.Pending) > 0 {
		fmt.Fprintf(&b, "it waits for %s\n", report.Things(s.Pause.Pending))
	}
	return b.String()
}
