package client

import (
	"context"
	"net/http"

	"github.com/adjourn/adjourn/pkg/session"
)

// Halt is a stored order that no step of some sessions begins.
type Halt = session.Halt

// HaltRequest says whose steps are to stop: those of an agent, those of all agents where none is named.
type HaltRequest struct {
	Agent string `json:"agent,omitempty"`
	// Tenant is for whoever runs the program, who stops every tenant where none is named. A caller
	// stops his own and no other.
	Tenant string `json:"tenant,omitempty"`
	// Reason is shown to whoever is held up: 1 KiB at most.
	Reason string `json:"reason,omitempty"`
}

// Halted is the answer to a halt.
type Halted struct {
	Halt Halt `json:"halt"`
	// Already says that it was there before, and stays as it was.
	Already bool `json:"already,omitempty"`
}

// GoRequest says whose steps are to go on; as in [HaltRequest].
type GoRequest struct {
	Agent  string `json:"agent,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}

// Lifted is the answer to a go.
type Lifted struct {
	// Lifted are the halts that are gone; none where there were none to lift.
	Lifted []Halt `json:"lifted"`
	// Left are those that still hold sessions of what was to go on.
	Left []Halt `json:"left"`
}

// Halts are all halts that hold sessions of the caller.
type Halts struct {
	Items []Halt `json:"items"`
}

// Halt stops the steps of an agent, of a tenant or of everything: two seconds later none begins.
// To repeat it does nothing.
func (c *Client) Halt(ctx context.Context, asked HaltRequest) (Halted, error) {
	var out Halted
	err := c.change(ctx, request{path: "halt"}, "", asked, 0, &out)
	return out, err
}

// Go lifts the halts of just the scope that is given.
func (c *Client) Go(ctx context.Context, asked GoRequest) (Lifted, error) {
	var out Lifted
	err := c.change(ctx, request{path: "go"}, "", asked, 0, &out)
	return out, err
}

// Halts lists the halts that hold sessions of the caller.
func (c *Client) Halts(ctx context.Context) (Halts, error) {
	var out Halts
	err := c.send(ctx, request{method: http.MethodGet, path: "halts"}, &out)
	return out, err
}
