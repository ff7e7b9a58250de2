//go:build !unix

package private

import (
	"os"
	"time"
)

// old is how long ago a file was written of which nobody can tell whether its writer lives.
const old = time.Hour

// locks says that a lock tells whether the writer of a file lives.
const locks = false

func lock(*os.File) error { return nil }

// removeLeft removes a file that is older than any writer takes.
func removeLeft(path string) {
	if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > old {
		_ = os.Remove(path) // or it stays, which is no harm
	}
}
