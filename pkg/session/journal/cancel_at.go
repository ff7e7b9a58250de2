package journal

import (
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// LookAt has the sweep look at the session at a time, nil for never, and not later than the task is
// to be cancelled.
func (h *Head) LookAt(at *time.Time) {
	h.Due = at
	if h.hasDeadline() && (at == nil || h.CancelAt.Before(*at)) {
		h.Due = new(*h.CancelAt)
	}
}

// Overdue reports whether the present task is to be cancelled, and nothing on HEAD says so yet.
func (h *Head) Overdue(now time.Time) bool { return h.hasDeadline() && !now.Before(*h.CancelAt) }

// hasDeadline reports whether the present task has still to be cancelled at its time.
func (h *Head) hasDeadline() bool {
	if h.CancelAt == nil || h.Status.Ended() || h.Deleted || h.Removing {
		return false
	}
	there := h.SignalFor(h.Task)
	return there == nil || there.Kind.Strength() < SignalCancel.Strength()
}

// DueAtDeadline reports whether the session is due when its task is to be cancelled, or when it
// expires: a time that may be far ahead, and is right all the same. One that runs is looked at on the
// way, and where its due is far ahead a clock was.
func (h *Head) DueAtDeadline() bool {
	return h.Due != nil && (h.Status.Ended() || h.Status != session.StatusRunning && h.CancelAt != nil && h.Due.Equal(*h.CancelAt))
}

// AtDeadline is the signal that cancels the present task because its time is over.
func (h *Head) AtDeadline(id string, now time.Time) Signal {
	return Signal{ID: id, Task: h.Task, Kind: SignalCancel, Reason: ReasonDeadline, Who: Deadline, At: now.UTC(), From: FromRules}
}

// Who cancels a task that has taken longer than it may, from where, and why.
const (
	Deadline       = "deadline"
	FromRules      = "rules"
	ReasonDeadline = "it has taken longer than it was given"
)
