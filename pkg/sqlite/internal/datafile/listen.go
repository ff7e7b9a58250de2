package datafile

import (
	"errors"
	"time"
)

// listenPause is how long a [Listener] is deaf after it has heard something. This process's own
// writes are heard too: a busy one is to be woken by them no more often than that.
const listenPause = 10 * time.Millisecond

// errNoListening says that the system does not tell who writes to a file.
var errNoListening = errors.New("the system does not tell what is written to a file")

// Listen has the listener send to told, where there is room, at once after a process, this one
// included, has written to the file, has let go of it (as one that dies does) or has removed or
// moved it. Of what follows within 10 ms it tells after them. It is an error where the system
// cannot do that. The listener must be closed before the file is.
func (f *File) Listen(l *Listener, told chan<- struct{}) error {
	if f.opened == nil {
		return errNoListening
	}
	return l.listen(f.opened.names[theLog], f.opened.path, told)
}
