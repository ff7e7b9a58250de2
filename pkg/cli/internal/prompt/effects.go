package prompt

import (
	"context"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/session"
)

// Acknowledges shows the calls with effects that a session made after the checkpoint it is to go
// back to, and asks whether to go back all the same. Only a yes is one.
func (p *Person) Acknowledges(ctx context.Context, id string, done session.EffectsDone) (bool, error) {
	p.print("\n" + p.bold("Session "+screen.CleanLine(id)+" has made "+screen.Count(int64(done.Count), "call")+" with effects since then. Going back does not undo them:") + "\n")
	p.print(report.Effects(done, p.Place.Now(), p.width()))
	yes, _, err := p.yes(ctx, "Go back all the same?", "Please answer y or n. What the agent asks for anew is a new call, with an approval of its own where the tool needs one.\n")
	return yes, err
}
