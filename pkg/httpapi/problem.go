package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// statuses of the codes that only this room has, and of those that are finer
// than their class; all others have the status of their class.
var statuses = map[string]int{
	wire.CodeUnauthenticated:      http.StatusUnauthorized,
	wire.CodeForbidden:            http.StatusForbidden,
	wire.CodeRouteNotFound:        http.StatusNotFound,
	wire.CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	wire.CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	wire.CodeBodyTooLarge:         http.StatusRequestEntityTooLarge,
	wire.CodeBodyMissing:          http.StatusBadRequest,
	wire.CodeBodyUnreadable:       http.StatusBadRequest,
	wire.CodeMalformedJSON:        http.StatusBadRequest,
	wire.CodeUnknownField:         http.StatusBadRequest,
	wire.CodeDuplicateField:       http.StatusBadRequest,
	wire.CodeInvalidField:         http.StatusBadRequest,
	wire.CodeInvalidParameter:     http.StatusBadRequest,
	wire.CodeInvalidHeader:        http.StatusBadRequest,
	wire.CodeRequestTimeout:       http.StatusServiceUnavailable,
	wire.CodeKeysUnreadable:       http.StatusServiceUnavailable,

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

// refusedError is a refusal of this room's own: the runtime was not asked.
type refusedError struct {
	code   string
	detail string
	header map[string]string
}

func (e *refusedError) Error() string { return e.detail }

func refuse(code, format string, args ...any) *refusedError {
	return &refusedError{code: code, detail: fmt.Sprintf(format, args...)}
}

// problem is an answer that is an error.
type problem struct {
	wire.Problem
	header map[string]string
}

// problem returns what a caller is told of an error. Of a fault on our side that
// is how to find it in the log, and nothing else.
func (h *handler) problem(r *request, err error) *problem {
	var own *refusedError
	if errors.As(err, &own) {
		return newProblem(wire.Problem{Code: own.code, Detail: own.detail}, own.header)
	}
	e := runtime.AsError(err)
	if h.cfg.InProcess {
		p := newProblem(problemOf(e), nil)
		p.Detail = e.Message // whole, however long
		return p
	}
	over := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || r.Context().Err() != nil
	if over && e.Code.Class() == runtime.ClassInternal {
		return newProblem(wire.Problem{
			Code: wire.CodeRequestTimeout, RequestID: r.id,
			Detail: "the request took too long and was given up; what it asked for may have been done. Ask where the session stands, or send the same request again",
		}, nil)
	}
	p := problemOf(e)
	switch e.Code.Class() {
	case runtime.ClassUnavailable:
		p.Detail, p.RequestID = unavailableDetail(e), r.id
	case runtime.ClassInternal:
		p.Detail, p.RequestID = "something went wrong on the server's side; its log has more under this request id", r.id
	case runtime.ClassInvalid, runtime.ClassNotFound, runtime.ClassForbidden, runtime.ClassConflict, runtime.ClassGone:
	}
	return newProblem(p, nil)
}

// problemOf is a refusal in the words of the API, with nothing held back.
func problemOf(e *runtime.Error) wire.Problem {
	return wire.Problem{Code: string(e.Code), Detail: e.Message, SessionID: e.Session, SessionStatus: e.Status, Answer: e.Answer}
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

func newProblem(p wire.Problem, header map[string]string) *problem {
	if len(p.Detail) > maxDetail {
		p.Detail = strings.ToValidUTF8(p.Detail[:maxDetail], "") + "…"
	}
	p.Status = statusOf(p.Code)
	p.Type, p.Title = wire.ProblemType+p.Code, http.StatusText(p.Status)
	if p.Status == http.StatusServiceUnavailable && !retryIsVain(p.Code) {
		header = map[string]string{"Retry-After": "1"}
	}
	return &problem{Problem: p, header: header}
}

func (p *problem) response() *response {
	return &response{status: p.Status, header: p.header, body: p.Problem}
}
