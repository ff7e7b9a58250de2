package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// View is the state of a session, with everything a page about it shows.
type View struct {
	// Outcome is the status for callers who wait for the session; Pause says what a paused
	// session waits for, and is nil if its answers are only stored.
	Outcome session.Outcome
	Pause   *Pause
	Agent   string
	// Checkpoint is the id of the newest one.
	Checkpoint string
	// Head as it was when the rest had been read.
	Head    journal.Head
	Status  session.Status
	Task    int64
	Run     int64
	Step    int64
	Version int64
	// Text is the agent's last message.
	Text string
	// Output of a task with an output schema or a finish tool.
	Output  json.RawMessage
	Usage   llm.Usage
	Failure *session.Failure
	Parent  *session.Parent
	// Open waits, in order.
	Open []journal.WaitRecord
	// Resume is the refusal that a resume without a message would get now, or says that
	// no worker of this program has the agent, so that a resume would have no effect here;
	// nil if the session would go on.
	Resume *Error
	// Asked is what a caller asked of the task; Stopped is who stopped it; both may be nil. Metadata is that of the newest
	// start with some.
	Asked *session.TaskRules
	// ProgramPolicy is the policy of the program that began the task; nil if it had none.
	ProgramPolicy *session.ToolPolicy
	Stopped       *session.StoppedBy
	Metadata      map[string]string
	// Allowed are the verbs that the session takes as it stands.
	Allowed []session.Verb
	// Halted is the halt for which the session does no step now.
	Halted *session.Halt
	// Warnings are the limits of which the task has used four fifths.
	Warnings []session.LimitUse
}

// Pause sums up what a paused session waits for.
type Pause struct {
	Type session.PauseType
	// Decided counts the approvals of this pause that are decided already, by a person or by
	// their deadline. A decision on several includes them.
	Decided int
}

// View returns the state of a session. Of a session this process has cached it reads
// only what was written since.
func (r *Runtime) View(ctx context.Context, key session.Key) (View, error) {
	for range maxTries {
		out, moved, err := r.viewOnce(ctx, key)
		if err != nil || !moved {
			return asResult(out, err)
		}
	}
	return View{}, AsError(changedWhileRead(key))
}

// changedWhileRead is for a session whose parts are of different moments, however
// often they are read.
func changedWhileRead(key session.Key) *refusal.Error {
	return &refusal.Error{Code: CodeStoreUnavailable, Session: key.ID, Message: "it changed while it was read, each time. Try again", Cause: store.ErrConflict}
}

// viewOnce reports that a suspended session moved while it was read: its waits may then be those
// of a later checkpoint and must not be displayed under this one.
func (r *Runtime) viewOnce(ctx context.Context, key session.Key) (out View, moved bool, err error) {
	s, err := r.sessions.LoadExisting(ctx, key)
	if err != nil {
		return View{}, false, err
	}
	defer r.sessions.PutBack(s)
	records, err := r.waitsOf(ctx, s)
	if err != nil {
		return View{}, false, err
	}
	head, err := r.Head(ctx, key)
	if err != nil {
		return View{}, false, err
	}
	// Waits change in a transaction with HEAD, so its StatusSeq, read last, shows a change.
	if s.Status == session.StatusSuspended && head.StatusSeq > s.Version {
		return View{}, true, nil
	}
	out = View{
		Agent: s.Rules.Agent, Checkpoint: s.Checkpoint().String(), Output: s.Output, Head: head, Status: s.Status, Task: s.Task, Run: s.Run, Step: s.Step, Version: s.Version,
		Text: stored.LastText(s), Usage: s.TaskUsage, Failure: s.Failure, Parent: s.Parent, Warnings: s.Counts.Warnings,
		Asked: s.Rules.Asked, ProgramPolicy: s.Rules.ProgramPolicy, Stopped: s.Newest.Stopped, Metadata: s.Metadata,
	}
	outcome, pause, decided := stored.OutcomeOf(s, records)
	if out.Outcome = outcome; pause != "" {
		out.Pause = &Pause{Type: pause, Decided: decided}
	}
	if out.Outcome == session.OutcomeRunning {
		if out.Halted, err = r.halts.Of(ctx, key.Tenant, s.Rules.Agent); err != nil {
			return View{}, false, err
		}
	}
	takes := answers.TakesOf(s, records, r.sessions.Overdue)
	if s.Status == session.StatusSuspended {
		out.Open = slices.DeleteFunc(records, func(w journal.WaitRecord) bool { return w.State != session.WaitOpen })
	}
	open := slices.DeleteFunc(slices.Clone(out.Open), r.sessions.Overdue) // a resume lets those expire
	missing := r.answers.AgentMissing(s)
	// Where this program has not the agent, a worker of its own is only about to find that.
	atWork := head.Lease.Live(r.cfg.Now(), s.Version, s.Newest.KeepsLease) && (missing == nil || !strings.HasPrefix(head.Lease.Owner, r.cfg.Owner+"/"))
	switch {
	case s.Status.Ended():
		out.Resume = AsError(notResumable(s))
	case len(open) > 0:
		out.Resume = AsError(stillWaiting(s, stored.OpenWaits(open)))
	case s.Status == session.StatusRunning && atWork:
		out.Resume = AsError(alreadyRunning(s)) // also by a worker of a program that has other agents
	case missing != nil:
		out.Resume = AsError(missing)
	}
	resumes := out.Resume == nil || s.Status == session.StatusSuspended && (!takes.Answer || takes.Decisions || takes.Message)
	out.Allowed = s.Status.Verbs(resumes, takes.Answer, takes.Message, s.Failure.Aborted())
	return out, false, nil
}

// waitsOf returns the waits of the suspension s is in.
func (r *Runtime) waitsOf(ctx context.Context, s *session.Session) ([]journal.WaitRecord, error) {
	items, err := r.sessions.WaitsAt(ctx, s.Key, stored.WaitsAtOf(s))
	return stored.WaitRecords(items), err
}

// Messages returns the whole conversation of a session, oldest first.
func (r *Runtime) Messages(ctx context.Context, key session.Key) ([]llm.Message, error) {
	s, err := r.sessions.LoadExisting(ctx, key)
	if err != nil {
		return nil, AsError(err)
	}
	defer r.sessions.PutBack(s)
	return slices.Clone(s.Messages), nil
}

// Runs returns every run of a session, oldest first.
func (r *Runtime) Runs(ctx context.Context, key session.Key) ([]session.Run, error) {
	return asResult(r.sessions.Runs(ctx, key))
}
