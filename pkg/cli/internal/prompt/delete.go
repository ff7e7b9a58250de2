package prompt

import (
	"context"

	"github.com/adjourn/adjourn/internal/screen"
)

// AgreesToDelete shows a session and asks whether it is to be deleted for good. Only a yes is one.
func (p *Person) AgreesToDelete(ctx context.Context, id, what string) (bool, error) {
	p.print("\n" + p.bold("Session "+screen.CleanLine(id)) + "\n" + screen.QuoteBlock(what, "  ", p.width()))
	yes, _, err := p.yes(ctx, "Delete it for good?", "Please answer y or n. What is deleted cannot be brought back, and its id is never used again.\n")
	return yes, err
}
