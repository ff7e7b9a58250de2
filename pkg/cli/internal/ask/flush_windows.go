package ask

import "golang.org/x/sys/windows"

// forget throws away what was typed on a terminal and has not been read.
func forget(fd int) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
