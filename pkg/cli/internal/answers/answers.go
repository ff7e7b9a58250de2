// Package answers checks answers against what a session waits for.
package answers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Sessions is what a verb needs of a connection to look at what a session waits for, and
// to answer it.
type Sessions interface {
	Session(ctx context.Context, id string, wait time.Duration) (client.Session, error)
	Waits(ctx context.Context, id string) ([]client.Wait, error)
	Submit(ctx context.Context, p client.SubmitParams) (client.Submitted, error)
	Resume(ctx context.Context, p client.ResumeParams) (client.Resumed, error)
}

// Waits is what a session waits for, for commands that name some of it.
type Waits struct {
	ID      string
	Session client.Session

	e Sessions
	// all are the waits of before as well; read when an id is not that of an open one.
	all     []client.Wait
	readAll bool
}

// WaitsOf reads what a session waits for.
func WaitsOf(ctx context.Context, e Sessions, id string) (*Waits, error) {
	s, err := e.Session(ctx, id, 0)
	return &Waits{ID: id, e: e, Session: s}, err
}

// Approvals are the open ones.
func (a *Waits) Approvals() []client.Wait { return report.Approvals(a.Session) }

// wait returns the wait an id names, open or not. The id of a call is refused: a call
// can open several waits one after another, and an answer is for the one that was shown.
func (a *Waits) wait(ctx context.Context, id string) (*client.Wait, error) {
	if w := a.open(func(w client.Wait) bool { return w.WaitID == id }); w != nil {
		return w, nil
	}
	if w := a.open(func(w client.Wait) bool { return w.CallID == id }); w != nil {
		return nil, a.isCall(id, *w)
	}
	if err := a.before(ctx); err != nil {
		return nil, err
	}
	var ofCall *client.Wait
	for i := range a.all {
		switch w := &a.all[i]; id {
		case w.WaitID:
			return w, nil
		case w.CallID:
			ofCall = w // the last one is the newest
		}
	}
	if ofCall != nil {
		return nil, a.isCall(id, *ofCall)
	}
	return nil, a.refuse(client.CodeWaitNotFound, "there is no wait %q. %s", screen.CleanLine(id), a.instead())
}

// instead says what waits now.
func (a *Waits) instead() string {
	waits := report.Pending(a.Session)
	if len(waits) == 0 {
		return "Nothing waits there now"
	}
	const most = 5
	var names []string
	for i, w := range waits {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(waits)-most))
			break
		}
		names = append(names, w.WaitID+" ("+report.Headline(w)+")")
	}
	return "What waits now: " + strings.Join(names, "; ")
}

func (a *Waits) refuse(code client.Code, format string, args ...any) error {
	return exit.Refusef(code, a.ID, format, args...)
}

func (a *Waits) open(is func(client.Wait) bool) *client.Wait {
	if a.Session.Pause == nil {
		return nil
	}
	for i := range a.Session.Pause.Pending {
		if w := &a.Session.Pause.Pending[i]; is(*w) {
			return w
		}
	}
	return nil
}

func (a *Waits) before(ctx context.Context) (err error) {
	if !a.readAll {
		a.all, err = a.e.Waits(ctx, a.ID)
		a.readAll = err == nil
	}
	return err
}

func (a *Waits) isCall(id string, w client.Wait) error {
	return a.refuse(client.CodeInvalidInput,
		"%s is a call, and an answer names its wait: %s, %s", screen.CleanLine(id), w.WaitID, the(w))
}

// wrongKind refuses an answer that a wait, or the call named in its place, does not take:
// with the flags that are right, or with what became of the wait if it is not open any more.
func (a *Waits) wrongKind(named string, w client.Wait, given string) error {
	if err := a.settled(named, w); err != nil {
		return err
	}
	return a.refuse(client.CodeWrongKind, "%s is %s: %s, not with %s", screen.CleanLine(named), the(w), answeredWith(answerFlags(w)), given)
}

// settled says what became of a wait that nobody can answer any more; nil of an open one.
func (a *Waits) settled(named string, w client.Wait) error {
	named = screen.CleanLine(named)
	switch {
	case w.State == session.WaitOpen:
		return nil
	case w.State == session.WaitClosed:
		return a.refuse(client.CodeSessionEnded, "%s, %s, was closed: the session continued without an answer. %s", named, the(w), a.instead())
	case w.State == session.WaitExpired || w.Answer == nil || w.Answer.Kind == session.AnswerExpiry:
		return a.refuse(client.CodeExpired, "%s, %s, has expired. %s", named, the(w), a.instead())
	}
	return a.refuse(client.CodeAlreadyAnswered, "%s, %s, was answered before (%s). %s", named, the(w), report.Said(*w.Answer), a.instead())
}

// Decidable refuses decisions by ids of calls, and the approval of what this
// program could not have shown.
func (a *Waits) Decidable(ctx context.Context, p client.Decisions) error {
	approved := slices.Clone(p.Approve)
	if p.ApproveAll {
		for _, w := range a.Approvals() {
			if !slices.Contains(p.Reject, w.WaitID) {
				approved = append(approved, w.WaitID)
			}
		}
	}
	for _, id := range slices.Concat(p.Reject, approved, slices.Sorted(maps.Keys(p.EditedInput))) {
		w, err := a.wait(ctx, id)
		switch {
		case err != nil:
			return err
		case w.Kind != session.WaitApproval:
			return a.wrongKind(id, *w, "a decision on approvals")
		case slices.Contains(approved, id):
			if err := prompt.CheckSeen(a.ID, *w, p.EditedInput[id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bind makes the answer one to the wait, and refuses one of another kind with the
// flags that are right. An approval brings the nonce of what was shown.
func (a *Waits) Bind(ctx context.Context, id string, answer *client.SubmitRequest) error {
	answer.WaitID = id
	w, err := a.wait(ctx, id)
	if err != nil {
		return err
	}
	left := report.LeftAsItStands(*w, *answer)
	if w.Kind == session.WaitInput && answer.Kind == session.AnswerReply && answer.Text != nil {
		// Words for an agent that asked in text are a message.
		answer.Kind, answer.Message, answer.Text = session.AnswerMessage, client.Text(*answer.Text), nil
	}
	if !slices.Contains(answerFlags(*w), given(*answer)) {
		return a.wrongKind(id, *w, given(*answer))
	}
	if left != "" {
		if err := a.settled(id, *w); err != nil {
			return err
		}
		return a.refuse(client.CodeInvalidAnswer, "%s", left)
	}
	if w.Kind != session.WaitApproval {
		return nil
	}
	answer.ApprovalID = w.ApprovalID
	if *answer.Approved {
		return prompt.CheckSeen(a.ID, *w, answer.EditedInput)
	}
	return nil
}

// BindCall makes the answer one to a client's tool, named by its call.
func (a *Waits) BindCall(ctx context.Context, call string, answer *client.SubmitRequest) error {
	answer.ToolCallID = call
	ofCall := func(w client.Wait) bool { return w.Kind == session.WaitClientTool && w.CallID == call }
	if answer.Kind != session.AnswerClientTool {
		_, err := a.wait(ctx, call)
		if w := a.open(ofCall); w != nil {
			return a.wrongKind(call, *w, given(*answer)) // the call is right, the flag is not
		}
		if i := slices.IndexFunc(a.all, ofCall); i >= 0 {
			return a.wrongKind(call, a.all[i], given(*answer))
		}
		if exit.CodeOf(err) == client.CodeWaitNotFound {
			err = a.refuse(client.CodeInvalidInput,
				"--call goes with --result or --error, of a tool that runs on your side; %s names its wait, behind the session", given(*answer))
		}
		return err
	}
	if a.open(ofCall) != nil {
		return nil
	}
	if err := a.before(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(a.all, ofCall) {
		return a.refuse(client.CodeWaitNotFound, "no call %q waits for a result of yours, or did. %s", screen.CleanLine(call), a.instead())
	}
	return nil
}

// the names a wait inside a sentence.
func the(w client.Wait) string {
	switch w.Kind {
	case session.WaitInput:
		return "the wait for your answer"
	case "":
		return report.Headline(w)
	case session.WaitApproval, session.WaitClientTool, session.WaitQuestion, session.WaitChild, session.WaitUnknown:
	}
	return "the " + report.Headline(w)
}

// answerFlags are the flags of submit that answer a wait.
func answerFlags(w client.Wait) []string {
	switch w.Kind {
	case session.WaitApproval:
		return []string{"--approve", "--reject", "--edit"}
	case session.WaitClientTool:
		return []string{"--result", "--error"}
	case session.WaitQuestion:
		if w.Question != nil && w.Question.Kind != session.QuestionText {
			return []string{"--select"}
		}
		return []string{"--reply"}
	case session.WaitInput:
		return []string{"--reply"}
	case session.WaitUnknown:
		return []string{"--verdict"}
	case session.WaitChild:
	}
	return nil
}

func answeredWith(flags []string) string {
	if len(flags) == 0 {
		return "nobody answers it by hand"
	}
	return "answer it with " + strings.Join(flags, " or ")
}

// given is the flag an answer was given with.
func given(a client.SubmitRequest) string {
	switch a.Kind {
	case session.AnswerApproval:
		switch {
		case a.EditedInput != nil:
			return "--edit"
		case a.Approved != nil && *a.Approved:
			return "--approve"
		}
		return "--reject"
	case session.AnswerReply:
		if a.Selected != nil {
			return "--select"
		}
		return "--reply"
	case session.AnswerMessage:
		return "--reply"
	case session.AnswerVerdict:
		return "--verdict"
	case session.AnswerClientTool:
		if a.Error != "" {
			return "--error"
		}
	case session.AnswerChild, session.AnswerExpiry, session.AnswerDismissal:
	}
	return "--result"
}
