package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/refused"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// statuses of the codes that HTTP tells apart from the rest of their class.
var statuses = map[string]int{
	codes.Unauthenticated:             http.StatusUnauthorized,
	codes.RouteNotFound:               http.StatusNotFound,
	codes.MethodNotAllowed:            http.StatusMethodNotAllowed,
	codes.UnsupportedMediaType:        http.StatusUnsupportedMediaType,
	codes.BodyTooLarge:                http.StatusRequestEntityTooLarge,
	string(runtime.CodeInputTooLarge): http.StatusRequestEntityTooLarge,
}

// statusOf is the one place that says what a code means in HTTP.
func statusOf(code string) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	switch runtime.Code(code).Class() {
	case runtime.ClassInvalid:
		return http.StatusBadRequest
	case runtime.ClassNotFound:
		return http.StatusNotFound
	case runtime.ClassForbidden:
		return http.StatusForbidden
	case runtime.ClassConflict:
		return http.StatusConflict
	case runtime.ClassGone:
		return http.StatusGone
	case runtime.ClassUnavailable:
		return http.StatusServiceUnavailable
	case runtime.ClassInternal:
	}
	return http.StatusInternalServerError
}

// refuse is a refusal of this room's own: the runtime was not asked.
func refuse(code, format string, args ...any) *refused.Error {
	return refused.New(code, format, args...)
}

// refused answers with an error; one of ours goes to the log.
func (h *handler) refused(r *request, err error) *response {
	p := h.problem(r, err)
	p.Status = statusOf(p.Code)
	p.Type, p.Title = client.ProblemType+p.Code, http.StatusText(p.Status)
	out := &response{status: p.Status, body: p}
	if own := (*refused.Error)(nil); errors.As(err, &own) {
		out.header = own.Header
	}
	if p.Status == http.StatusServiceUnavailable && !retryIsVain(p.Code) {
		out.header = map[string]string{"Retry-After": "1"}
	}
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		h.cfg.Log.ErrorContext(r.Context(), "request", "request", r.id, "method", r.Method, "path", grant.Masked(r.URL.Path), "status", p.Status, "error", err)
	}
	return out
}

// problem returns what a caller is told of an error. Of a fault on our side that
// is how to find it in the log, and nothing else.
func (h *handler) problem(r *request, err error) client.Problem {
	if own := (*refused.Error)(nil); errors.As(err, &own) {
		return client.Problem{Code: own.Code, Detail: clipped(own.Detail)}
	}
	e := runtime.AsError(err)
	p := client.Problem{Code: string(e.Code), Detail: e.Message, SessionID: e.Session, SessionStatus: e.Status, Answer: e.Answer, Effects: e.Effects}
	if h.cfg.InProcess {
		return p // whole, however long
	}
	over := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || r.Context().Err() != nil
	switch class := e.Code.Class(); {
	case class == runtime.ClassInternal && over:
		return client.Problem{
			Code: codes.RequestTimeout, RequestID: r.id,
			Detail: "the request took too long and was given up; what it asked for may have been done. Ask where the session stands, or send the same request again",
		}
	case class == runtime.ClassInternal:
		p.Detail, p.RequestID = "something went wrong on the server's side; its log has more under this request id", r.id
	case class == runtime.ClassUnavailable:
		p.Detail, p.RequestID = unavailableDetail(e), r.id
	}
	p.Detail = clipped(p.Detail)
	return p
}

// unavailable says of each code what is wrong with the store without telling what
// is inside, and whether to try again or who has to act.
var unavailable = map[runtime.Code]string{
	runtime.CodeStoreUnavailable: "the store or the queue does not answer; try again in a moment",
	runtime.CodeStoreLocked:      "another process holds the server's data file; try again in a moment",
	runtime.CodeStoreGone:        "the server's data file was deleted or replaced: its operator has to restart it",
	runtime.CodeNotOurs:          "the server's store was not written by this program: its operator has to act",
	runtime.CodeNewerNeeded:      "a newer program wrote this than the server: its operator has to use a newer adjourn",
}

// unavailableDetail names what a newer program needs; all else is told by the code alone.
func unavailableDetail(e *runtime.Error) string {
	var needs *journal.NeedsError
	if e.Code == runtime.CodeNewerNeeded && errors.As(e, &needs) {
		return needs.Error()
	}
	return unavailable[e.Code]
}

// retryIsVain reports whether a request that is sent again gets the same answer
// until the server is started anew.
func retryIsVain(code string) bool {
	return code == string(runtime.CodeStoreGone) || code == string(runtime.CodeNotOurs)
}

// maxDetail bounds a detail in bytes: some repeat what the caller sent.
const maxDetail = 1000

func clipped(detail string) string {
	if len(detail) > maxDetail {
		return strings.ToValidUTF8(detail[:maxDetail], "") + "…"
	}
	return detail
}
