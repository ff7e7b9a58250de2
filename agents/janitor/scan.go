package janitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/agents/confined"
)

// maxEntries is how much of a folder is looked at: what is found has to fit
// into one result that a person can still read.
const maxEntries = 10_000

// scan walks a folder and returns what can be a copy of something: files whose
// size occurs more than once. Hidden files and folders are left alone, symlinks
// are not followed, empty files hold nothing to free, and a second name of a
// file (hard link) is not a copy.
func (h home) scan(ctx context.Context, folder string, limit int) (Listing, error) {
	found, err := h.Resolve(folder)
	if err != nil {
		return Listing{}, err
	}
	root, err := h.Open(found)
	if err != nil {
		return Listing{}, err
	}
	defer func() { _ = root.Close() }() // it was only read

	out := Listing{Folder: found, Files: []File{}}
	var files []entry
	entries := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if name == "." {
				return confined.Cause(err)
			}
			out.Skipped = append(out.Skipped, Skipped{Path: name, Reason: confined.Cause(err).Error()})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if name == "." {
			return nil
		}
		if entries++; entries > limit {
			return fmt.Errorf("it holds more than %d files and folders: name a smaller folder inside it", limit)
		}
		if h.guards(d) {
			out.Hidden++
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case strings.HasPrefix(d.Name(), "."):
			if was, ok := setAside(d.Name()); ok && d.Type().IsRegular() {
				out.Leftovers = append(out.Leftovers, leftover(name, was, d))
				return nil
			}
			// What programs keep for themselves (.git, .adjourn) is made of
			// equal files on purpose.
			out.Hidden++
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			out.Symlinks++
			return nil
		case !d.Type().IsRegular():
			out.Skipped = append(out.Skipped, Skipped{Path: name, Reason: "is " + confined.Kind(d.Type())})
			return nil
		}
		info, err := d.Info()
		if err != nil {
			out.Skipped = append(out.Skipped, Skipped{Path: name, Reason: confined.Cause(err).Error()})
			return nil
		}
		out.Scanned++
		if info.Size() == 0 {
			out.Empty++
			return nil
		}
		files = append(files, entry{File{Path: name, Size: info.Size()}, info})
		return nil
	})
	if err != nil {
		return Listing{}, fmt.Errorf("folder %s: %w", found, err)
	}
	out.Files, out.HardLinks = candidates(files)
	return out, nil
}

// guards reports whether an entry is one of the program's data.
func (h home) guards(d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && h.Guards(info)
}

func leftover(name, was string, d fs.DirEntry) Leftover {
	l := Leftover{Path: name}
	if was != "" {
		l.Was = path.Join(path.Dir(name), was)
	}
	if info, err := d.Info(); err == nil { // else it is listed without its size
		l.Size = info.Size()
	}
	return l
}

type entry struct {
	file File
	info fs.FileInfo
}

// candidates keeps the files whose size occurs more than once, the second names
// of a file not counted.
func candidates(files []entry) ([]File, []HardLink) {
	slices.SortFunc(files, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.file.Size, b.file.Size), preferred(a.file.Path, b.file.Path))
	})
	out, links := []File{}, []HardLink(nil)
	for from, to := 0, 0; from < len(files); from = to {
		for to < len(files) && files[to].file.Size == files[from].file.Size {
			to++
		}
		group := []entry{}
		for _, e := range files[from:to] {
			first := slices.IndexFunc(group, func(other entry) bool { return os.SameFile(e.info, other.info) })
			if first < 0 {
				group = append(group, e)
				continue
			}
			group[first].file.Linked = true
			links = append(links, HardLink{Path: e.file.Path, SameAs: group[first].file.Path})
		}
		if len(group) < 2 {
			continue
		}
		for _, e := range group {
			out = append(out, e.file)
		}
	}
	return out, links
}

// preferred orders the paths of copies by which one to keep: the shortest path
// first, then the first in byte order. Neither depends on when or where the
// folder is looked at, as times of files do once they were copied.
func preferred(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// hashFile hashes one file of a folder.
func (h home) hashFile(ctx context.Context, in HashIn) (Hash, error) {
	root, err := h.Open(in.Folder)
	if err != nil {
		return Hash{}, err
	}
	defer func() { _ = root.Close() }() // it was only read
	p, err := h.Locate(root, in.Path)
	if err != nil {
		return Hash{}, err
	}
	defer p.Close()
	sum, size, err := p.Hash(ctx)
	if err != nil {
		return Hash{}, err
	}
	if size == 0 {
		return Hash{}, errors.New(in.Path + ": is empty: there is nothing to compare")
	}
	return Hash{Path: in.Path, Size: size, SHA256: sum}, nil
}
