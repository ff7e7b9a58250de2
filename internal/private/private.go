// Package private puts files in place whole, readable by their owner alone.
//
// Such a file is written under a name of its own first. The writer holds a lock on
// it, which ends with its process, so that what a killed one left behind is told from
// what another one is writing.
package private

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/adjourn/adjourn/internal/owned"
)

// suffix ends the names of files that are being written; nothing else has it.
const suffix = ".adjourn-tmp"

// random stands between the name of the file and the suffix.
var random = regexp.MustCompile(`^\.[0-9a-f]{16}$`)

// maxTries is how often a writer begins anew whose file was taken for left behind.
const maxTries = 100

// Write puts a file in place whole: whoever reads it sees what was there before, or
// all of text. What killed writers of it left behind is removed.
func Write(path string, text []byte) error {
	Tidy(path)
	return write(path, text, (*os.File).Sync)
}

// WriteLoose is Write for what may be lost with the machine's power, and is cheaper:
// then there is the file as it was before, or an empty one. It tidies nothing up.
func WriteLoose(path string, text []byte) error {
	return write(path, text, func(*os.File) error { return nil })
}

// Read returns the text of a file, at most so many bytes of it. What is no plain file,
// or belongs to others, or may be written by them, is refused (see [owned.File]).
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path) // before it is opened: a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if err := owned.File(path, info); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was read", path), err)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

func write(path string, text []byte, sync func(*os.File) error) error {
	f, err := create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, sync(f))
	if !locks {
		err = errors.Join(err, f.Close()) // where there are no locks, an open file cannot be renamed either
	}
	if err == nil {
		err = os.Rename(f.Name(), path) // under the lock, or it could be taken for left behind
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	if locks {
		err = errors.Join(err, f.Close())
	}
	return err
}

// create makes a file beside path and takes its lock. Somebody who tidies up may have
// come between the two: then the file is gone.
func create(path string) (*os.File, error) {
	return locked(path, func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	})
}

// locked makes something under a name of its own, and takes its lock.
func locked(path string, create func(name string) (*os.File, error)) (*os.File, error) {
	for try := 1; ; try++ {
		name := make([]byte, 8)
		_, _ = rand.Read(name) // it never fails
		f, err := create(path + "." + hex.EncodeToString(name) + suffix)
		if err != nil {
			return nil, err
		}
		err = lock(f)
		if err == nil && (try == maxTries || still(f)) {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, errors.Join(err, os.Remove(f.Name()))
		}
	}
}

// still reports whether a file has its name.
func still(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}

// Tidy removes what killed writers of a file left behind, and folders of killed
// processes beside it. Those of other names, and those that somebody is using, stay.
// That something cannot be removed is no harm.
func Tidy(path string) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), base)
		middle, temporary := strings.CutSuffix(rest, suffix)
		if ours && temporary && random.MatchString(middle) && (entry.Type().IsRegular() || entry.IsDir()) {
			removeLeft(filepath.Join(dir, entry.Name()))
		}
	}
}

// Folder is a folder of one process for a while: who may read it is its owner alone, and
// what is left of it when that process is killed, [Tidy] removes.
type Folder struct{ f *os.File }

// MakeFolder makes a folder beside path, and removes what killed ones left there.
func MakeFolder(path string) (*Folder, error) {
	Tidy(path)
	f, err := locked(path, func(name string) (*os.File, error) {
		if err := os.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
		return os.Open(name)
	})
	if err != nil {
		return nil, err
	}
	return &Folder{f}, nil
}

// Path is where the folder is.
func (d *Folder) Path() string { return d.f.Name() }

// Remove removes the folder with all in it.
func (d *Folder) Remove() error {
	if !locks {
		return errors.Join(d.f.Close(), os.RemoveAll(d.f.Name())) // an open folder cannot be removed there
	}
	return errors.Join(os.RemoveAll(d.f.Name()), d.f.Close())
}
