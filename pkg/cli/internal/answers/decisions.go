package answers

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// ResumeWords are the words of a resume that takes decisions.
func ResumeWords(checkpoint string, p *client.Decisions) []string {
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

// SubmitCommands are the commands that answer each approval by itself. All but the last
// leave the work to it.
func SubmitCommands(where *place.Place, id string, p *client.Decisions, approved, rejected []client.Wait) string {
	var lines []string
	add := func(w client.Wait, words ...string) {
		if len(lines) < len(approved)+len(rejected)-1 {
			words = append(words, "--wait", "0s")
		}
		lines = append(lines, where.Command(place.TargetWait("submit", id, w.WaitID, words...)...))
	}
	for _, w := range rejected {
		words := []string{"--reject"}
		if p.Reason != "" {
			words = append(words, "--reason", p.Reason)
		}
		add(w, words...)
	}
	for _, w := range approved {
		if edited := p.EditedInput[w.WaitID]; edited != nil {
			add(w, "--edit", string(edited))
		} else {
			add(w, "--approve")
		}
	}
	return strings.Join(lines, " && ")
}

// Tell says what is to be said of an answer that was taken.
func Tell(talk func(format string, words ...any), submitted client.Submitted) {
	switch {
	case submitted.Repeated && submitted.VotesMissing > 0:
		talk("Your vote was stored before. %d more must approve.", submitted.VotesMissing)
	case submitted.Repeated:
		talk("Already settled: the same answer was given before, nothing was done again.")
	case submitted.VotesMissing > 0:
		talk("Your vote is stored. %d more must approve.", submitted.VotesMissing)
	}
}

// TellVotes says what is missing where several people must approve, after one of them has decided.
func TellVotes(talk func(format string, words ...any), decided client.Resumed) {
	for _, w := range decided.Open {
		if w.VotesMissing > 0 && len(w.Votes) > 0 {
			talk("Your vote on %s is stored. %d more must approve.", w.WaitID, w.VotesMissing)
		}
	}
}

// SubmitAll answers each approval by itself, bound to what was shown.
func (a *Waits) SubmitAll(ctx context.Context, p *client.Decisions, approved, rejected []client.Wait) (client.Resumed, error) {
	out := client.Resumed{Repeated: true}
	for i, w := range slices.Concat(rejected, approved) {
		yes := i >= len(rejected)
		answer := client.SubmitRequest{WaitID: w.WaitID, Kind: session.AnswerApproval, ApprovalID: w.ApprovalID, Approved: &yes}
		if yes {
			answer.EditedInput = p.EditedInput[w.WaitID]
		}
		if !yes || len(rejected) == 0 {
			answer.Reason = p.Reason
		}
		submitted, err := a.e.Submit(ctx, client.SubmitParams{SessionID: a.ID, Answer: answer})
		if err != nil {
			return out, err
		}
		out.Continuation, out.Open, out.Repeated = submitted.Continuation, submitted.Open, out.Repeated && submitted.Repeated
	}
	return out, nil
}
