package sqlite

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
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
	id := Identity{File: db.file.Identity()}
	id.Log, id.LogFound = db.file.Log()
	return id
}

// GiveIdentity gives a file of an earlier program the text it is known by, and returns
// what [DB.Identity] says from then on. It must not be called by several goroutines.
func (db *DB) GiveIdentity(ctx context.Context) (Identity, error) {
	if !db.file.LacksIdentity() {
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
	db.file.KnowIdentity(o.id)
	return db.Identity(), nil
}

type identityOp struct {
	job
	id string
}

func (o *identityOp) run(w *writer) (err error) {
	o.id, err = w.file.WriteIdentity()
	return err
}

// Tenants returns whose sessions are in the file, at most so many.
func (db *DB) Tenants(ctx context.Context, most int) (tenants []string, err error) {
	err = db.read(ctx, func(c *datafile.Conn) error {
		tenants = nil
		return c.Query(stmtTenants, func(values row.Values) bool {
			tenants = append(tenants, values.Text(0))
			return true
		}, int64(most))
	})
	if err != nil {
		return nil, fmt.Errorf("tenants in %s: %w", filepath.Base(db.path), err)
	}
	return tenants, nil
}
