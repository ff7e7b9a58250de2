package datafile

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"modernc.org/libc"
	driversqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
)

// Memory is the path of a database that lives as long as its [File].
const Memory = ":memory:"

// WaitFor is how long a connection that reads waits for another process.
const WaitFor = 10 * time.Second

// Stmt is the place of a statement in [Config.Statements].
type Stmt int

// Conn is one SQLite connection. It speaks to the driver directly: database/sql
// would add a lock, a goroutine per context and a dozen allocations to each
// statement, on a path where a whole transaction takes 20 µs. It is not safe for
// concurrent use.
type Conn struct {
	raw    driver.Conn
	stmts  []statement
	args   []driver.NamedValue
	row    [maxColumns]driver.Value
	unused *unusedFile // of a connection that sees no change of the file

	begin, commit, rollback, version statement
}

// maxColumns is how many columns the widest statement has.
const maxColumns = 16

// statement is prepared at its first use.
type statement struct {
	text     string
	prepared prepared
}

type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// existing is the parameter that keeps SQLite from making a file that is not there.
const existing = "?mode=rw"

// openConn opens a path with SQLite's URI parameters.
func openConn(path, params string, statements []string) (*Conn, error) {
	name := path
	if path != Memory {
		name = "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + params
	}
	raw, err := new(driversqlite.Driver).Open(name)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		raw: raw, stmts: make([]statement, len(statements)),
		begin: statement{text: "BEGIN IMMEDIATE"}, commit: statement{text: "COMMIT"}, rollback: statement{text: "ROLLBACK"},
		version: statement{text: "PRAGMA data_version"},
	}
	for i, text := range statements {
		c.stmts[i].text = text
	}
	if err := c.wait(WaitFor); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

// wait sets how long a statement waits for another process.
func (c *Conn) wait(d time.Duration) error {
	return c.Script(fmt.Sprintf("PRAGMA busy_timeout=%d", d.Milliseconds()))
}

func (c *Conn) close() error {
	var errs []error
	drop := func(s *statement) {
		if s.prepared != nil {
			errs = append(errs, s.prepared.Close())
			s.prepared = nil
		}
	}
	drop(&c.begin)
	drop(&c.commit)
	drop(&c.rollback)
	drop(&c.version)
	for i := range c.stmts {
		drop(&c.stmts[i])
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// leaveLog has closing neither take the log into the data file nor delete it. The
// driver has no word for that, and SQLite no statement, so its connection is looked for
// inside the driver's. Refused: not to close at all. Whatever this process opened
// later would share the memory of the lost log, for SQLite has one for each file.
func (c *Conn) leaveLog() error {
	db := reflect.Indirect(reflect.ValueOf(c.raw)).FieldByName("db")
	if db.Kind() != reflect.Uintptr {
		return fmt.Errorf("the SQLite driver's %T shows no connection", c.raw)
	}
	tls := libc.NewTLS()
	defer tls.Close()
	const slot = 8 // bytes of an argument
	args := libc.Xcalloc(tls, 2, slot)
	if args == 0 {
		return errors.New("out of memory")
	}
	defer libc.Xfree(tls, args)
	if rc := sqlite3.Xsqlite3_db_config(tls, uintptr(db.Uint()), sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, libc.VaList(args, int32(1), uintptr(0))); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("sqlite: closing without its log: error %d", rc)
	}
	return nil
}

// compile prepares SQL that is needed once, or has to be compiled each time.
func (c *Conn) compile(text string) (prepared, error) {
	raw, err := c.raw.Prepare(text)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, text)
	}
	p, ok := raw.(prepared)
	if !ok {
		return nil, fmt.Errorf("the SQLite driver's %T takes no context", raw)
	}
	return p, nil
}

// Script runs SQL that is needed once, and drops what it returns.
func (c *Conn) Script(text string) error {
	p, err := c.compile(text)
	if err != nil {
		return err
	}
	_, err = p.ExecContext(context.Background(), nil)
	return errors.Join(err, p.Close())
}

// first reads the first row.
func (c *Conn) first(text string) (row.Values, error) {
	p, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	rows, err := p.QueryContext(context.Background(), nil)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	dest := make(row.Values, len(rows.Columns()))
	err = rows.Next(dest)
	return dest, errors.Join(err, rows.Close(), p.Close())
}

// Number reads one integer with SQL that is needed once.
func (c *Conn) Number(text string) (int64, error) {
	found, err := c.first(text)
	if err != nil {
		return 0, err
	}
	return found.Int(0), nil
}

// DataVersion returns a number that is another one after another connection wrote to the file.
func (c *Conn) DataVersion() (int64, error) {
	version := int64(0)
	err := c.query(&c.version, func(values row.Values) bool {
		version = values.Int(0)
		return false
	}, nil)
	return version, err
}

// ContentVersion returns a number that is another one after anything was written to the file, by
// this connection too, as it is in the transaction under way. It costs a twentieth of
// [Conn.DataVersion].
func (c *Conn) ContentVersion() (uint32, error) {
	control, ok := c.raw.(driversqlite.FileControl)
	if !ok {
		return 0, fmt.Errorf("the SQLite driver's %T tells no version", c.raw)
	}
	return control.FileControlDataVersion("main")
}

func (c *Conn) text(text string) (string, error) {
	found, err := c.first(text)
	if err != nil {
		return "", err
	}
	return found.Text(0), nil
}

// logged returns how many pages the log holds, as its shared memory says; less than 0 if it is not known.
func (c *Conn) logged() (int64, error) {
	found, err := c.first("PRAGMA wal_checkpoint=NOOP") // busy, pages, pages that are in the file
	if err != nil {
		return 0, err
	}
	return found.Int(1), nil
}

func (c *Conn) prepare(s *statement) (prepared, error) {
	if s.prepared != nil {
		return s.prepared, nil
	}
	p, err := c.compile(s.text)
	if err != nil {
		return nil, err
	}
	s.prepared = p
	return p, nil
}

func (c *Conn) bind(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// Exec runs a statement and returns how many rows it changed.
func (c *Conn) Exec(s Stmt, args ...driver.Value) (int64, error) {
	return c.exec(&c.stmts[s], args)
}

func (c *Conn) exec(s *statement, args []driver.Value) (int64, error) {
	p, err := c.prepare(s)
	if err != nil {
		return 0, err
	}
	r, err := p.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Insert runs a statement and returns the rowid it made.
func (c *Conn) Insert(s Stmt, args ...driver.Value) (int64, error) {
	p, err := c.prepare(&c.stmts[s])
	if err != nil {
		return 0, err
	}
	r, err := p.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// Query calls each for every row until it returns false. The row is reused; what
// is in it is the caller's.
func (c *Conn) Query(s Stmt, each func(row row.Values) bool, args ...driver.Value) error {
	return c.query(&c.stmts[s], each, args)
}

func (c *Conn) query(s *statement, each func(row row.Values) bool, args []driver.Value) (err error) {
	p, err := c.prepare(s)
	if err != nil {
		return err
	}
	rows, err := p.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	dest := c.row[:len(rows.Columns())]
	for {
		switch err := rows.Next(dest); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if !each(dest) {
			return nil
		}
	}
}

// One reads one row, or nil when there is none. It is valid until the next call.
func (c *Conn) One(s Stmt, args ...driver.Value) (row.Values, error) {
	var found row.Values
	err := c.Query(s, func(row row.Values) bool {
		found = row
		return false
	}, args...)
	return found, err
}
