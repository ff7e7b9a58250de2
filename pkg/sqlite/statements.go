package sqlite

import (
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

// The statements.
const (
	stmtFindSession datafile.Stmt = iota
	stmtNewSession
	stmtHead
	stmtHeadOf
	stmtClaim
	stmtPutHead
	stmtBury

	stmtAddEntry
	stmtEntry
	stmtEntries
	stmtDropEntries

	stmtItem
	stmtItems
	stmtAddItem
	stmtPutItem
	stmtDropItems

	stmtSessions
	stmtWaits
	stmtWaitsOfTool
	stmtWaitsOfAgent
	stmtWaitsOfKind
	stmtDue
	stmtAhead
	stmtTenants

	stmtSend
	stmtVisible
	stmtVisibleOf
	stmtReceive
	stmtBuryMessage
	stmtAcknowledge
	stmtPostpone
	stmtNextVisible
	stmtTooFarAhead
	stmtPullIn
	stmtPullInFresh
	stmtOwners
	stmtNewOwner
	stmtDropOwner
	stmtFreeMessages

	stmtCount
)

var statements = [stmtCount]string{
	stmtFindSession: "SELECT sid FROM sessions WHERE tenant=? AND id=?",
	stmtNewSession:  "INSERT INTO sessions (tenant, id) VALUES (?, ?)",
	stmtHead:        "SELECT " + row.HeadColumns + " FROM sessions WHERE sid=?",
	stmtHeadOf:      "SELECT " + row.HeadColumns + " FROM sessions WHERE tenant=? AND id=?",
	stmtClaim:       "UPDATE sessions SET lease_owner=?, lease_seq=?, lease_n=?, lease_until=?, lease_for=?, lease_died=? WHERE sid=?",
	stmtPutHead:     "UPDATE sessions SET rev=?, status=?, moved=?, due=?, head=? WHERE sid=?",
	stmtBury: "UPDATE sessions SET rev=rev+1, deleted=1, status=NULL, moved=NULL, due=NULL, head=?," +
		" lease_owner='', lease_seq=0, lease_n=0, lease_until=0, lease_for=0, lease_died=0 WHERE sid=?",

	stmtAddEntry: "INSERT OR IGNORE INTO entries (eid, kind, run, step, status, at, payload)" +
		" SELECT ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sid=? AND deleted)",
	stmtEntry: "SELECT payload FROM entries WHERE eid=?",
	stmtEntries: "SELECT eid & 4294967295, payload FROM entries WHERE eid > (SELECT sid<<32 FROM sessions WHERE tenant=?1 AND id=?2) + ?3" +
		" AND eid < (SELECT (sid+1)<<32 FROM sessions WHERE tenant=?1 AND id=?2) ORDER BY eid",
	stmtDropEntries: "DELETE FROM entries WHERE eid BETWEEN ?1<<32 AND (?1<<32) + 4294967295",

	stmtItem: "SELECT rev, payload FROM items WHERE sid=? AND kind=? AND id=?",
	stmtItems: "SELECT rev, id, payload FROM items WHERE sid=(SELECT sid FROM sessions WHERE tenant=? AND id=?)" +
		" AND kind=? AND id>=? AND id<=? ORDER BY id",
	stmtAddItem:   "INSERT INTO items (rev, due, tenant, deadline, opened, payload, sid, kind, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	stmtPutItem:   "UPDATE items SET rev=?, due=?, tenant=?, deadline=?, opened=?, payload=? WHERE sid=? AND kind=? AND id=?",
	stmtDropItems: "DELETE FROM items WHERE sid=?",

	stmtSessions: "SELECT moved, sid, id, status, " + row.HeadColumns + " FROM sessions WHERE tenant=?1 AND moved IS NOT NULL" +
		" AND (moved, sid) < (?2, ?3) AND (?4='' OR status=?4) ORDER BY moved DESC, sid DESC LIMIT ?5",
	stmtWaits:        waits("", ""),
	stmtWaitsOfTool:  waitsOf(datafile.ByTool),
	stmtWaitsOfAgent: waitsOf(datafile.ByAgent),
	stmtWaitsOfKind:  waitsOf(datafile.ByKind),
	stmtDue:          row.DueBy("<=", "", ""),
	stmtAhead:        row.DueBy(">", " AND "+datafile.Unended, " AND i.tenant IS NULL"), // tenant: of what may be due far ahead
	stmtTenants:      "SELECT DISTINCT tenant FROM sessions WHERE deleted=0 AND tenant<>'" + store.Everywhere + "' UNION SELECT DISTINCT tenant FROM messages LIMIT ?",

	stmtSend: "INSERT OR IGNORE INTO messages (mid, dead, visible, sent, receives, owner, tenant, session, seq, kind, v)" +
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	stmtVisible: "SELECT " + row.MessageColumns + " FROM messages" +
		" WHERE dead=? AND visible<=? ORDER BY visible LIMIT ?",
	stmtVisibleOf: "SELECT " + row.MessageColumns + " FROM messages" +
		" WHERE dead=? AND visible<=? AND session=? AND tenant=? ORDER BY visible LIMIT ?",
	stmtReceive:     "UPDATE messages SET visible=?, receives=?, owner=? WHERE mid=?",
	stmtBuryMessage: "UPDATE messages SET dead=1, visible=?, receives=0, owner=NULL WHERE mid=?",
	stmtAcknowledge: "DELETE FROM messages WHERE mid=? AND dead=? AND receives=?",
	stmtPostpone:    "UPDATE messages SET visible=? WHERE mid=? AND dead=? AND receives=?",
	stmtNextVisible: "SELECT min(visible) FROM messages WHERE dead=? AND visible>?",
	stmtTooFarAhead: "SELECT EXISTS (SELECT 1 FROM messages WHERE dead IN (0, 1) AND visible>?1)" +
		" OR EXISTS (SELECT 1 FROM messages WHERE visible=sent AND visible>?2)",
	stmtPullIn:       "UPDATE messages SET visible=?1 WHERE dead IN (0, 1) AND visible>?2",
	stmtPullInFresh:  "UPDATE messages SET visible=?1, sent=?1 WHERE visible=sent AND visible>?1",
	stmtOwners:       "SELECT oid, name FROM owners",
	stmtNewOwner:     "INSERT INTO owners (name) VALUES (?)",
	stmtDropOwner:    "DELETE FROM owners WHERE oid=?",
	stmtFreeMessages: "UPDATE messages SET visible=?, owner=NULL WHERE owner=?",
}
