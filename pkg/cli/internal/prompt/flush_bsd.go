//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package prompt

import "golang.org/x/sys/unix"

// fread is the kernel's FREAD: what waits to be read.
const fread = 1

// flush throws away what was typed on a terminal and has not been read.
func flush(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
