package prompt

import "golang.org/x/sys/unix"

// flush throws away what was typed on a terminal and has not been read.
func flush(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
