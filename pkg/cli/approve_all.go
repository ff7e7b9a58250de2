package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/answers"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
)

// errNothingDecided says that the person looked at what there is, and decided nothing.
var errNothingDecided = errors.New("nothing was decided")

// approveAll carries out an --approve-all without a checkpoint: it is bound to what is
// shown now. Who says it may have seen less: something may have come since, or the
// command is pasted a second time.
func (c *cli) approveAll(ctx context.Context, e answers.Sessions, waits *answers.Waits, p *client.Decisions) (client.Resumed, error) {
	var all, rejected []client.Wait
	for _, w := range waits.Approvals() {
		switch edited := p.EditedInput[w.WaitID]; {
		case slices.Contains(p.Reject, w.WaitID):
			rejected = append(rejected, w)
			continue
		case edited != nil:
			w.Arguments = edited
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return client.Resumed{}, exit.Refusef(client.CodeNothingToDecide, waits.ID, "no approval waits there")
	}
	singly := waits.Session.Pause.Decided > 0 // a decision would be about those, too
	if !c.person.There() {
		paste := c.Command(answers.ResumeWords(waits.Session.CheckpointID, p)...)
		if singly {
			paste = answers.SubmitCommands(c.Place, waits.ID, p, all, rejected)
		}
		return client.Resumed{}, &exit.UsageError{Paste: paste, Text: fmt.Sprintf(
			"--approve-all does not say what you were shown: add its checkpoint with -c, or name the waits with --approve. Session %s waits for %s now:\n%s",
			waits.ID, report.Things(all), report.Lines(all))}
	}
	yes, err := c.person.AgreesToAll(ctx, waits.ID, all, rejected)
	switch {
	case err != nil:
		return client.Resumed{}, err
	case !yes:
		return client.Resumed{}, errNothingDecided
	case singly:
		return waits.SubmitAll(ctx, p, all, rejected)
	}
	return decided(ctx, e, waits.ID, waits.Session.CheckpointID, p)
}

// sayUnnamed says what a decision rejects without naming it.
func (c *cli) sayUnnamed(waits *answers.Waits, p *client.Decisions) {
	if p.ApproveAll || p.RejectAll {
		return
	}
	var unnamed []string
	for _, w := range waits.Approvals() {
		if !slices.Contains(p.Approve, w.WaitID) && !slices.Contains(p.Reject, w.WaitID) {
			unnamed = append(unnamed, screen.CleanLine(w.WaitID))
		}
	}
	if len(unnamed) > 0 {
		c.Talk("Not named, and so rejected: %s.", strings.Join(unnamed, ", "))
	}
}
