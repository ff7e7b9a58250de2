package datafile

import (
	"errors"
	"io/fs"
	"os"

	sqlite3 "modernc.org/sqlite/lib"
)

// openReader opens a connection that reads. If SQLite can make neither log nor shared memory (a
// read-only folder or disk), a file that no process works on is read as it is.
func openReader(path string, statements []string) (*Conn, error) {
	c, err := openChecked(path, existing, statements)
	if err == nil {
		return c, nil
	}
	switch code(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
	default:
		return nil, err
	}
	seen, ok := statUnused(path)
	if !ok {
		return nil, err
	}
	c, stillErr := openChecked(path, "?mode=ro&immutable=1", statements)
	if stillErr != nil {
		return nil, err
	}
	c.unused = seen
	return c, nil
}

func openChecked(path, params string, statements []string) (*Conn, error) {
	c, err := openConn(path, params, statements)
	if err != nil {
		return nil, err
	}
	if err = c.Script("PRAGMA query_only=1; PRAGMA cache_size=-1000"); err == nil {
		err = identify(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// unusedFile is a data file that no process works on. SQLite reads such a file as one that never
// changes. Whether that was true is checked after each reading, because other users may be
// allowed to write it: they create a log first.
type unusedFile struct {
	path string
	info fs.FileInfo
}

// statUnused records the state of a file, unless a process works on it.
func statUnused(path string) (*unusedFile, bool) {
	path, err := target(path)
	if err != nil {
		return nil, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, false
	}
	s := &unusedFile{path: path, info: info}
	return s, s.holds()
}

// holds reports whether the file is as it was seen; for nil, whose changes SQLite sees, it is true.
func (s *unusedFile) holds() bool {
	if s == nil {
		return true
	}
	if log, err := os.Stat(s.path + sidecars[theLog]); err == nil && log.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	now, err := os.Stat(s.path)
	return err == nil && os.SameFile(now, s.info) && now.Size() == s.info.Size() && now.ModTime().Equal(s.info.ModTime())
}
