package owned

import (
	"os"
	"syscall"
)

// birthOf knows the moment alone: a number would need the file to be opened.
func birthOf(path string) (number uint64, nanoseconds int64, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, false
	}
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return 0, 0, false
	}
	return 0, data.CreationTime.Nanoseconds(), true
}
