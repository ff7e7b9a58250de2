package httpapi

import (
	"net/http"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/jsonbody"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// asked reads what a request to change something brings: no parameters, perhaps a
// key, and a body, which may be missing if it is optional.
func (h *handler) asked(r *request, body any, optional bool) (idempotencyKey string, err error) {
	if _, err := r.parameters(); err != nil {
		return "", err
	}
	if idempotencyKey, err = r.idempotencyKey(); err != nil {
		return "", err
	}
	return idempotencyKey, h.read(r, body, optional)
}

// read reads the body into a request struct. A missing body is refused unless optional.
func (h *handler) read(r *request, into any, optional bool) error {
	raw, err := jsonbody.Read(r.w, r.Request, h.cfg.MaxBody)
	r.raw = raw
	switch {
	case err != nil:
		return err
	case raw == nil && optional:
		return nil
	case raw == nil:
		return refuse(codes.BodyMissing, "the body is missing: send a JSON object")
	}
	return jsonbody.Decode(raw, into)
}

// start is POST /sessions: 202, or 200 when the caller preferred to wait and the
// session rests in time.
func (h *handler) start(r *request) (*response, error) {
	var body client.StartRequest
	idempotencyKey, err := h.asked(r, &body, false)
	if err != nil {
		return nil, err
	}
	started, err := h.cfg.Runtime.Start(r.Context(), runtime.StartParams{
		Key: session.Key{Tenant: r.caller.Tenant, ID: body.SessionID}, Agent: body.Agent, Input: body.Input, Tags: body.Tags,
		Rules: body.Rules, State: body.State, Metadata: body.Metadata,
		Caller: r.by(), IdempotencyKey: idempotencyKey,
	})
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusAccepted, header: map[string]string{"Location": location(started.Key)}}
	out.replayed(started.Replayed)
	stands, rests := h.settle(r, started.Key, 0, started.Task, out)
	if rests {
		out.status = http.StatusOK
	}
	out.body = client.Started{
		SessionID: started.Key.ID, Task: started.Task, Entry: client.StartEntry{Seq: started.Seq, CheckpointID: started.Checkpoint},
		Replayed: started.Replayed, Session: stands,
	}
	return out, nil
}

// replayed says of a request that it was carried out before, under its key.
func (out *response) replayed(before bool) {
	if before {
		out.header[client.HeaderIdempotencyReplayed] = "true"
	}
}

func location(key session.Key) string { return "/sessions/" + key.ID }

// submit is POST /sessions/{id}/submit.
func (h *handler) submit(r *request) (*response, error) {
	var body client.SubmitRequest
	idempotencyKey, err := h.asked(r, &body, false)
	if err != nil {
		return nil, err
	}
	task, err := h.drives(r)
	if err != nil {
		return nil, err
	}
	submitted, err := h.submitOne(r, body, idempotencyKey)
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusOK, header: map[string]string{}}
	out.replayed(submitted.Replayed)
	if submitted.Replayed || submitted.Repeated {
		task = 0 // it may have driven on an earlier one
	}
	stands, _ := h.settle(r, r.key(), 0, task, out)
	out.body = client.Submitted{
		Answer: submitted.Answer, Continuation: submitted.Continuation, Open: newWaits(r.key().ID, submitted.Open), VotesMissing: submitted.VotesMissing,
		Repeated: submitted.Repeated, Session: stands,
	}
	return out, nil
}

// checkKind refuses a kind of answer that no caller gives.
func checkKind(kind session.AnswerKind) error {
	switch kind {
	case session.AnswerClientTool, session.AnswerApproval, session.AnswerReply, session.AnswerMessage, session.AnswerVerdict:
		return nil
	case session.AnswerChild, session.AnswerExpiry, session.AnswerDismissal:
	}
	return refuse(codes.InvalidField, "kind must be %s, %s, %s, %s or %s", session.AnswerClientTool, session.AnswerApproval,
		session.AnswerReply, session.AnswerMessage, session.AnswerVerdict)
}

// resume is POST /sessions/{id}/resume: 202 when the session goes on, 200 when it
// does not or came to rest while the caller waited.
func (h *handler) resume(r *request) (*response, error) {
	var body client.ResumeRequest
	idempotencyKey, err := h.asked(r, &body, true)
	if err != nil {
		return nil, err
	}
	return h.resumeWith(r, body, idempotencyKey)
}

func (h *handler) resumeWith(r *request, body client.ResumeRequest, idempotencyKey string) (*response, error) {
	mode, err := modeOf(body)
	if err != nil {
		return nil, err
	}
	if mode == client.ResumeFromCheckpoint {
		back := runtime.BackParams{
			Key: r.key(), Checkpoint: body.FromCheckpoint.CheckpointID, Acknowledge: body.FromCheckpoint.Acknowledge, Message: body.Message,
			Rules: body.Rules, Caller: r.by(), IdempotencyKey: idempotencyKey,
		}
		return h.began(r, back, h.cfg.Runtime.GoBack)
	}
	task, err := h.drives(r)
	if err != nil {
		return nil, err
	}
	resumed, err := h.goOn(r, mode, body, idempotencyKey)
	if err != nil {
		return nil, err
	}
	out := &response{status: http.StatusAccepted, header: map[string]string{"Location": location(r.key())}}
	out.replayed(resumed.Replayed)
	if resumed.Replayed || resumed.Repeated {
		task = 0 // it may have driven on an earlier one
	}
	stands, rests := h.settle(r, r.key(), resumed.After, task, out)
	if rests || resumed.Repeated || resumed.Continuation != runtime.ContinuationResumed {
		out.status = http.StatusOK
	}
	out.body = client.Resumed{
		SessionID: r.key().ID, Continuation: resumed.Continuation, Open: newWaits(r.key().ID, resumed.Open),
		Repeated: resumed.Repeated, After: resumed.After, Session: stands,
	}
	return out, nil
}

// stops is POST /sessions/{id}/interrupt, cancel and abort: 202 when a worker was told, 200 when the
// task stopped at once, while the caller waited, or had ended before.
func stops(kind runtime.SignalKind) func(*handler, *request) (*response, error) {
	return func(h *handler, r *request) (*response, error) {
		var body client.StopRequest
		idempotencyKey, err := h.asked(r, &body, true)
		if err != nil {
			return nil, err
		}
		stopped, err := h.cfg.Runtime.Stop(r.Context(), runtime.StopParams{
			Key: r.key(), Kind: kind, Reason: body.Reason, Task: body.Task, Caller: r.by(), IdempotencyKey: idempotencyKey,
		})
		if err != nil {
			return nil, err
		}
		out := &response{status: http.StatusAccepted, header: map[string]string{"Location": location(r.key())}}
		out.replayed(stopped.Replayed)
		stands, rests := h.settle(r, r.key(), 0, 0, out)
		if rests || stopped.Outcome != runtime.StopSent {
			out.status = http.StatusOK
		}
		out.body = client.Stopped{SessionID: r.key().ID, Outcome: stopped.Outcome, Task: stopped.Task, Status: stopped.Status, Session: stands}
		return out, nil
	}
}

func (h *handler) goOn(r *request, mode client.ResumeMode, body client.ResumeRequest, idempotencyKey string) (runtime.Resumed, error) {
	p := runtime.ResumeParams{Key: r.key(), Mode: mode, Checkpoint: body.CheckpointID, Rules: body.Rules, Caller: r.by(), IdempotencyKey: idempotencyKey}
	switch mode {
	case client.ResumeWithDecisions:
		d := body.Decisions
		return h.cfg.Runtime.Decide(r.Context(), runtime.DecideParams{
			Key: r.key(), Checkpoint: body.CheckpointID, Approve: d.Approve, Reject: d.Reject, ApproveAll: d.ApproveAll, RejectAll: d.RejectAll,
			Reason: d.Reason, EditedInput: d.EditedInput, Caller: r.by(), IdempotencyKey: idempotencyKey,
		})
	case client.ResumeWithMessage:
		p.Message = body.Message
	case client.ResumeWithConfirmation:
		c := body.Confirmation
		p.Confirmation = runtime.Confirmation{Wait: c.WaitID, Approved: *c.Approved, Reason: c.Reason, EditedInput: c.EditedInput}
	case client.ResumeContinue: // brings nothing
	case client.ResumeFromCheckpoint: // is a request of its own
	}
	return h.cfg.Runtime.Resume(r.Context(), p)
}

// modeOf tells the mode by what is given; said as well, it must be the same.
func modeOf(b client.ResumeRequest) (client.ResumeMode, error) {
	mode, given := client.ResumeContinue, 0
	for _, brought := range []struct {
		mode  client.ResumeMode
		given bool
	}{
		{client.ResumeWithMessage, b.Message != nil && b.FromCheckpoint == nil},
		{client.ResumeWithConfirmation, b.Confirmation != nil},
		{client.ResumeWithDecisions, b.Decisions != nil},
		{client.ResumeFromCheckpoint, b.FromCheckpoint != nil},
	} {
		if brought.given {
			mode = brought.mode
			given++
		}
	}
	switch {
	case given > 1:
		return "", refuse(codes.InvalidField, "message, confirmation, decisions and fromCheckpoint cannot go together: bring one of them, or fromCheckpoint with a message")
	case b.Mode != "" && b.Mode != mode:
		return "", refuse(codes.InvalidField, "mode %s does not fit what is brought: message belongs to %s, confirmation to %s, decisions to %s, fromCheckpoint to %s, nothing to %s", jsonbody.Quoted(string(b.Mode)),
			client.ResumeWithMessage, client.ResumeWithConfirmation, client.ResumeWithDecisions, client.ResumeFromCheckpoint, client.ResumeContinue)
	case (b.Confirmation != nil || b.Decisions != nil) && !b.Rules.IsZero():
		return "", refuse(codes.InvalidField, "rules and decisions cannot go together: interrupt the session, and resume it with the rules")
	case b.FromCheckpoint != nil && b.CheckpointID != "":
		return "", refuse(codes.InvalidField, "checkpointId and fromCheckpoint cannot go together: the first names where the session must stand, the second where it goes back to")
	case b.FromCheckpoint != nil && b.FromCheckpoint.CheckpointID == "":
		return "", refuse(codes.InvalidField, "fromCheckpoint.checkpointId is missing: say which checkpoint to go back to")
	case b.Confirmation != nil && b.Confirmation.Approved == nil:
		return "", refuse(codes.InvalidField, "confirmation.approved is missing: say true or false")
	}
	return mode, nil
}
