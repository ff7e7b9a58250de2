package prompt

import (
	"context"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
)

// WantsInterrupt asks what Ctrl-C means for a session that a server works on: to interrupt it, or
// only to stop watching. Who presses Enter, leaves, or cannot be asked has not said to interrupt it.
func (p *Person) WantsInterrupt(ctx context.Context, id string) bool {
	for {
		text, err := p.prompt(ctx, "\nThe server works on session "+screen.CleanLine(id)+". [i]nterrupt it, or only [S]top watching: ")
		if err != nil {
			return false
		}
		switch strings.ToLower(text) {
		case "i", "interrupt":
			return true
		case "", "s", "stop", "stop watching":
			return false
		}
		p.print("Please answer i or s. Interrupted, it goes on when somebody resumes it; otherwise the server goes on with it. Ctrl-C leaves at once.\n")
	}
}
