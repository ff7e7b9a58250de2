package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// FromCheckpoint says where a resume goes back to. A task begins there with the history of the
// checkpoint; nothing is deleted, what waits is closed, and what the checkpoint asked is asked anew.
type FromCheckpoint struct {
	CheckpointID string `json:"checkpointId"`
	// Acknowledge is the digest of the effects that were done after the checkpoint. Without it, or
	// with another one, the refusal effects_not_acknowledged lists them (see [Problem]).
	Acknowledge string `json:"acknowledge,omitempty"`
}

// Where a retry begins, beside the id of a checkpoint.
const (
	// RetryFromLast goes on from where the task failed: no call is made twice.
	RetryFromLast = "last"
	// RetryFromStart begins the task anew; the tasks before it stay.
	RetryFromStart = "start"
)

// RetryRequest tries again what has failed.
type RetryRequest struct {
	// From is [RetryFromLast], which an empty one means too, [RetryFromStart], or the id of a
	// checkpoint.
	From string `json:"from,omitempty"`
	// Message to go on with; nil means none.
	Message Content `json:"message,omitzero"`
	// Acknowledge as in [FromCheckpoint].
	Acknowledge string `json:"acknowledge,omitempty"`
	// Rules as in [ResumeRequest].
	Rules session.TaskRules `json:"rules,omitzero"`
}

// RetryParams try again what has failed.
type RetryParams struct {
	SessionID string
	Request   RetryRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
	// CancelOnDisconnect as in [StartParams].
	CancelOnDisconnect bool
}

// Retry begins a new task of a session that failed, and was not aborted.
func (c *Client) Retry(ctx context.Context, p RetryParams) (Resumed, error) {
	return verb[Resumed](ctx, c, p.SessionID, "retry", p.CancelOnDisconnect, p.IdempotencyKey, p.Request, p.Wait)
}

// ForkRequest begins a session of its own with what a checkpoint of another one holds.
type ForkRequest struct {
	// CheckpointID that is copied; empty for the newest one.
	CheckpointID string `json:"checkpointId,omitempty"`
	// SessionID of the new session; empty for one of the server's making.
	SessionID string `json:"sessionId,omitempty"`
	// Input is a message to go on with; nil means none.
	Input Content `json:"input,omitzero"`
	// Rules as in [ResumeRequest].
	Rules session.TaskRules `json:"rules,omitzero"`
	// Tags of the new session, as in [StartRequest]; it has none of the other one's.
	Tags []string `json:"tags,omitempty"`
}

// Forked is the answer to a fork.
type Forked struct {
	// SessionID is that of the new session.
	SessionID  string       `json:"sessionId"`
	ForkedFrom session.Fork `json:"forkedFrom"`
	Task       int64        `json:"task"`
	// Status the new session began with: running, suspended where it asks what the checkpoint asked,
	// or interrupted where that had ended or was interrupted: then a resume drives on.
	Status session.Status `json:"status"`
	Entry  StartEntry     `json:"entry"`
	// Open is what the new session waits for, under ids of its own.
	Open []Wait `json:"open"`
	// Replayed as in [Started].
	Replayed bool `json:"replayed,omitempty"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
}

// ForkParams fork a session.
type ForkParams struct {
	// SessionID of the session that is copied. It stays as it is.
	SessionID string
	Request   ForkRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
	// CancelOnDisconnect as in [StartParams].
	CancelOnDisconnect bool
}

// Fork begins a session of its own with what a checkpoint of another one holds. It has no answer
// that came after the checkpoint.
func (c *Client) Fork(ctx context.Context, p ForkParams) (Forked, error) {
	return verb[Forked](ctx, c, p.SessionID, "fork", p.CancelOnDisconnect, p.IdempotencyKey, p.Request, p.Wait)
}

// CheckpointView is a session as it was at a checkpoint.
type CheckpointView struct {
	Checkpoint
	// Messages of the conversation, a page of them; compared with another checkpoint, those that
	// are not at the beginning of both.
	Messages []llm.Message `json:"messages"`
	// Cursor of the next page of messages; left out when there is none.
	Cursor string `json:"cursor,omitempty"`
	// State by key.
	State map[string]json.RawMessage `json:"state"`
	// Waits that were open. They have no approvalId: what waits now is in the waits of the session.
	Waits []Wait `json:"waits"`
	// Effects done after the checkpoint, as going back to it lists them now.
	Effects session.EffectsDone `json:"effects"`
	// Compared with another checkpoint, if one was asked for.
	Compared *Comparison `json:"compared,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Comparison is what became of the conversation and the state of one checkpoint at another one.
type Comparison struct {
	// CheckpointID of the checkpoint compared with.
	CheckpointID string `json:"checkpointId"`
	// Common counts the messages with which both begin, Removed those that only the checkpoint
	// compared with has, Added those that only this one has.
	Common  int `json:"common"`
	Removed int `json:"removed"`
	Added   int `json:"added"`
	// State changes that make this checkpoint's state of the other one's (RFC 6902).
	State []session.StateChange `json:"state"`
}

// CheckpointParams select a checkpoint of a session, and a page of its messages.
type CheckpointParams struct {
	SessionID    string
	CheckpointID string
	// Compare with this checkpoint of the session; empty for none.
	Compare string
	Page
}

// Checkpoint returns a session as it was at a checkpoint.
func (c *Client) Checkpoint(ctx context.Context, p CheckpointParams) (CheckpointView, error) {
	var out CheckpointView
	if _, err := session.ParseCheckpoint(p.CheckpointID); err != nil {
		return out, err // it could lead to another route
	}
	path, err := of(p.SessionID, "checkpoints")
	if err == nil {
		path, err = url.JoinPath(path, p.CheckpointID)
	}
	if err != nil {
		return out, err
	}
	q := words(p.query(), map[string]string{"compare": p.Compare})
	err = c.send(ctx, request{method: http.MethodGet, path: path, session: p.SessionID, query: q}, &out)
	return out, err
}
