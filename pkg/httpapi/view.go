package httpapi

import (
	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// newSession says where a session stands in the words of the API.
func newSession(key session.Key, s runtime.View) *wire.Session {
	out := &wire.Session{
		ID: key.ID, Agent: s.Agent, Status: s.Status, Outcome: s.Outcome, Title: s.Head.Title,
		Task: s.Task, Run: s.Run, Step: s.Step, Version: s.Version, CheckpointID: s.Checkpoint,
		Text: s.Text, Output: s.Output, Usage: wire.NewUsage(s.Usage), Parent: s.Parent,
		CreatedAt: s.Head.CreatedAt, UpdatedAt: s.Head.UpdatedAt,
		CanResume: s.Resume == nil, ResumeReason: "nothing stands in the way: a resume that brings nothing goes on with it",
	}
	if s.Resume != nil {
		out.ResumeCode, out.ResumeReason = string(s.Resume.Code), s.Resume.Message
	}
	if s.Pause != nil {
		out.Pause = &wire.Pause{Type: s.Pause.Type, Pending: newWaits(key.ID, s.Open), Decided: s.Pause.Decided}
	}
	if f := s.Failure; f != nil && s.Status == session.StatusFailed {
		out.Failure = &wire.Failure{Code: f.Type, Message: f.Message, Retryable: f.Retryable, Data: f.Data}
	}
	return out
}

func newWaits(id string, records []journal.WaitRecord) []wire.Wait {
	out := make([]wire.Wait, len(records))
	for i, record := range records {
		out[i] = wire.NewWait(id, record)
	}
	return out
}

// openWaits are waits of which is only known that they are open.
func openWaits(id string, waits []session.Wait) []wire.Wait {
	out := make([]wire.Wait, len(waits))
	for i, w := range waits {
		out[i] = wire.NewWait(id, journal.WaitRecord{Wait: w, State: session.WaitOpen})
	}
	return out
}
