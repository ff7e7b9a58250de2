package report

import (
	"context"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// View is a session as commands show it.
type View struct {
	client.Session
	// ResumeHint is the command that takes the session on; "" where there is none.
	ResumeHint string
	// Message is the one that a refused command was given, if it can stand in a printed command.
	Message string
	// AgentElsewhere says that this program does not have the agent.
	AgentElsewhere bool
	// CutOff says that a tool with an effect may have been cut off: its call is committed,
	// and its result is not.
	CutOff bool
}

// NewView returns the view of a session, with its hint.
func NewView(where *place.Place, s client.Session) View {
	return View{Session: s, ResumeHint: resumeHint(where, s)}
}

// Load reads a session, also after an interrupt. There is no hint where this program
// cannot go on with it.
func Load(ctx context.Context, where *place.Place, e *place.Connection, id string) (View, error) {
	s, err := e.Session(context.WithoutCancel(ctx), id, 0)
	if err != nil {
		return View{}, err
	}
	v := NewView(where, s)
	if place.AgentMissing(s) {
		v.ResumeHint = "" // with nothing open: it would be stored, and have no effect
	}
	if agents := e.Agents(); agents != nil && !slices.Contains(agents, s.Agent) {
		v.AgentElsewhere = true
		if len(Pending(s)) == 0 {
			v.ResumeHint = ""
		}
	}
	return v, nil
}

// GoesOn reports whether a session rests, though nothing it waited for is open: the next
// process goes on with it.
func GoesOn(s client.Session) bool {
	return s.Status == session.StatusSuspended && s.Outcome == session.OutcomeRunning
}

// CutOff reports whether a tool with an effect may have been cut off when a session came to stand
// where it does: in the middle of a step, or stopped. Where that cannot be read it may be so.
func CutOff(ctx context.Context, e *place.Connection, v View) bool {
	after := v.Version - 1
	switch v.Outcome {
	case session.OutcomeRunning:
	case session.OutcomeInterrupted, session.OutcomeCancelled, session.OutcomeFailed:
		after-- // the entry before, too
	case session.OutcomeCompleted, session.OutcomePaused, session.OutcomeError:
		return false
	}
	if after < 0 {
		return false
	}
	page, err := e.Client.Entries(context.WithoutCancel(ctx), v.ID, client.EntriesParams{After: after, Limit: 2})
	if err != nil || len(page.Items) == 0 {
		return err != nil
	}
	newest := page.Items[len(page.Items)-1]
	results := 0
	for _, m := range newest.Messages {
		for _, p := range m.Parts {
			if p.ToolResult == nil {
				continue
			}
			if results++; p.ToolResult.Status == llm.ResultUnknown {
				return true
			}
		}
	}
	// Its calls have no results: they are still open.
	return results == 0 && v.Outcome != session.OutcomeCancelled && v.Outcome != session.OutcomeFailed && page.Items[0].Kind == session.KindReplied
}

// Close gives back what a command has opened; work that is done stays done.
func Close(show *screen.Screen, where *place.Place, e interface{ Close() error }) {
	if err := e.Close(); err != nil {
		show.Complain("%s", errorText(where, err))
	}
}

// Pending returns everything a session waits for: approvals and the calls of client tools first.
func Pending(s client.Session) []client.Wait {
	calls, others := split(s)
	return append(calls, others...)
}

// split separates the waits that are for a tool call, as the manifest has it, from the others.
func split(s client.Session) (calls, others []client.Wait) {
	if s.Pause == nil {
		return nil, nil
	}
	for _, w := range s.Pause.Pending {
		if w.Kind == session.WaitApproval || w.Kind == session.WaitClientTool {
			calls = append(calls, w)
		} else {
			others = append(others, w)
		}
	}
	return calls, others
}

// Approvals returns those of the pending waits that are approvals.
func Approvals(s client.Session) []client.Wait {
	return slices.DeleteFunc(Pending(s), func(w client.Wait) bool { return w.Kind != session.WaitApproval })
}

// Late reports whether the deadline of a wait has passed that ends it: nobody can answer it any more,
// and it ends as soon as anybody goes on with its session.
func Late(w client.Wait, now time.Time) bool {
	return w.Deadline != nil && w.Deadline.Escalate == nil && !now.Before(w.Deadline.At)
}

// anyLate reports whether a deadline of some has passed.
func anyLate(waits []client.Wait, where *place.Place) bool {
	return slices.ContainsFunc(waits, func(w client.Wait) bool { return Late(w, where.Now()) })
}
