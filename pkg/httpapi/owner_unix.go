//go:build unix

package httpapi

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the id of the user a file belongs to.
func ownerOf(info fs.FileInfo) (id int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}
