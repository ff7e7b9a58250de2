package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// WaitView is a wait with what a person needs to decide.
type WaitView struct {
	Wait Wait `json:"wait"`
	// MayAnswer says of the caller that they may answer; For is in whose place they would, to whom it
	// was delegated or who stand in.
	MayAnswer bool   `json:"mayAnswer"`
	For       string `json:"for,omitempty"`
	// StandIns say who stands in now for people whom an open wait names.
	StandIns []session.StandIn `json:"standIns,omitempty"`
	// Status of the session, its task, and how much it waits for.
	Status session.Status `json:"status"`
	Task   int64          `json:"task"`
	Open   int            `json:"open"`
	// Messages are the last ten that say something in words, the oldest first; Earlier counts those before.
	Messages []SaidMessage `json:"messages"`
	Earlier  int           `json:"earlier,omitempty"`
	// Usage of the task in tokens, Used of what can be limited, Limits that bind with what is used of them.
	Usage  Usage              `json:"usage"`
	Used   session.Amounts    `json:"used"`
	Limits []session.LimitUse `json:"limits,omitempty"`
	// Effects that the task has had, by its newest 200 entries: the newest 50 of them.
	Effects session.EffectsDone `json:"effects"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// SaidMessage is the text of a message, or its first 2,000 characters.
type SaidMessage struct {
	Role llm.Role `json:"role"`
	Text string   `json:"text"`
	// Cut says that there is more.
	Cut bool `json:"cut,omitempty"`
}

// Wait returns a wait of a session with what a person needs to decide.
func (c *Client) Wait(ctx context.Context, id, wait string) (WaitView, error) {
	var out WaitView
	what, err := ofWait(wait, "")
	if err != nil {
		return out, err
	}
	path, err := of(id, "")
	if err == nil {
		path, err = url.JoinPath(path, what)
	}
	if err != nil {
		return out, err
	}
	err = c.send(ctx, request{method: http.MethodGet, path: path, session: id}, &out)
	return out, err
}
