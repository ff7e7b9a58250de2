package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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

// Verbs that have keys of their own. Every way to resume is one verb, as it is one route.
const (
	verbStart  = "start"
	verbEvent  = "event"
	verbSubmit = "submit"
	verbResume = "resume"
)

// request is a request with its idempotency key. Its record is written in the
// transaction of what the request does, "nothing to do" included; a refusal leaves
// none, for it has changed nothing and the same request may be carried out later.
type request struct {
	caller Caller
	tenant string
	verb   string
	key    string
	// id of the record; empty for a request without a key.
	id     string
	digest string
	// rev is the revision at which the record may be written: that of one that has expired.
	rev int64
}

// newRequest returns the request of a caller. A key is separate for each tenant, caller and verb.
func newRequest(tenant string, c Caller, verb, key string, asked ...any) (request, error) {
	if key == "" {
		return request{caller: c}, nil
	}
	raw, err := json.Marshal(asked)
	if err != nil { // all of it is data, but what was given as JSON may be none
		return request{}, refuse(CodeInvalidAnswer, session.Key{Tenant: tenant}, "the request holds JSON that is not valid: %v", err)
	}
	scope, err := json.Marshal([]string{c.Who, key})
	if err != nil {
		return request{}, fmt.Errorf("idempotency key of a %s: %w", verb, err)
	}
	sum := sha256.Sum256(scope)
	return request{
		caller: c, tenant: tenant, verb: verb, key: key, id: verb + "-" + base64.RawURLEncoding.EncodeToString(sum[:]), digest: journal.Digest(raw),
	}, nil
}

// record returns what remembers the request together with what it did, in the
// transaction that does it; nothing for a request without a key.
func (q *request) record(now time.Time, key session.Key, seq int64, did any) ([]store.Item, error) {
	if q.id == "" {
		return nil, nil
	}
	answer, err := json.Marshal(did)
	if err != nil {
		return nil, fmt.Errorf("session %s: remember the request: %w", key, err)
	}
	lasts := keyLasts
	if q.verb == verbEvent {
		lasts = eventKeyLasts
	}
	return []store.Item{store.IdempotencyItem(journal.Idempotency{
		Key: q.id, Digest: q.digest, Session: key.ID, Seq: seq, Answer: answer, ExpiresAt: now.UTC().Add(lasts),
	}, q.rev)}, nil
}

// requestRecord returns the record of a request that was carried out before, nil if it
// was not. The same key with another request is refused.
func (r *Runtime) requestRecord(ctx context.Context, q *request) (*journal.Idempotency, error) {
	if q.id == "" {
		return nil, nil
	}
	item, err := r.sessions.Item(ctx, session.Key{Tenant: q.tenant}, store.KindIdempotency, q.id)
	if err != nil {
		return nil, err
	}
	q.rev = item.Rev
	record := item.Idempotency
	if record == nil || !r.cfg.Now().Before(record.ExpiresAt) {
		return nil, nil
	}
	if record.Digest != q.digest {
		return nil, q.mismatch(record)
	}
	return record, nil
}

func (q *request) mismatch(record *journal.Idempotency) *Error {
	return refuse(CodeIdempotencyMismatch, session.Key{ID: record.Session}, "idempotency key %q was used for another request. Use a new key for a new request", q.key)
}

// maxTries bounds how often a verb looks again after losing a race.
const maxTries = 8

// once carries a request out, or repeats the answer of the first time: again makes that answer
// from the record and sends again, because the first time the send may have failed. carry is
// called again when another writer was first. A refusal is returned, and recorded, only after the
// record was read once more: a copy of this same request may have caused the refusal meanwhile.
func once[T any](ctx context.Context, r *Runtime, key session.Key, q *request, again func(did json.RawMessage) (T, error), carry func() (T, error)) (T, error) {
	var none T
	for try := 1; ; try++ {
		record, err := r.requestRecord(ctx, q)
		switch {
		case err != nil:
			return none, err
		case record != nil:
			return again(record.Answer)
		}
		out, err := carry()
		if err == nil {
			return out, nil
		}
		if record, lookErr := r.requestRecord(ctx, q); lookErr == nil && record != nil {
			return again(record.Answer)
		}
		switch {
		case !errors.Is(err, store.ErrConflict):
			r.auditRefusal(ctx, q.caller, key, err)
			return none, err
		case try == maxTries:
			return none, changedWhileRead(key)
		}
	}
}

// done is what the record of a request remembers of what it did to a session that waits.
type done struct {
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

func readDone(raw json.RawMessage) (done, error) {
	var d done
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, fmt.Errorf("record of an idempotency key: %w", err)
	}
	return d, nil
}
