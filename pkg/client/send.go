package client

import (
	"context"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// SendRequest sends a message to a session.
type SendRequest struct {
	// Message is the user's: at most 4 MiB, all parts together.
	Message Content `json:"message,omitzero"`
	// Task that it is for; 0 means the present one. It does not reach a later one.
	Task int64 `json:"task,omitempty"`
	// Start says that a session which completed or was cancelled takes its next turn with it.
	Start bool `json:"start,omitempty"`
}

// SendOutcome says what became of a message.
type SendOutcome = session.SendOutcome

// The outcomes of a message.
const (
	// SendQueued: the session works; its next step takes the message in.
	SendQueued = session.SendQueued
	// SendAnswered: the session waited for a message, and this is the answer.
	SendAnswered = session.SendAnswered
	// SendAbandoned: the session waited for something else, and goes on with the message instead.
	SendAbandoned = session.SendAbandoned
	// SendStarted: the session had ended; the message begins its next turn.
	SendStarted = session.SendStarted
)

// Sent is the answer to a message.
type Sent struct {
	SessionID string      `json:"sessionId"`
	Outcome   SendOutcome `json:"outcome"`
	// Task that the message is for.
	Task int64 `json:"task"`
	// Seq is the entry of the journal that holds the message, where that is known by now.
	Seq int64 `json:"seq,omitempty"`
	// MailID is in the entry that takes the message in, where it waits for the next step.
	MailID string `json:"mailId,omitempty"`
	// Continuation and Open as in [Submitted], of an answer.
	Continuation Continuation `json:"continuation,omitempty"`
	Open         []Wait       `json:"open,omitempty"`
	// Replayed says that this request was carried out before (same Idempotency-Key).
	Replayed bool `json:"replayed,omitempty"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
}

// SendParams send a message to a session.
type SendParams struct {
	SessionID string
	Request   SendRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
	// CancelOnDisconnect as in [StartParams]; a task that only takes the message in is not cancelled.
	CancelOnDisconnect bool
}

// Send brings a message to a session, wherever it stands: a running task takes it in with its next
// step, a session that waits for a message is answered, one that has ended takes its next turn if the
// request says so. It counts once.
func (c *Client) Send(ctx context.Context, p SendParams) (Sent, error) {
	return verb[Sent](ctx, c, p.SessionID, "messages", p.CancelOnDisconnect, p.IdempotencyKey, p.Request, p.Wait)
}
