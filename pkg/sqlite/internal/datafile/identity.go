package datafile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/adjourn/adjourn/internal/owned"
)

// Identity distinguishes a data file from every other, its copies included. Only this file's user
// can make a second file with the same identity: it is made from a random text in the file, the
// file's number and the time it was made, which no user can choose and a copy does not have (see
// [owned.Birth]). It is 64 hexadecimal digits; "" in memory, and for a file without such a text.
func (f *File) Identity() string {
	if f.opened == nil {
		return ""
	}
	return identityOf(f.identity, f.opened.real)
}

// Log identifies the log the file has now; "" if there is none. It was found if it was there
// already when the file was opened, with content, and no process was working on the file.
func (f *File) Log() (id string, found bool) {
	if f.opened == nil {
		return "", false
	}
	if birth := owned.Birth(f.opened.real + sidecars[theLog]); birth != "" {
		id = digest(birth)
	}
	return id, f.logFound
}

func identityOf(text, path string) string {
	if text == "" {
		return ""
	}
	return digest(text + "\n" + owned.Birth(path))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// LacksIdentity reports whether the file has no text it is known by, as earlier programs made them.
func (f *File) LacksIdentity() bool { return f.opened != nil && f.identity == "" }

// WriteIdentity gives the file such a text in a transaction of the connection that writes, and
// returns it for [File.KnowIdentity].
func (f *File) WriteIdentity() (text string, err error) { return giveIdentity(f.writer) }

// KnowIdentity says that the text is in the file. It must not be called while others ask for it.
func (f *File) KnowIdentity(text string) { f.identity = text }

// giveIdentity makes the text, unless another process was first, and returns it.
func giveIdentity(c *Conn) (string, error) {
	if err := c.Script(identitySchema); err != nil {
		return "", err
	}
	//nolint:forbidigo // it must not be guessed or chosen
	if err := c.Script(fmt.Sprintf("INSERT INTO identity SELECT '%s' WHERE NOT EXISTS (SELECT 1 FROM identity)", rand.Text())); err != nil {
		return "", err
	}
	return readIdentity(c)
}

// readIdentity returns the text of a file; "" if it has none.
func readIdentity(c *Conn) (string, error) {
	tables, err := c.Number("SELECT count(*) FROM sqlite_schema WHERE type='table' AND name='identity'")
	if err != nil || tables == 0 {
		return "", err
	}
	return c.text("SELECT coalesce((SELECT id FROM identity ORDER BY rowid LIMIT 1), '')")
}
