//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package ask

import "golang.org/x/sys/unix"

// fread is the kernel's FREAD: what waits to be read.
const fread = 1

// forget throws away what was typed on a terminal and has not been read.
func forget(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
