package datafile

import (
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// applicationID marks a file as ours: "Adjr".
	applicationID = 0x41646a72
	// schemaVersion is the version this program writes, and the newest it reads.
	schemaVersion = 2
	// firstVersion is the oldest it reads. What was written before format 1 was
	// fixed is not read: its entries say what was left of the limits.
	firstVersion = 2
)

// Unended is the condition on a session's row that its task has not ended, in the words of the index
// sessions_ahead. Files of before lack that index: there what has ended is read and left out.
const Unended = "status IN ('running', 'suspended', 'interrupted')"

// schema: an entry's key is its session's number and its seq in one integer, so
// that a plain step inserts into one tree, beside the entry before it. Indexes
// are partial: none of them holds what a plain step changes.
const schema = `
CREATE TABLE sessions (
	sid INTEGER PRIMARY KEY,
	tenant TEXT NOT NULL,
	id TEXT NOT NULL,
	rev INTEGER NOT NULL DEFAULT 0,
	deleted INTEGER NOT NULL DEFAULT 0,
	status TEXT,
	moved INTEGER,
	due INTEGER,
	lease_seq INTEGER NOT NULL DEFAULT 0,
	lease_n INTEGER NOT NULL DEFAULT 0,
	lease_died INTEGER NOT NULL DEFAULT 0,
	lease_until INTEGER NOT NULL DEFAULT 0,
	lease_for INTEGER NOT NULL DEFAULT 0,
	lease_owner TEXT NOT NULL DEFAULT '',
	head TEXT
);
CREATE UNIQUE INDEX sessions_key ON sessions (tenant, id);
CREATE INDEX sessions_moved ON sessions (tenant, moved) WHERE moved IS NOT NULL;
CREATE INDEX sessions_due ON sessions (due) WHERE due IS NOT NULL;
CREATE INDEX sessions_ahead ON sessions (due) WHERE due IS NOT NULL AND ` + Unended + `;

CREATE TABLE entries (
	eid INTEGER PRIMARY KEY, -- sid << 32 | seq
	kind TEXT NOT NULL,
	run INTEGER NOT NULL,
	step INTEGER NOT NULL,
	status TEXT NOT NULL,
	at TEXT NOT NULL,
	payload BLOB NOT NULL
);
CREATE VIEW journal AS
	SELECT s.tenant, s.id AS session, e.eid & 4294967295 AS seq, e.kind, e.run, e.step, e.status, e.at, length(e.payload) AS bytes
	FROM entries e JOIN sessions s ON s.sid = e.eid >> 32;

CREATE TABLE items (
	iid INTEGER PRIMARY KEY,
	sid INTEGER NOT NULL,
	kind TEXT NOT NULL,
	id TEXT NOT NULL,
	rev INTEGER NOT NULL,
	due INTEGER,
	tenant TEXT, -- of open waits, for the inbox; of notices *notices* before it
	deadline INTEGER,
	opened INTEGER,
	payload TEXT NOT NULL
);
CREATE UNIQUE INDEX items_key ON items (sid, kind, id);
CREATE INDEX items_inbox ON items (tenant, deadline, opened) WHERE tenant IS NOT NULL;
CREATE INDEX items_due ON items (due) WHERE due IS NOT NULL;
CREATE INDEX items_ahead ON items (due) WHERE due IS NOT NULL AND tenant IS NULL;

CREATE TABLE messages (
	mid INTEGER PRIMARY KEY,
	dead INTEGER NOT NULL,
	visible INTEGER NOT NULL,
	sent INTEGER NOT NULL,
	receives INTEGER NOT NULL,
	owner INTEGER, -- who received it last
	tenant TEXT NOT NULL,
	session TEXT NOT NULL,
	seq INTEGER NOT NULL,
	kind TEXT NOT NULL,
	v INTEGER NOT NULL
);
CREATE INDEX messages_visible ON messages (dead, visible);
CREATE INDEX messages_fresh ON messages (visible) WHERE visible=sent; -- not delayed, and received by nobody
CREATE TABLE owners (oid INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
` + identitySchema

// identitySchema: one row, by which a file is known again. Files of before lack the table.
const identitySchema = "CREATE TABLE IF NOT EXISTS identity (id TEXT NOT NULL);\n"

// identify says whether the file is ours. It reads one state of the file and
// takes no lock that keeps anybody from writing.
func identify(c *Conn) (err error) {
	if err := c.Script("BEGIN"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Script("ROLLBACK")) }()
	id, err := c.Number("PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := c.Number("PRAGMA user_version")
	switch {
	case err != nil:
		return err
	case id != applicationID:
		return fmt.Errorf("%w: it is an SQLite database of another program: choose another data file", store.ErrNotOurs)
	case version > schemaVersion:
		return fmt.Errorf("%w: it has format %d and this program reads up to %d: use a newer adjourn, or another data file", store.ErrNotOurs, version, schemaVersion)
	case version < 1:
		return fmt.Errorf("%w: it has format %d, which there never was", store.ErrNotOurs, version)
	case version < firstVersion:
		return fmt.Errorf("%w: it has format %d, of before the first release, and this program reads format %d: choose another data file, or move this one away", store.ErrNotOurs, version, schemaVersion)
	}
	return nil
}

// initialize makes the tables.
func initialize(c *Conn) error {
	if err := c.Script(fmt.Sprintf("%s%s; PRAGMA application_id=%d; PRAGMA user_version=%d", schema, inboxSchema(), applicationID, schemaVersion)); err != nil {
		return err
	}
	_, err := giveIdentity(c)
	return err
}

// walPause is how long to wait before the change to WAL is tried again: another
// process may be making the same change.
const walPause = 10 * time.Millisecond

// enterWAL changes a file of ours back to WAL mode that a person took out of it: a copy, or a
// file that was vacuumed by hand. SQLite waits for some of the locks it needs and not for others,
// so all the waiting is done here.
func enterWAL(c *Conn, wait time.Duration) error {
	mode, err := c.text("PRAGMA journal_mode")
	if err != nil || mode == "wal" {
		return err
	}
	if err := c.wait(0); err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += walPause {
		err := c.Script("PRAGMA journal_mode=WAL")
		if !IsBusy(err) || waited >= wait {
			return err
		}
		time.Sleep(walPause)
	}
}
