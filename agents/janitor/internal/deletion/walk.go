package deletion

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
)

// Folder is a folder whose files may be deleted.
type Folder struct{ *confined.Folder }

// chunk is how much is hashed between two looks at the context.
const chunk = 1 << 20

// Resolve turns what a person wrote into the absolute path of a real folder,
// without symlinks in it: from then on the folder has one name, which later
// calls and approvals show. A folder that does not lie in the home is refused
// before anything is told of it.
func (f Folder) Resolve(folder string) (string, error) {
	if folder == "" {
		return "", errors.New("no folder was named")
	}
	local, err := f.Local(folder)
	if err != nil {
		return "", err
	}
	abs := filepath.Join(f.Path, local)
	found, err := filepath.EvalSymlinks(abs)
	if err == nil {
		local, err = f.Local(found) // a symlink may lead anywhere
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Root.Stat(local)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no folder %s", abs)
	case errors.Is(err, confined.ErrOutside):
		return "", err
	case err != nil:
		return "", fmt.Errorf("folder %s: %w", abs, confined.Cause(err))
	case f.Guards(info):
		return "", f.Guarded(abs)
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", abs)
	}
	return found, nil
}

// Open opens a folder under the name that Resolve gave it. A name that leads
// elsewhere by now, through a symlink put in its way, is refused. It goes down from
// the home directory by directory, so that nothing leads out of it in between.
func (f Folder) Open(folder string) (*os.Root, error) {
	if !filepath.IsAbs(folder) {
		return nil, fmt.Errorf("folder %q is not absolute: use the one that find_copies returned", folder)
	}
	found, err := f.Resolve(folder)
	if err != nil {
		return nil, err
	}
	if found != filepath.Clean(folder) {
		return nil, fmt.Errorf("folder %s leads to %s: use the one that find_copies returned", folder, found)
	}
	local, err := f.Local(found)
	if err != nil {
		return nil, err
	}
	root, err := f.Root.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", folder, confined.Cause(err))
	}
	if local == "." {
		return root, nil
	}
	for part := range strings.SplitSeq(local, string(filepath.Separator)) {
		next, err := f.descend(root, part)
		_ = root.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("folder %s: %s %w", folder, part, err)
		}
		root = next
	}
	return root, nil
}

// Place is a regular file, reached through real directories only.
type Place struct {
	Path string
	Dir  *os.Root // the directory it is in
	Base string
	Info fs.FileInfo // of the file itself, symlinks not followed
	// SHA256 of the content, and whether the file has another name (a hard link), which
	// may be anywhere: known after Hash.
	SHA256 string
	Linked bool
}

// Close lets go of the directory.
func (p *Place) Close() { _ = p.Dir.Close() } // it was only read

// Locate finds path below root. It goes down directory by directory and holds
// each one open, so that nobody can exchange one of them meanwhile: os.Root alone
// would follow a symlink that stays inside.
func (f Folder) Locate(root *os.Root, name string) (*Place, error) {
	if !fs.ValidPath(name) || name == "." || (runtime.GOOS == "windows" && !filepath.IsLocal(name)) {
		return nil, fmt.Errorf("path %q is not the path of a file inside the folder", name)
	}
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, confined.Cause(err))
	}
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] {
		next, err := f.descend(dir, part)
		_ = dir.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("%s: %s %w", name, path.Join(parts[:i+1]...), err)
		}
		dir = next
	}
	p := &Place{Path: name, Dir: dir, Base: parts[len(parts)-1]}
	if p.Info, err = dir.Lstat(p.Base); err == nil && !p.Info.Mode().IsRegular() {
		err = fmt.Errorf("is %s, not a file", Kind(p.Info.Mode()))
	}
	if err == nil && f.Guards(p.Info) {
		err = f.Guarded(name)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("%s: %w", name, confined.Cause(err))
	}
	return p, nil
}

func (f Folder) descend(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, confined.Cause(err)
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("is %s, not a folder", Kind(before.Mode()))
	}
	if f.Guards(before) {
		return nil, f.Guarded(name)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, confined.Cause(err)
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("was exchanged for another folder just now")
	}
	if err != nil {
		_ = next.Close() // it was only read
		return nil, confined.Cause(err)
	}
	return next, nil
}

// Read is Locate, and Hash of what it finds.
func (f Folder) Read(ctx context.Context, root *os.Root, name string) (*Place, error) {
	p, err := f.Locate(root, name)
	if err != nil {
		return nil, err
	}
	if err := p.Hash(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Hash reads the file. One that changes while it is read is an error.
func (p *Place) Hash(ctx context.Context) error {
	file, err := p.Dir.Open(p.Base)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Path, confined.Cause(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	opened, err := file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", p.Path, confined.Cause(err))
	}
	if !os.SameFile(p.Info, opened) {
		return fmt.Errorf("%s: was exchanged for another file just now", p.Path)
	}
	links, err := confined.Names(file, opened)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Path, err)
	}
	p.Linked = links > 1
	sha, size := sha256.New(), int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: stopped while reading: %w", p.Path, context.Cause(ctx))
		}
		n, err := io.CopyN(sha, file, chunk)
		size += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Path, confined.Cause(err))
		}
	}
	if err := p.Unchanged(p.Base); err != nil || size != p.Info.Size() {
		return fmt.Errorf("%s: changed while it was read", p.Path)
	}
	p.SHA256 = hex.EncodeToString(sha.Sum(nil))
	return nil
}

// Unchanged says whether the file is, under this name, the one that was located.
func (p *Place) Unchanged(base string) error {
	now, err := p.Dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: is gone", p.Path)
	case err != nil:
		return fmt.Errorf("%s: %w", p.Path, confined.Cause(err))
	case !os.SameFile(now, p.Info) || now.Size() != p.Info.Size() || !now.ModTime().Equal(p.Info.ModTime()):
		return fmt.Errorf("%s: changed just now", p.Path)
	}
	return nil
}

// Kind says what a file is.
func Kind(mode fs.FileMode) string {
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
