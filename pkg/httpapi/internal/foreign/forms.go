package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// strands reads a list of interrupt responses, or one.
func (r reader) strands(body []byte) (Asked, error) {
	var list []json.RawMessage // of its own: an item that is the body would be written over, and so the body
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		list = []json.RawMessage{body}
	} else if err := json.Unmarshal(body, &list); err != nil {
		return Asked{}, invalid("%v", err)
	}
	if len(list) == 0 {
		return Asked{}, invalid("the list is empty: it answers nothing")
	}
	var asked Asked
	for i, raw := range list {
		var item struct {
			InterruptResponse json.RawMessage `json:"interruptResponse"`
		}
		var response struct {
			InterruptID string          `json:"interruptId"`
			Response    json.RawMessage `json:"response"`
		}
		if err := decode(raw, &item, "interruptResponse"); err != nil {
			return Asked{}, fmt.Errorf("[%d]: %w", i, err)
		}
		if err := decode(item.InterruptResponse, &response, "interruptId", "response"); err != nil {
			return Asked{}, fmt.Errorf("[%d].interruptResponse: %w", i, err)
		}
		if err := asked.add(r, response.InterruptID, response.Response); err != nil {
			return Asked{}, fmt.Errorf("[%d].interruptResponse: %w", i, err)
		}
	}
	return asked, nil
}

// add adds the answer to the wait that an id names.
func (a *Asked) add(r reader, id string, value json.RawMessage) error {
	w, err := r.wait(id)
	if err != nil {
		return err
	}
	answer, err := r.answer(w, value)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(a.Answers, func(other client.SubmitRequest) bool { return other.WaitID == w.ID }) {
		return invalid("%s is answered twice", w.ID)
	}
	a.Answers = append(a.Answers, answer)
	return nil
}

// stakpakDecision is what is decided on one call.
type stakpakDecision struct {
	Action  string  `json:"action"`
	Content *string `json:"content"`
}

// stakpak reads decisions on all approvals of a suspension, or on some by their ids.
func (r reader) stakpak(body []byte) (Asked, error) {
	var asked struct {
		RunID        json.RawMessage            `json:"run_id"`
		CheckpointID string                     `json:"checkpoint_id"`
		Decisions    map[string]json.RawMessage `json:"decisions"`
		Approve      []string                   `json:"approve"`
		Reject       []string                   `json:"reject"`
		ApproveAll   bool                       `json:"approve_all"`
		RejectAll    bool                       `json:"reject_all"`
		Input        *string                    `json:"input"`
	}
	// run_id is taken and not looked at: the ids of waits are of one run and are never used again.
	err := decode(body, &asked, "run_id", "checkpoint_id", "decisions", "approve", "reject", "approve_all", "reject_all", "input")
	if err != nil {
		return Asked{}, err
	}
	all := len(asked.Approve)+len(asked.Reject) > 0 || asked.ApproveAll || asked.RejectAll
	switch {
	case asked.Input != nil && (all || asked.Decisions != nil), all && asked.Decisions != nil:
		return Asked{}, invalid("approve and reject, decisions, and input cannot go together: the session takes one of them at a time")
	case asked.Input != nil:
		return Asked{Answers: []client.SubmitRequest{{Kind: session.AnswerMessage, Message: client.Text(*asked.Input)}}}, nil
	case all:
		decisions := &client.Decisions{ApproveAll: asked.ApproveAll, RejectAll: asked.RejectAll}
		for _, ids := range []struct {
			from []string
			to   *[]string
		}{{asked.Approve, &decisions.Approve}, {asked.Reject, &decisions.Reject}} {
			for _, id := range ids.from {
				w, err := r.wait(id)
				if err != nil {
					return Asked{}, err
				}
				*ids.to = append(*ids.to, w.ID)
			}
		}
		return Asked{Decisions: &client.ResumeRequest{CheckpointID: asked.CheckpointID, Decisions: decisions}}, nil
	case len(asked.Decisions) == 0:
		return Asked{}, invalid("nothing is decided: say approve or reject, or decisions")
	}
	return r.stakpakDecisions(asked.Decisions)
}

func (r reader) stakpakDecisions(decisions map[string]json.RawMessage) (Asked, error) {
	var asked Asked
	for _, id := range slices.Sorted(maps.Keys(decisions)) {
		var d stakpakDecision
		if err := decode(decisions[id], &d, "action", "content"); err != nil {
			return Asked{}, fmt.Errorf("decisions.%.80q: %w", id, err)
		}
		w, err := r.wait(id)
		if err != nil {
			return Asked{}, err
		}
		a, err := d.on(w)
		if err != nil {
			return Asked{}, fmt.Errorf("decisions.%s: %w", w.ID, err)
		}
		if slices.ContainsFunc(asked.Answers, func(other client.SubmitRequest) bool { return other.WaitID == w.ID }) {
			return Asked{}, invalid("%s is decided twice", w.ID)
		}
		asked.Answers = append(asked.Answers, a)
	}
	return asked, nil
}

// on is the decision as an answer. A result in place of an approved call would be taken for what the
// call did.
func (d stakpakDecision) on(w session.Wait) (client.SubmitRequest, error) {
	a := client.SubmitRequest{WaitID: w.ID}
	approval := w.Kind == session.WaitApproval
	switch {
	case d.Action == "accept" && approval && d.Content == nil:
		yes := true
		a.Kind, a.Approved = session.AnswerApproval, &yes
	case d.Action == "reject" && approval:
		no := false
		a.Kind, a.Approved = session.AnswerApproval, &no
		if d.Content != nil {
			a.Reason = *d.Content
		}
	case d.Action == "custom_result" && w.Kind == session.WaitClientTool && d.Content != nil:
		raw, err := json.Marshal(*d.Content)
		if err != nil {
			return a, invalid("content: %v", err)
		}
		a.Kind, a.Result = session.AnswerClientTool, raw
	default:
		return a, invalid("action %.80q does not belong to a wait of kind %s: accept, or reject with an optional content, decides an approval; custom_result with a content is the result of a client's tool", d.Action, w.Kind)
	}
	return a, nil
}

// kortyx reads one answer. Its token is the approvalId of an approval, and of all else the
// waitId again.
func (r reader) kortyx(body []byte) (Asked, error) {
	var wrapped struct {
		Resume json.RawMessage `json:"resume"`
	}
	if decode(body, &wrapped, "resume") == nil && wrapped.Resume != nil {
		body = wrapped.Resume
	}
	var asked struct {
		Token     string          `json:"token"`
		RequestID string          `json:"requestId"`
		Selected  json.RawMessage `json:"selected"`
		Choice    json.RawMessage `json:"choice"`
		Choices   json.RawMessage `json:"choices"`
		Cancel    bool            `json:"cancel"`
	}
	if err := decode(body, &asked, "token", "requestId", "selected", "choice", "choices", "cancel"); err != nil {
		return Asked{}, err
	}
	w, err := r.wait(asked.RequestID)
	if err != nil {
		return Asked{}, err
	}
	if token := w.Nonce; asked.Token == "" || token != "" && asked.Token != token || token == "" && asked.Token != w.ID {
		return Asked{}, fmt.Errorf("%w: the token is not that of the request: it is the approvalId of an approval, else the waitId", ErrNoWait)
	}
	var value json.RawMessage
	given := 0
	for _, v := range []json.RawMessage{asked.Selected, asked.Choice, asked.Choices} {
		if v != nil {
			value, given = v, given+1
		}
	}
	switch {
	case given > 1 || given > 0 && asked.Cancel:
		return Asked{}, invalid("selected, choice, choices and cancel cannot go together: bring one of them")
	case asked.Cancel:
		return cancelled(w)
	case given == 0:
		return Asked{}, invalid("the answer is missing: bring selected, choice or choices, or cancel")
	}
	if w.Kind == session.WaitApproval || w.Kind == session.WaitQuestion && w.Question != nil && w.Question.Kind == session.QuestionText {
		value, err = single(value)
		if err != nil {
			return Asked{}, err
		}
	}
	var out Asked
	err = out.add(r, w.ID, value)
	return out, err
}

// single is the one item of a list of choices, as text; what is no list stays.
func single(value json.RawMessage) (json.RawMessage, error) {
	ids, err := choices(value)
	if err != nil || len(ids) != 1 {
		return nil, invalid("%.80s is not one answer", value)
	}
	raw, err := json.Marshal(ids[0])
	if err != nil {
		return nil, invalid("%v", err)
	}
	return raw, nil
}

// cancelled is what a person says who takes back what the agent asks for: no.
func cancelled(w session.Wait) (Asked, error) {
	a := client.SubmitRequest{WaitID: w.ID}
	switch w.Kind {
	case session.WaitApproval:
		no := false
		a.Kind, a.Approved = session.AnswerApproval, &no
	case session.WaitClientTool:
		a.Kind, a.Error = session.AnswerClientTool, "cancelled by the user"
	case session.WaitQuestion, session.WaitUnknown:
		return Asked{}, invalid("%s cannot be cancelled in this form: dismiss it, with a reason", w.ID)
	case session.WaitInput, session.WaitChild:
		return Asked{}, invalid("%s cannot be cancelled by itself: cancel the task", w.ID)
	}
	return Asked{Answers: []client.SubmitRequest{a}}, nil
}
