package dynamostore

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/shards"
)

// record is an item ready to be written: encoded, so that nothing is shared with
// the caller.
type record struct {
	key   session.Key // what it belongs to: a session, or a tenant, which has no id
	named session.Key // what it comes back with
	kind  store.ItemKind
	id    string
	rev   int64 // the condition
	// owner, if set, is one more: of HEAD, that its lease is this owner's.
	owner string
	at    address
	body  []byte
	// beside are its attributes but for keys, body, revision and write id.
	beside attributes
	// blob is set when the body lies in the bucket.
	blob *bucket.Ref
}

// movable are the attributes an update sets or removes.
var movable = []string{
	attrStatus, attrList, attrListAt, attrInbox, attrInboxAt, attrByAgent, attrByKind, attrByTool, attrDue, attrDueAt, attrExpires,
	attrAgent, attrRoot, attrUser, attrTags, attrKind, attrTool, attrWho, attrBody, attrBlob, attrBlobBytes,
}

// tombstoneRemoves are the attributes that a tombstone does not have, besides the movable ones.
var tombstoneRemoves = []string{attrOwner, attrLeaseSeq, attrLeaseN, attrLeaseDied, attrLeaseUntil, attrLeaseFor, attrLeaseWrite}

// encodeItem checks an item of a write of own and encodes it.
func encodeItem(own session.Key, item *store.Item) (*record, error) {
	if err := item.Validate(own); err != nil {
		return nil, err
	}
	key := item.KeyIn(own)
	r := &record{
		key: key, named: item.Named(own), kind: item.Kind, id: item.ID, rev: item.Rev,
		at: itemAddress(key, item.Kind, item.ID), beside: attributes{},
	}
	switch item.Kind {
	case store.KindHead:
		r.indexHead(item.Head)
	case store.KindWait:
		r.indexWait(key, item.Wait)
	case store.KindNotice:
		r.beside[attrList] = text(shards.OfNotice(key))
		r.beside[attrListAt] = text(strings.Join([]string{sortable(item.Notice.At), key.ID, r.id}, "#"))
		r.indexDue(shards.Deadline, item.Notice.Due)
	case store.KindIdempotency:
		if at := item.Idempotency.ExpiresAt; !at.IsZero() {
			r.beside[attrExpires] = number(at.Unix() + 1)
		}
	case store.KindRun, store.KindTool, store.KindMail, store.KindAudit, store.KindTenantRecord: // in no index
	}
	var err error
	if r.body, err = item.Record(); err != nil {
		return nil, err
	}
	return r, nil
}

// indexHead puts HEAD into the list of its tenant's sessions, and into what is
// due. None of these attributes changes in a plain step.
func (r *record) indexHead(head *journal.Head) {
	r.beside[attrStatus] = text(string(head.Status))
	if head.Deleted {
		r.indexDue(shards.Soon, head.Due)
		return
	}
	r.beside[attrList] = text(shards.OfSession(head.Key))
	r.beside[attrListAt] = text(sortable(head.UpdatedAt) + "#" + head.Key.ID)
	r.keptBy(map[string]string{attrAgent: head.Agent, attrRoot: head.Root(), attrUser: head.StartedBy})
	if len(head.Tags) > 0 {
		r.beside[attrTags] = texts(head.Tags)
	}
	group := shards.Soon
	if head.DueAtDeadline() {
		group = shards.Deadline
	}
	r.indexDue(group, head.Due)
}

// keptBy sets attributes that are not empty.
func (r *record) keptBy(values map[string]string) {
	for attr, value := range values {
		if value != "" {
			r.beside[attr] = text(value)
		}
	}
}

// forever sorts after every time.
const forever = "~"

// indexWait puts an open wait into the inbox of its tenant, and into those of its
// agent, its kind and its tool, by deadline, those without one last and by age.
func (r *record) indexWait(key session.Key, w *journal.WaitRecord) {
	if w.State == session.WaitOpen {
		deadline := forever
		if w.Wait.Deadline != nil {
			deadline = sortable(w.Wait.Deadline.At)
		}
		r.beside[attrInbox] = text(shards.OfSession(key))
		r.beside[attrInboxAt] = text(strings.Join([]string{deadline, sortable(w.Wait.OpenedAt), key.ID, r.id}, "#"))
		r.keptBy(map[string]string{attrAgent: w.Agent, attrRoot: w.RootIn(key), attrKind: string(w.Wait.Kind), attrTool: w.Wait.Tool})
		for attr, value := range map[string]string{attrByAgent: w.Agent, attrByKind: string(w.Wait.Kind), attrByTool: w.Wait.Tool} {
			if value != "" {
				r.beside[attr] = text(shards.OfValue(key, value))
			}
		}
		if len(w.Wait.Who) > 0 && (w.Wait.Rule == nil || len(w.Wait.Rule.Roles) == 0) { // names alone say who may
			r.beside[attrWho] = texts(w.Wait.Who)
		}
	}
	if w.State == session.WaitOpen {
		r.indexDue(shards.Deadline, w.Due)
	} else {
		r.indexDue(shards.Soon, w.Due)
	}
}

// indexDue puts an item into what is due. The time is exact, for the earliest
// comes first; what follows it makes the position the item's own.
func (r *record) indexDue(group shards.Group, due *time.Time) {
	if due == nil {
		return
	}
	r.beside[attrDue] = text(shards.Due(group, r.at.pk+"#"+r.at.sk))
	r.beside[attrDueAt] = text(sortable(*due) + "#" + r.at.pk + "#" + r.at.sk)
}

// content are the attributes that hold the body, or the place where it is stored, with the other
// parts of the value, the revision after the write and the write's id.
func (r *record) content(write string) attributes {
	item := maps.Clone(r.beside)
	item[attrRev], item[writeAttr(r.rev+1)] = number(r.rev+1), text(write)
	putValue(item, attrBody, r.body, r.blob)
	return item
}

// item is the whole item as a put writes it.
func (r *record) item(write string) attributes {
	item := r.content(write)
	maps.Copy(item, r.at.key())
	return item
}

// change sets what the record has and removes what it no longer has.
func (r *record) change(e *expression, write string) string {
	remove := movable
	if isDeleted(r.beside) {
		remove = slices.Concat(movable, tombstoneRemoves)
	}
	return e.change(r.content(write), remove)
}

// condition is that the item is at the revision the writer saw.
func (r *record) condition(e *expression) string {
	if r.rev == 0 {
		return e.absent(attrPK)
	}
	condition := e.compare(attrRev, "=", number(r.rev))
	if r.kind == store.KindHead {
		condition += " AND " + e.absent(attrDeleted)
	}
	if r.owner != "" {
		condition += " AND " + e.compare(attrOwner, "=", text(r.owner))
	}
	return condition
}

// updates reports whether the item is changed in place, as all are once they
// exist: a put would take HEAD's lease with it, and the ids of earlier writes.
func (r *record) updates() bool { return r.rev > 0 }

// wrote reports whether an item, as it is when a write of the record was
// refused, was written by an earlier try of that write, whose answer was lost.
func (r *record) wrote(there attributes, write string) bool {
	since := numberOf(there, attrRev) - (r.rev + 1)
	return since >= 0 && since < writesKept && textOf(there, writeAttr(r.rev+1)) == write
}

// leaseOf reads the lease beside HEAD's body.
func leaseOf(item attributes) journal.Lease {
	return journal.Lease{
		Owner: textOf(item, attrOwner), Seq: numberOf(item, attrLeaseSeq), N: numberOf(item, attrLeaseN), Died: numberOf(item, attrLeaseDied),
		Until: timeOf(numberOf(item, attrLeaseUntil)), For: time.Duration(numberOf(item, attrLeaseFor)),
	}
}

// kindOf returns the kind and id of an item by its sort key.
func kindOf(sk string) (kind store.ItemKind, id string, ok bool) {
	if sk == headSK {
		return store.KindHead, "", true
	}
	for _, of := range []store.ItemKind{store.KindWait, store.KindNotice} {
		if id, is := strings.CutPrefix(sk, prefixes[of]); is {
			return of, id, true
		}
	}
	return "", "", false
}

func sortedNames(item attributes) []string { return slices.Sorted(maps.Keys(item)) }

// dueOf returns when the sweep should look at an item.
func dueOf(item *store.Item) *time.Time {
	switch {
	case item.Head != nil:
		return item.Head.Due
	case item.Wait != nil:
		return item.Wait.Due
	case item.Notice != nil:
		return item.Notice.Due
	}
	return nil
}
