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
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// errNothingDecided says that the person looked at what there is, and decided nothing.
var errNothingDecided = errors.New("nothing was decided")

// approveAll carries out an --approve-all without a checkpoint: it is bound to what is
// shown now. Who says it may have seen less: something may have come since, or the
// command is pasted a second time.
func (c *cli) approveAll(ctx context.Context, waits *asked, p *runtime.DecideParams) (runtime.Resumed, error) {
	var all, rejected []session.PendingItem
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
		return runtime.Resumed{}, &runtime.Error{Code: runtime.CodeNothingToDecide, Session: p.Key.ID, Message: "no approval waits there"}
	}
	bound := *p
	bound.Checkpoint = waits.m.CheckpointID
	decided := waits.m.PauseReason.Decided > 0 // a decision would be about those, too
	if !c.person.There() {
		paste := c.Command(decisionWords(bound)...)
		if decided {
			paste = c.submitsOf(p, all, rejected)
		}
		return runtime.Resumed{}, &exit.UsageError{Paste: paste, Text: fmt.Sprintf(
			"--approve-all does not say what you were shown: add its checkpoint with -c, or name the waits with --approve. Session %s waits for %s now:\n%s",
			p.Key.ID, report.Things(all), report.Lines(all))}
	}
	yes, err := c.person.AgreesToAll(ctx, waits.m, all, rejected)
	switch {
	case err != nil:
		return runtime.Resumed{}, err
	case !yes:
		return runtime.Resumed{}, errNothingDecided
	case decided:
		return waits.submitAll(ctx, p, all, rejected)
	}
	return waits.e.Decide(ctx, bound)
}

// decisionWords are the words of a resume that takes decisions.
func decisionWords(p runtime.DecideParams) []string {
	words := []string{"resume", "-c", p.Checkpoint, "--approve-all"}
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
func (c *cli) submitsOf(p *runtime.DecideParams, approved, rejected []session.PendingItem) string {
	var lines []string
	add := func(item session.PendingItem, words ...string) {
		if len(lines) < len(approved)+len(rejected)-1 {
			words = append(words, "--wait", "0s")
		}
		lines = append(lines, c.Command(place.TargetWait("submit", p.Key.ID, item.WaitID, words...)...))
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
func (a *asked) submitAll(ctx context.Context, p *runtime.DecideParams, approved, rejected []session.PendingItem) (runtime.Resumed, error) {
	out := runtime.Resumed{Repeated: true}
	for i, item := range slices.Concat(rejected, approved) {
		yes := i >= len(rejected)
		answer := session.Answer{Wait: item.WaitID, Kind: session.AnswerApproval, ApprovalID: item.ApprovalID, Approved: &yes}
		if yes {
			answer.EditedInput = p.EditedInput[item.WaitID]
		}
		if !yes || len(rejected) == 0 {
			answer.Reason = p.Reason
		}
		submitted, err := a.e.Submit(ctx, runtime.SubmitParams{Key: p.Key, Caller: p.Caller, Answer: answer})
		if err != nil {
			return out, err
		}
		out.Continuation, out.Open, out.Repeated = submitted.Continuation, submitted.Open, out.Repeated && submitted.Repeated
	}
	return out, nil
}

// sayUnnamed says what a decision rejects without naming it.
func (c *cli) sayUnnamed(waits *asked, p *runtime.DecideParams) {
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
