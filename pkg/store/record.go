package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// What every adapter does the same way: which items may be stored under which key, how their
// records are encoded, which owner gets a lease.

// Validate returns an error unless the item may be part of a write of own: it
// belongs to a session or a tenant that can be, as its kind has it, and to own's
// tenant; its record is that of its kind, HEAD is its session's, all others have an id.
func (i *Item) Validate(own session.Key) error {
	key := i.KeyIn(own)
	if err := i.Kind.ValidateKey(key); err != nil {
		return err
	}
	switch {
	case key.Tenant != own.Tenant:
		return fmt.Errorf("%s %s: it belongs to tenant %q and the write to %q", i.Kind, i.ID, key.Tenant, own.Tenant)
	case i.Kind.OfTenant() && key.ID != "":
		return fmt.Errorf("%s %s: it belongs to a tenant, session %q was given", i.Kind, i.ID, key.ID)
	}
	var set bool
	switch i.Kind {
	case KindHead:
		set = i.Head != nil
		if set && i.Head.Key != key {
			return fmt.Errorf("head: it is that of session %s", i.Head.Key)
		}
		if i.ID != "" {
			return fmt.Errorf("head: it has no id, %q was given", i.ID)
		}
	case KindWait:
		set = i.Wait != nil
	case KindRun:
		set = i.Run != nil
	case KindTool:
		set = i.Tool != nil
	case KindMail:
		set = i.Mail != nil
	case KindAudit:
		set = i.Audit != nil
	case KindNotice:
		set = i.Notice != nil
	case KindIdempotency:
		set = i.Idempotency != nil
	case KindTenantRecord:
		set = i.TenantRecord != nil
		if err := validateName(i.ID); set && err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown kind of item %q", i.Kind)
	}
	switch {
	case !set:
		return fmt.Errorf("%s %s: the item is empty", i.Kind, i.ID)
	case i.ID == "" && i.Kind != KindHead:
		return fmt.Errorf("%s: the item has no id", i.Kind)
	case i.Rev < 0:
		return fmt.Errorf("%s %s: revision %d", i.Kind, i.ID, i.Rev)
	}
	return nil
}

// maxName is the longest name of a tenant's record.
const maxName = 512

// validateName returns an error unless a record of a tenant may have the name.
func validateName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%s: a name of %d characters, and %d is the most", KindTenantRecord, len(name), maxName)
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' || name[i] == '*' {
			return fmt.Errorf("%s %q: a name is made of the characters from ! to ~ but *", KindTenantRecord, name)
		}
	}
	return nil
}

// Record returns the JSON of a valid item's record. HEAD's is without its lease,
// which claims change and nothing else.
func (i *Item) Record() (json.RawMessage, error) {
	var value any
	switch i.Kind {
	case KindHead:
		head := *i.Head
		head.Lease = journal.Lease{}
		value = &head
	case KindWait:
		value = i.Wait
	case KindRun:
		value = i.Run
	case KindTool:
		value = i.Tool
	case KindMail:
		value = i.Mail
	case KindAudit:
		value = i.Audit
	case KindNotice:
		value = i.Notice
	case KindIdempotency:
		value = i.Idempotency
	case KindTenantRecord:
		value = i.TenantRecord
	}
	raw, err := journal.MarshalRecord(value)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", i.Kind, i.ID, err)
	}
	if i.isSealed() {
		raw = journal.AddSeal(raw, i.Rev+1, journal.SealOf(value))
	}
	return raw, nil
}

// isSealed reports whether the record has a seal: those of a session, but for HEAD while each step writes
// over it and it vouches for no entry.
func (i *Item) isSealed() bool {
	switch i.Kind {
	case KindHead:
		return i.Head.Newest != (journal.EntryHash{})
	case KindWait, KindRun, KindTool, KindMail, KindAudit:
		return true
	case KindNotice, KindIdempotency, KindTenantRecord:
	}
	return false
}

// DecodeEntry returns the entry of a seq from its stored form. If it is no such entry, the error
// is [ErrCorrupt]; if it needs a feature this program does not have, [journal.ErrNeeds].
func DecodeEntry(payload []byte, seq int64) (journal.Entry, error) {
	e, err := journal.Decode(payload)
	if err == nil && e.Seq != seq {
		err = fmt.Errorf("it says it is entry %d", e.Seq)
	}
	switch {
	case errors.Is(err, journal.ErrNeeds):
		return journal.Entry{}, err
	case err != nil:
		return journal.Entry{}, fmt.Errorf("%w: entry %d: %w", ErrCorrupt, seq, err)
	}
	return e, nil
}

// NewItem returns the item that [Item.Record] wrote. What is no record of the
// kind is [ErrCorrupt]. With [journal.ErrNeeds] comes the item, which this program
// may list, but must not act on.
func NewItem(kind ItemKind, id string, rev int64, record []byte) (Item, error) {
	item := Item{Kind: kind, ID: id, Rev: rev}
	var value any
	switch kind {
	case KindHead:
		item.Head = new(journal.Head)
		value = item.Head
	case KindWait:
		item.Wait = new(journal.WaitRecord)
		value = item.Wait
	case KindRun:
		item.Run = new(session.Run)
		value = item.Run
	case KindTool:
		item.Tool = new(journal.ToolRecord)
		value = item.Tool
	case KindMail:
		item.Mail = new(journal.Mail)
		value = item.Mail
	case KindAudit:
		item.Audit = new(journal.Audit)
		value = item.Audit
	case KindNotice:
		item.Notice = new(journal.Notice)
		value = item.Notice
	case KindIdempotency:
		item.Idempotency = new(journal.Idempotency)
		value = item.Idempotency
	case KindTenantRecord:
		item.TenantRecord = new(journal.TenantRecord)
		value = item.TenantRecord
	}
	record, seal := journal.TakeSeal(record, rev)
	err := journal.UnmarshalRecord(record, value)
	if value != nil && (seal == journal.SealBroken || item.isSealed()) {
		journal.SetSeal(value, seal)
	}
	if errors.Is(err, journal.ErrNeeds) {
		return item, fmt.Errorf("%s %s: %w", kind, id, err)
	}
	if err != nil { // of an unknown kind too
		return Item{}, fmt.Errorf("%w: %s %s: %w", ErrCorrupt, kind, id, err)
	}
	return item, nil
}

// Validate returns an error unless a claim has a mode, an owner, an entry and a
// key that can be.
func (p *ClaimParams) Validate() error {
	switch p.Mode {
	case ClaimTake, ClaimRenew, ClaimMove, ClaimRelease:
	default:
		return fmt.Errorf("unknown claim mode %q", p.Mode)
	}
	switch {
	case p.Owner == "":
		return errors.New("no owner")
	case p.Seq < 1:
		return fmt.Errorf("entry %d", p.Seq)
	}
	return p.Key.Validate()
}

// Validate returns an error unless the commit's entry is valid (its seq is below a bound of the
// adapter's), the sessions it names are valid, no item is there twice, its marks are new ledgers,
// and a lease owner goes with HEAD. Each item is validated when it is encoded, the claim by the
// adapter that makes it.
func (p *CommitParams) Validate(below int64) error {
	e := &p.Entry
	switch {
	case len(p.Items)+len(p.Marks)+1 > MaxItems:
		return fmt.Errorf("%w: %d with the entry, and %d is the most", ErrTooManyItems, len(p.Items)+len(p.Marks)+1, MaxItems)
	case e.V != journal.Format:
		return fmt.Errorf("entry %d has version %d", e.Seq, e.V)
	case e.Seq < 1 || e.Seq >= below:
		return fmt.Errorf("entry %d: out of range", e.Seq)
	}
	if err := p.Key.Validate(); err != nil {
		return err
	}
	for i := range p.Wakes {
		key := p.Wakes[i].Key()
		if err := key.Validate(); err != nil {
			return fmt.Errorf("wake: %w", err)
		}
		if key.Tenant != p.Key.Tenant {
			return fmt.Errorf("wake of session %s: the commit belongs to tenant %q", key, p.Key.Tenant)
		}
	}
	if p.LeaseOwner != "" && !slices.ContainsFunc(p.Items, func(item Item) bool { return item.Kind == KindHead && item.Rev > 0 && item.KeyIn(p.Key) == p.Key }) {
		return fmt.Errorf("lease owner %q: HEAD is not among the items", p.LeaseOwner)
	}
	for i := range p.Marks {
		m := &p.Marks[i]
		if m.Kind != KindTool || m.Rev != 0 || m.KeyIn(p.Key) != p.Key {
			return fmt.Errorf("mark %d: %s %s is no new ledger of the session", i, m.Kind, m.ID)
		}
	}
	if len(p.Marks) > 0 {
		return validateItems(p.Key, slices.Concat(p.Items, p.Marks))
	}
	return validateItems(p.Key, p.Items)
}

// ValidateUpdate returns an error unless so many items may be updated at once,
// each of which is validated when it is encoded.
func ValidateUpdate(own session.Key, items []Item) error {
	if len(items) > MaxItems {
		return fmt.Errorf("%w: %d, and %d is the most", ErrTooManyItems, len(items), MaxItems)
	}
	if own.Tenant != Everywhere { // what may belong there is a matter of its kind
		if err := ValidateTenant(own.Tenant); err != nil {
			return err
		}
	}
	return validateItems(own, items)
}

// validateItems refuses items one of which is there twice, and new ones of
// another session that its HEAD does not hold.
func validateItems(own session.Key, items []Item) error {
	for i := range items {
		item, key := &items[i], items[i].KeyIn(own)
		for j := range i {
			if items[j].Kind == item.Kind && items[j].ID == item.ID && items[j].KeyIn(own) == key {
				return fmt.Errorf("%s %s is there twice", item.Kind, item.ID)
			}
		}
		if item.Rev == 0 && key.ID != "" && key != own && !holdsHead(own, items, key) {
			return fmt.Errorf("%s %s: new in session %s without a revision of its HEAD in the same write", item.Kind, item.ID, key)
		}
	}
	return nil
}

// holdsHead reports whether HEAD of an existing session is among the items.
func holdsHead(own session.Key, items []Item, key session.Key) bool {
	return slices.ContainsFunc(items, func(i Item) bool { return i.Kind == KindHead && i.Rev > 0 && i.KeyIn(own) == key })
}

// lease is what a granted claim asks for. Its length goes with its end, so that a
// reader with another clock can tell an end that cannot be.
func (p *ClaimParams) lease() journal.Lease {
	return journal.Lease{Owner: p.Owner, Seq: p.Seq, Until: p.Until, For: max(p.Until.Sub(p.Now), 0)}
}

// First returns the lease of a claim as the first one of its entry.
func (p *ClaimParams) First() journal.Lease {
	is := p.lease()
	is.N = 1
	return is
}

// Grant returns the lease after a claim, and whether it is granted: the table of
// [ClaimMode]. The lease's seq never goes back, nor does the end of a lease that its
// owner asks for again. dead tells whether the owner of the lease is known to be.
func (p *ClaimParams) Grant(was journal.Lease, dead func(owner string) bool) (journal.Lease, bool) {
	mine := was.Owner == p.Owner
	is := p.lease()
	is.N, is.Died = was.N, was.Died
	if mine && was.Seq == p.Seq && was.Until.After(is.Until) && !was.Lapsed(p.Now) {
		is.Until, is.For = was.Until, was.For // two requests may arrive in the other order
	}
	switch p.Mode {
	case ClaimTake:
		switch {
		case was.Seq < p.Seq:
			is.N, is.Died = 1, 0
		case was.Seq > p.Seq:
			return was, false
		case mine:
		case was.Lapsed(p.Now) || dead(was.Owner):
			is.N++
			if was.Owner != "" {
				is.Died++
			}
		default:
			return was, false
		}
		return is, true
	case ClaimRenew:
		return is, mine && was.Seq == p.Seq
	case ClaimMove:
		if was.Seq < p.Seq {
			is.N, is.Died = 1, 0
		}
		return is, mine && was.Seq <= p.Seq
	case ClaimRelease: // its claims stay counted
		is.Owner, is.Until, is.For = "", time.Time{}, 0
		return is, mine && was.Seq == p.Seq
	}
	return was, false
}
