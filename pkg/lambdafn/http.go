package lambdafn

import (
	"cmp"
	"errors"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

// NewResume returns the handler of the resume function.
func NewResume(cfg Config) (Handler, error) { return serve(cfg, httpapi.FunctionResume, nil, nil) }

// NewSubmit returns the handler of the submit function.
func NewSubmit(cfg Config) (Handler, error) {
	var slack *httpapi.Slack
	if cfg.Slack.SigningSecret != "" {
		var err error
		if slack, err = httpapi.NewSlack(cfg.Slack); err != nil {
			return nil, err
		}
	}
	return serve(cfg, httpapi.FunctionSubmit, httpapi.NewLinks, slack)
}

// NewQuery returns the handler of the query function.
func NewQuery(cfg Config) (Handler, error) {
	return serve(cfg, httpapi.FunctionQuery, httpapi.NewLinks, nil)
}

// NewStart returns the handler of the start function.
func NewStart(cfg Config) (Handler, error) { return serve(cfg, httpapi.FunctionStart, nil, nil) }

// serve returns the routes of one function behind the gateway. A function that serves no links has
// no newLinks, so that the linker leaves html/template out of it; one alone takes what Slack asks.
func serve(cfg Config, function httpapi.Function, newLinks func(httpapi.LinksConfig) (*httpapi.Links, error), slack *httpapi.Slack) (Handler, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.APIID == "" {
		return nil, errors.New("lambdafn: APIID is required: ADJOURN_API_ID names the API whose requests are answered")
	}
	var links *httpapi.Links
	if newLinks != nil && cfg.Links.Keys != "" {
		if links, err = newLinks(cfg.Links); err != nil {
			return nil, err
		}
	}
	handler, err := httpapi.New(httpapi.Config{
		Runtime: cfg.Runtime, Links: links, Slack: slack, Authenticate: cfg.authenticate, Functions: []httpapi.Function{function},
		MaxWait: cmp.Or(max(cfg.MaxWait, 0), -1), HidesDisconnects: true, ReadOnly: function == httpapi.FunctionQuery, Fits: fits, Log: cfg.Log, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	p := newProxy(cfg, handler)
	p.admission = newAdmission(cfg.APIID, function)
	return p, nil
}
