package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/foreign"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/jsonbody"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/refused"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// answering is an operation that answers waits: what its body is refused for is recorded with those it names.
func answering(op func(*handler, *request) (*response, error)) func(*handler, *request) (*response, error) {
	return func(h *handler, r *request) (*response, error) {
		out, err := op(h, r)
		if own := (*refused.Error)(nil); errors.As(err, &own) { // the runtime has recorded what it refuses
			h.recordRefused(r, own, append(foreign.Named(r.raw), r.PathValue("wait"))...)
		}
		return out, err
	}
}

// recordRefused records with waits what this room refuses by itself.
func (h *handler) recordRefused(r *request, own *refused.Error, waits ...string) {
	for _, wait := range waits {
		h.cfg.Runtime.Refused(r.Context(), r.key(), r.by(), wait, runtime.Code(own.Code))
	}
}

// submitAll is POST /sessions/{id}/answers: each answer is given for itself, in order, and what is
// refused changes nothing of the others. The body is ours, or that of another system's client.
func (h *handler) submitAll(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	idempotencyKey, err := r.idempotencyKey()
	if err != nil {
		return nil, err
	}
	raw, err := jsonbody.Read(r.w, r.Request, h.cfg.MaxBody)
	r.raw = raw
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return nil, refuse(codes.BodyMissing, "the body is missing: send a JSON object with answers")
	}
	asked, err := h.readAnswers(r, raw)
	if err != nil {
		return nil, err
	}
	if asked.Decisions != nil {
		return h.resumeWith(r, *asked.Decisions, idempotencyKey)
	}
	task, err := h.drives(r)
	if err != nil {
		return nil, err
	}
	out := client.SubmittedAll{Results: make([]client.AnswerResult, len(asked.Answers))}
	var first error
	refusals, replayed := 0, true
	for i, answer := range asked.Answers {
		key := idempotencyKey
		if key != "" {
			key = fmt.Sprintf("%s #%d of %d", key, i+1, len(asked.Answers)) // no caller's key has a space
		}
		submitted, err := h.submitOne(r, answer, key)
		out.Results[i] = client.AnswerResult{WaitID: answer.WaitID, Status: http.StatusOK}
		if err != nil {
			if own := (*refused.Error)(nil); errors.As(err, &own) {
				h.recordRefused(r, own, foreign.WaitIn(cmp.Or(answer.WaitID, answer.ApprovalID)))
			}
			refusals++
			if first == nil {
				first = err
			}
			problem := h.problemOf(r, err)
			out.Results[i].Status, out.Results[i].Code, out.Results[i].Detail, out.Results[i].Answer = problem.Status, problem.Code, problem.Detail, problem.Answer
			continue
		}
		out.Results[i].WaitID, replayed = submitted.Answer.Wait, replayed && submitted.Replayed
		out.Results[i].Answer, out.Results[i].Repeated = &submitted.Answer, submitted.Repeated || submitted.Replayed
		out.Continuation, out.Open = submitted.Continuation, newWaits(r.key().ID, submitted.Open)
	}
	if first != nil {
		refusal := h.refused(r, first)
		problem, _ := refusal.body.(client.Problem)
		problem.Results = out.Results
		if len(asked.Answers) > 1 {
			problem.Detail = clipped(fmt.Sprintf("%d of %d answers were refused, and the others count (results). The first of them: %s", refusals, len(asked.Answers), problem.Detail))
		}
		refusal.body = problem
		return refusal, nil
	}
	answered := &response{status: http.StatusOK, header: map[string]string{}}
	if answered.replayed(replayed); replayed {
		task = 0 // it may have driven on an earlier one
	}
	out.Session, _ = h.settle(r, r.key(), 0, task, answered)
	answered.body = out
	return answered, nil
}

// readAnswers reads the answers of a body in one of the forms there are.
func (h *handler) readAnswers(r *request, raw []byte) (foreign.Asked, error) {
	var any any
	if _, err := jsonbody.Parse(raw, &any); err != nil {
		return foreign.Asked{}, err
	}
	form := foreign.FormOf(raw)
	if form == "" {
		var body client.AnswersRequest
		if err := jsonbody.Decode(raw, &body); err != nil {
			return foreign.Asked{}, err
		}
		return foreign.Asked{Answers: body.Answers}, checkCount(len(body.Answers))
	}
	if err := jsonbody.CheckFields(raw, nil); err != nil {
		return foreign.Asked{}, err
	}
	waits, err := h.waitsOf(r)
	if err != nil {
		return foreign.Asked{}, err
	}
	asked, err := foreign.Read(form, raw, waits)
	switch {
	case errors.Is(err, foreign.ErrNoWait):
		return asked, refuse(string(runtime.CodeWaitNotFound), "in the form of %s: %s", form, why(err, foreign.ErrNoWait))
	case err != nil:
		return asked, refuse(codes.InvalidField, "in the form of %s: %s", form, why(err, foreign.ErrInvalid))
	case asked.Decisions != nil:
		return asked, nil
	}
	return asked, checkCount(len(asked.Answers))
}

func checkCount(n int) error {
	if n < 1 || n > session.MaxWaits {
		return refuse(codes.InvalidField, "there are %d answers: bring 1 to %d", n, session.MaxWaits)
	}
	return nil
}

// problemOf is a refusal as the answer that has only it.
func (h *handler) problemOf(r *request, err error) client.Problem {
	problem, _ := h.refused(r, err).body.(client.Problem)
	return problem
}

// submitOne gives one answer.
func (h *handler) submitOne(r *request, body client.SubmitRequest, idempotencyKey string) (runtime.Submitted, error) {
	if err := checkKind(body.Kind); err != nil {
		return runtime.Submitted{}, err
	}
	if err := foreign.CheckSizes(body, h.cfg.MaxError, h.cfg.MaxResult); err != nil {
		return runtime.Submitted{}, err
	}
	if err := checkStanding(body.Standing); err != nil {
		return runtime.Submitted{}, err
	}
	return h.cfg.Runtime.Submit(r.Context(), runtime.SubmitParams{
		Key: r.key(), Caller: r.by(), HoldResume: body.AutoResume != nil && !*body.AutoResume, IdempotencyKey: idempotencyKey,
		Answer: session.Answer{
			Wait: body.WaitID, Kind: body.Kind, ToolCallID: body.ToolCallID, ApprovalID: body.ApprovalID, QuestionID: body.QuestionID,
			Approved: body.Approved, Reason: body.Reason, EditedInput: body.EditedInput, Standing: body.Standing, Result: body.Result, Error: body.Error,
			Selected: body.Selected, Text: body.Text, Message: body.Message, Verdict: body.Verdict,
		},
	})
}
