package owned

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// What [Secret] refuses.
var (
	// ErrOpen: others than its owner may read or write the file.
	ErrOpen = errors.New("others may read or write it")
	// ErrForeign: the file is neither this user's nor root's.
	ErrForeign = errors.New("it belongs to somebody else")
)

// openToOthers are the bits that a file with a secret must not have.
const openToOthers = 0o077

// Secret refuses an opened file that others may read or write with [ErrOpen], and one
// that is neither this user's nor root's with [ErrForeign], and says what to do. On
// Windows, where a mode does not tell, it takes all.
func Secret(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&openToOthers != 0 {
		return fmt.Errorf("%w: chmod 600 %s", ErrOpen, f.Name())
	}
	if id, known := User(info); known && id != 0 && id != os.Geteuid() {
		return fmt.Errorf("%w: user %d; if what is in it is to count: chown %d %s", ErrForeign, id, os.Geteuid(), f.Name())
	}
	return nil
}
