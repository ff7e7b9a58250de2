package session

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// EffectDone is one call with effects that a session made after a checkpoint: going back does not
// undo it.
type EffectDone struct {
	Call string `json:"callId"`
	Tool string `json:"tool"`
	// Arguments it ran with, and its Result; left out where they are large.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	// Outcome of the call: unknown where nobody knows whether it took effect.
	Outcome llm.ResultStatus `json:"outcome"`
	At      time.Time        `json:"at"`
	// Kept says that the call is open at the checkpoint, so that its outcome is taken in and the
	// call is not asked again. Any other call is forgotten, and may be made once more.
	Kept bool `json:"kept,omitempty"`
}

// EffectsDone lists what a session did after a checkpoint, the oldest first.
type EffectsDone struct {
	// Count of all of them; Items may hold fewer.
	Count int          `json:"count"`
	Items []EffectDone `json:"items"`
	// Digest of the whole list, by which a person says to have seen it. Empty for an empty list.
	Digest string `json:"digest,omitempty"`
}
