package ask

import "golang.org/x/sys/unix"

// forget throws away what was typed on a terminal and has not been read.
func forget(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
