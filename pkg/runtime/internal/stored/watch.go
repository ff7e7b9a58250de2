package stored

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Watched says of which entries a [Watch] is told.
type Watched int

// What is watched.
const (
	// EveryEntry is for who follows a session.
	EveryEntry Watched = iota
	// EntriesThatStop is for who waits until a session runs no more.
	EntriesThatStop
)

// Watch is told when something may have been written to a session. Who waits for a session begins
// to watch it, then reads it, then waits for Told, then reads it again: so nothing is missed.
type Watch struct {
	hub     *hub
	key     session.Key
	watched Watched
	told    chan struct{}
	others  bool
}

// Watch begins to watch a session, until [Watch.Stop].
func (st *Sessions) Watch(key session.Key, what Watched) *Watch {
	w := &Watch{hub: &st.hub, key: key, watched: what, told: make(chan struct{}, 1)}
	w.others = st.hub.add(w)
	return w
}

// Told has a value after an entry was written, and perhaps without one.
func (w *Watch) Told() <-chan struct{} { return w.told }

// Others reports whether it is told of what other processes write, too. If not, who waits has to
// read the session now and then.
func (w *Watch) Others() bool { return w.others }

// Stop ends the watch.
func (w *Watch) Stop() { w.hub.remove(w) }

func (w *Watch) tell() {
	select {
	case w.told <- struct{}{}:
	default: // it has not seen the last one yet
	}
}

const (
	// crowd is how many watch before they are told less often of what other processes write. They
	// are not told which session it was, so all of them read the store.
	crowd = 100
	// share is how long the store is left alone for each of a crowd.
	share = 100 * time.Microsecond
)

// hub knows who watches which session.
type hub struct {
	store store.Store
	count atomic.Int64 // of those who watch

	mu    sync.Mutex
	byKey map[session.Key][]*Watch
	stop  func() // of watching the store; nil if it is not watched
	quiet bool   // a crowd was told a moment ago of what other processes wrote
	again bool   // they wrote since
}

// wrote tells those who watch a session that an entry may be there. Where nobody watches any, it
// costs the committer nothing.
func (h *hub) wrote(key session.Key, status session.Status) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.byKey[key] {
		if w.watched == EveryEntry || status != session.StatusRunning {
			w.tell()
		}
	}
}

func (h *hub) add(w *Watch) (others bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKey == nil {
		h.byKey = map[session.Key][]*Watch{}
	}
	h.byKey[w.key] = append(h.byKey[w.key], w)
	h.count.Add(1)
	if h.stop == nil {
		if s, can := h.store.(store.Watcher); can {
			h.stop, _ = s.Watch(h.othersWrote)
		}
	}
	return h.stop != nil
}

func (h *hub) remove(w *Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.byKey[w.key], func(other *Watch) bool { return other == w })
	if len(left) == len(h.byKey[w.key]) {
		return // it was stopped before
	}
	h.byKey[w.key] = left
	if len(left) == 0 {
		delete(h.byKey, w.key)
	}
	if h.count.Add(-1) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// othersWrote tells everybody that another process wrote something.
func (h *hub) othersWrote() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quiet {
		h.again = true
		return
	}
	for _, all := range h.byKey {
		for _, w := range all {
			w.tell()
		}
	}
	if n := h.count.Load(); n > crowd {
		h.quiet = true
		time.AfterFunc(time.Duration(n)*share, h.endQuiet)
	}
}

func (h *hub) endQuiet() {
	h.mu.Lock()
	again := h.again
	h.quiet, h.again = false, false
	h.mu.Unlock()
	if again {
		h.othersWrote()
	}
}
