//go:build unix

package confined

import (
	"io/fs"
	"os"
	"syscall"
)

// Names is how many names an opened file has.
func Names(_ *os.File, info fs.FileInfo) (uint64, error) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink), nil
	}
	return 1, nil
}
