package runtime

import (
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/logged"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Progress is reported while a session is driven, for display.
type Progress struct {
	Kind session.Kind
	Seq  int64
	Step int64
	// Text of the agent, Calls it asked for, by name.
	Text  string
	Calls []string
	// Failed are the calls, by name, of whose results the entry says that they
	// failed, timed out or are unknown.
	Failed []string
	// Status after the entry; where the task has failed, Failure is the code of why.
	Status  session.Status
	Failure string
	// Reason says why a step is put off, Until when it is tried again.
	Reason string
	Until  time.Time
}

// NewProgress returns the progress that is reported for an entry.
func NewProgress(e *journal.Entry) Progress {
	p := Progress{Kind: e.Kind, Seq: e.Seq, Step: e.Step, Status: e.Status}
	if e.Status == session.StatusFailed && e.Failure != nil {
		p.Failure = e.Failure.Type
	}
	if e.Kind == session.KindDelayed && e.Failure != nil && e.Until != nil {
		p.Reason, p.Until = e.Failure.Message, *e.Until
	}
	for _, m := range e.Messages {
		for _, part := range m.Parts {
			if r := part.ToolResult; r != nil && (r.Status == llm.ResultError || r.Status == llm.ResultTimedOut || r.Status == llm.ResultUnknown) {
				p.Failed = append(p.Failed, r.Name)
			}
		}
		if m.Role != llm.RoleAssistant {
			continue
		}
		p.Text = m.Text()
		for _, c := range m.ToolCalls() {
			p.Calls = append(p.Calls, c.Name)
		}
	}
	return p
}

// onEntry reports the progress of each entry, nil if nobody asks for it.
func (cfg *Config) onEntry() func(session.Key, *journal.Entry) {
	if cfg.OnEntry == nil {
		return nil
	}
	return func(key session.Key, e *journal.Entry) { cfg.OnEntry(key, NewProgress(e)) }
}

// waitOver logs what became of a wait.
func (cfg *Config) waitOver(key session.Key, w journal.WaitOver) {
	logged.WaitOver(cfg.Log, cfg.Registry, key, w)
	if cfg.OnWait != nil {
		cfg.OnWait(key, w)
	}
}
