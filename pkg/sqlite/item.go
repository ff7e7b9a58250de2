package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// record is an item ready to be written: encoded by its caller, so that the
// writer only writes, and so that nothing is shared with the caller.
type record struct {
	key  session.Key // an idempotency record's has no id
	kind store.ItemKind
	id   string
	rev  int64 // the condition
	text string

	due      driver.Value
	tenant   driver.Value // of an open wait
	deadline driver.Value
	opened   driver.Value
	status   session.Status // of HEAD
	moved    int64
}

// never is the deadline of a wait that has none: after all others.
const never = math.MaxInt64

func encodeItem(key session.Key, item *store.Item) (record, error) {
	r := record{key: key, kind: item.Kind, id: item.ID, rev: item.Rev}
	if err := validateItem(&r, item); err != nil {
		return record{}, err
	}
	var value any
	switch item.Kind {
	case store.KindHead:
		head := *item.Head
		head.Lease = session.Lease{}
		r.status, r.moved, r.due = head.Status, head.UpdatedAt.UnixNano(), nanosOrNull(head.Due)
		value = &head
	case store.KindWait:
		w := item.Wait
		r.due = nanosOrNull(w.Due)
		if w.State == session.WaitOpen {
			r.tenant, r.opened, r.deadline = key.Tenant, nanos(w.Wait.OpenedAt), int64(never)
			if w.Wait.Deadline != nil {
				r.deadline = nanos(w.Wait.Deadline.At)
			}
		}
		value = w
	case store.KindRun:
		value = item.Run
	case store.KindTool:
		value = item.Tool
	case store.KindMail:
		value = item.Mail
	case store.KindAudit:
		value = item.Audit
	case store.KindIdempotency:
		r.key.ID = ""
		value = item.Idempotency
	}
	text, err := json.Marshal(value)
	if err != nil {
		return record{}, fmt.Errorf("%s %s: %w", item.Kind, item.ID, err)
	}
	r.text = string(text)
	return r, nil
}

func validateItem(r *record, item *store.Item) error {
	var set bool
	switch item.Kind {
	case store.KindHead:
		set = item.Head != nil
		if set && item.Head.Key != r.key {
			return fmt.Errorf("head: it is that of session %s", item.Head.Key)
		}
		if item.ID != "" {
			return fmt.Errorf("head: it has no id, %q was given", item.ID)
		}
	case store.KindWait:
		set = item.Wait != nil
	case store.KindRun:
		set = item.Run != nil
	case store.KindTool:
		set = item.Tool != nil
	case store.KindMail:
		set = item.Mail != nil
	case store.KindAudit:
		set = item.Audit != nil
	case store.KindIdempotency:
		set = item.Idempotency != nil
	default:
		return fmt.Errorf("unknown kind of item %q", item.Kind)
	}
	switch {
	case !set:
		return fmt.Errorf("%s %s: the item is empty", item.Kind, item.ID)
	case item.ID == "" && item.Kind != store.KindHead:
		return fmt.Errorf("%s: the item has no id", item.Kind)
	case item.Rev < 0:
		return fmt.Errorf("%s %s: revision %d", item.Kind, item.ID, item.Rev)
	}
	return nil
}

func decodeItem(kind store.ItemKind, id string, rev int64, text []byte) (store.Item, error) {
	item := store.Item{Kind: kind, ID: id, Rev: rev}
	var value any
	switch kind {
	case store.KindWait:
		item.Wait = new(session.WaitRecord)
		value = item.Wait
	case store.KindRun:
		item.Run = new(session.Run)
		value = item.Run
	case store.KindTool:
		item.Tool = new(session.ToolRecord)
		value = item.Tool
	case store.KindMail:
		item.Mail = new(session.Mail)
		value = item.Mail
	case store.KindAudit:
		item.Audit = new(session.Audit)
		value = item.Audit
	case store.KindIdempotency:
		item.Idempotency = new(session.Idempotency)
		value = item.Idempotency
	case store.KindHead: // its lease lies beside it: see headRow
		item.Head = new(session.Head)
		value = item.Head
	}
	if err := json.Unmarshal(text, value); err != nil { // of an unknown kind too
		return store.Item{}, fmt.Errorf("%w: %s %s: %w", store.ErrCorrupt, kind, id, err)
	}
	return item, nil
}

// headRow is HEAD as it lies in its row.
type headRow struct {
	rev     int64
	deleted bool
	lease   session.Lease
	text    []byte
}

// headOf reads the columns of headColumns.
func headOf(row []driver.Value) headRow {
	return headRow{
		rev: intOf(row[0]), deleted: intOf(row[1]) != 0, text: bytesOf(row[6]),
		lease: session.Lease{Owner: textOf(row[2]), Seq: intOf(row[3]), N: intOf(row[4]), Until: timeOf(intOf(row[5]))},
	}
}

// item decodes HEAD. The lease of an owner known to be dead has no time left.
func (h *headRow) item(dead func(owner string) bool) (store.Item, error) {
	if h.rev == 0 {
		return store.Item{Kind: store.KindHead}, nil
	}
	item, err := decodeItem(store.KindHead, "", h.rev, h.text)
	if err != nil {
		return store.Item{}, err
	}
	item.Head.Lease = h.lease
	if !h.lease.Until.IsZero() && dead(h.lease.Owner) {
		item.Head.Lease.Until = time.Time{}
	}
	return item, nil
}

// nanos is how times are kept; 0 is the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

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
