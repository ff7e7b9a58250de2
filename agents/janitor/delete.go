package janitor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// remove deletes the copy that in names, if it is still the file that was shown
// and the original still exists with the same content. Whatever else happens at
// the same time, the last file with this content is never deleted.
//
// Two deletions that name each other as the original could each find the other
// one's file in place and then delete both. So the copy is first moved aside to
// a name nobody else uses, and only then is the original looked for: of two such
// deletions at least one finds nothing and moves its file back. The move also
// means that what is deleted is what was hashed, however fast somebody
// exchanges files. Who dies in between leaves the file under that name, which
// tells what it was called and which [scan] reports.
func (h home) remove(ctx context.Context, in DeleteIn, id string) (err error) {
	root, err := h.open(in.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	duplicate, err := h.locate(root, in.Path)
	if err != nil {
		return err
	}
	defer duplicate.close()
	original, err := h.locate(root, in.SameAs)
	if err != nil {
		return fmt.Errorf("the original %w", err)
	}
	defer original.close()
	if os.SameFile(duplicate.info, original.info) {
		return fmt.Errorf("%s and %s are one file under two names (a hard link), not copies: deleting one frees nothing", in.Path, in.SameAs)
	}
	if err := duplicate.verify(ctx, in); err != nil {
		return err
	}
	if err := original.verify(ctx, in); err != nil {
		return fmt.Errorf("the original %w", err)
	}

	aside := asideName(id, duplicate.base)
	if _, err := duplicate.dir.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %s is in the way", in.Path, aside)
	}
	if err := duplicate.dir.Rename(duplicate.base, aside); err != nil {
		return fmt.Errorf("%s: %w", in.Path, cause(err))
	}
	err = duplicate.unchanged(aside)
	if err == nil {
		if err = original.unchanged(original.base); err != nil {
			err = fmt.Errorf("the original %w", err)
		}
	}
	if err == nil {
		if err = duplicate.dir.Remove(aside); err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", in.Path, cause(err))
	}
	return errors.Join(err, duplicate.moveBack(aside))
}

// asidePrefix begins the names of files that are about to be deleted. They are
// hidden, so that nobody takes them for copies.
const asidePrefix = ".adjourn-"

// maxName is how long a name may be, in bytes, on the file systems there are.
const maxName = 255

// asideName is the name under which the deletion called id moves base aside: one
// that nobody else uses. A name that is too long already goes without its own.
func asideName(id, base string) string {
	name := asidePrefix + digest(id)
	if len(name)+1+len(base) > maxName {
		return name
	}
	return name + "-" + base
}

// setAside says whether name is one of [asideName], and what the file was called
// before if the name tells.
func setAside(name string) (was string, ok bool) {
	rest, ok := strings.CutPrefix(name, asidePrefix)
	if !ok || len(rest) < digestLen {
		return "", false
	}
	if _, err := hex.DecodeString(rest[:digestLen]); err != nil {
		return "", false
	}
	if rest = rest[digestLen:]; rest == "" {
		return "", true
	}
	was, ok = strings.CutPrefix(rest, "-")
	return was, ok && was != ""
}

// verify compares the file with what was shown.
func (p *place) verify(ctx context.Context, in DeleteIn) error {
	if p.info.Size() != in.Size {
		return fmt.Errorf("%s: is no longer the file that was shown: it has %d bytes, not %d", p.path, p.info.Size(), in.Size)
	}
	sum, _, err := p.hash(ctx)
	if err != nil {
		return err
	}
	if sum != in.SHA256 {
		return fmt.Errorf("%s: is no longer the file that was shown: its content has changed", p.path)
	}
	return nil
}

// moveBack gives the file its name back, unless another file has it by now.
func (p *place) moveBack(aside string) error {
	if _, err := p.dir.Lstat(p.base); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was moved to %s, and a new file has its name now", p.path, aside)
	}
	if err := p.dir.Rename(aside, p.base); err != nil {
		return fmt.Errorf("%s was moved to %s and could not be moved back: %w", p.path, aside, cause(err))
	}
	return nil
}
