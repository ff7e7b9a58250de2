// Package deletion deletes a copy of a file only while the file to keep is there with the same content.
package deletion

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/adjourn/adjourn/agents/confined"
)

// Delete deletes the file, if it and keep are still the files that were located.
// Two deletions that name each other's file as keep could each find it in place and
// then delete both. So the file is first moved aside, to [AsideName] of the id, and
// only then is keep looked for: of two such deletions at least one finds nothing and
// moves its file back. The move also means that what is deleted is what was hashed,
// however fast files are exchanged. A deletion that is stopped in between leaves the
// file under that name.
func (p *Place) Delete(id string, keep *Place) error {
	aside := AsideName(id, p.Base)
	if _, err := p.Dir.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %s is in the way", p.Path, aside)
	}
	if err := p.Dir.Rename(p.Base, aside); err != nil {
		return fmt.Errorf("%s: %w", p.Path, confined.Cause(err))
	}
	err := p.Unchanged(aside)
	if err == nil {
		if err = keep.Unchanged(keep.Base); err != nil {
			err = fmt.Errorf("the original %w", err)
		}
	}
	if err == nil {
		if err = p.Dir.Remove(aside); err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", p.Path, confined.Cause(err))
	}
	return errors.Join(err, p.moveBack(aside))
}

// moveBack gives the file its name back, unless another file has it by now.
func (p *Place) moveBack(aside string) error {
	if _, err := p.Dir.Lstat(p.Base); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was moved to %s, and a new file has its name now", p.Path, aside)
	}
	if err := p.Dir.Rename(aside, p.Base); err != nil {
		return fmt.Errorf("%s was moved to %s and could not be moved back: %w", p.Path, aside, confined.Cause(err))
	}
	return nil
}

// AsidePrefix begins the names of files that are about to be deleted. They are
// hidden, so that they are not taken for copies.
const AsidePrefix = ".adjourn-"

// maxName is how long a name may be, in bytes, on the file systems there are.
const maxName = 255

// AsideName is the name under which the deletion called id moves base aside: one
// that no other deletion uses. A name that is too long already goes without its own.
func AsideName(id, base string) string {
	sum := sha256.Sum256([]byte(id))
	name := fmt.Sprintf("%s%x", AsidePrefix, sum[:8])
	if len(name)+1+len(base) > maxName {
		return name
	}
	return name + "-" + base
}

var asideForm = regexp.MustCompile(`(?s)^\.adjourn-[0-9a-f]{16}(?:-.+)?$`)

// IsAside reports whether a name is one of [AsideName].
func IsAside(name string) bool { return asideForm.MatchString(name) }
