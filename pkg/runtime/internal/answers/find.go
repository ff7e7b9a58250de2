package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// answerKind says which kind of answer a kind of wait takes.
func answerKind(kind session.WaitKind) session.AnswerKind {
	switch kind {
	case session.WaitClientTool:
		return session.AnswerClientTool
	case session.WaitApproval:
		return session.AnswerApproval
	case session.WaitQuestion:
		return session.AnswerReply
	case session.WaitInput:
		return session.AnswerMessage
	case session.WaitChild:
		return session.AnswerChild
	case session.WaitUnknown:
		return session.AnswerVerdict
	}
	return ""
}

// Find finds the wait an answer names: by its id, an approval also by its nonce,
// a client tool's result by its call. A message names nothing: it is for the input
// the session asked for last. A client's error for a call that waits for an approval becomes a no, in
// answer, with the error as its reason.
func (c *Checker) Find(ctx context.Context, a stored.Suspension, answer *session.Answer) (store.Item, error) {
	item, err := c.find(ctx, a, *answer)
	if !givenUp(*answer) {
		return item, err
	}
	for _, waiting := range slices.Backward(a.Items) {
		w := waiting.Wait.Wait
		if w.Kind == session.WaitApproval && (w.ID == answer.Wait || answer.Wait == "" && w.Call == answer.ToolCallID && err != nil) {
			no := false
			answer.Kind, answer.Approved, answer.Reason, answer.Error = session.AnswerApproval, &no, answer.Error, ""
			return waiting, refusal.About(waiting.ID, checkNames(a.Head.Key, w, *answer))
		}
	}
	return item, err
}

// givenUp reports whether an answer says that a client has not done a call, and nothing else. Where the
// call waits for an approval, that is a no; a result would be forged there.
func givenUp(a session.Answer) bool {
	return a.Kind == session.AnswerClientTool && a.Error != "" && a.Result == nil
}

func (c *Checker) find(ctx context.Context, a stored.Suspension, answer session.Answer) (store.Item, error) {
	key := a.Head.Key
	switch {
	case answer.Wait != "":
		item, err := c.cfg.Sessions.Wait(ctx, a, answer.Wait)
		switch {
		case err != nil:
			return item, err
		case item.Wait == nil:
			return item, NoWait(a, answer)
		}
		return item, refusal.About(item.ID, checkNames(key, item.Wait.Wait, answer))
	case answer.Kind == session.AnswerApproval && answer.ApprovalID != "":
		id, _, _ := strings.Cut(answer.ApprovalID, "_")
		item, err := c.cfg.Sessions.Wait(ctx, a, id)
		switch {
		case err != nil:
			return item, err
		case item.Wait == nil:
			return item, noApproval(a)
		case item.Wait.Wait.Nonce != answer.ApprovalID:
			return item, refusal.About(item.ID, noApproval(a)) // the same refusal for both: callers must not learn whether the wait exists
		}
		return item, refusal.About(item.ID, checkNames(key, item.Wait.Wait, answer))
	case answer.Kind == session.AnswerClientTool && answer.ToolCallID != "":
		return c.clientCall(ctx, a, answer)
	case answer.Kind == session.AnswerMessage:
		for _, item := range a.Items {
			if item.Wait.Wait.Kind == session.WaitInput {
				return item, nil
			}
		}
		return store.Item{}, refusal.New(codes.WaitNotFound, key, "it does not wait for a message")
	case answer.ToolCallID != "":
		return store.Item{}, refusal.New(codes.InvalidAnswer, key, "a call names no answer of kind %q, for it may be asked about more than once. %s", answer.Kind, SuggestWaits(a, answer.Kind, answer.ToolCallID))
	}
	return store.Item{}, refusal.New(codes.InvalidAnswer, key, "the answer does not say which wait it is for. %s", SuggestWaits(a, answer.Kind, ""))
}

func noApproval(a stored.Suspension) *refusal.Error {
	return refusal.New(codes.WaitNotFound, a.Head.Key, "no approval has this approvalId. %s", SuggestWaits(a, session.AnswerApproval, ""))
}

// NoWait refuses an answer that names a wait there is not.
func NoWait(a stored.Suspension, answer session.Answer) *refusal.Error {
	if !stored.IsWait(answer.Wait) && strings.HasPrefix(answer.Wait, "c") {
		return refusal.New(codes.WaitNotFound, a.Head.Key, "%q is the id of a call, not of a wait. %s", answer.Wait, SuggestWaits(a, answer.Kind, answer.Wait))
	}
	return refusal.New(codes.WaitNotFound, a.Head.Key, "there is no wait %q. %s", answer.Wait, SuggestWaits(a, answer.Kind, ""))
}

// clientCall finds the wait for a client tool's result by its call: that of the
// suspension; else, for a result that is sent again later, the newest of that call.
func (c *Checker) clientCall(ctx context.Context, a stored.Suspension, answer session.Answer) (store.Item, error) {
	for _, item := range slices.Backward(a.Items) {
		if w := item.Wait.Wait; w.Kind == session.WaitClientTool && w.Call == answer.ToolCallID {
			return item, nil
		}
	}
	id, err := c.waitOfCall(ctx, a.Head, answer.ToolCallID)
	if err != nil {
		return store.Item{}, err
	}
	if id != "" {
		return c.cfg.Sessions.Wait(ctx, a, id)
	}
	return store.Item{}, refusal.New(codes.WaitNotFound, a.Head.Key, "no call %q waits or waited for a client's result. %s", answer.ToolCallID, SuggestWaits(a, answer.Kind, ""))
}

// maxOfCall bounds how many entries are read to find a wait by its call. A call ends after a few
// entries, unless it is not answered and asks again each time.
const maxOfCall = 64

// waitOfCall returns the newest wait for a client's result of a call, "" if there is
// none. It reads the entries from the call's reply to its result, not every wait the
// session ever had.
func (c *Checker) waitOfCall(ctx context.Context, head journal.Head, call string) (id string, err error) {
	seq, _ := stored.WaitNumbers("w" + strings.TrimPrefix(call, "c"))
	if seq < 1 || !strings.HasPrefix(call, "c") {
		return "", nil
	}
	n := 0
	for e, err := range c.cfg.Store.Entries(ctx, head.Key, seq-1) {
		if err != nil {
			return "", fmt.Errorf("session %s: waits of call %s: %w", head.Key, call, err)
		}
		for _, w := range e.Waits {
			if w.Call == call && w.Kind == session.WaitClientTool && e.Seq <= head.WaitsAt { // else no client has received it
				id = w.ID
			}
		}
		if n++; n == maxOfCall || e.Seq >= head.WaitsAt || slices.ContainsFunc(e.Messages, func(m llm.Message) bool { return resultOf(m, call) }) {
			break
		}
	}
	return id, nil
}

// resultOf reports whether a message has the result of a call.
func resultOf(m llm.Message, call string) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.ToolResult != nil && p.ToolResult.CallID == call })
}

// checkNames holds what else an answer names to the wait it names.
func checkNames(key session.Key, w session.Wait, a session.Answer) error {
	switch {
	case answerKind(w.Kind) != a.Kind:
		return refusal.New(codes.WrongKind, key, "%s takes an answer of kind %q, not %q", Label(w), answerKind(w.Kind), a.Kind)
	case a.ToolCallID != "" && a.ToolCallID != w.Call:
		return refusal.New(codes.WaitNotFound, key, "%s is not of a call %q, but of %s", Label(w), a.ToolCallID, w.Call)
	case a.QuestionID != "" && w.Question != nil && a.QuestionID != w.Question.ID:
		return refusal.New(codes.WrongKind, key, "%s is another question, %q", Label(w), w.Question.ID)
	}
	return nil
}

// SuggestWaits says what to name, of what is open now and takes such an answer.
func SuggestWaits(a stored.Suspension, kind session.AnswerKind, call string) string {
	var names []string
	if a.Head.Status == session.StatusSuspended || a.Head.Status == session.StatusInterrupted {
		for _, w := range stored.OpenWaits(stored.WaitRecords(a.Items)) {
			if answerKind(w.Kind) == kind && (call == "" || w.Call == call) {
				names = append(names, Label(w))
			}
		}
	}
	const most = 5
	switch {
	case len(names) == 0 && call != "":
		return fmt.Sprintf("Nothing of call %q waits for an answer of kind %q now", call, kind)
	case len(names) == 0:
		return fmt.Sprintf("Nothing waits for an answer of kind %q now", kind)
	case len(names) > most:
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return "Name the wait: " + strings.Join(names, "; ")
}

// Label names a wait for people: its id, which is what they answer, and what it is.
func Label(w session.Wait) string { return w.ID + " (" + describeWait(w) + ")" }

func describeWait(w session.Wait) string {
	switch w.Kind {
	case session.WaitApproval:
		return "approval of " + w.Tool
	case session.WaitQuestion:
		return "question of " + w.Tool
	case session.WaitClientTool:
		return "result of " + w.Tool
	case session.WaitUnknown:
		return "verdict on " + w.Tool
	case session.WaitInput:
		return "message"
	case session.WaitChild:
		return "end of session " + w.Child
	}
	return string(w.Kind)
}
