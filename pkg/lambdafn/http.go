package lambdafn

import (
	"cmp"
	"errors"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

// NewResume returns the handler of the resume function.
func NewResume(cfg Config) (Handler, error) { return serve(cfg, httpapi.FunctionResume) }

// NewSubmit returns the handler of the submit function.
func NewSubmit(cfg Config) (Handler, error) { return serve(cfg, httpapi.FunctionSubmit) }

// NewQuery returns the handler of the query function.
func NewQuery(cfg Config) (Handler, error) { return serve(cfg, httpapi.FunctionQuery) }

// NewStart returns the handler of the start function.
func NewStart(cfg Config) (Handler, error) { return serve(cfg, httpapi.FunctionStart) }

// serve returns the routes of one function behind the gateway.
func serve(cfg Config, function httpapi.Function) (Handler, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.APIID == "" {
		return nil, errors.New("lambdafn: APIID is required: ADJOURN_API_ID names the API whose requests are answered")
	}
	handler, err := httpapi.New(httpapi.Config{
		Runtime: cfg.Runtime, Authenticate: cfg.authenticate, Functions: []httpapi.Function{function},
		MaxWait: cmp.Or(max(cfg.MaxWait, 0), -1), HidesDisconnects: true, ReadOnly: function == httpapi.FunctionQuery, Fits: fits, Log: cfg.Log, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	p := newProxy(cfg, handler)
	p.admission = newAdmission(cfg.APIID, function)
	return p, nil
}
