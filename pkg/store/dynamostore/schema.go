package dynamostore

import "strconv"

// Schema is the layout of one table: what [CreateTables] makes and what
// template.yaml must say. Every key is a string.
type Schema struct {
	// Partition and Sort are the attributes of the primary key.
	Partition, Sort string
	// TTL is the attribute with the time, in seconds since 1970, after which
	// DynamoDB may remove an item.
	TTL string
	// Indexes are global secondary indexes, all of them sparse.
	Indexes []Index
}

// Index is one global secondary index.
type Index struct {
	Name            string
	Partition, Sort string
	// Include are the attributes projected beside the keys; none means KEYS_ONLY.
	Include []string
}

// StateSchema returns the layout of the state table.
func StateSchema() Schema {
	return Schema{
		Partition: attrPK, Sort: attrSK, TTL: attrExpires,
		Indexes: []Index{
			{Name: indexSessions, Partition: attrList, Sort: attrListAt, Include: []string{attrStatus, attrAgent, attrUser, attrRoot, attrTags}},
			{Name: indexInbox, Partition: attrInbox, Sort: attrInboxAt, Include: []string{attrAgent, attrKind, attrTool, attrRoot, attrWho}},
			{Name: indexByAgent, Partition: attrByAgent, Sort: attrInboxAt, Include: []string{attrKind, attrTool, attrRoot, attrWho}},
			{Name: indexByKind, Partition: attrByKind, Sort: attrInboxAt, Include: []string{attrAgent, attrTool, attrRoot, attrWho}},
			{Name: indexByTool, Partition: attrByTool, Sort: attrInboxAt, Include: []string{attrAgent, attrKind, attrRoot, attrWho}},
			{Name: indexDue, Partition: attrDue, Sort: attrDueAt},
		},
	}
}

// LiveSchema returns the layout of the live table, which holds only data that may be lost.
func LiveSchema() Schema {
	return Schema{Partition: attrPK, Sort: attrSK, TTL: attrExpires}
}

// The attributes of an item.
const (
	attrPK = "pk" // S#<tenant>#<session>, I#<tenant>#<key>, or T#<tenant>
	attrSK = "sk" // E#<seq>, HEAD, WAIT#<wait>, RUN#<run>, TOOL#<call>, MAIL#<id>, AUDIT#<entry>-<wait>-<n>, NOTE#<id>; IDEM; REC#<name>

	// An entry: its stored form, the id of the call that wrote it, and attributes for a person
	// who looks at the table.
	attrWrite   = "w"
	attrPayload = "payload"
	attrKind    = "kind"
	attrRun     = "run"
	attrStep    = "step"
	attrStatus  = "status" // of HEAD too
	attrAt      = "at"

	// Any other item: its JSON and its revision. The ids of the calls that wrote
	// the last 16 revisions are in w0 to w15, each at its revision modulo 16: one
	// whose answer was lost finds its own there, though others wrote since.
	attrBody   = "body"
	attrRev    = "rev"
	attrWrites = "w"

	// Instead of payload or body, what lies in the bucket.
	attrBlob      = "blob"
	attrBlobBytes = "blobBytes"

	// The lease lies beside HEAD's body and in no index: a claim changes nothing else.
	attrOwner      = "leaseOwner"
	attrLeaseSeq   = "leaseSeq"
	attrLeaseN     = "leaseN"
	attrLeaseDied  = "leaseDied"
	attrLeaseUntil = "leaseUntil" // nanoseconds since 1970
	attrLeaseFor   = "leaseFor"   // nanoseconds
	attrLeaseWrite = "leaseW"

	// Keys of the indexes.
	attrList    = "list"    // shard of a HEAD's tenant, or of its notices (shards.go)
	attrListAt  = "listAt"  // when its status last moved, or the notice was written
	attrInbox   = "inbox"   // shard of an open wait's tenant
	attrInboxAt = "inboxAt" // its deadline
	attrDue     = "due"     // one of 16 shards, or of 16 for deadlines
	attrDueAt   = "dueAt"
	// An open wait's shard of its tenant with its agent, its kind, its tool: each
	// alone finds few among many, in the order of inboxAt.
	attrByAgent = "inboxAgent"
	attrByKind  = "inboxKind"
	attrByTool  = "inboxTool"

	// What lists are kept to by, beside the status: of a HEAD, and of an open wait
	// with its kind.
	attrAgent = "agent"
	attrRoot  = "root"
	attrUser  = "user" // who started it
	attrTags  = "tags"
	attrTool  = "tool"
	attrWho   = "who" // the users who may answer; none means every user

	attrExpires = "expiresAt" // of idempotency records and fences
	// attrDeleted marks a tombstone of HEAD, or a fence where an entry was or would be.
	attrDeleted = "deleted"
)

// The indexes of the state table.
const (
	indexSessions = "sessions"
	indexInbox    = "inbox"
	indexDue      = "due"
	indexByAgent  = "inboxByAgent"
	indexByKind   = "inboxByKind"
	indexByTool   = "inboxByTool"
)

// writesKept is how many revisions keep the id of their write.
const writesKept = 16

// writeAttr names the attribute with the id of the call that wrote a revision.
func writeAttr(rev int64) string { return attrWrites + strconv.FormatInt(rev%writesKept, 10) }
