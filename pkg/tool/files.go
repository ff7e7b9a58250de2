package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoFolder says that a tool may have no files of its own, or that its folder cannot be used.
var ErrNoFolder = errors.New("no folder for files")

// Files says where the tools of a program may have files. It is decided when the
// program starts, and never by who calls a tool.
type Files struct {
	// Folder is where tools write files of their own, an absolute path. It need not
	// exist: [Files.OpenFolder] makes it. Empty: they may have none.
	Folder string
	// Home holds the files that tools may look after: in a person's own terminal the
	// folder of their work, the same as Folder where others may call.
	Home string
	// Data is the path of the program's data file, "" where it has none; what is named
	// after it lies beside it, also what lets callers in. DataFolder is its folder where
	// that holds nothing else, else "". No tool reaches any of it.
	Data, DataFolder string
}

// Files returns where the tool may have files.
func (c *Call) Files() Files { return c.cfg.Files }

// OpenFolder opens the Folder, made if need be (mode 0700), as a root that no path and
// no symlink leads out of. It fails with [ErrNoFolder] where there is none, where a
// symlink or a file is in its place, and where it holds the program's data or lies among
// them. Close the root after use.
func (f Files) OpenFolder() (*os.Root, error) {
	if f.Folder == "" {
		return nil, fmt.Errorf("%w: the program names none", ErrNoFolder)
	}
	if err := os.Mkdir(f.Folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	named, err := os.Lstat(f.Folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	root, err := os.OpenRoot(f.Folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	opened, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, opened):
		err = fmt.Errorf("%s is a symlink", f.Folder)
	case f.amongData(opened):
		err = fmt.Errorf("%s holds the program's data, or lies among them", f.Folder)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoFolder, err), root.Close())
	}
	return root, nil
}

// amongData reports whether the data are below the opened folder, or the folder in the one
// that holds the data alone.
func (f Files) amongData(folder fs.FileInfo) bool {
	if f.Data != "" {
		paths := []string{f.Data}
		if real, err := filepath.EvalSymlinks(f.Data); err == nil {
			paths = append(paths, real)
		}
		for _, path := range paths {
			if within(filepath.Dir(path), folder) {
				return true
			}
		}
	}
	if f.DataFolder == "" {
		return false
	}
	alone, err := os.Stat(f.DataFolder)
	return err == nil && within(f.Folder, alone)
}

// within reports whether a path is a folder or lies in it, by identity and whatever its name.
func within(path string, folder fs.FileInfo) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for at := path; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, folder) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}
