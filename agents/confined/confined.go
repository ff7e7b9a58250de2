// Package confined opens the one folder in which an agent's files stay, away from the program's data.
package confined

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/adjourn/adjourn/pkg/tool"
)

// The refusals, for errors.Is. Their texts say which path, and which folder.
var (
	// ErrOutside: the path leads out of the folder.
	ErrOutside = errors.New("outside of the folder")
	// ErrData: the path leads to the program's data.
	ErrData = errors.New("the program's data")
	// ErrNoFolder: the program has no folder for files, or one that cannot be used.
	ErrNoFolder = errors.New("no folder for files")
)

// Folder is an open folder: everything under it is reached through Root, which no
// ".." and no symlink leads out of.
type Folder struct {
	Root *os.Root
	// Path is the folder's real path, without symlinks.
	Path string

	named string
	data  []fs.FileInfo
}

// Own opens the folder where tools write files, and makes it if need be. It is
// refused where it holds the program's data, or lies in the folder of the data,
// under whatever name.
func Own(files tool.Files) (*Folder, error) {
	if files.Folder == "" {
		return nil, noFolder()
	}
	if err := os.Mkdir(files.Folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: make %s: %w", ErrNoFolder, files.Folder, Cause(err))
	}
	f, err := open(files.Folder, files)
	if err != nil {
		return nil, err
	}
	if holdsData(f.Path, files) {
		return nil, errors.Join(fmt.Errorf("%w: %s holds %w: name another one with ADJOURN_LAB_FOLDER", ErrNoFolder, f.Path, ErrData), f.Root.Close())
	}
	return f, nil
}

// Home opens the folder whose files tools may look after. The program's data may be
// in it: [Folder.Guards] knows it.
func Home(files tool.Files) (*Folder, error) {
	if files.Home == files.Folder {
		return Own(files)
	}
	if files.Home == "" {
		return nil, noFolder()
	}
	return open(files.Home, files)
}

func noFolder() error {
	return fmt.Errorf("%w: name one with ADJOURN_LAB_FOLDER when the program starts", ErrNoFolder)
}

// open opens a folder that is no symlink, and not inside the folder of the data.
func open(named string, files tool.Files) (*Folder, error) {
	unusable := func(err error) error { return fmt.Errorf("%w: %s: %w", ErrNoFolder, named, Cause(err)) }
	before, err := os.Lstat(named)
	switch {
	case err != nil:
		return nil, unusable(err)
	case !before.IsDir():
		// Somebody else's repository may bring a symlink of this name.
		return nil, unusable(errors.New("is a symlink or a file, not a folder"))
	}
	path, err := filepath.EvalSymlinks(named)
	if err != nil {
		return nil, unusable(err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, unusable(err)
	}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("was exchanged for another folder just now")
	}
	f := &Folder{Root: root, Path: path, named: filepath.Clean(named)}
	if err == nil {
		f.data, err = dataFiles(files)
	}
	if err == nil && files.DataFolder != "" && below(f.Path, files.DataFolder) {
		err = fmt.Errorf("it lies in the folder of %w", ErrData)
	}
	if err != nil {
		return nil, errors.Join(unusable(err), root.Close())
	}
	return f, nil
}

// Local returns the path below the folder that a path means: a relative one begins
// at the folder, an absolute one must lead into it. Symlinks are checked by Root.
func (f *Folder) Local(path string) (string, error) {
	local := filepath.Clean(filepath.FromSlash(path))
	if filepath.IsAbs(local) {
		for _, folder := range []string{f.named, f.Path} {
			if rel, err := filepath.Rel(folder, local); err == nil && filepath.IsLocal(rel) {
				return rel, nil
			}
		}
	}
	if path == "" || !filepath.IsLocal(local) {
		return "", f.Outside(path)
	}
	return local, nil
}

// Outside is the refusal of a path that leads out of the folder.
func (f *Folder) Outside(path string) error {
	return fmt.Errorf("%q is %w %s, where the files of this agent stay", path, ErrOutside, f.Path)
}

// Guards reports whether a file or folder is one of the program's data. It compares
// identities, so another name of the same file makes no difference on any file system.
func (f *Folder) Guards(info fs.FileInfo) bool {
	for _, d := range f.data {
		if os.SameFile(info, d) {
			return true
		}
	}
	return false
}

// Guarded is the refusal of a path that leads to the program's data.
func (f *Folder) Guarded(path string) error {
	return fmt.Errorf("%q belongs to %w, which no tool may touch", path, ErrData)
}

// dataFiles are the files of the data, and their folder where that holds nothing else.
func dataFiles(files tool.Files) ([]fs.FileInfo, error) {
	var found []fs.FileInfo
	for _, path := range places(files.Data) {
		dir := filepath.Dir(path)
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at the data: %w", Cause(err))
		}
		alone := dir == files.DataFolder
		if alone {
			if info, err := os.Stat(dir); err == nil {
				found = append(found, info)
			}
		}
		base := strings.ToLower(filepath.Base(path))
		for _, e := range entries {
			if !alone && !beside(strings.ToLower(e.Name()), base) {
				continue
			}
			if info, err := e.Info(); err == nil { // else it is gone by now
				found = append(found, info)
			}
		}
	}
	return found, nil
}

// beside reports whether a name is that of a file which commands keep beside the data
// file: one named after it, the manifest of the last pause, or a file that is being
// written or edited just now (internal/private chooses those names).
func beside(name, base string) bool {
	return strings.HasPrefix(name, base) || name == "pause.json" || strings.HasSuffix(name, ".adjourn-tmp")
}

// places are the paths of the data file: as it is named, and where it really is.
func places(data string) []string {
	if data == "" {
		return nil
	}
	all := []string{data}
	if path, err := filepath.EvalSymlinks(data); err == nil && path != data {
		all = append(all, path)
	}
	return all
}

// holdsData reports whether the data can be reached from a folder.
func holdsData(folder string, files tool.Files) bool {
	for _, path := range places(files.Data) {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && below(dir, folder) {
			return true
		}
	}
	return false
}

// below reports whether path is dir or lies in it, by identity.
func below(path, dir string) bool {
	want, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for at := path; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, want) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// Cause takes the operation and the path from a file error: messages name the path
// that a person knows.
func Cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return gone{err}
	}
	return err
}

// gone says in plain words that a file does not exist.
type gone struct{ error }

func (gone) Error() string   { return "does not exist" }
func (g gone) Unwrap() error { return g.error }
