//go:build !unix && !windows

package confined

import (
	"io/fs"
	"os"
)

// Names is how many names a file has: here nobody can tell.
func Names(*os.File, fs.FileInfo) (uint64, error) { return 1, nil }
