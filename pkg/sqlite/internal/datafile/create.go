package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/adjourn/adjourn/pkg/store"
)

// prepareFile makes a data file where there is none. What is there is not opened
// here: closing it would drop SQLite's locks on it.
func prepareFile(path string, wait time.Duration, onCreate func(id string)) error {
	named := path
	path, err := target(path)
	if err == nil {
		err = makeFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := checkFolders(named, path); err != nil {
		return err
	}
	switch there, err := present(path); {
	case err != nil || there:
		return err
	}
	if err := create(path, wait, onCreate); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: the data file cannot be made: %w", store.ErrUnavailable, err)
	}
	return nil
}

// present reports whether there is a file, and refuses what cannot be one of ours.
// A data file is never empty: it comes into being whole.
func present(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case info.IsDir():
		return false, fmt.Errorf("%w: it is a folder: name a file in it", store.ErrNotOurs)
	case info.Mode().IsRegular() && info.Size() == 0:
		return false, errEmpty
	}
	return true, nil
}

var errEmpty = fmt.Errorf("%w: it is empty (0 bytes): if sessions were in it, something has cut it off: move it and what lies beside it (-wal, -shm) away, then restore it from a copy; "+
	"if it is to be a new data file, remove it first", store.ErrNotOurs)

// makeFolder makes a folder only its user may read. The name of each new folder
// is on the disk when it returns.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := filepath.Dir(dir)
	if up == dir {
		return fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	if err := makeFolder(up); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(up)
}

// create makes a whole data file, which only its user may read (SQLite gives its log and its
// shared memory the same mode): either all of it is there, or nothing. The folder is locked
// meanwhile, because create removes what an earlier data file has left there (a log, shared
// memory). Otherwise SQLite would use them for the new file, although a process that still has
// the old file open uses them.
func create(path string, wait time.Duration, onCreate func(id string)) (err error) {
	image, id, err := newImage()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	unlock, err := lockFolder(dir, wait)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return fs.ErrExist
	}
	for _, suffix := range append(sidecars[:], rollbackSuffix) {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	draft := path + "-new"
	if err := writeSynced(draft, image); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if onCreate != nil {
		// Call it before the file has its name, so that a process that finds the file finds its
		// identity recorded.
		onCreate(identityOf(id, draft))
	}
	if info, err := os.Stat(draft); err == nil && fileNumber(info) != "" {
		// A file that had this number is no more: nothing needs its log.
		for _, suffix := range sidecars {
			_ = os.Remove(asideName(path, suffix, fileNumber(info)))
		}
	}
	if err := os.Link(draft, path); err == nil || errors.Is(err, fs.ErrExist) {
		err = errors.Join(err, os.Remove(draft))
		return errors.Join(err, syncFolder(dir))
	}
	return errors.Join(os.Rename(draft, path), syncFolder(dir)) // no links on this file system
}

func writeSynced(path string, data []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// newImage is the content of a data file without sessions, and the identity in it.
func newImage() (_ []byte, id string, err error) {
	c, err := openConn(Memory, "", nil)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := initialize(c); err != nil {
		return nil, "", err
	}
	if id, err = readIdentity(c); err != nil {
		return nil, "", err
	}
	s, ok := c.raw.(interface{ Serialize() ([]byte, error) })
	if !ok {
		return nil, "", errors.New("the SQLite driver cannot copy a database")
	}
	image, err := s.Serialize()
	if err != nil {
		return nil, "", err
	}
	// A database in memory has no log. These say how a file is written and read: 2 is WAL.
	image[18], image[19] = 2, 2
	return image, id, nil
}

// lockPause is how long to wait before the folder's lock is tried again.
const lockPause = 5 * time.Millisecond

// maxLinks is how many symlinks one after the other are followed.
const maxLinks = 40

// target returns what the last part of a path leads to, whether or not it exists.
func target(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil //nolint:nilerr // the call that makes the file reports the error
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
