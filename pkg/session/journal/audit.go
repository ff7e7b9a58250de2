package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// The kinds of line that are recorded.
const (
	AuditRefused = session.AuditRefused
	AuditFull    = session.AuditFull
	AuditViewed  = session.AuditViewed
)

// MaxAudit is how many audit lines a wait may have, so that callers who may not answer cannot
// fill a store with refused attempts.
const MaxAudit = 100

// Audit is one line about a wait that is not part of the history, such as a
// refused answer. It never takes a seq. The lines of a wait are a chain: each
// holds the hash of the one before it, the wait's record that of the newest one,
// and the entry that takes the wait's answer in the one it had then. So no line
// can be changed, left out or added afterwards without a trace.
type Audit struct {
	// ID sorts: by the entry that opened the wait, by the wait, by N.
	ID   string `json:"id"`
	Wait string `json:"wait"`
	// N counts the lines of the wait, from 1.
	N    int64             `json:"n"`
	Kind session.AuditKind `json:"kind"`
	Who  string            `json:"who"`
	At   time.Time         `json:"at"`
	From string            `json:"from"`
	// Data of the kind.
	Data json.RawMessage `json:"data,omitempty"`
	// Prev is the hash of the line before; on the first that of the session and the
	// wait, so that a chain is at home in one place only.
	Prev string `json:"prev,omitempty"`

	kept *kept
}

// AuditTip is the end of a wait's chain: how many lines it has and the hash of the newest.
type AuditTip struct {
	Count int64  `json:"count"`
	Hash  string `json:"hash"`
}

// ErrBrokenAudit says that audit lines are not the chain that was written.
var ErrBrokenAudit = errors.New("broken audit chain")

// AddAudit completes a line (Kind, Who, At, From, Data are set), appends it to the
// chain of the wait in the session of key and returns it; write it together with
// the record. ok is false when the wait has [MaxAudit] lines; the last of them is
// [AuditFull].
func (r *WaitRecord) AddAudit(key session.Key, line Audit) (complete Audit, ok bool) {
	n := r.Audit.Count + 1
	if n > MaxAudit {
		return Audit{}, false
	}
	if n == MaxAudit {
		line.Kind, line.Data = AuditFull, nil
	}
	line.ID, line.Wait, line.N, line.Prev = auditID(r.Wait.ID, n), r.Wait.ID, n, r.Audit.Hash
	if n == 1 {
		line.Prev = auditStart(key, r.Wait.ID)
	}
	line.At = line.At.UTC()
	r.Audit = AuditTip{Count: n, Hash: line.Hash()}
	return line, true
}

// Hash returns the hash of the line, with that of the line before in it. It is
// the same however the line's JSON is written.
func (a *Audit) Hash() string {
	raw, err := MarshalRecord(a)
	if err != nil {
		return "" // no line without a hash is in a chain
	}
	return Digest(raw)
}

// auditStart is what the first line of a wait's chain follows.
func auditStart(key session.Key, wait string) string { return hash([]byte(key.String() + "/" + wait)) }

// CheckAudit holds that lines, in the order of their ids, are the whole chain of a
// wait of a session up to its tip. Errors wrap [ErrBrokenAudit].
func CheckAudit(key session.Key, wait string, lines []Audit, tip AuditTip) error {
	if len(lines) == 0 && tip == (AuditTip{}) {
		return nil
	}
	prev := auditStart(key, wait)
	for i := range lines {
		line := &lines[i]
		n := int64(i + 1)
		switch {
		case line.Wait != wait || line.N != n || line.ID != auditID(wait, n):
			return fmt.Errorf("%w: wait %s: line %d is %q", ErrBrokenAudit, wait, n, line.ID)
		case line.Prev != prev:
			return fmt.Errorf("%w: wait %s: line %d does not follow the one before", ErrBrokenAudit, wait, n)
		}
		if prev = line.Hash(); prev == "" {
			return fmt.Errorf("%w: wait %s: line %d has no hash", ErrBrokenAudit, wait, n)
		}
	}
	if tip.Count != int64(len(lines)) || tip.Hash != prev {
		return fmt.Errorf("%w: wait %s: it ends at line %d, and the wait has %d", ErrBrokenAudit, wait, len(lines), tip.Count)
	}
	return nil
}

// AuditPrefix is what the ids of all audit lines of a wait begin with.
func AuditPrefix(wait string) string {
	var seq, i int64
	if _, err := fmt.Sscanf(wait, "w%d-%d", &seq, &i); err != nil {
		return wait + "-"
	}
	return fmt.Sprintf("%010d-%02d-", seq, i)
}

func auditID(wait string, n int64) string { return fmt.Sprintf("%s%04d", AuditPrefix(wait), n) }
