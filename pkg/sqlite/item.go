package sqlite

import (
	"database/sql/driver"
	"math"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// record is an item ready to be written: encoded by its caller, so that the
// writer only writes, and so that nothing is shared with the caller.
type record struct {
	key   session.Key // what it belongs to: a session, or a tenant, which has no id
	named session.Key // what it comes back with
	kind  store.ItemKind
	id    string
	rev   int64 // the condition
	text  string

	due      driver.Value
	tenant   driver.Value // of an open wait
	deadline driver.Value
	opened   driver.Value
	status   session.Status // of HEAD
	moved    int64
}

// never is the deadline of a wait that has none: after all others.
const never = math.MaxInt64

// encodeItem checks and encodes an item of a write of own.
func encodeItem(own session.Key, item *store.Item) (record, error) {
	if err := item.Validate(own); err != nil {
		return record{}, err
	}
	key := item.KeyIn(own)
	r := record{key: key, named: item.Named(own), kind: item.Kind, id: item.ID, rev: item.Rev}
	switch item.Kind {
	case store.KindHead:
		r.status, r.moved, r.due = item.Head.Status, nanos(item.Head.UpdatedAt), nanosOrNull(item.Head.Due)
	case store.KindWait:
		w := item.Wait
		r.due = nanosOrNull(w.Due)
		if w.State == session.WaitOpen {
			r.tenant, r.opened, r.deadline = key.Tenant, nanos(w.Wait.OpenedAt), int64(never)
			if w.Wait.Deadline != nil {
				r.deadline = nanos(w.Wait.Deadline.At)
			}
		}
	case store.KindRun, store.KindTool, store.KindMail, store.KindAudit, store.KindIdempotency, store.KindTenantRecord: // in no index
	}
	text, err := item.Record()
	if err != nil {
		return record{}, err
	}
	r.text = string(text)
	return r, nil
}

// headRow is HEAD as it lies in its row.
type headRow struct {
	rev     int64
	deleted bool
	lease   journal.Lease
	text    []byte
}

// headOf reads the columns of headColumns.
func headOf(row []driver.Value) headRow {
	return headRow{
		rev: intOf(row[0]), deleted: intOf(row[1]) != 0, text: bytesOf(row[8]),
		lease: journal.Lease{
			Owner: textOf(row[2]), Seq: intOf(row[3]), N: intOf(row[4]), Until: timeOf(intOf(row[5])), For: time.Duration(intOf(row[6])), Died: intOf(row[7]),
		},
	}
}

// item decodes HEAD. The lease of an owner known to be dead has no time left.
func (h *headRow) item(dead func(owner string) bool) (store.Item, error) {
	if h.rev == 0 {
		return store.Item{Kind: store.KindHead}, nil
	}
	item, err := store.NewItem(store.KindHead, "", h.rev, h.text)
	if err != nil {
		return store.Item{}, err
	}
	item.Head.Lease = h.lease
	if !h.lease.Until.IsZero() && dead(h.lease.Owner) {
		item.Head.Lease.Until = time.Time{}
	}
	return item, nil
}

// The first and the last time that fit into nanoseconds since 1970, in 1677 and in
// 2262. What is earlier or later is kept as they are: so it sorts first or last,
// but before never, and a search for what is due by some time does not find it early.
const (
	earliest = math.MinInt64
	latest   = math.MaxInt64 - 1
)

// nanos is how times are kept; 0 is the zero time.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(timeOf(earliest)):
		return earliest
	case t.After(timeOf(latest)):
		return latest
	}
	return t.UnixNano()
}

// bound is a time as a search compares others with it: none is as late as latest.
func bound(t time.Time) int64 { return min(nanos(t), latest-1) }

func nanosOrNull(t *time.Time) driver.Value {
	if t == nil {
		return nil
	}
	return nanos(*t)
}

func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
