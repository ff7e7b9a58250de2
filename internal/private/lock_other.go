//go:build !unix

package private

import (
	"os"
	"time"
)

// How long ago a file was written, or a folder changed, of which nobody can tell whether
// who made it lives. In a folder somebody may be editing.
const (
	old       = time.Hour
	oldFolder = 24 * time.Hour
)

// locks says that a lock tells whether the writer of a file lives.
const locks = false

func lock(*os.File) error { return nil }

// removeLeft removes what is older than anybody takes.
func removeLeft(path string) {
	info, err := os.Lstat(path)
	if err == nil && (time.Since(info.ModTime()) > oldFolder || !info.IsDir() && time.Since(info.ModTime()) > old) {
		_ = os.RemoveAll(path) // or it stays, which is no harm
	}
}
