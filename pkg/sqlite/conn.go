package sqlite

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
)

// stmt names a statement; each connection prepares it at first use.
type stmt int

// conn is one SQLite connection. It speaks to the driver directly: database/sql
// would add a lock, a goroutine per context and a dozen allocations to each
// statement, on a path where a whole transaction takes 20 µs. It is not safe for
// concurrent use.
type conn struct {
	raw    driver.Conn
	stmts  [stmtCount]prepared
	args   []driver.NamedValue
	row    [15]driver.Value
	unused *unusedFile // of a connection that sees no change of the file
}

type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// memoryPath is the path of a database that lives as long as its [DB].
const memoryPath = ":memory:"

// WaitFor is how long a connection waits for another process; writers may set another time with
// [Config.Wait].
const WaitFor = 10 * time.Second

// existing is the parameter that keeps SQLite from making a file that is not there.
const existing = "?mode=rw"

// openConn opens a path with SQLite's URI parameters.
func openConn(path, params string) (*conn, error) {
	name := path
	if path != memoryPath {
		name = "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + params
	}
	raw, err := new(driversqlite.Driver).Open(name)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw}
	if err := c.wait(WaitFor); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

// wait sets how long a statement waits for another process.
func (c *conn) wait(d time.Duration) error {
	return c.script(fmt.Sprintf("PRAGMA busy_timeout=%d", d.Milliseconds()))
}

func (c *conn) close() error {
	var errs []error
	for i, s := range c.stmts {
		if s != nil {
			errs = append(errs, s.Close())
			c.stmts[i] = nil
		}
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// leaveLog has closing neither take the log into the data file nor delete it. The
// driver has no word for that, and SQLite no statement, so its connection is looked for
// inside the driver's. Refused: not to close at all. Whatever this process opened
// later would share the memory of the lost log, for SQLite has one for each file.
func (c *conn) leaveLog() error {
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
func (c *conn) compile(text string) (prepared, error) {
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

// script runs SQL and drops what it returns.
func (c *conn) script(text string) error {
	p, err := c.compile(text)
	if err != nil {
		return err
	}
	_, err = p.ExecContext(context.Background(), nil)
	return errors.Join(err, p.Close())
}

// value reads one value.
func (c *conn) value(text string) (driver.Value, error) {
	p, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	rows, err := p.QueryContext(context.Background(), nil)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	dest := make([]driver.Value, len(rows.Columns()))
	err = rows.Next(dest)
	return dest[0], errors.Join(err, rows.Close(), p.Close())
}

func (c *conn) number(text string) (int64, error) {
	v, err := c.value(text)
	return intOf(v), err
}

// logged returns how many pages the log holds, as its shared memory says; less than 0 if it is not known.
func (c *conn) logged() (int64, error) {
	p, err := c.compile("PRAGMA wal_checkpoint=NOOP")
	if err != nil {
		return 0, err
	}
	rows, err := p.QueryContext(context.Background(), nil)
	if err != nil {
		return 0, errors.Join(err, p.Close())
	}
	dest := make([]driver.Value, len(rows.Columns())) // busy, pages, pages that are in the file
	err = rows.Next(dest)
	return intOf(dest[1]), errors.Join(err, rows.Close(), p.Close())
}

func (c *conn) text(text string) (string, error) {
	v, err := c.value(text)
	return textOf(v), err
}

// texts reads one column of texts.
func (c *conn) texts(text string, to *[]string) error {
	p, err := c.compile(text)
	if err != nil {
		return err
	}
	rows, err := p.QueryContext(context.Background(), nil)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	dest := make([]driver.Value, len(rows.Columns()))
	for err = rows.Next(dest); err == nil; err = rows.Next(dest) {
		*to = append(*to, textOf(dest[0]))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close(), p.Close())
}

func (c *conn) prepare(s stmt) (prepared, error) {
	if p := c.stmts[s]; p != nil {
		return p, nil
	}
	p, err := c.compile(statements[s])
	if err != nil {
		return nil, err
	}
	c.stmts[s] = p
	return p, nil
}

func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(s stmt, args ...driver.Value) (int64, error) {
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

// insert runs a statement and returns the rowid it made.
func (c *conn) insert(s stmt, args ...driver.Value) (int64, error) {
	p, err := c.prepare(s)
	if err != nil {
		return 0, err
	}
	r, err := p.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// query calls each for every row until it returns false. The row is reused; what
// is in it is the caller's.
func (c *conn) query(s stmt, each func(row []driver.Value) bool, args ...driver.Value) (err error) {
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

// one reads one row, or nil when there is none. It is valid until the next call.
func (c *conn) one(s stmt, args ...driver.Value) ([]driver.Value, error) {
	var found []driver.Value
	err := c.query(s, func(row []driver.Value) bool {
		found = row
		return false
	}, args...)
	return found, err
}

func intOf(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

func textOf(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func bytesOf(v driver.Value) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}
