package datafile

import (
	"sync"
	"sync/atomic"
	"time"
)

// ListenAfter is how long somebody waits before the system is to tell: to end that takes a process
// 10 to 40 ms (Linux waits for all cores), too much for a short command.
const ListenAfter = 2 * time.Second

// Others notices what other processes write to a file, and tells those who watch. Watch and
// Watched are safe for concurrent use; the rest is for the user of the connection that writes.
type Others struct {
	file     *File
	version  int64 // of the file, when it was asked last
	listener Listener
	since    time.Time     // when Listen was called first
	tried    bool          // to listen
	told     chan struct{} // by the system; nil if it does not tell

	begun chan struct{}
	count atomic.Int64
	mu    sync.Mutex
	all   map[*func()]struct{} // those who watch
}

// Others returns what notices other processes' writes. Nothing of it is shared with another one.
func (f *File) Others() *Others {
	return &Others{file: f, begun: make(chan struct{}, 1), all: map[*func()]struct{}{}}
}

// Watch has changed called when Changed finds that others wrote, until stop is called.
func (o *Others) Watch(changed func()) (stop func()) {
	o.mu.Lock()
	o.all[&changed] = struct{}{}
	o.mu.Unlock()
	o.count.Add(1)
	select {
	case o.begun <- struct{}{}:
	default:
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if _, watching := o.all[&changed]; watching {
			delete(o.all, &changed)
			o.count.Add(-1)
		}
	}
}

// Watched reports whether anybody watches.
func (o *Others) Watched() bool { return o.count.Load() > 0 }

// Begun has a value after somebody began to watch.
func (o *Others) Begun() <-chan struct{} { return o.begun }

// Listen is called while somebody waits. After [ListenAfter] it has the system tell, if it can.
func (o *Others) Listen(now time.Time) {
	if o.since.IsZero() {
		o.since = now
	}
	if o.tried || now.Sub(o.since) < ListenAfter {
		return
	}
	o.tried = true
	told := make(chan struct{}, 1)
	if o.file.Listen(&o.listener, told) != nil {
		return
	}
	o.told = told
	select {
	case told <- struct{}{}: // of what was written before
	default:
	}
}

// Told has a value after the system told that something was written, as a rule by this process;
// nil if it does not tell.
func (o *Others) Told() <-chan struct{} { return o.told }

// Changed reports whether another process has written to the file since it was last asked, and
// tells those who watch. It takes 6 µs. A file that cannot be asked counts as changed: who then
// reads it learns why.
func (o *Others) Changed() bool {
	if o.file.opened == nil {
		return false
	}
	version, err := o.file.writer.DataVersion()
	if err == nil && version == o.version {
		return false
	}
	o.version = version
	if !o.Watched() {
		return true
	}
	o.mu.Lock()
	told := make([]func(), 0, len(o.all))
	for changed := range o.all {
		told = append(told, *changed)
	}
	o.mu.Unlock() // they may begin or stop to watch meanwhile
	for _, changed := range told {
		changed()
	}
	return true
}

// Close ends the listening.
func (o *Others) Close() { o.listener.Close() }
