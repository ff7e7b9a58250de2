//go:build !unix && !windows

package lab

import (
	"io/fs"
	"os"
)

// names is how many names a file has: here nobody can tell.
func names(*os.File, fs.FileInfo) (uint64, error) { return 1, nil }
