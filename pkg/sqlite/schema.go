package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// applicationID marks a file as ours: "Adjr".
	applicationID = 0x41646a72
	// schemaVersion is the version this program writes, and the newest it reads.
	schemaVersion = 1
)

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
	lease_until INTEGER NOT NULL DEFAULT 0,
	lease_for INTEGER NOT NULL DEFAULT 0,
	lease_owner TEXT NOT NULL DEFAULT '',
	head TEXT
);
CREATE UNIQUE INDEX sessions_key ON sessions (tenant, id);
CREATE INDEX sessions_moved ON sessions (tenant, moved) WHERE moved IS NOT NULL;
CREATE INDEX sessions_due ON sessions (due) WHERE due IS NOT NULL;

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
	tenant TEXT, -- of open waits, for the inbox
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
CREATE TABLE owners (oid INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
`

// prepareFile makes the folder and an empty file only its user may read: SQLite
// gives its log and its shared memory the same mode. A symlink to a file that
// does not exist yet is followed first, for SQLite would make that file readable
// to all.
func prepareFile(path string) error {
	path, err := target(path)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if dir := filepath.Dir(path); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("%w: it is a folder: name a file in it", store.ErrNotOurs)
		}
		return nil // never opened here: closing it would drop SQLite's locks on it
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return f.Close()
}

// maxLinks is how many symlinks one after the other are followed.
const maxLinks = 40

// target returns what the last part of a path leads to, whether or not it exists.
func target(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil //nolint:nilerr // what is wrong with it, who makes the file will say
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(next) {
			// The folder may be a symlink itself, from which .. leads elsewhere.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			next = filepath.Join(dir, next)
		}
		path = next
	}
	return "", errors.New("too many symlinks one after the other")
}

// identify says whether the file is ours, and whether it is still empty. It
// changes nothing: the file may be somebody else's.
func identify(c *conn) (empty bool, err error) {
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return false, err
	}
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return false, err
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return false, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return true, nil
	case id != applicationID:
		return false, fmt.Errorf("%w: it is an SQLite database of another program: choose another data file", store.ErrNotOurs)
	case version > schemaVersion:
		return false, fmt.Errorf("%w: it has format %d and this program reads up to %d: use a newer adjourn, or another data file", store.ErrNotOurs, version, schemaVersion)
	case version < 1:
		return false, fmt.Errorf("%w: it has format %d, which there never was", store.ErrNotOurs, version)
	}
	return false, nil
}

// look is identify on the file as it is at one moment: another process may be
// making it ours.
func look(c *conn) error {
	if err := c.script("BEGIN"); err != nil {
		return err
	}
	_, err := identify(c)
	return errors.Join(err, c.script("ROLLBACK"))
}

// initialize turns an empty file into ours. Several processes may do so at once.
func initialize(c *conn) error {
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	empty, err := identify(c)
	if err == nil && empty {
		err = c.script(fmt.Sprintf("%s; PRAGMA application_id=%d; PRAGMA user_version=%d", schema, applicationID, schemaVersion))
	}
	if err != nil {
		return errors.Join(err, c.script("ROLLBACK"))
	}
	return c.script("COMMIT")
}

// walPause is how long to wait before the change to WAL is tried again: another
// process may be making the same change.
const walPause = 10 * time.Millisecond

// enterWAL changes to WAL. SQLite waits for some of the locks it needs and not
// for others, so all the waiting is done here, and is over in the time a
// statement waits: a process that was stopped in its first moment holds one for ever.
func enterWAL(c *conn) error {
	if err := c.script("PRAGMA busy_timeout=0"); err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += walPause {
		err := c.script("PRAGMA journal_mode=WAL")
		if err == nil {
			return c.script(busyTimeout)
		}
		if !isBusy(err) || waited >= busyMillis*time.Millisecond {
			return err
		}
		time.Sleep(walPause)
	}
}
