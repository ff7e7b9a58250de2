package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// errNothingDecided says that the person looked at what there is, and decided nothing.
var errNothingDecided = errors.New("nothing was decided")

// approveAll carries out an --approve-all without a checkpoint: it is bound to what is
// shown now. Who says it may have seen less: something may have come since, or the
// command is pasted a second time.
func (c *cli) approveAll(ctx context.Context, waits *asked, p *client.Decisions) (client.Resumed, error) {
	var all, rejected []report.PendingItem
	for _, item := range waits.approvals() {
		switch edited := p.EditedInput[item.WaitID]; {
		case slices.Contains(p.Reject, item.WaitID):
			rejected = append(rejected, item)
			continue
		case edited != nil:
			item.Arguments = edited
		}
		all = append(all, item)
	}
	if len(all) == 0 {
		return client.Resumed{}, exit.Refusef(client.CodeNothingToDecide, waits.id, "no approval waits there")
	}
	singly := waits.m.PauseReason.Decided > 0 // a decision would be about those, too
	if !c.person.There() {
		paste := c.Command(decisionWords(waits.m.CheckpointID, p)...)
		if singly {
			paste = c.submitsOf(waits.id, p, all, rejected)
		}
		return client.Resumed{}, &exit.UsageError{Paste: paste, Text: fmt.Sprintf(
			"--approve-all does not say what you were shown: add its checkpoint with -c, or name the waits with --approve. Session %s waits for %s now:\n%s",
			waits.id, report.Things(all), report.Lines(all))}
	}
	yes, err := c.person.AgreesToAll(ctx, waits.m, all, rejected)
	switch {
	case err != nil:
		return client.Resumed{}, err
	case !yes:
		return client.Resumed{}, errNothingDecided
	case singly:
		return waits.submitAll(ctx, p, all, rejected)
	}
	return decided(ctx, waits.e, waits.id, waits.m.CheckpointID, p)
}

// decisionWords are the words of a resume that takes decisions.
func decisionWords(checkpoint string, p *client.Decisions) []string {
	words := []string{"resume", "-c", checkpoint, "--approve-all"}
	for _, id := range p.Reject {
		words = append(words, "--reject", id)
	}
	for _, id := range slices.Sorted(maps.Keys(p.EditedInput)) {
		words = append(words, "--edit", id+"="+string(p.EditedInput[id]))
	}
	if p.Reason != "" {
		words = append(words, "--reason", p.Reason)
	}
	return words
}

// submitsOf are the commands that answer each approval by itself. All but the last
// leave the work to it.
func (c *cli) submitsOf(id string, p *client.Decisions, approved, rejected []report.PendingItem) string {
	var lines []string
	add := func(item report.PendingItem, words ...string) {
		if len(lines) < len(approved)+len(rejected)-1 {
			words = append(words, "--wait", "0s")
		}
		lines = append(lines, c.Command(place.TargetWait("submit", id, item.WaitID, words...)...))
	}
	for _, item := range rejected {
		words := []string{"--reject"}
		if p.Reason != "" {
			words = append(words, "--reason", p.Reason)
		}
		add(item, words...)
	}
	for _, item := range approved {
		if edited := p.EditedInput[item.WaitID]; edited != nil {
			add(item, "--edit", string(edited))
		} else {
			add(item, "--approve")
		}
	}
	return strings.Join(lines, " && ")
}

// submitAll answers each approval by itself, bound to what was shown.
func (a *asked) submitAll(ctx context.Context, p *client.Decisions, approved, rejected []report.PendingItem) (client.Resumed, error) {
	out := client.Resumed{Repeated: true}
	for i, item := range slices.Concat(rejected, approved) {
		yes := i >= len(rejected)
		answer := client.SubmitRequest{WaitID: item.WaitID, Kind: session.AnswerApproval, ApprovalID: item.ApprovalID, Approved: &yes}
		if yes {
			answer.EditedInput = p.EditedInput[item.WaitID]
		}
		if !yes || len(rejected) == 0 {
			answer.Reason = p.Reason
		}
		submitted, err := a.e.Submit(ctx, client.SubmitParams{SessionID: a.id, Answer: answer})
		if err != nil {
			return out, err
		}
		out.Continuation, out.Open, out.Repeated = submitted.Continuation, submitted.Open, out.Repeated && submitted.Repeated
	}
	return out, nil
}

// sayUnnamed says what a decision rejects without naming it.
func (c *cli) sayUnnamed(waits *asked, p *client.Decisions) {
	if p.ApproveAll || p.RejectAll {
		return
	}
	var unnamed []string
	for _, item := range waits.approvals() {
		if !slices.Contains(p.Approve, item.WaitID) && !slices.Contains(p.Reject, item.WaitID) {
			unnamed = append(unnamed, screen.CleanLine(item.WaitID))
		}
	}
	if len(unnamed) > 0 {
		c.Talk("Not named, and so rejected: %s.", strings.Join(unnamed, ", "))
	}
}
