package store

import (
	"strconv"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// HeadItem returns HEAD as an item at revision rev.
func HeadItem(head journal.Head, rev int64) Item {
	return Item{Kind: KindHead, Rev: rev, Head: &head}
}

// WaitItem returns a wait's record as an item at revision rev.
func WaitItem(wait journal.WaitRecord, rev int64) Item {
	return Item{Kind: KindWait, ID: wait.Wait.ID, Rev: rev, Wait: &wait}
}

// RunItem returns a run's record as an item at revision rev.
func RunItem(run session.Run, rev int64) Item {
	return Item{Kind: KindRun, ID: strconv.FormatInt(run.ID, 10), Rev: rev, Run: &run}
}

// ToolItem returns the ledger of a call as an item at revision rev.
func ToolItem(tool journal.ToolRecord, rev int64) Item {
	return Item{Kind: KindTool, ID: tool.Call, Rev: rev, Tool: &tool}
}

// MailItem returns mail as an item at revision rev.
func MailItem(mail journal.Mail, rev int64) Item {
	return Item{Kind: KindMail, ID: mail.ID, Rev: rev, Mail: &mail}
}

// IdempotencyItem returns an idempotency record as an item at revision rev.
func IdempotencyItem(record journal.Idempotency, rev int64) Item {
	return Item{Kind: KindIdempotency, ID: record.Key, Rev: rev, Idempotency: &record}
}

// AuditItem returns an audit line as a new item.
func AuditItem(line journal.Audit) Item {
	return Item{Kind: KindAudit, ID: line.ID, Audit: &line}
}

// NoticeItem returns a notice as an item at revision rev.
func NoticeItem(notice journal.Notice, rev int64) Item {
	return Item{Kind: KindNotice, ID: notice.ID, Rev: rev, Notice: &notice}
}

// TenantItem returns a tenant's record as an item at revision rev.
func TenantItem(record journal.TenantRecord, rev int64) Item {
	return Item{Kind: KindTenantRecord, ID: record.Name, Rev: rev, TenantRecord: &record}
}

// In returns the item as one of another session than the write's own.
func (i Item) In(key session.Key) Item {
	i.Key = key
	return i
}

// KeyIn returns the key of what an item belongs to in a write of own: a
// session's, or that of a tenant, whose ID is empty.
func (i *Item) KeyIn(own session.Key) session.Key {
	if i.Key == (session.Key{}) {
		return i.Kind.Scope(own)
	}
	return i.Key
}

// Named returns the key that an item of a write of own comes back with: zero
// when it is the write's own.
func (i *Item) Named(own session.Key) session.Key {
	if key := i.KeyIn(own); key != i.Kind.Scope(own) {
		return key
	}
	return session.Key{}
}

// Scope returns the key of what items of the kind belong to under a session's
// key: that session, or its tenant.
func (k ItemKind) Scope(key session.Key) session.Key {
	if k.OfTenant() {
		key.ID = ""
	}
	return key
}

// OfTenant reports whether items of the kind belong to a tenant instead of a session.
func (k ItemKind) OfTenant() bool { return k == KindIdempotency || k == KindTenantRecord }

// Everywhere stands in the place of a tenant in the key of records that belong to none, because they
// are about all of the store. No tenant has that name, so no session and no caller's record can.
const Everywhere = "*"

// ValidateKey returns an error unless items of the kind can belong to key: a
// tenant's need no more of it than the tenant, and a record may belong to [Everywhere].
func (k ItemKind) ValidateKey(key session.Key) error {
	switch {
	case k == KindTenantRecord && key.Tenant == Everywhere:
		return nil
	case k.OfTenant():
		return ValidateTenant(key.Tenant)
	}
	return key.Validate()
}

// ValidateTenant returns an error unless a tenant's name can be.
func ValidateTenant(tenant string) error {
	return session.Key{Tenant: tenant, ID: "any"}.Validate()
}
