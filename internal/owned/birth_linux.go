package owned

import "golang.org/x/sys/unix"

// birthOf knows no moment where the file system keeps none.
func birthOf(path string) (number uint64, nanoseconds int64, ok bool) {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &x); err != nil {
		return numberOf(path) // an old kernel, or one that forbids the call
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		nanoseconds = x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
	}
	return x.Ino, nanoseconds, true
}

func numberOf(path string) (number uint64, nanoseconds int64, ok bool) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return 0, 0, false
	}
	return s.Ino, 0, true
}
