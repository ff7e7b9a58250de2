package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// Head is the one record of a session that is overwritten in place. Status,
// agent and title are an index of the newest entry; lease and signal live only here.
type Head struct {
	Key    session.Key    `json:"key"`
	Status session.Status `json:"status"`
	Agent  string         `json:"agent"`
	Title  string         `json:"title,omitempty"`
	Task   int64          `json:"task"`
	// StatusSeq is the seq of the entry that last changed the status.
	StatusSeq int64           `json:"version"`
	Parent    *session.Parent `json:"parent,omitempty"`
	// StartedBy is the caller that started the session. Tags are those of the newest start that
	// gave any.
	StartedBy string   `json:"startedBy,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	// ForkedFrom is where a fork began.
	ForkedFrom *session.Fork `json:"forkedFrom,omitempty"`
	// WaitsAt is the seq of the entry that opened the waits of the suspension the
	// session is in, or was in last; 0 when it has never waited.
	WaitsAt int64 `json:"waitsAt,omitempty"`

	// Newest is the newest entry, with its hash, where no entry that follows holds that yet for long:
	// while the session rests, and after it has left a suspension. Zero while it works.
	Newest EntryHash `json:"newest,omitzero"`

	Lease  Lease   `json:"lease,omitzero"`
	Signal *Signal `json:"signal,omitempty"`
	// MailCount counts mail that was put for the session, ever.
	MailCount int64 `json:"mailCount,omitempty"`
	// Resent counts re-sends by the sweep since the session last moved on.
	// ResentAfter is the seq of the newest entry at the last of them.
	Resent      int   `json:"resent,omitempty"`
	ResentAfter int64 `json:"resentAfter,omitempty"`
	// CancelAt is when the present task is cancelled; nil is never, or when it has ended.
	CancelAt *time.Time `json:"cancelAt,omitempty"`
	// Due is when the sweep should look at the session; nil when it need not. [Head.LookAt] sets it.
	Due *time.Time `json:"due,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	// UpdatedAt moves with the status.
	UpdatedAt time.Time `json:"updatedAt"`
	// Retention is how long the session is kept after its end; 0 is for ever, and so it is in one that
	// has not ended.
	Retention time.Duration `json:"retention,omitempty"`
	// Removing says that the session was deleted, and the store has still to remove what it has.
	Removing bool `json:"removing,omitempty"`
	// Deleted marks the tombstone of a session that is gone.
	Deleted bool `json:"deleted,omitempty"`

	kept *kept
}

// Root returns the topmost parent of the session: itself, if it has no parent.
func (h *Head) Root() string {
	if h.Parent != nil && h.Parent.Root != "" {
		return h.Parent.Root
	}
	return h.Key.ID
}

// Gone reports whether the session is there for nobody any more, though the store may still have it:
// it was deleted, or its time is over.
func (h *Head) Gone(now time.Time) bool { return h.Deleted || h.Removing || h.Expired(now) }

// Expired reports whether the session has ended for longer than it is kept.
func (h *Head) Expired(now time.Time) bool {
	at := h.ExpiresAt()
	return at != nil && !now.Before(*at)
}

// ExpiresAt is when a session that has ended is gone, unless a task begins before; nil is never. It
// goes by the status and when that moved, so that what a program wrote that does not know Retention
// is not gone too soon.
func (h *Head) ExpiresAt() *time.Time {
	if !h.Status.Ended() || h.Retention <= 0 {
		return nil
	}
	return new(h.UpdatedAt.Add(h.Retention))
}

// Lease is the claim of one worker on one step. It is an optimisation;
// correctness comes from conditional writes (docs/design/chain.md).
type Lease struct {
	// Owner names the worker and its invocation.
	Owner string `json:"owner"`
	// Seq is the entry the owner would write.
	Seq int64 `json:"seq"`
	// N counts the claims of Seq, from 1.
	N int64 `json:"n"`
	// Until is when the lease lapses; zero when the adapter has found that the owner is dead.
	Until time.Time `json:"until"`
	// Died counts the claims of Seq before this one whose owners did not give them back.
	Died int64 `json:"died,omitempty"`
	// For is how long it was to last when Until was written.
	For time.Duration `json:"for,omitempty"`
}

// Live reports whether the lease is valid for a session whose newest entry is newest and keeps
// the lease or not: its time has not come and no entry has closed it.
func (l Lease) Live(now time.Time, newest int64, keepsLease bool) bool {
	if l.Lapsed(now) {
		return false
	}
	return l.Seq > newest || keepsLease
}

// Lapsed reports whether the lease has no owner, or its time has come ([Come]).
func (l Lease) Lapsed(now time.Time) bool { return l.Owner == "" || Come(l.Until, now, l.For) }

// Dead reports whether the adapter that returned the lease has found that its owner is dead.
func (l Lease) Dead() bool { return l.Owner != "" && l.Until.IsZero() }

// SignalKind is how hard a signal stops a task.
type SignalKind string

// The signals, the weakest first.
const (
	SignalInterrupt SignalKind = "interrupt"
	SignalCancel    SignalKind = "cancel"
	SignalAbort     SignalKind = "abort"
)

// Strength orders signals: a stronger one replaces a weaker one, never the reverse.
func (k SignalKind) Strength() int {
	switch k {
	case SignalInterrupt:
		return 1
	case SignalCancel:
		return 2
	case SignalAbort:
		return 3
	}
	return 0
}

// LeadsTo is the status of a session that has obeyed the signal.
func (k SignalKind) LeadsTo() session.Status {
	switch k {
	case SignalInterrupt:
		return session.StatusInterrupted
	case SignalCancel:
		return session.StatusCancelled
	case SignalAbort:
	}
	return session.StatusFailed
}

// Signal asks a task to stop. It is scoped to that task: left over, it does nothing to the next.
type Signal struct {
	ID     string     `json:"id"`
	Task   int64      `json:"task"`
	Kind   SignalKind `json:"kind"`
	Reason string     `json:"reason,omitempty"`
	Who    string     `json:"who"`
	At     time.Time  `json:"at"`
	From   string     `json:"from"`
}

// StoppedBy is what the entry says that carries the signal out; nil of no signal.
func (s *Signal) StoppedBy() *session.StoppedBy {
	if s == nil {
		return nil
	}
	return &session.StoppedBy{Kind: session.Verb(s.Kind), Reason: s.Reason, Who: s.Who, At: s.At}
}

// SignalFor returns the signal that a task has still to obey, nil if there is none: one of an earlier
// task does nothing.
func (h *Head) SignalFor(task int64) *Signal {
	if h.Signal == nil || h.Signal.Task != task {
		return nil
	}
	return h.Signal
}

// WaitRecord is a wait with what became of it.
type WaitRecord struct {
	// Wait as the entry opened it, but with the deadline and the people that count now (Acts).
	Wait  session.Wait      `json:"wait"`
	State session.WaitState `json:"state"`
	// Answer once there is one; it stays when the wait is taken.
	Answer *session.Answer `json:"answer,omitempty"`
	// Votes of an approval that needs several people, one of each person.
	Votes []session.Vote `json:"votes,omitempty"`
	// Held says that the answer was only stored (autoResume false).
	Held bool `json:"held,omitempty"`
	// HeldLast says that a held answer was the last: before it was written no other wait was
	// open. Then the session continues only when a caller resumes it.
	HeldLast bool `json:"heldLast,omitempty"`
	// Acts are what people, and the deadline, did to the wait without deciding it, in order. They need no word in
	// Wait.Needs: an extension is in Wait.Deadline and Due as well, a delegation in Wait.Who, which
	// say what counts now, also to a program that does not know acts. A wait that can be escalated has its word.
	Acts []session.WaitAct `json:"acts,omitempty"`
	// Revoked says who took the standing permission back that the answer gave; nil where nobody did.
	Revoked *session.Revocation `json:"revoked,omitempty"`
	// Audit is the end of the chain of the wait's audit lines.
	Audit AuditTip `json:"audit,omitzero"`
	// Noticed says that a notice tells the answer or the expiry.
	Noticed bool `json:"noticed,omitempty"`
	// ActsNoticed is how many of the acts notices tell, or leave out.
	ActsNoticed int `json:"actsNoticed,omitempty"`
	// Unrecorded is how many refused answers have no line, at least.
	Unrecorded int64 `json:"unrecorded,omitempty"`
	// ViewedBy are the callers, each with its origin as a short hash, of whom a line says that they
	// read what the wait shows.
	ViewedBy []string `json:"viewedBy,omitempty"`
	// Agent is shown in the inbox.
	Agent string `json:"agent,omitempty"`
	// Root is the topmost parent of the wait's session; empty when that session has no parent.
	Root string `json:"root,omitempty"`
	// TakenBy is the seq of the entry that took the wait in or closed it.
	TakenBy int64 `json:"takenBy,omitempty"`
	// Due is when the sweep should look at the wait: its deadline, or a reminder before that, while it is
	// open, a moment after its answer until that is taken in; nil otherwise.
	Due *time.Time `json:"due,omitempty"`

	kept *kept
}

// RootIn returns the root of a wait of the session of key.
func (r *WaitRecord) RootIn(key session.Key) string {
	if r.Root != "" {
		return r.Root
	}
	return key.ID
}

// ToolState says how far a call with effects has come.
type ToolState string

// The states of the ledger of a call.
const (
	ToolStarted  ToolState = "started"
	ToolFinished ToolState = "finished"
	// ToolAsking: the call asked a person and may be started again.
	ToolAsking ToolState = "asking"
	// ToolClosed: the call was closed before it ran and must never run.
	ToolClosed ToolState = "closed"
	// ToolMemo: nothing but memo yet; the call may be started.
	ToolMemo ToolState = "memo"
)

// ToolRecord is the ledger of one call: what makes a side effect happen at most once.
type ToolRecord struct {
	Call  string    `json:"call"`
	State ToolState `json:"state"`
	// Attempt that started it.
	Attempt string    `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
	// Memo holds results of Once by key, durable before the function returns.
	Memo   map[string]json.RawMessage `json:"memo,omitempty"`
	Result *llm.ToolResult            `json:"result,omitempty"`
	// Ran is the run that brought Result.
	Ran *ToolRun `json:"ran,omitempty"`
	// StateOps and Events of the finished call, so that a result found in the ledger includes
	// its changes of the state.
	StateOps []session.StateOp     `json:"stateOps,omitempty"`
	Events   []session.CustomEvent `json:"events,omitempty"`

	kept *kept
}

// Mail is a message that came while nothing waited for it.
type Mail struct {
	ID      string      `json:"id"`
	Message llm.Message `json:"message"`
	Who     string      `json:"who"`
	At      time.Time   `json:"at"`
	From    string      `json:"from"`

	kept *kept
}

// Idempotency remembers the first answer to a request key.
type Idempotency struct {
	Key    string `json:"key"`
	Digest string `json:"digest"`
	// Session and Seq the first request made; Answer is the answer to it.
	Session   string          `json:"session"`
	Seq       int64           `json:"seq"`
	Answer    json.RawMessage `json:"answer,omitempty"`
	ExpiresAt time.Time       `json:"expiresAt"`

	kept *kept
}

// TenantRecord is a named value of a tenant that belongs to no session: a counter, a permanent
// permission, a switch that stops everything. Its writer decides what the value holds; its
// revision orders the writes.
type TenantRecord struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`

	kept *kept
}

// WakeKind says what a queue message asks for.
type WakeKind string

// The kinds of wake.
const (
	WakeStep   WakeKind = "step"
	WakeResume WakeKind = "resume"
)

// Wake is the pointer that travels through the queue: look at this session and
// write entry Seq, if it is still to be written.
type Wake struct {
	V      int      `json:"v"`
	Tenant string   `json:"tenant"`
	ID     string   `json:"session"`
	Seq    int64    `json:"seq"`
	Kind   WakeKind `json:"kind"`
	// Delay before it may be received. It is not part of the message.
	Delay time.Duration `json:"-"`
	// Message is the queue's id of the message it came in ([session.Attempt.Message]); empty
	// where it is not known. It is not part of the message.
	Message string `json:"-"`
	// Again says that the message was received before, by a worker that may have died
	// of it. It is not part of the message.
	Again bool `json:"-"`
}

// WakeVersion is the version of the queue message.
const WakeVersion = 1

// Key returns the session the wake points to.
func (w Wake) Key() session.Key { return session.Key{Tenant: w.Tenant, ID: w.ID} }

// NewWake returns a wake for entry seq of a session.
func NewWake(key session.Key, seq int64, kind WakeKind) Wake {
	return Wake{V: WakeVersion, Tenant: key.Tenant, ID: key.ID, Seq: seq, Kind: kind}
}

// ErrInvalidWake says that a queue message is not a wake this program reads.
var ErrInvalidWake = errors.New("invalid wake")

// ParseWake reads the body of a queue message, which is the wake's JSON. What is
// not a wake, or points nowhere, is [ErrInvalidWake]: it will never be one. A
// newer version is none of that: a newer program may read it.
func ParseWake(body []byte) (Wake, error) {
	var w Wake
	if err := json.Unmarshal(body, &w); err != nil {
		return Wake{}, fmt.Errorf("%w: %w", ErrInvalidWake, err)
	}
	if w.V > WakeVersion {
		return w, nil
	}
	if w.V < 1 || w.Seq < 1 || w.Kind != WakeStep && w.Kind != WakeResume {
		return Wake{}, fmt.Errorf("%w: version %d, entry %d, kind %q", ErrInvalidWake, w.V, w.Seq, w.Kind)
	}
	if err := w.Key().Validate(); err != nil {
		return Wake{}, fmt.Errorf("%w: %w", ErrInvalidWake, err)
	}
	return w, nil
}
