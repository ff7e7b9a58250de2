package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// NoticeType says what a notice tells.
type NoticeType string

// The types of notice.
const (
	// NoticeSuspended: the session waits for somebody; Waits are those that were opened.
	NoticeSuspended NoticeType = "session.suspended"
	// NoticeAnswered: somebody answered the Waits. NoticeExpired: their deadline did.
	NoticeAnswered NoticeType = "wait.answered"
	NoticeExpired  NoticeType = "wait.expired"
	// NoticeDelegated: the wait was delegated to To. NoticeExtended: it has another deadline.
	NoticeDelegated NoticeType = "wait.delegated"
	NoticeExtended  NoticeType = "wait.extended"
	// NoticeReminded: nobody has answered the Waits, and their deadline comes closer. NoticeEscalated: it has
	// passed, and others may answer as well.
	NoticeReminded  NoticeType = "wait.reminded"
	NoticeEscalated NoticeType = "wait.escalated"
	// NoticeClosed: the session has gone on, or back, without answers to the Waits.
	NoticeClosed NoticeType = "wait.closed"
	// The task ended; Waits are those that its end has closed.
	NoticeCompleted NoticeType = "session.completed"
	NoticeFailed    NoticeType = "session.failed"
	NoticeCancelled NoticeType = "session.cancelled"
	// NoticeTest: somebody tries a channel. It is sent, and never stored.
	NoticeTest NoticeType = "test"
)

// Notice is what is told outside about a wait or an end: written in the same write as what it tells,
// sent after that.
type Notice struct {
	// ID is e<seq> of what an entry tells, d<wait> of a decision about a wait, a<wait>-<n> of its nth act.
	ID   string     `json:"id"`
	Type NoticeType `json:"type"`
	At   time.Time  `json:"at"`
	// Agent, and Seq of the entry; of a decision, that of the entry that opened the wait.
	Agent string `json:"agent,omitempty"`
	Seq   int64  `json:"version"`
	// Failure is the code of why the task failed.
	Failure string       `json:"failure,omitempty"`
	Waits   []NoticeWait `json:"waits,omitempty"`
	// Sends are what became of it, one for each channel.
	Sends []NoticeSend `json:"sends"`
	// Due is when the sweep should look at it; nil when nothing is left to send.
	Due *time.Time `json:"due,omitempty"`

	kept *kept
}

// NoticeWait is a wait as a notice tells it: without its arguments, and without what people wrote.
type NoticeWait struct {
	ID       string            `json:"id"`
	Kind     session.WaitKind  `json:"kind"`
	Tool     string            `json:"tool,omitempty"`
	Who      []string          `json:"who,omitempty"`
	Deadline *session.Deadline `json:"deadline,omitempty"`
	// Decision is what became of it; empty while it is open. By and When say who did what the notice
	// tells; To is the person of a delegation.
	Decision NoticeDecision `json:"decision,omitempty"`
	By       string         `json:"by,omitempty"`
	When     *time.Time     `json:"when,omitempty"`
	To       string         `json:"to,omitempty"`
}

// NoticeDecision says in a word how a wait ended.
type NoticeDecision string

// How a wait ends.
const (
	DecisionApproved NoticeDecision = "approved"
	DecisionRejected NoticeDecision = "rejected"
	DecisionAnswered NoticeDecision = "answered"
	DecisionExpired  NoticeDecision = "expired"
	// DecisionDismissed: somebody said that nobody will answer.
	DecisionDismissed NoticeDecision = "dismissed"
	DecisionClosed    NoticeDecision = "closed"
)

// NoticeState says how far the sending to one channel has come.
type NoticeState string

// The states of a send.
const (
	NoticePending NoticeState = "pending"
	NoticeSent    NoticeState = "sent"
	// NoticeGivenUp: every try failed; it is not sent any more.
	NoticeGivenUp NoticeState = "given_up"
)

// NoticeSend is what became of a notice at one channel.
type NoticeSend struct {
	Channel string      `json:"channel"`
	State   NoticeState `json:"state"`
	// Tries counts those that began: one whose process died counts too.
	Tries int `json:"tries,omitempty"`
	// TriedAt is when the last of them began, Next when the next one may; nil: at once.
	TriedAt *time.Time `json:"triedAt,omitempty"`
	Next    *time.Time `json:"next,omitempty"`
	// Error is why the last try failed.
	Error string `json:"error,omitempty"`
	// Reference is what the channel changes the message by, if it can.
	Reference json.RawMessage `json:"reference,omitempty"`
}

// Settle sets Due by what is left to send: the soonest next try, but not before at, and nil if there
// is none.
func (n *Notice) Settle(at time.Time) {
	n.Due = nil
	for _, s := range n.Sends {
		if s.State != NoticePending {
			continue
		}
		due := at
		if s.Next != nil && s.Next.After(at) {
			due = *s.Next
		}
		if n.Due == nil || due.Before(*n.Due) {
			n.Due = new(due.UTC())
		}
	}
}

// EntryNotice is the id of the notice of an entry, DecisionNotice that of the decision about a wait.
func EntryNotice(seq int64) string { return fmt.Sprintf("e%010d", seq) }

// DecisionNotice is the id of the notice of a decision about a wait.
func DecisionNotice(wait string) string { return "d" + wait }

// ActNotice is the id of the notice of the nth act on a wait.
func ActNotice(wait string, n int) string { return fmt.Sprintf("a%s-%d", wait, n) }

// NoticeWake is the pointer that travels through the queue of the notices: send what is left to send
// of this one.
type NoticeWake struct {
	V      int    `json:"v"`
	Tenant string `json:"tenant"`
	ID     string `json:"session"`
	Notice string `json:"notice"`
}

// Key returns the session of the notice.
func (w NoticeWake) Key() session.Key { return session.Key{Tenant: w.Tenant, ID: w.ID} }

// NewNoticeWake returns the pointer to a notice of a session.
func NewNoticeWake(key session.Key, id string) NoticeWake {
	return NoticeWake{V: WakeVersion, Tenant: key.Tenant, ID: key.ID, Notice: id}
}

// ParseNoticeWake reads the body of a message of the notices' queue. What is none is [ErrInvalidWake].
func ParseNoticeWake(body []byte) (NoticeWake, error) {
	var w NoticeWake
	if err := json.Unmarshal(body, &w); err != nil {
		return NoticeWake{}, fmt.Errorf("%w: %w", ErrInvalidWake, err)
	}
	if w.V != WakeVersion || w.Notice == "" {
		return NoticeWake{}, fmt.Errorf("%w: version %d, notice %q", ErrInvalidWake, w.V, w.Notice)
	}
	if err := w.Key().Validate(); err != nil {
		return NoticeWake{}, errors.Join(ErrInvalidWake, err)
	}
	return w, nil
}
