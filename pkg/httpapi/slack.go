package httpapi

import (
	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/interaction"
)

// Slack takes what the buttons of cards in Slack ask, of people who are known.
type Slack = interaction.Slack

// SlackConfig says what requests of Slack are taken with.
type SlackConfig = interaction.Config

// NewSlack returns what takes requests of Slack. SigningSecret and People are required.
func NewSlack(cfg SlackConfig) (*Slack, error) { return interaction.New(cfg) }

// takeSlack is POST /slack/interactions. It needs no caller: Slack has signed it, and says who clicked.
func (h *handler) takeSlack(r *request) (*response, error) {
	if h.cfg.Slack == nil {
		return nil, refuse(codes.RouteNotFound, "nobody decides in Slack here")
	}
	if err := h.cfg.Slack.Take(r.Context(), h.cfg.Runtime, r.Request, h.cfg.Now(), h.cfg.Log); err != nil {
		return nil, err
	}
	return ok(struct{}{})
}
