// Package store is the interface to where sessions are stored, each write atomic.
//
// Its adapters are github.com/adjourn/adjourn/pkg/sqlite and
// github.com/adjourn/adjourn/pkg/store/dynamostore. What the comments here say, an
// adapter must do: package storetest has a test for each sentence.
package store

import (
	"context"
	"iter"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// MaxItems is how many items one Commit, its entry included, or one Update may write.
const MaxItems = 100

// Store remembers sessions. Every method is safe for concurrent use, by any
// number of processes. Reads but Find are consistent: they see every write that
// returned before they began. Values handed in and out are not shared: the caller may
// change them afterwards. No method retries a refusal; adapters retry what their
// transport loses. When ctx ends, a method returns an error that wraps its
// cause, and a write may or may not have happened.
type Store interface {
	// Claim takes, renews, moves or releases the lease of a session in one
	// conditional update and returns HEAD as it is afterwards (see [ClaimMode]).
	// A refusal is a [*LeaseError] that holds HEAD. A session that does not exist,
	// or is deleted, is [ErrNotFound]. HEAD's Rev is not changed by claims.
	Claim(ctx context.Context, p ClaimParams) (Item, error)

	// Commit writes an entry if its seq is free, and with it items, all or
	// nothing, durably before it returns. Each item is conditioned on its Rev: 0
	// means that it must not exist, anything else that it is still at that
	// revision; it is stored at Rev + 1. HEAD keeps the lease it has; a new one has
	// none. When the seq is taken the error is a [*ConflictError] with the entry
	// that is there, whatever the items say; when an item's condition fails, one
	// with that item as it is (Rev 0 if absent). An item may be in a commit once.
	// More than [MaxItems] are [ErrTooManyItems]. A session that was deleted is
	// [ErrNotFound]; only a new HEAD (Rev 0) for it is a conflict, with its tombstone.
	// Items may belong to other sessions (see [Item.Key]); their leases are kept too.
	// The wakes that must follow, for the session or others of its tenant, may be
	// enqueued in the same transaction: [Committed.Enqueued] says whether all of
	// them were. A wake for another tenant is refused.
	Commit(ctx context.Context, p CommitParams) (Committed, error)

	// Update writes items that are not entries, all or nothing, each conditioned on
	// its Rev as in Commit, durably before it returns, and returns them as stored,
	// in their order. When an item's condition fails the error is a
	// [*ConflictError] with that item as it is. An item may be in an update once.
	// More than [MaxItems] are [ErrTooManyItems]; none at all write nothing. An
	// update of HEAD keeps the lease it has. Items may belong to other sessions (see
	// [Item.Key]); where none is the session's own, key needs no more than a tenant.
	Update(ctx context.Context, key session.Key, items ...Item) ([]Item, error)

	// Entries yields the entries of a session with a seq above after, in order. A session
	// without entries yields nothing. A gap in the numbers, or an entry that cannot be decoded,
	// is [ErrCorrupt]; an entry that needs a feature this program does not have is
	// [journal.ErrNeeds].
	Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error]

	// Items yields the items of one kind of a session, ordered by id as text (an item that needs
	// a feature this program does not have is [journal.ErrNeeds]). With an id it yields only
	// that item, or nothing; with an id that ends with *, the items whose id begins with the
	// text before it. For a kind that belongs to a tenant they are those of the key's tenant,
	// whatever its ID. They come without a [Item.Key].
	Items(ctx context.Context, key session.Key, kind ItemKind, id string) iter.Seq2[Item, error]

	// Find searches across sessions (see [FindParams]). Deleted sessions are not returned, but for
	// what is due of one (see Delete). An
	// adapter's indexes may lag shortly behind its writes, as DynamoDB's do: the newest writes
	// may be missing, so a caller that acts on a result reads the item again. A result is as it
	// was when it was read. A page may be short, even empty, though it has a cursor: an adapter
	// may bound the bytes of a page, and how much it reads when the parameters select only some.
	Find(ctx context.Context, p FindParams) (Page, error)

	// Delete removes everything a session has but a tombstone of HEAD, so that the
	// id is never used again. Deleting twice is no error; a session that never
	// existed is [ErrNotFound]. An adapter that removes in several writes makes the
	// tombstone due, so that FindDue returns it, until a Delete has come to its end.
	Delete(ctx context.Context, key session.Key) error
}

// ClaimMode says what a claim asks for.
type ClaimMode string

// The claim modes.
const (
	// ClaimTake takes the lease for Seq. It is granted when the lease's seq is below Seq, or is
	// Seq and either its time has passed, the caller is its owner or the adapter has found that
	// its owner is dead. N is 1 for a new seq, one more than before for the same seq, and
	// unchanged when the caller had it already.
	ClaimTake ClaimMode = "take"
	// ClaimRenew extends the lease of Seq, if the caller still owns it. It does not
	// end a lease sooner: a worker asks from several places at once, and what it asked
	// for first may arrive last. A lease that has lapsed, also because its end lies
	// further ahead than can be ([journal.Come]), begins anew.
	ClaimRenew ClaimMode = "renew"
	// ClaimMove moves the lease on to Seq, if the caller still owns it; N is 1, and
	// unchanged when it was for Seq already. It never goes back.
	ClaimMove ClaimMode = "move"
	// ClaimRelease ends the lease of Seq, if the caller still owns it: then the lease has no
	// owner. Its seq and N stay.
	ClaimRelease ClaimMode = "release"
)

// ClaimParams are the parameters of a claim.
type ClaimParams struct {
	Key  session.Key
	Mode ClaimMode
	// Owner names the worker and its invocation.
	Owner string
	Seq   int64
	// Now is the caller's clock, Until when the lease shall lapse.
	Now   time.Time
	Until time.Time
}

// CommitParams are the parameters of a commit.
type CommitParams struct {
	Key   session.Key
	Entry journal.Entry
	// Items written with the entry: HEAD, waits, runs, ledger, mail, records of the tenant.
	Items []Item
	// Wakes that must be sent after the commit, all of the key's tenant.
	Wakes []journal.Wake
	// LeaseOwner, if set, is one more condition on HEAD, which must be among the items: that
	// its lease is this owner's. Refused, the error is a [*ConflictError] with HEAD as it is.
	LeaseOwner string
	// Claim is a claim the caller makes next, as a rule a move: an adapter that can
	// makes it in the same transaction. Refused, it does not undo the commit.
	Claim *ClaimParams
	// Marks are ledgers of the session that the caller puts next (Rev 0), before it runs
	// the calls of the entry: an adapter for which an item costs less with an entry than
	// alone puts them in the same transaction, all or none, if it granted the Claim there.
	// When one of them exists already, that does not undo the commit.
	Marks []Item
}

// Committed is the result of a commit.
type Committed struct {
	// Hash of the entry, the next one's Prev.
	Hash string
	// Bytes of the entry as stored.
	Bytes int
	// Enqueued says that all wakes went into the queue with the commit; otherwise
	// none did, and the caller has to send them.
	Enqueued bool
	// Head as it is after the Claim of the parameters was granted with the commit;
	// nil when it was not, and the caller has to claim.
	Head *Item
	// Marked says that the Marks were put with the commit; otherwise none was, and the
	// caller has to put them. It also says that other items cost less with an entry, too.
	Marked bool
}

// ItemKind names a kind of item that is not an entry.
type ItemKind string

// The kinds of item.
const (
	KindHead  ItemKind = "head"
	KindWait  ItemKind = "wait"
	KindRun   ItemKind = "run"
	KindTool  ItemKind = "tool"
	KindMail  ItemKind = "mail"
	KindAudit ItemKind = "audit"
	// KindNotice is what is told outside.
	KindNotice ItemKind = "notice"
	// These belong to a tenant instead of a session. A record of a tenant has a
	// name of 1 to 512 characters from ! to ~ but *. It may belong to [Everywhere] instead:
	// no commit of a session writes it there.
	KindIdempotency  ItemKind = "idempotency"
	KindTenantRecord ItemKind = "tenant_record"
)

// Item is one record of a session, or of a tenant, that is not an entry. Exactly
// one of the pointers is set: that of its Kind.
type Item struct {
	// Key of the session it belongs to in a commit or an update, zero for the
	// write's own; of what belongs to a tenant, the tenant's with an empty ID, zero
	// for the write's own. An item of another tenant than the write's is refused. So
	// is a new item (Rev 0) of another session unless a HEAD of that session that
	// exists is in the same write: nothing is put into a session that was deleted
	// meanwhile. An item of another session that was deleted is a conflict: absent,
	// or HEAD's tombstone. In results and conflicts it is set when it is not the
	// write's own.
	Key  session.Key
	Kind ItemKind
	// ID within its kind: empty for HEAD, the wait's or call's id, the run's number, …
	ID string
	// Rev is the revision last read; 0 means that the item must not exist.
	Rev int64

	Head        *journal.Head
	Wait        *journal.WaitRecord
	Run         *session.Run
	Tool        *journal.ToolRecord
	Mail        *journal.Mail
	Audit       *journal.Audit
	Notice      *journal.Notice
	Idempotency *journal.Idempotency

	TenantRecord *journal.TenantRecord
}
