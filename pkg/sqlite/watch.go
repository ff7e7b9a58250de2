package sqlite

// When the writer looks for what other processes have written, and for those that have died.

import (
	"time"

	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// checkEvery is how often the file is asked whether others wrote to it while somebody waits
	// and the system does not tell.
	checkEvery = 15 * time.Millisecond
	// lookEvery is how often the messages are looked at where nothing says that it is worth it.
	lookEvery = time.Second
	// recent is how long after something was written the owners are looked at as often as where
	// the system does not tell: a process that dies lets go of the file first.
	recent = 5 * pollEvery
)

// listens reports whether the system tells what is written.
func (w *writer) listens() bool { return w.db.others.Told() != nil }

// wrote is called when something was written, as a rule by this process.
func (w *writer) wrote() {
	now := w.db.now()
	w.writtenAt = now
	if soon := now.Add(pollEvery); w.pollAt.After(soon) {
		w.pollAt = soon
	}
	w.tick()
}

// ownerPoll is how often to look at the owners now.
func (w *writer) ownerPoll() time.Duration {
	if w.listens() && w.db.now().Sub(w.writtenAt).Abs() >= recent {
		return lookEvery
	}
	return pollEvery
}

// ownerDied reports whether one of the owners that were in the file is dead.
func (w *writer) ownerDied() bool {
	dead := w.db.deadOwners()
	for _, name := range w.owners {
		if dead(name) {
			return true
		}
	}
	return false
}

var _ store.Watcher = (*Store)(nil)

// Watch tells what other processes write; see [store.Watcher]. A file that was opened for reading
// does not tell.
func (s *Store) Watch(changed func()) (stop func(), ok bool) {
	if s.db.readOnly {
		return nil, false
	}
	return s.db.others.Watch(changed), true
}
