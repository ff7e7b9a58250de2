// Package idempotency remembers what a request with an idempotency key did.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// How long the key of a request is remembered: as long as something may repeat it.
const (
	// keyLasts is for callers, who repeat what they have no answer to.
	keyLasts = 24 * time.Hour
	// eventKeyLasts is for events: a queue of failed ones keeps them so long.
	eventKeyLasts = 14 * 24 * time.Hour
)

// Verb is what a key is used for; each has keys of its own.
type Verb string

// The verbs. Every way to resume is one verb, as it is one route.
const (
	Start  Verb = "start"
	Event  Verb = "event"
	Submit Verb = "submit"
	Resume Verb = "resume"
	// Each way to stop a session is a verb.
	Interrupt Verb = "interrupt"
	Cancel    Verb = "cancel"
	Abort     Verb = "abort"
	Delete    Verb = "delete"
	Retry     Verb = "retry"
	Fork      Verb = "fork"
	Send      Verb = "send"
)

// Request is a request with its idempotency key. Its record is written in the
// transaction of what the request does, "nothing to do" included; a refusal leaves
// none, for it has changed nothing and the same request may be carried out later.
type Request struct {
	tenant string
	verb   Verb
	key    string
	// id of the record; empty for a request without a key.
	id     string
	digest string
	// rev is the revision at which the record may be written: that of one that has expired.
	rev int64
	// As, if set, is remembered in place of what is told to Record: of a verb that has another one
	// carry it out.
	As any
}

// New returns the request of a caller. A key is separate for each tenant, caller and verb.
func New(tenant, who string, verb Verb, key string, asked ...any) (Request, error) {
	if key == "" {
		return Request{}, nil
	}
	raw, err := json.Marshal(asked)
	if err != nil { // all of it is data, but what was given as JSON may be none
		return Request{}, refusal.New(codes.InvalidAnswer, session.Key{Tenant: tenant}, "the request holds JSON that is not valid: %v", err)
	}
	scope, err := json.Marshal([]string{who, key})
	if err != nil {
		return Request{}, fmt.Errorf("idempotency key of a %s: %w", verb, err)
	}
	sum := sha256.Sum256(scope)
	return Request{
		tenant: tenant, verb: verb, key: key, id: string(verb) + "-" + base64.RawURLEncoding.EncodeToString(sum[:]), digest: journal.Digest(raw),
	}, nil
}

// Record returns what remembers the request together with what it did, in the
// transaction that does it; nothing for a request without a key.
func (q *Request) Record(now time.Time, key session.Key, seq int64, did any) ([]store.Item, error) {
	if q.id == "" {
		return nil, nil
	}
	if q.As != nil {
		did = q.As
	}
	answer, err := json.Marshal(did)
	if err != nil {
		return nil, fmt.Errorf("session %s: remember the request: %w", key, err)
	}
	lasts := keyLasts
	if q.verb == Event {
		lasts = eventKeyLasts
	}
	return []store.Item{store.IdempotencyItem(journal.Idempotency{
		Key: q.id, Digest: q.digest, Session: key.ID, Seq: seq, Answer: answer, ExpiresAt: now.UTC().Add(lasts),
	}, q.rev)}, nil
}

// Before returns the record of a request that was carried out before, nil if it
// was not. The same key with another request is refused.
func (q *Request) Before(ctx context.Context, sessions *stored.Sessions, now func() time.Time) (*journal.Idempotency, error) {
	if q.id == "" {
		return nil, nil
	}
	item, err := sessions.Item(ctx, session.Key{Tenant: q.tenant}, store.KindIdempotency, q.id)
	if err != nil {
		return nil, err
	}
	q.rev = item.Rev
	record := item.Idempotency
	if record == nil || !now().Before(record.ExpiresAt) {
		return nil, nil
	}
	if record.Digest != q.digest {
		return nil, q.Mismatch(record.Session)
	}
	return record, nil
}

// Mismatch refuses a key that was used for another request, which was about a session.
func (q *Request) Mismatch(id string) *refusal.Error {
	return refusal.New(codes.IdempotencyMismatch, session.Key{ID: id}, "idempotency key %q was used for another request. Use a new key for a new request", q.key)
}

// Done is what the record of a request remembers of what it did to a session that waits.
type Done struct {
	// Wait that was answered; its answer is with it.
	Wait string `json:"wait,omitempty"`
	// Held: the answer was only stored.
	Held bool `json:"held,omitempty"`
	// Repeated: the same had been done before, so nothing was.
	Repeated bool `json:"repeated,omitempty"`
	// Entry that was written.
	Entry int64 `json:"entry,omitempty"`
	// After is the entry after which the session was sent on.
	After int64 `json:"after,omitempty"`
}

// ReadDone returns what a record remembers.
func ReadDone(raw json.RawMessage) (Done, error) {
	var d Done
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, fmt.Errorf("record of an idempotency key: %w", err)
	}
	return d, nil
}
