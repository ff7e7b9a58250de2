// Package owned says whether a file or a folder is this user's alone, and which of two files of one name it is.
//
// What others own, or may write, they may have written: a program that acts on such
// a file acts for them. Root's files count as this user's own: root could do as this
// user anyway. Where the system tells neither owner nor mode (Windows) all is taken.
package owned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ErrOthers says that others own, or may write, what was looked at.
var ErrOthers = errors.New("others may have written it")

// Bits of a mode that let others write.
const (
	groupMayWrite = 0o020
	allMayWrite   = 0o002
)

// File refuses a file that another user owns or may write, and what is no file, with
// [ErrOthers] and what to do. info is of [os.Lstat], or [os.File.Stat].
func File(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no plain file: move it away", ErrOthers, path)
	}
	if err := owner(path, info, "make a copy that is yours, and use that"); err != nil {
		return err
	}
	return written(path, info)
}

// Folder refuses a folder in which others may put another file in the place of one:
// one that another user owns, or may write (unless it is one like /tmp, where each
// may only touch their own), with [ErrOthers] and what to do.
func Folder(path string, info fs.FileInfo) error {
	if err := owner(path, info, "use a folder that is yours"); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return written(path, info)
}

// FolderAt is [Folder] for the folder that a path leads to.
func FolderAt(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return Folder(path, info)
}

func owner(path string, info fs.FileInfo, instead string) error {
	id, known := User(info)
	if !known || id == 0 || id == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("%w: %s belongs to %s, and you are %s: %s", ErrOthers, path, UserName(id), UserName(os.Geteuid()), instead)
}

func written(path string, info fs.FileInfo) error {
	id, known := User(info)
	mode := info.Mode().Perm()
	switch {
	case !known:
		return nil
	case mode&allMayWrite != 0:
		return fmt.Errorf("%w: every user may write %s: chmod go-w %s", ErrOthers, path, quote(path))
	case mode&groupMayWrite != 0 && !alone(id, groupOf(info)):
		return fmt.Errorf("%w: the group of %s may write it: chmod g-w %s", ErrOthers, path, quote(path))
	}
	return nil
}

// quote returns a path as a POSIX shell reads it.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// inGroup reports whether the lines of a file like /etc/group say that a group is the
// one that a user has for himself: of his name, with nobody else in it. Many systems
// give each user such a group, and new files are writable for it.
func inGroup(lines, id, name string) bool {
	for line := range strings.Lines(lines) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 4 || fields[2] != id {
			continue
		}
		return fields[0] == name && (fields[3] == "" || fields[3] == name)
	}
	return false
}
