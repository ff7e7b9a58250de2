package janitor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/adjourn/adjourn/agents/confined"
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
	root, err := h.Open(in.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	duplicate, err := h.Locate(root, in.Path)
	if err != nil {
		return err
	}
	defer duplicate.Close()
	original, err := h.Locate(root, in.SameAs)
	if err != nil {
		return fmt.Errorf("the original %w", err)
	}
	defer original.Close()
	if os.SameFile(duplicate.Info, original.Info) {
		return fmt.Errorf("%s and %s are one file under two names (a hard link), not copies: deleting one frees nothing", in.Path, in.SameAs)
	}
	if err := verify(ctx, duplicate, in); err != nil {
		return err
	}
	if err := verify(ctx, original, in); err != nil {
		return fmt.Errorf("the original %w", err)
	}

	aside := asideName(id, duplicate.Base)
	if _, err := duplicate.Dir.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %s is in the way", in.Path, aside)
	}
	if err := duplicate.Dir.Rename(duplicate.Base, aside); err != nil {
		return fmt.Errorf("%s: %w", in.Path, confined.Cause(err))
	}
	err = duplicate.Unchanged(aside)
	if err == nil {
		if err = original.Unchanged(original.Base); err != nil {
			err = fmt.Errorf("the original %w", err)
		}
	}
	if err == nil {
		if err = duplicate.Dir.Remove(aside); err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", in.Path, confined.Cause(err))
	}
	return errors.Join(err, moveBack(duplicate, aside))
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
func verify(ctx context.Context, p *confined.Place, in DeleteIn) error {
	if p.Info.Size() != in.Size {
		return fmt.Errorf("%s: is no longer the file that was shown: it has %d bytes, not %d", p.Path, p.Info.Size(), in.Size)
	}
	sum, _, err := p.Hash(ctx)
	if err != nil {
		return err
	}
	if sum != in.SHA256 {
		return fmt.Errorf("%s: is no longer the file that was shown: its content has changed", p.Path)
	}
	return nil
}

// moveBack gives the file its name back, unless another file has it by now.
func moveBack(p *confined.Place, aside string) error {
	if _, err := p.Dir.Lstat(p.Base); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was moved to %s, and a new file has its name now", p.Path, aside)
	}
	if err := p.Dir.Rename(aside, p.Base); err != nil {
		return fmt.Errorf("%s was moved to %s and could not be moved back: %w", p.Path, aside, confined.Cause(err))
	}
	return nil
}
