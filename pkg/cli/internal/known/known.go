// Package known remembers which data files this user has used.
//
// Whoever wrote a data file decides what goes on when somebody works on it, so the
// commands ask before they work on one that is not known. It is remembered in the
// user's configuration, one small file for each data file; where that cannot be
// written, in a folder of the user's own among the temporary ones, which lasts at
// least as long as a job of CI.
package known

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// ErrUntrusted says that a data file is not known, and nobody said that it may be worked on.
var ErrUntrusted = errors.New("this user has not worked on the data file before")

// Most is how many files are remembered; of more, those go that were worked on longest ago.
const Most = 1000

// Files is the memory of one user. Any number of processes may use it at once.
type Files struct {
	// dirs are where it is looked for, the first that can be written counts.
	dirs []string
}

// note is what is remembered of a data file, in a file of the identity's name: on its
// first line the log that was in use last, of the [sqlite.Identity], and on the second,
// for people who look, where the data file was when it was first used.
type note struct {
	log  string
	file string // that holds it
}

// logWidth is how long the first line is, so that another log can be written over it.
const logWidth = 64

// New returns the memory that an environment leads to.
func New(env func(string) string) *Files {
	f := &Files{}
	if dir := configDir(env); filepath.IsAbs(dir) {
		f.dirs = append(f.dirs, filepath.Join(dir, "adjourn", "data-files"))
	}
	temporary := env("TMPDIR")
	if temporary == "" {
		temporary = os.TempDir()
	}
	if filepath.IsAbs(temporary) {
		f.dirs = append(f.dirs, filepath.Join(temporary, "adjourn-"+strconv.Itoa(os.Geteuid()), "data-files"))
	}
	return f
}

// configDir is [os.UserConfigDir] of an environment that is handed in; XDG_CONFIG_HOME
// counts on every system.
func configDir(env func(string) string) string {
	dir := env("XDG_CONFIG_HOME")
	switch {
	case dir != "":
		return dir
	case runtime.GOOS == "windows":
		return env("AppData")
	case runtime.GOOS == "darwin":
		return under(env("HOME"), "Library/Application Support")
	}
	return under(env("HOME"), ".config")
}

func under(home, dir string) string {
	if home == "" {
		return ""
	}
	return filepath.Join(home, filepath.FromSlash(dir))
}

// Has reports whether a data file is known. One whose log was found beside it, left
// there by nobody that is known, is not.
func (f *Files) Has(id sqlite.Identity) bool {
	n, ok := f.look(id)
	return ok && (!id.LogFound || id.Log != "" && n.log == id.Log)
}

// How long a log that is found is looked for in what is remembered, and how often.
const (
	patience = 250 * time.Millisecond
	lookOver = 10 * time.Millisecond
)

// HasSoon is Has, and waits a moment where the data file is known and its log is not: another
// command of this user may have begun the log just now, and is about to remember it.
func (f *Files) HasSoon(ctx context.Context, id sqlite.Identity) bool {
	if f.Has(id) {
		return true
	}
	file := id
	if file.LogFound = false; !f.Has(file) {
		return false
	}
	for range patience / lookOver {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookOver):
		}
		if f.Has(id) {
			return true
		}
	}
	return false
}

// Keep remembers a data file, and the log it has now. What is remembered already is
// not written again.
func (f *Files) Keep(path string, id sqlite.Identity) error {
	n, ok := f.look(id)
	if ok && (n.log == id.Log || writeOver(n.file, id.Log) == nil) {
		return nil
	}
	if id.File == "" {
		return errors.New("the data file has nothing to know it by")
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	var errs []error
	for _, dir := range f.dirs {
		err := keep(dir, id.File, []byte(firstLine(id.Log)+path+"\n"))
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return errors.New("there is no folder for it: HOME is not set")
	}
	return errors.Join(errs...)
}

func (f *Files) look(id sqlite.Identity) (n note, ok bool) {
	if id.File == "" {
		return note{}, false
	}
	for _, dir := range f.dirs {
		if err := mine(dir); err != nil {
			continue
		}
		file := filepath.Join(dir, id.File)
		text, err := private.Read(file, logWidth+1)
		if err != nil || len(text) <= logWidth {
			continue
		}
		if n, ok = (note{strings.TrimRight(string(text), " \n"), file}), true; n.log == id.Log {
			break // else a folder that could not be written later may hold an older one
		}
	}
	return n, ok
}

func firstLine(log string) string { return fmt.Sprintf("%-*s\n", logWidth, log) }

// writeOver writes another log over the one in a note: a command begins a new log as a
// rule, and to put another file in place has some file systems wait for the disk. A look
// in the middle of it finds a log that is not the one there is ([Files.HasSoon]).
func writeOver(file, log string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(firstLine(log)), 0)
	return errors.Join(err, f.Close())
}

// mine refuses a folder, or one above it that is ours, which others could fill.
func mine(dir string) error {
	for _, dir := range []string{filepath.Dir(dir), dir} {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no folder", dir)
		}
		if err := owned.Folder(dir, info); err != nil {
			return err
		}
	}
	return nil
}

func keep(dir, name string, text []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := mine(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	_, err := os.Lstat(path)
	if err := private.WriteLoose(path, text); err != nil {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		forget(dir)
	}
	return nil
}

// forget removes what was written longest ago where there is too much. That something
// stays is no harm.
func forget(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= Most {
		return
	}
	type aged struct {
		name string
		at   time.Time
	}
	var all []aged
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, aged{entry.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return a.at.Compare(b.at) })
	for _, old := range all[:max(len(all)-Most, 0)] {
		_ = os.Remove(filepath.Join(dir, old.name))
	}
}
