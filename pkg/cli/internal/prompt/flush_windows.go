package prompt

import "golang.org/x/sys/windows"

// flush throws away what was typed on a terminal and has not been read.
func flush(fd int) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
