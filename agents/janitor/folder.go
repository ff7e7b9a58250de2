package janitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/pkg/tool"
)

// chunk is how much is hashed between two looks at the context.
const chunk = 1 << 20

// home is the folder that holds every folder the janitor may look at.
type home struct{ *confined.Folder }

// enter opens it. What is opened is closed by [home.leave].
func enter(files tool.Files) (home, error) {
	f, err := confined.Home(files)
	return home{f}, err
}

func (h home) leave() { _ = h.Root.Close() } // it was only read

// resolve turns what a person wrote into the absolute path of a real folder,
// without symlinks in it: from then on the folder has one name, which later
// calls and approvals show. A folder that does not lie in the home is refused
// before anything is told of it.
func (h home) resolve(folder string) (string, error) {
	if folder == "" {
		return "", errors.New("no folder was named")
	}
	local, err := h.Local(folder)
	if err != nil {
		return "", err
	}
	abs := filepath.Join(h.Path, local)
	found, err := filepath.EvalSymlinks(abs)
	if err == nil {
		local, err = h.Local(found) // a symlink may lead anywhere
	}
	var info fs.FileInfo
	if err == nil {
		info, err = h.Root.Stat(local)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no folder %s", abs)
	case errors.Is(err, confined.ErrOutside):
		return "", err
	case err != nil:
		return "", fmt.Errorf("folder %s: %w", abs, cause(err))
	case h.Guards(info):
		return "", h.Guarded(abs)
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", abs)
	}
	return found, nil
}

// open opens a folder under the name that resolve gave it. A name that leads
// elsewhere by now, through a symlink put in its way, is refused. It goes down from
// the home directory by directory, so that nothing leads out of it in between.
func (h home) open(folder string) (*os.Root, error) {
	if !filepath.IsAbs(folder) {
		return nil, fmt.Errorf("folder %q is not absolute: use the one that list_files returned", folder)
	}
	found, err := h.resolve(folder)
	if err != nil {
		return nil, err
	}
	if found != filepath.Clean(folder) {
		return nil, fmt.Errorf("folder %s leads to %s: use the one that list_files returned", folder, found)
	}
	local, err := h.Local(found)
	if err != nil {
		return nil, err
	}
	root, err := h.Root.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", folder, cause(err))
	}
	if local == "." {
		return root, nil
	}
	for part := range strings.SplitSeq(local, string(filepath.Separator)) {
		next, err := h.descend(root, part)
		_ = root.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("folder %s: %s %w", folder, part, err)
		}
		root = next
	}
	return root, nil
}

// place is a regular file, reached through real directories only.
type place struct {
	path string
	dir  *os.Root // the directory it is in
	base string
	info fs.FileInfo // of the file itself, symlinks not followed
}

func (p *place) close() { _ = p.dir.Close() } // it was only read

// locate finds path below root. It goes down directory by directory and holds
// each one open, so that nothing can be put in the way behind its back: os.Root
// alone would follow a symlink that stays inside.
func (h home) locate(root *os.Root, name string) (*place, error) {
	if !fs.ValidPath(name) || name == "." || (runtime.GOOS == "windows" && !filepath.IsLocal(name)) {
		return nil, fmt.Errorf("path %q is not the path of a file inside the folder", name)
	}
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	}
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] {
		next, err := h.descend(dir, part)
		_ = dir.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("%s: %s %w", name, path.Join(parts[:i+1]...), err)
		}
		dir = next
	}
	p := &place{path: name, dir: dir, base: parts[len(parts)-1]}
	if p.info, err = dir.Lstat(p.base); err == nil && !p.info.Mode().IsRegular() {
		err = fmt.Errorf("is %s, not a file", kind(p.info.Mode()))
	}
	if err == nil && h.Guards(p.info) {
		err = h.Guarded(name)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	}
	return p, nil
}

func (h home) descend(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, cause(err)
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("is %s, not a folder", kind(before.Mode()))
	}
	if h.Guards(before) {
		return nil, h.Guarded(name)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, cause(err)
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("was exchanged for another folder just now")
	}
	if err != nil {
		_ = next.Close() // it was only read
		return nil, cause(err)
	}
	return next, nil
}

// hash reads the file and returns the SHA-256 of its content with its size. A
// file that changes while it is read is an error.
func (p *place) hash(ctx context.Context) (sum string, size int64, err error) {
	file, err := p.dir.Open(p.base)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", p.path, cause(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	opened, err := file.Stat()
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", p.path, cause(err))
	}
	if !os.SameFile(p.info, opened) {
		return "", 0, fmt.Errorf("%s: was exchanged for another file just now", p.path)
	}
	sha := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", 0, fmt.Errorf("%s: stopped while reading: %w", p.path, context.Cause(ctx))
		}
		n, err := io.CopyN(sha, file, chunk)
		size += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", 0, fmt.Errorf("%s: %w", p.path, cause(err))
		}
	}
	if err := p.unchanged(p.base); err != nil || size != p.info.Size() {
		return "", 0, fmt.Errorf("%s: changed while it was read", p.path)
	}
	return hex.EncodeToString(sha.Sum(nil)), size, nil
}

// unchanged says whether the file is, under this name, the one that was located.
func (p *place) unchanged(base string) error {
	now, err := p.dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: is gone", p.path)
	case err != nil:
		return fmt.Errorf("%s: %w", p.path, cause(err))
	case !os.SameFile(now, p.info) || now.Size() != p.info.Size() || !now.ModTime().Equal(p.info.ModTime()):
		return fmt.Errorf("%s: changed just now", p.path)
	}
	return nil
}

// cause takes the operation and the path from a file error: our messages name
// the path a person knows.
func cause(err error) error {
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

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	}
	return "a special file"
}
