// Package foreign reads answers in the forms in which clients of other systems send them.
//
// A form says how a client writes what a person decided. What it means is ours: an answer that does not
// say plainly yes is no approval, and one that does not name a wait of the session is for none.
package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Form is how a client of another system writes answers.
type Form string

// The forms.
const (
	// Strands: [{"interruptResponse": {"interruptId": WAIT, "response": …}}].
	Strands Form = "Strands"
	// Stakpak: {"approve": [WAIT], "reject": [WAIT], "approve_all", "reject_all", "input"}, or
	// {"run_id", "decisions": {WAIT: {"action", "content"}}}.
	Stakpak Form = "Stakpak"
	// Kortyx: {"token", "requestId": WAIT, "selected" or "choice" or "choices", "cancel"}, also in "resume".
	Kortyx Form = "Kortyx"
)

var (
	// ErrInvalid says that a body is not what its form allows, or does not fit its wait.
	ErrInvalid = errors.New("invalid answer")
	// ErrNoWait says that an answer names a wait that the session never had.
	ErrNoWait = errors.New("no such wait")
)

// fieldsOf are the fields by which an object tells its form.
var fieldsOf = map[string]Form{
	"interruptResponse": Strands,
	"approve":           Stakpak, "reject": Stakpak, "approve_all": Stakpak, "reject_all": Stakpak, "decisions": Stakpak, "run_id": Stakpak, "input": Stakpak,
	"token": Kortyx, "requestId": Kortyx, "resume": Kortyx,
}

// FormOf returns the form of a body, which is JSON; "" is none of them.
func FormOf(body []byte) Form {
	if body = bytes.TrimLeft(body, " \t\r\n"); bytes.HasPrefix(body, []byte("[")) {
		return Strands
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	forms := map[Form]bool{}
	for name := range fields {
		if form, ok := fieldsOf[name]; ok {
			forms[form] = true
		}
	}
	for form := range forms {
		if len(forms) == 1 {
			return form
		}
	}
	return ""
}

// Asked is what a body asks: answers, each for itself, or decisions on all approvals of a suspension.
type Asked struct {
	Answers   []client.SubmitRequest
	Decisions *client.ResumeRequest
}

// Read reads a body that is well-formed JSON without a field twice. waits are all that the session had.
// Errors wrap [ErrInvalid] or [ErrNoWait].
func Read(form Form, body []byte, waits []journal.WaitRecord) (Asked, error) {
	r := reader{waits: waits}
	switch form {
	case Strands:
		return r.strands(body)
	case Stakpak:
		return r.stakpak(body)
	case Kortyx:
		return r.kortyx(body)
	}
	return Asked{}, invalid("the form is not known")
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// decode reads an object strictly: a name that is not exactly one of the struct's is refused.
func decode(raw []byte, into any, names ...string) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return invalid("%.80q is no object", raw)
	}
	for name := range fields {
		if !slices.Contains(names, name) {
			return invalid("there is no field %.80q here; the fields are %s", name, strings.Join(names, ", "))
		}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalid("%v", err)
	}
	return nil
}

// reader knows what the session waited for.
type reader struct{ waits []journal.WaitRecord }

// wait finds a wait by its id or, an approval, by its approvalId.
func (r reader) wait(id string) (session.Wait, error) {
	for _, w := range r.waits {
		if id != "" && (w.Wait.ID == id || w.Wait.Nonce == id) {
			return w.Wait, nil
		}
	}
	return session.Wait{}, fmt.Errorf("%w: %.80q: name a wait by its waitId, or an approval by its approvalId", ErrNoWait, id)
}

// answer returns an answer to a wait that says value, in the words in which people and their clients say
// it.
func (r reader) answer(w session.Wait, value json.RawMessage) (client.SubmitRequest, error) {
	a := client.SubmitRequest{WaitID: w.ID}
	if value == nil {
		return a, invalid("%s: the answer is missing", w.ID)
	}
	var text string
	isText := json.Unmarshal(value, &text) == nil && !bytes.Equal(bytes.TrimSpace(value), []byte("null"))
	switch w.Kind {
	case session.WaitApproval:
		return r.approval(w, value)
	case session.WaitClientTool:
		a.Kind, a.Result = session.AnswerClientTool, value
		return a, nil
	case session.WaitQuestion:
		a.Kind = session.AnswerReply
		if w.Question == nil || w.Question.Kind != session.QuestionText {
			selected, err := choices(value)
			if a.Selected = selected; err != nil {
				return a, fmt.Errorf("%s: %w", w.ID, err)
			}
			return a, nil
		}
		a.Text = &text
	case session.WaitInput:
		a.Kind, a.Message = session.AnswerMessage, client.Text(text)
	case session.WaitUnknown:
		a.Kind, a.Verdict = session.AnswerVerdict, session.Verdict(text)
	case session.WaitChild:
		return a, invalid("%s: only the child itself answers this", w.ID)
	}
	if !isText {
		return a, invalid("%s: the answer must be text", w.ID)
	}
	return a, nil
}

// said are the words for yes and for no; every other is neither.
var said = map[string]bool{"true": true, "y": true, "yes": true, "approve": true, "false": false, "n": false, "no": false, "deny": false, "reject": false}

// approval reads true, false, a word for one of them, or an object with approved.
func (r reader) approval(w session.Wait, value json.RawMessage) (client.SubmitRequest, error) {
	a := client.SubmitRequest{WaitID: w.ID, Kind: session.AnswerApproval}
	var decided any
	if err := json.Unmarshal(value, &decided); err != nil {
		return a, invalid("%s: %v", w.ID, err)
	}
	switch v := decided.(type) {
	case bool:
		a.Approved = &v
		return a, nil
	case string:
		if yes, ok := said[strings.ToLower(strings.TrimSpace(v))]; ok {
			a.Approved = &yes
			return a, nil
		}
	case map[string]any:
		var o struct {
			Approved    *bool           `json:"approved"`
			Reason      string          `json:"reason"`
			EditedInput json.RawMessage `json:"editedInput"`
		}
		if err := decode(value, &o, "approved", "reason", "editedInput"); err != nil {
			return a, fmt.Errorf("%s: %w", w.ID, err)
		}
		if o.Approved != nil {
			a.Approved, a.Reason, a.EditedInput = o.Approved, o.Reason, o.EditedInput
			return a, nil
		}
	}
	return a, invalid("%s: %.80s is neither yes nor no: an approval takes true or false, or {\"approved\": true, \"reason\": …}", w.ID, value)
}

// choices reads an id, {"id": …}, or a list of them.
func choices(value json.RawMessage) ([]string, error) {
	var id string
	null := bytes.Equal(bytes.TrimSpace(value), []byte("null"))
	if !null && json.Unmarshal(value, &id) == nil {
		return []string{id}, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil && !null {
		all := []string{}
		for _, one := range list {
			if bytes.HasPrefix(bytes.TrimSpace(one), []byte("[")) {
				return nil, invalid("a list of choices has ids, not lists")
			}
			selected, err := choices(one)
			if err != nil {
				return nil, err
			}
			all = append(all, selected...)
		}
		return all, nil
	}
	var o struct {
		ID *string `json:"id"`
	}
	if err := decode(value, &o, "id"); err != nil {
		return nil, err
	}
	if o.ID == nil {
		return nil, invalid("the id of the choice is missing")
	}
	return []string{*o.ID}, nil
}
