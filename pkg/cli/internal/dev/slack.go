package dev

import (
	"errors"
	"io"
	"net/http"

	"github.com/adjourn/adjourn/internal/notice/slack"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// slackPath is where Slack sends what its buttons ask, and maxInteraction how much of that is read.
const (
	slackPath      = "POST /slack/interactions"
	maxInteraction = 256 << 10
)

// withSlack also takes what the buttons in Slack ask, if the settings say that they decide. Slack's
// signature takes the place of a key there, and nothing else does.
func (s *Server) withSlack(next http.Handler, settings app.Notices) (http.Handler, error) {
	if !settings.SlackDecides() {
		return next, nil
	}
	people, err := slack.ReadPeople(settings.SlackPeople)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc(slackPath, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(s.interaction(r, settings.SlackSigningSecret, people))
	})
	return mux, nil
}

// interaction carries out what a button asks, and returns the status of the answer. What became of it
// the card says, which is edited after the decision, by whatever door.
func (s *Server) interaction(r *http.Request, secret string, people slack.People) int {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxInteraction))
	if err != nil {
		return http.StatusBadRequest
	}
	if err := slack.Verify(secret, r.Header, body, s.cfg.Now()); err != nil {
		s.cfg.Log.Warn("slack", "error", err)
		return http.StatusUnauthorized
	}
	d, ok, err := slack.ReadInteraction(body, people)
	switch {
	case errors.Is(err, slack.ErrStranger):
		s.cfg.Log.Warn("slack", "error", err)
		return http.StatusForbidden
	case err != nil:
		return http.StatusBadRequest
	case !ok:
		return http.StatusOK
	}
	_, err = s.cfg.App.Runtime.Submit(r.Context(), runtime.SubmitParams{Key: d.Key, Caller: runtime.Caller{Who: d.Who, From: "slack"}, Answer: session.Answer{
		Kind: session.AnswerApproval, Wait: d.Wait, ApprovalID: d.Nonce, Approved: &d.Approved,
	}})
	if err != nil {
		s.cfg.Log.Warn("slack", "session", d.Key.String(), "who", d.Who, "error", err)
		return http.StatusConflict
	}
	return http.StatusOK
}
