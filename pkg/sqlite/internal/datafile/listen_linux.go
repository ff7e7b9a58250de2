package datafile

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// Listener waits for what is written to a file. Its zero value waits for nothing.
type Listener struct {
	events *os.File
	closed chan struct{}
	done   chan struct{}
}

// gone is what happens to a file that is removed or gets another name.
const gone = syscall.IN_ATTRIB | syscall.IN_MOVE_SELF | syscall.IN_DELETE_SELF

func (l *Listener) listen(log, file string, told chan<- struct{}) error {
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoListening, err) // a user may have 128, as a rule
	}
	events := os.NewFile(uintptr(fd), "inotify")
	for path, what := range map[string]uint32{log: syscall.IN_MODIFY | syscall.IN_CLOSE_WRITE | gone, file: gone} {
		if _, err := syscall.InotifyAddWatch(fd, path, what); err != nil {
			_ = events.Close()
			return fmt.Errorf("%w: %w", errNoListening, err)
		}
	}
	l.events, l.closed, l.done = events, make(chan struct{}), make(chan struct{})
	go l.run(told)
	return nil
}

func (l *Listener) run(told chan<- struct{}) {
	defer close(l.done)
	pause := time.NewTimer(listenPause)
	defer pause.Stop()
	buffer := make([]byte, 16<<10)
	for {
		if _, err := l.events.Read(buffer); err != nil {
			return // it was closed
		}
		select {
		case told <- struct{}{}:
		default:
		}
		pause.Reset(listenPause)
		select {
		case <-pause.C:
		case <-l.closed:
			return
		}
	}
}

// Close ends the waiting.
func (l *Listener) Close() {
	if l.events == nil {
		return
	}
	close(l.closed)
	_ = l.events.Close()
	<-l.done
	l.events = nil
}
