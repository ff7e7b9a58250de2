package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Limits of what a caller of the lab can write: the number of files, those with the
// records of append_once included, and the bytes of each.
const (
	maxFile  = 1 << 20
	maxFiles = 256
)

const filePerm = 0o644

// in opens the lab's folder, and hands it with the path below it to work.
func in(files tool.Files, path string, work func(root *os.Root, path string) error) (err error) {
	folder, err := confined.Own(files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Root.Close()) }()
	local, err := folder.Local(path)
	if err != nil {
		return err
	}
	return work(folder.Root, local)
}

// openFile opens a file of the lab's folder for reading and writing, and makes it
// if there is room for one more.
func openFile(root *os.Root, path string, flags int) (*os.File, error) {
	_, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := room(root, filepath.Dir(path)); err != nil {
			return nil, err
		}
		flags |= os.O_CREATE
	}
	file, err := root.OpenFile(path, os.O_RDWR|flags, filePerm)
	if err != nil {
		return nil, err
	}
	if err := plain(file, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// plain refuses what is no regular file, and a file with a second name (a hard link),
// which may lie in any folder.
func plain(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is no file", path)
	}
	switch n, err := confined.Names(file, info); {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case n > 1:
		return fmt.Errorf("%s: is a hard link: the file has another name too", path)
	}
	return nil
}

// room refuses one file more than there may be.
func room(root *os.Root, dir string) error {
	opened, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := opened.Readdirnames(maxFiles)
	if errors.Is(err, io.EOF) {
		err = nil // it is empty
	}
	if err = errors.Join(err, opened.Close()); err != nil {
		return err
	}
	if len(entries) >= maxFiles {
		return fmt.Errorf("%s holds %d files, more than the lab makes: remove some", root.Name(), maxFiles)
	}
	return nil
}

// fits refuses to make a file larger than the lab's files are.
func fits(file *os.File, end int64) error {
	if end > maxFile {
		return fmt.Errorf("%s: would have more than %d bytes, the most of a file of the lab", file.Name(), maxFile)
	}
	return nil
}

// write is appendLine for a tool.
func write(ctx context.Context, c *tool.Call, path, text string) error {
	return in(c.Files(), path, func(root *os.Root, path string) error { return appendLine(ctx, root, path, text) })
}

// writeOnce is appendOnce for a tool.
func writeOnce(ctx context.Context, c *tool.Call, path, text string) error {
	return in(c.Files(), path, func(root *os.Root, path string) error {
		return appendOnce(ctx, root, path, c.IdempotencyKey(), text)
	})
}
