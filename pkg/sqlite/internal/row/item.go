package row

import (
	"database/sql/driver"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Record is an item ready to be written: encoded by its caller, so that the
// writer only writes, and so that nothing is shared with the caller.
type Record struct {
	Key   session.Key // what it belongs to: a session, or a tenant, which has no id
	Named session.Key // what it comes back with
	Kind  store.ItemKind
	ID    string
	Rev   int64 // the condition
	Text  string

	Due      driver.Value
	Tenant   driver.Value // of an open wait
	Deadline driver.Value
	Opened   driver.Value
	Status   session.Status // of HEAD
	Moved    int64
}

// never is the deadline of a wait that has none: after all others.
const never = math.MaxInt64

// Encode checks and encodes an item of a write of own.
func Encode(own session.Key, item *store.Item) (Record, error) {
	if err := item.Validate(own); err != nil {
		return Record{}, err
	}
	key := item.KeyIn(own)
	r := Record{Key: key, Named: item.Named(own), Kind: item.Kind, ID: item.ID, Rev: item.Rev}
	switch item.Kind {
	case store.KindHead:
		r.Status, r.Moved, r.Due = item.Head.Status, Nanos(item.Head.UpdatedAt), nanosOrNull(item.Head.Due)
	case store.KindWait:
		w := item.Wait
		r.Due = nanosOrNull(w.Due)
		if w.State == session.WaitOpen {
			r.Tenant, r.Opened, r.Deadline = key.Tenant, Nanos(w.Wait.OpenedAt), int64(never)
			if w.Wait.Deadline != nil {
				r.Deadline = Nanos(w.Wait.Deadline.At)
			}
		}
	case store.KindNotice: // beside the open waits: the newest has the smallest key
		r.Due, r.Tenant, r.Opened, r.Deadline = nanosOrNull(item.Notice.Due), NoticesOf(key.Tenant), Nanos(item.Notice.At), -Nanos(item.Notice.At)
	case store.KindRun, store.KindTool, store.KindMail, store.KindAudit, store.KindIdempotency, store.KindTenantRecord: // in no index
	}
	text, err := item.Record()
	if err != nil {
		return Record{}, err
	}
	r.Text = string(text)
	return r, nil
}

// NoticesOf is what stands in the place of the tenant in the rows of its notices: no tenant has such
// a name.
func NoticesOf(tenant string) string { return "*notices*" + tenant }

// HeadColumns are the columns of the table sessions that [HeadOf] reads.
const HeadColumns = "rev, deleted, lease_owner, lease_seq, lease_n, lease_until, lease_for, lease_died, head"

// Head is HEAD as it lies in its row. Its lease is in columns: copies with other leases may share
// the text.
type Head struct {
	Rev     int64
	Deleted bool
	Lease   journal.Lease
	Text    []byte

	decoded *atomic.Pointer[journal.Head] // shared by the copies; nobody changes what it leads to
}

// Keep has the head, and its copies from then on, decode its text once.
func (h *Head) Keep() { h.decoded = new(atomic.Pointer[journal.Head]) }

// HeadOf reads [HeadColumns].
func HeadOf(row Values) Head {
	return Head{
		Rev: row.Int(0), Deleted: row.Int(1) != 0, Text: row.Bytes(8),
		Lease: journal.Lease{
			Owner: row.Text(2), Seq: row.Int(3), N: row.Int(4), Until: Time(row.Int(5)), For: time.Duration(row.Int(6)), Died: row.Int(7),
		},
	}
}

// Item decodes HEAD. The lease of an owner known to be dead has no time left.
func (h *Head) Item(dead func(owner string) bool) (store.Item, error) {
	if h.Rev == 0 {
		return store.Item{Kind: store.KindHead}, nil
	}
	item := store.Item{Kind: store.KindHead, Rev: h.Rev}
	if h.decoded != nil {
		item.Head = independent(h.decoded.Load())
	}
	if item.Head == nil {
		var err error
		if item, err = store.NewItem(store.KindHead, "", h.Rev, h.Text); err != nil {
			return store.Item{}, err
		}
		if h.decoded != nil {
			h.decoded.Store(independent(item.Head))
		}
	}
	item.Head.Lease = h.Lease
	if !h.Lease.Until.IsZero() && dead(h.Lease.Owner) {
		item.Head.Lease.Until = time.Time{}
	}
	return item, nil
}

// independent returns a copy that shares nothing that may be changed; nil of nil. What a record
// keeps of a newer program is read only.
func independent(h *journal.Head) *journal.Head {
	if h == nil {
		return nil
	}
	own := *h
	own.Parent, own.ForkedFrom, own.Signal = copied(h.Parent), copied(h.ForkedFrom), copied(h.Signal)
	own.CancelAt, own.Due = copied(h.CancelAt), copied(h.Due)
	own.Tags = slices.Clone(h.Tags)
	return &own
}

func copied[T any](v *T) *T {
	if v == nil {
		return nil
	}
	own := *v
	return &own
}
