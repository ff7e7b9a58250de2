package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
)

// ErrWaiting is what Ask returns while there is no answer. Return it, wrapped or
// not: the tool is run again from its top when the answer is there.
var ErrWaiting = errors.New("waiting for an answer")

// ErrExpired is what Ask returns when nobody answered in time and the question's
// expiry says deny.
var ErrExpired = errors.New("nobody answered in time")

// Question is what a tool asks a person.
type Question struct {
	// ID tells the questions of one call apart. The question must be the same on
	// every run, all of it but its expiry: a reply counts for what was asked and for
	// nothing else. What changes between runs (a count, a time) goes through [Once].
	ID   string
	Text string
	// Choices to choose from; none means that the answer is text. Their ids, as ID, are
	// UTF-8, which the name of a file need not be.
	Choices []Choice
	// Multi allows any number of the choices, none included.
	Multi bool
	// Expiry is the deadline of the question; nil waits for ever.
	Expiry *Expiry
	// Who may answer; empty means those of the tool's [Spec], and if that names
	// nobody every caller who may see the session.
	Who []string
}

// Reply is the answer to a [Question].
type Reply struct {
	// Selected holds the ids of the choices.
	Selected []string
	// Values holds the Value of each choice in Selected, as the question has it on this run. It is in no
	// result of a tool.
	Values []any `json:"-"`
	// Text is the answer to a question without choices.
	Text string
}

// Kind returns how the question is to be answered.
func (q Question) Kind() session.QuestionKind {
	switch {
	case len(q.Choices) == 0:
		return session.QuestionText
	case q.Multi:
		return session.QuestionMultiChoice
	}
	return session.QuestionChoice
}

// shown returns the question as the journal has it and people are shown it.
func (q Question) shown() *session.Question {
	shown := &session.Question{ID: q.ID, Kind: q.Kind(), Text: q.Text, Choices: slices.Clone(q.Choices)}
	for i := range shown.Choices {
		shown.Choices[i].Value = nil
	}
	return shown
}

// Validate says everything that is wrong with the question.
func (q Question) Validate() error {
	var errs []error
	if err := checkKey(q.ID); err != nil {
		errs = append(errs, fmt.Errorf("id %w", err))
	}
	switch {
	case q.Text == "":
		errs = append(errs, errors.New("text is empty"))
	case len(q.Text) > MaxValueBytes:
		errs = append(errs, fmt.Errorf("text has %d bytes: at most %d are allowed", len(q.Text), MaxValueBytes))
	}
	if q.Multi && len(q.Choices) == 0 {
		errs = append(errs, errors.New("multi needs choices"))
	}
	seen := map[string]bool{}
	for _, choice := range q.Choices {
		if choice.ID == "" {
			errs = append(errs, errors.New("a choice has no id"))
		} else if err := checkText(choice.ID); err != nil {
			errs = append(errs, fmt.Errorf("a choice's id %w", err))
		} else if seen[choice.ID] {
			errs = append(errs, fmt.Errorf("two choices have the id %q", choice.ID))
		}
		seen[choice.ID] = true
	}
	if err := q.Expiry.check(session.WaitQuestion); err != nil {
		errs = append(errs, err)
	} else if q.Expiry != nil && q.Expiry.Outcome == session.ExpireDefault {
		if raw, err := marshalValue(q.Expiry.Value); err == nil {
			if _, ok := q.reply(session.Answer{Kind: session.AnswerExpiry, Result: raw}); !ok {
				errs = append(errs, fmt.Errorf("the default %s is no answer to it", value(q.Expiry.Value)))
			}
		}
	}
	return errors.Join(errs...)
}

// reply reads an answer of kind reply, or an expiry with a default, and reports whether it
// is an answer to the question: choices that exist, one unless Multi; text where there are none.
func (q Question) reply(a session.Answer) (Reply, bool) {
	if a.Kind == session.AnswerExpiry {
		a = fromDefault(a, q.Kind())
	}
	if q.Kind() == session.QuestionText {
		if a.Text == nil {
			return Reply{}, false
		}
		return Reply{Text: *a.Text}, true
	}
	if a.Selected == nil || !q.Multi && len(a.Selected) != 1 {
		return Reply{}, false
	}
	reply := Reply{Selected: slices.Clone(a.Selected), Values: make([]any, len(a.Selected))}
	for n, id := range a.Selected {
		i := slices.IndexFunc(q.Choices, func(c session.Choice) bool { return c.ID == id })
		if i < 0 || slices.Contains(a.Selected[:n], id) {
			return Reply{}, false
		}
		reply.Values[n] = q.Choices[i].Value
	}
	return reply, true
}

// fromDefault reads the value of an expiry, be it in Text, Selected or Result: a
// single text answers a choice too.
func fromDefault(a session.Answer, kind session.QuestionKind) session.Answer {
	if a.Text == nil && a.Selected == nil && a.Result != nil {
		var text string
		if json.Unmarshal(a.Result, &text) == nil {
			a.Text = &text
		} else if json.Unmarshal(a.Result, &a.Selected) != nil {
			a.Selected = nil
		}
	}
	if kind != session.QuestionText && a.Selected == nil && a.Text != nil {
		a.Selected = []string{*a.Text}
	}
	return a
}

// maxReworded is how often a question may be asked in other words, or of others,
// before Ask gives up: each time somebody answered, or a deadline passed, in vain.
const maxReworded = 10

// Ask asks a person. Without an answer it returns [ErrWaiting]: the question is
// then on record and suspends the call whatever the tool returns. When the answer
// is there the tool is run again from its top and Ask returns it. An answer counts
// for the question that was shown: when its text, its choices or who may answer it
// have changed meanwhile, it is asked anew. A question that changes again and again
// is an error.
//
// What comes before Ask happens on every run: put it into [Once].
func (c *Call) Ask(ctx context.Context, q Question) (Reply, error) {
	if err := q.Validate(); err != nil {
		return Reply{}, fmt.Errorf("ask %q: %w", q.ID, err)
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, fmt.Errorf("ask %q: %w", q.ID, context.Cause(ctx))
	}
	if len(q.Who) == 0 {
		q.Who = c.cfg.Who
	}
	for _, a := range slices.Backward(c.cfg.Replies) {
		if a.QuestionID != q.ID || a.Kind != session.AnswerReply && a.Kind != session.AnswerExpiry {
			continue
		}
		if !slices.ContainsFunc(c.cfg.Asked, func(w session.Wait) bool { return w.ID == a.Wait && q.shownBy(w) }) {
			break // the newest answer counts, and it is to something else
		}
		if a.Kind == session.AnswerExpiry && a.Outcome == session.ExpireDeny {
			return Reply{}, fmt.Errorf("ask %q: %w", q.ID, ErrExpired)
		}
		if reply, ok := q.reply(a); ok {
			return reply, c.answered(q)
		}
		break
	}
	if err := c.record(q); err != nil {
		return Reply{}, fmt.Errorf("ask %q: %w", q.ID, err)
	}
	return Reply{}, fmt.Errorf("ask %q: %w", q.ID, ErrWaiting)
}

// shownBy reports whether a wait showed this very question: all that a person saw
// of it, to those who may answer it now.
func (q Question) shownBy(w session.Wait) bool {
	if w.Question == nil {
		return false
	}
	was, is := *w.Question, *q.shown()
	return was.ID == is.ID && was.Kind == is.Kind && stored(was.Text) == stored(is.Text) &&
		slices.EqualFunc(was.Choices, is.Choices, func(a, b session.Choice) bool {
			return stored(a.ID) == stored(b.ID) && stored(a.Label) == stored(b.Label) && stored(a.Description) == stored(b.Description)
		}) && slices.Equal(everybody(w.Who), everybody(q.Who))
}

// stored is a text as the journal gives it back: JSON has no bytes that are not UTF-8.
func stored(text string) string { return string([]rune(text)) }

func everybody(who []string) []string { return slices.Compact(slices.Sorted(slices.Values(who))) }

// errTwins refuses the second of two questions: an answer could not say which it is for.
var errTwins = errors.New("two questions of one call have the id: give each its own")

// isTwin reports whether another question of that id was answered in this run. The lock is held.
func (c *Call) isTwin(q Question) bool {
	known, ok := c.replied[q.ID]
	return ok && !reflect.DeepEqual(known, q.shown())
}

// answered remembers a question whose answer the tool got in this run.
func (c *Call) answered(q Question) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isTwin(q) {
		return fmt.Errorf("ask %q: %w", q.ID, errTwins)
	}
	if c.replied == nil {
		c.replied = map[string]*session.Question{}
	}
	c.replied[q.ID] = q.shown()
	return nil
}

func (c *Call) record(q Question) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return ErrCallOver
	}
	for _, asked := range c.questions {
		if asked.ID != q.ID {
			continue
		}
		if !reflect.DeepEqual(asked.shown(), q.shown()) {
			return errTwins
		}
		return nil
	}
	if c.isTwin(q) {
		return errTwins
	}
	reworded := 0
	for _, w := range c.cfg.Asked {
		if w.Question != nil && w.Question.ID == q.ID && !q.shownBy(w) {
			reworded++
		}
	}
	if reworded >= maxReworded {
		return fmt.Errorf("it was another question %d times: its text, its choices and who may answer must be the same on every run", reworded)
	}
	if len(c.questions) == session.MaxWaits {
		return fmt.Errorf("a call asks at most %d questions at once", session.MaxWaits)
	}
	q.Choices, q.Who, q.Expiry = slices.Clone(q.Choices), slices.Clone(q.Who), q.Expiry.clone()
	c.questions = append(c.questions, q)
	return nil
}
