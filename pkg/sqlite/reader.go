package sqlite

import (
	"errors"
	"io/fs"
	"os"

	sqlite3 "modernc.org/sqlite/lib"
)

// openReader opens a connection that reads. Where SQLite can make neither log nor
// shared memory (a read-only folder or disk), a file that nobody works on is read
// as it is.
func openReader(path string) (*conn, error) {
	c, err := openChecked(path, existing)
	if err == nil {
		return c, nil
	}
	switch code(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
	default:
		return nil, err
	}
	seen, ok := seeStill(path)
	if !ok {
		return nil, err
	}
	c, stillErr := openChecked(path, "?mode=ro&immutable=1")
	if stillErr != nil {
		return nil, err
	}
	c.still = seen
	return c, nil
}

func openChecked(path, params string) (*conn, error) {
	c, err := openConn(path, params)
	if err != nil {
		return nil, err
	}
	if err = c.script("PRAGMA query_only=1; PRAGMA cache_size=-4000"); err == nil {
		err = identify(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// still is a data file that nobody works on. SQLite reads such a file as one that
// never changes; whether that was true is looked at after each reading, for others
// may be allowed to write it: they make a log first.
type still struct {
	path string
	info fs.FileInfo
}

// seeStill looks at a file, unless somebody works on it.
func seeStill(path string) (*still, bool) {
	path, err := target(path)
	if err != nil {
		return nil, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, false
	}
	s := &still{path: path, info: info}
	return s, s.holds()
}

// holds reports whether the file is as it was seen. What is not still always is.
func (s *still) holds() bool {
	if s == nil {
		return true
	}
	if log, err := os.Stat(s.path + sidecars[theLog]); err == nil && log.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	now, err := os.Stat(s.path)
	return err == nil && os.SameFile(now, s.info) && now.Size() == s.info.Size() && now.ModTime().Equal(s.info.ModTime())
}
