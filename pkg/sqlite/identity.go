package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/adjourn/adjourn/internal/owned"
)

// Identity distinguishes a data file from every other, its copies included. Only this file's user
// can make a second file with the same identity: it is made from a random text in the file, the
// file's number and the time it was made, which no user can choose and a copy does not have (see
// [owned.Birth]). A file that is moved within its file system keeps it.
type Identity struct {
	// File is 64 hexadecimal digits; "" for a file without such a text, as earlier
	// programs made them, until [DB.GiveIdentity].
	File string
	// Log identifies the log the file has now: SQLite finds a log by its name, and takes its
	// content for the file's own. "" if there is none.
	Log string
	// LogFound says that this log was there already when the file was opened, with content, and
	// no process was working on the file: a process was killed, or a person has put the log
	// there (see [Config.HoldLog]).
	LogFound bool
}

// Identity returns what tells the file from others; nothing for one in memory.
func (db *DB) Identity() Identity {
	if db.file == nil {
		return Identity{}
	}
	id := identityOf(db.identity, db.file.real)
	if birth := owned.Birth(db.file.real + sidecars[theLog]); birth != "" {
		id.Log = digest(birth)
	}
	id.LogFound = db.logFound
	return id
}

func identityOf(text, path string) Identity {
	if text == "" {
		return Identity{}
	}
	return Identity{File: digest(text + "\n" + owned.Birth(path))}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// GiveIdentity gives a file of an earlier program the text it is known by, and returns
// what [DB.Identity] says from then on. It must not be called by several goroutines.
func (db *DB) GiveIdentity(ctx context.Context) (Identity, error) {
	if db.file == nil || db.identity != "" {
		return db.Identity(), nil
	}
	o := &identityOp{job: job{durable: true}}
	err := db.do(ctx, o)
	if err == nil {
		err = o.err
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identity of %s: %w", db.path, err)
	}
	db.identity = o.id
	return db.Identity(), nil
}

type identityOp struct {
	job
	id string
}

func (o *identityOp) run(w *writer) (err error) {
	o.id, err = giveIdentity(w.c)
	return err
}

// giveIdentity makes the text, unless another process was first, and returns it.
func giveIdentity(c *conn) (string, error) {
	if err := c.script(identitySchema); err != nil {
		return "", err
	}
	//nolint:forbidigo // it must not be guessed or chosen
	if err := c.script(fmt.Sprintf("INSERT INTO identity SELECT '%s' WHERE NOT EXISTS (SELECT 1 FROM identity)", rand.Text())); err != nil {
		return "", err
	}
	return readIdentity(c)
}

// readIdentity returns the text of a file; "" if it has none.
func readIdentity(c *conn) (string, error) {
	tables, err := c.number("SELECT count(*) FROM sqlite_schema WHERE type='table' AND name='identity'")
	if err != nil || tables == 0 {
		return "", err
	}
	return c.text("SELECT coalesce((SELECT id FROM identity ORDER BY rowid LIMIT 1), '')")
}

// Tenants returns whose sessions are in the file, at most so many.
func (db *DB) Tenants(ctx context.Context, most int) (tenants []string, err error) {
	err = db.read(ctx, func(c *conn) error {
		return c.texts(fmt.Sprintf("SELECT DISTINCT tenant FROM sessions WHERE deleted=0 UNION SELECT DISTINCT tenant FROM messages LIMIT %d", most), &tenants)
	})
	if err != nil {
		return nil, fmt.Errorf("tenants in %s: %w", filepath.Base(db.path), err)
	}
	return tenants, nil
}
