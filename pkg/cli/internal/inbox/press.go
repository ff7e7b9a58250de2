package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// approveWord has to be typed to approve what is of high risk.
const approveWord = "approve"

// press does what a key is for, and reports whether to go on.
func (w *walker) press(ctx context.Context, k key) bool {
	switch {
	case k.name == keyInterrupt:
		return false
	case w.typed != nil:
		w.typeKey(ctx, k)
	case w.card != nil:
		w.pressOnCard(ctx, k)
	default:
		return w.pressOnList(ctx, k)
	}
	return true
}

func (w *walker) pressOnList(ctx context.Context, k key) bool {
	w.note = ""
	switch {
	case k.name == keyEnter:
		w.open(ctx)
	case k.name == keyDown || k.name == keyRune && k.r == 'j':
		w.at = min(w.at+1, max(len(w.waits)-1, 0))
	case k.name == keyUp || k.name == keyRune && k.r == 'k':
		w.at = max(w.at-1, 0)
	case k.name != keyRune:
	case k.r == 'q':
		return false
	case k.r == 'r':
		w.reload(ctx)
	case strings.ContainsRune("adegx", k.r):
		w.note = "Enter opens it first."
	}
	return true
}

// pressOnCard does what a key is for in an open card. Within a moment of its appearing none counts, and one
// that comes then makes the moment longer: who types on, or holds keys down, has not looked.
func (w *walker) pressOnCard(ctx context.Context, k key) {
	c := w.card
	if k.at.Before(c.shownAt.Add(settles)) {
		c.shownAt = k.at
		return
	}
	w.note = ""
	switch {
	case k.name == keyPageDown || k.name == keyDown || k.name == keyRune && (k.r == ' ' || k.r == 'j'):
		c.top = min(c.top+w.page(), max(c.lines-w.page(), 0))
	case k.name == keyPageUp || k.name == keyUp || k.name == keyRune && (k.r == 'b' || k.r == 'k'):
		c.top = max(c.top-w.page(), 0)
	case k.name == keyEscape || k.name == keyRune && k.r == 'q':
		w.back(ctx)
	case k.name != keyRune || !strings.ContainsRune("adegx", k.r):
	case w.unchanged(ctx):
		w.act(ctx, k.r)
	}
}

// back closes the card.
func (w *walker) back(ctx context.Context) {
	w.card = nil
	w.reload(ctx)
}

// act begins what a key asks for of a card that is as it was shown.
func (w *walker) act(ctx context.Context, r rune) {
	v := w.card.view
	switch of := v.Wait; {
	case of.State != session.WaitOpen:
		w.note = "It does not wait any more."
	case !v.MayAnswer:
		w.note = "You may not answer it."
	case r == 'g':
		w.ask("Delegate to: ", w.delegate)
	case r == 'x' && of.Deadline == nil:
		w.note = "It has no deadline: it waits until somebody answers."
	case r == 'x':
		w.ask("Longer by (as 2h): ", w.extend)
	case of.Kind != session.WaitApproval:
		w.note = "It takes another answer: " + w.hint(of)
	case r == 'd':
		w.ask("Reject, because: ", w.reject)
	case r == 'e':
		w.change(ctx)
	case r == 'a':
		w.approve(ctx)
	}
}

// ask lets the person type a line: from now on every key is text.
func (w *walker) ask(label string, done func(ctx context.Context, text string)) {
	w.typed = &typing{label: label, done: done}
}

func (w *walker) typeKey(ctx context.Context, k key) {
	t := w.typed
	switch k.name {
	case keyEscape:
		w.typed, w.note = nil, "Nothing was done."
		w.card.shownAt = w.now()
	case keyBackspace:
		t.text = t.text[:max(len(t.text)-1, 0)]
	case keyRune:
		t.text = append(t.text, k.r)
	case keyEnter:
		w.typed = nil
		w.card.shownAt = w.now() // what is typed on belongs to the line
		if text := strings.TrimSpace(string(t.text)); text == "" {
			w.note = "Nothing was typed, and nothing was done."
		} else if w.unchanged(ctx) {
			t.done(ctx, text)
		}
	case keyUp, keyDown, keyPageUp, keyPageDown, keyInterrupt:
	}
}

// highRisk reports whether to approve a wait a word has to be typed: its tool says that the risk is high, or
// says something that this program does not know. Of arguments that were changed its tool has said nothing here.
func highRisk(w client.Wait, edited bool) bool {
	if w.Preview == nil {
		return false
	}
	if edited {
		return true
	}
	switch w.Preview.Risk {
	case "", session.RiskLow, session.RiskMedium:
		return false
	case session.RiskHigh:
	}
	return true
}

// approve approves a card that was seen whole; one of high risk after a word.
func (w *walker) approve(ctx context.Context) {
	c := w.card
	of := c.view.Wait
	switch {
	case prompt.CheckSeen(of.SessionID, of, c.edited) != nil:
		w.note = "Its arguments are too large for the server to send. It can be rejected, or approved with others, but not as it is."
	case c.end < c.lines:
		w.note = "You have not seen all of it: the space bar shows more."
	case highRisk(of, c.edited != nil):
		why := "High risk."
		if c.edited != nil {
			why = "Its risk is not known with these arguments."
		}
		w.ask(why+" To approve it type "+approveWord+": ", func(ctx context.Context, text string) {
			if text != approveWord {
				w.note = "Nothing was done: that is not the word."
				return
			}
			w.submitApproval(ctx)
		})
	default:
		w.submitApproval(ctx)
	}
}

func (w *walker) submitApproval(ctx context.Context) {
	of := w.card.view.Wait
	w.submit(ctx, "Approved", client.SubmitRequest{
		WaitID: of.WaitID, Kind: session.AnswerApproval, ToolCallID: of.CallID, ApprovalID: of.ApprovalID, Approved: new(true), EditedInput: w.card.edited,
	})
}

func (w *walker) reject(ctx context.Context, reason string) {
	of := w.card.view.Wait
	w.submit(ctx, "Rejected", client.SubmitRequest{
		WaitID: of.WaitID, Kind: session.AnswerApproval, ToolCallID: of.CallID, ApprovalID: of.ApprovalID, Approved: new(false), Reason: reason,
	})
}

// submit sends a decision. The list is there again after it, whatever became of it.
func (w *walker) submit(ctx context.Context, did string, answer client.SubmitRequest) {
	of := w.card.view.Wait
	submitted, err := w.e.Submit(ctx, client.SubmitParams{SessionID: of.SessionID, Answer: answer})
	w.back(ctx)
	switch {
	case err != nil:
		w.note = "Not decided: " + err.Error()
		return
	case submitted.Repeated && submitted.VotesMissing > 0:
		w.note = fmt.Sprintf("Your vote was stored before. %d more must approve.", submitted.VotesMissing)
	case submitted.Repeated:
		w.note = "Already settled: the same was decided before."
	case submitted.VotesMissing > 0:
		w.note = fmt.Sprintf("Your vote is stored. %d more must approve: %s of session %s.", submitted.VotesMissing, screen.CleanLine(of.Tool), screen.CleanLine(of.SessionID))
	default:
		w.note = did + ": " + screen.CleanLine(of.Tool) + " of session " + screen.CleanLine(of.SessionID) + "."
	}
	w.decided[of.SessionID] = true
}

// change lets the person edit the arguments; they are checked before anything is sent, and shown.
func (w *walker) change(ctx context.Context) {
	c := w.card
	of := c.view.Wait
	arguments := of.Arguments
	if c.edited != nil {
		arguments = c.edited
	}
	edited, err := w.edit(ctx, arguments)
	if t, ok := w.e.Tool(of.Agent, of.Tool); err == nil && ok {
		err = t.Validate(edited)
	}
	if wrong := (*tool.ArgumentError)(nil); errors.As(err, &wrong) {
		err = errors.New("not valid; give all arguments, also those that stay:" + wrong.List())
	}
	top := c.top
	c.shownAt, c.top = w.now(), 0
	switch {
	case err != nil:
		c.top = top
		w.note = "The arguments stay as they are: " + err.Error()
	case journal.Digest(edited) == of.Digest:
		c.edited, w.note = nil, "The arguments are as they were."
	default:
		c.edited, c.end, w.note = edited, 0, "Changed. Approving it runs it with these arguments."
	}
}

func (w *walker) delegate(ctx context.Context, to string) {
	of := w.card.view.Wait
	_, err := w.e.Delegate(ctx, client.ActParams[client.DelegateRequest]{SessionID: of.SessionID, WaitID: of.WaitID, Request: client.DelegateRequest{To: to}})
	w.acted(ctx, "Delegated to "+to+".", err)
}

func (w *walker) extend(ctx context.Context, by string) {
	of := w.card.view.Wait
	longer, err := time.ParseDuration(by)
	if err == nil && longer <= 0 {
		err = errors.New("an extension is later")
	}
	if err == nil {
		_, err = w.e.Extend(ctx, client.ActParams[client.ExtendRequest]{SessionID: of.SessionID, WaitID: of.WaitID, Request: client.ExtendRequest{Deadline: of.Deadline.At.Add(longer)}})
	}
	w.acted(ctx, "Extended by "+by+".", err)
}

// acted shows the card as it is after an act.
func (w *walker) acted(ctx context.Context, did string, err error) {
	if err != nil {
		w.note = "Nothing was done: " + err.Error()
		return
	}
	of, edited := w.card.view.Wait, w.card.edited
	view, err := w.e.Wait(ctx, of.SessionID, of.WaitID)
	if err != nil {
		w.back(ctx)
		w.note = did
		return
	}
	w.show(view)
	w.card.edited, w.note = edited, did
}
