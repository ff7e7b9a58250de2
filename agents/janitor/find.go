package janitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/agents/confined"
	"github.com/adjourn/adjourn/agents/janitor/internal/deletion"
)

// maxEntries is how much of a folder is looked at: the result has to stay readable.
const maxEntries = 10_000

// find walks a folder and compares the files whose size occurs more than once.
// Hidden files and folders are left alone, because what programs keep for themselves
// (.git, .adjourn) is made of equal files on purpose; symlinks are not followed.
func find(ctx context.Context, home deletion.Folder, folder string, limit int) (Found, error) {
	path, err := home.Resolve(folder)
	if err != nil {
		return Found{}, err
	}
	root, err := home.Open(path)
	if err != nil {
		return Found{}, err
	}
	defer func() { _ = root.Close() }() // it was only read

	out := Found{Folder: path, Sets: []Set{}}
	skip := func(name string, why error) {
		out.Skipped = append(out.Skipped, name+": "+strings.TrimPrefix(confined.Cause(why).Error(), name+": "))
	}
	bySize := map[int64][]string{}
	entries := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if name == "." {
			return confined.Cause(err)
		}
		var leave error // what makes the walk leave out the entry
		if d.IsDir() {
			leave = fs.SkipDir
		}
		info, infoErr := d.Info()
		if err = cmp.Or(err, infoErr); err != nil {
			skip(name, err)
			return leave
		}
		if entries++; entries > limit {
			return fmt.Errorf("it holds more than %d files and folders: name a smaller folder inside it", limit)
		}
		switch {
		case home.Guards(info):
			return leave
		case info.Mode().IsRegular() && deletion.IsAside(d.Name()):
			out.Leftovers = append(out.Leftovers, name)
		case strings.HasPrefix(d.Name(), "."):
			return leave
		case info.Mode().IsRegular():
			out.Scanned++
			if info.Size() > 0 {
				bySize[info.Size()] = append(bySize[info.Size()], name)
			}
		case !d.IsDir() && d.Type()&fs.ModeSymlink == 0:
			skip(name, errors.New("is "+deletion.Kind(d.Type())))
		}
		return nil
	})
	if err != nil {
		return Found{}, fmt.Errorf("folder %s: %w", path, err)
	}
	maps.DeleteFunc(bySize, func(_ int64, names []string) bool { return len(names) < 2 })
	for _, names := range bySize {
		sets := map[string]Set{}
		for _, name := range names {
			p, err := home.Read(ctx, root, name)
			switch {
			case ctx.Err() != nil:
				return Found{}, err
			case err != nil:
				skip(name, err)
				continue
			}
			p.Close()
			set := sets[p.SHA256]
			set.Size, set.SHA256 = p.Info.Size(), p.SHA256
			if p.Linked {
				set.Keep = append(set.Keep, name)
			} else {
				set.Copies = append(set.Copies, name)
			}
			sets[p.SHA256] = set
		}
		for _, set := range sets {
			slices.SortFunc(set.Keep, preferred)
			slices.SortFunc(set.Copies, preferred)
			if len(set.Keep) == 0 {
				set.Keep, set.Copies = set.Copies[:1], set.Copies[1:]
			}
			if len(set.Copies) > 0 {
				out.Sets = append(out.Sets, set)
			}
		}
	}
	slices.SortFunc(out.Sets, func(a, b Set) int { return cmp.Compare(a.Keep[0], b.Keep[0]) })
	slices.Sort(out.Skipped)
	return out, nil
}

// preferred orders the paths of copies by which one to keep: the shortest path
// first, then the first in byte order. Times of files change when files are copied.
func preferred(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
