package httpapi

import (
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// newSession says where a session stands in the words of the API.
func newSession(key session.Key, s runtime.View) *client.Session {
	out := &client.Session{
		ID: key.ID, Agent: s.Agent, Status: s.Status, Outcome: s.Outcome, Title: s.Head.Title,
		Task: s.Task, Run: s.Run, Step: s.Step, Version: s.Version, CheckpointID: s.Checkpoint,
		Text: s.Text, Output: s.Output, Usage: newUsage(s.Usage), Parent: s.Parent, ForkedFrom: s.Head.ForkedFrom, Warnings: s.Warnings, Allowed: s.Allowed,
		Rules: s.Asked, ProgramPolicy: s.ProgramPolicy, Stopped: s.Stopped, Metadata: s.Metadata, Tags: s.Head.Tags, StartedBy: s.Head.StartedBy,
		CreatedAt: s.Head.CreatedAt, UpdatedAt: s.Head.UpdatedAt, CancelAt: s.Head.CancelAt, ExpiresAt: s.Head.ExpiresAt(),
		CanResume: s.Resume == nil, ResumeReason: "nothing stands in the way: a resume that brings nothing goes on with it",
	}
	if s.Resume != nil {
		out.ResumeCode, out.ResumeReason = string(s.Resume.Code), s.Resume.Message
	}
	if s.Halted != nil {
		halt := shownHalt(*s.Halted, false)
		out.Halted = &halt
		if out.CanResume {
			out.ResumeReason = "a resume would be taken, and the session goes on when the halt is lifted"
		}
	}
	if s.Pause != nil {
		out.Pause = &client.Pause{Type: s.Pause.Type, Pending: newWaits(key.ID, s.Open), Decided: s.Pause.Decided}
	}
	if f := s.Failure; f != nil && s.Status == session.StatusFailed {
		out.Failure = &client.Failure{Code: f.Type, Message: f.Message, Retryable: f.Retryable, Data: f.Data}
	}
	return out
}

// newUsage returns usage in the words of the API.
func newUsage(u llm.Usage) client.Usage {
	return client.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total(),
		CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite, ReasoningTokens: u.Reasoning,
	}
}

// newWait returns a wait of a session in the words of the API.
func newWait(sessionID string, r journal.WaitRecord) client.Wait {
	w := r.Wait
	out := client.Wait{
		SessionID: sessionID, WaitID: w.ID, Kind: w.Kind, State: r.State, Agent: r.Agent,
		CallID: w.Call, ApprovalID: w.Nonce, Tool: w.Tool, Arguments: w.Arguments, Digest: w.Digest,
		Preview: w.Preview, Claim: w.Claim, ShownDigest: w.ShownDigest, Question: w.Question, Text: w.Text, ChildSessionID: w.Child, OpenedAt: w.OpenedAt, Deadline: w.Deadline,
		Who: w.Who, Rule: w.Rule, Requesters: w.Requesters, Votes: r.Votes, Policy: w.Policy, Origin: w.Origin, Answer: r.Answer, Held: r.Held, Acts: r.Acts,
	}
	if r.State == session.WaitOpen && w.Votes() {
		out.VotesMissing, out.MayVote = w.Tally(r.Votes, r.Acts).Missing, w.Left(r.Votes, r.Acts)
	}
	return out
}

func newWaits(id string, records []journal.WaitRecord) []client.Wait {
	out := make([]client.Wait, len(records))
	for i, record := range records {
		out[i] = newWait(id, record)
	}
	return out
}

// openWaits are waits of which is only known that they are open.
func openWaits(id string, waits []session.Wait) []client.Wait {
	out := make([]client.Wait, len(waits))
	for i, w := range waits {
		out[i] = newWait(id, journal.WaitRecord{Wait: w, State: session.WaitOpen})
	}
	return out
}

// newRuns are all runs of a session, the oldest first, in the words of the API.
func newRuns(runs []session.Run) []client.Run {
	out := make([]client.Run, len(runs))
	for i, run := range runs {
		out[i].Run = run
		if i > 0 && runs[i-1].EndedAt != nil {
			// Two machines may have written the times.
			out[i].WaitedMillis = max(run.StartedAt.Sub(*runs[i-1].EndedAt).Milliseconds(), 0)
		}
	}
	return out
}
