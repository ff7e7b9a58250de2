package stored

import (
	"container/list"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// cache keeps folded sessions, so that a warm step reads only the newest entries. A caller that
// takes a session owns it until it is put back. Entries are immutable, so a cached session is
// never wrong; it can only lack the newest entries.
type cache struct {
	mu    sync.Mutex
	max   int // bytes
	size  int // bytes of all that are kept
	byKey map[session.Key]*list.Element
	order *list.List // of kept, the last used in front
	// out holds the sessions that are taken; each channel is closed when its is put back.
	out map[session.Key]chan struct{}
}

// kept is a session as it was measured when it was put back.
type kept struct {
	session *session.Session
	size    int
}

// cacheWait is how long take waits for a session that another step has taken. The store hands a
// message over within the commit that sends it, so the next step often begins shortly before the
// previous one has put its session back. To read the whole journal instead would cost far more.
const cacheWait = 5 * time.Millisecond

func newCache(maxBytes int) *cache {
	return &cache{max: maxBytes, byKey: map[session.Key]*list.Element{}, order: list.New(), out: map[session.Key]chan struct{}{}}
}

// take returns the session, or nil if it is not kept. Either way the caller has
// it until put or release.
func (c *cache) take(key session.Key) *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if back, ok := c.out[key]; ok {
		c.mu.Unlock()
		timer := time.NewTimer(cacheWait)
		select {
		case <-back:
		case <-timer.C:
		}
		timer.Stop()
		c.mu.Lock()
	}
	if _, ok := c.out[key]; !ok {
		c.out[key] = make(chan struct{})
	}
	el, ok := c.byKey[key]
	if !ok {
		return nil
	}
	return c.drop(el)
}

// drop keeps a session no longer, and returns it.
func (c *cache) drop(el *list.Element) *session.Session {
	k, _ := c.order.Remove(el).(kept)
	delete(c.byKey, k.session.Key)
	c.size -= k.size
	return k.session
}

// release says that a session that was taken does not come back.
func (c *cache) release(key session.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned(key)
}

func (c *cache) returned(key session.Key) {
	if back, ok := c.out[key]; ok {
		close(back)
		delete(c.out, key)
	}
}

// put keeps a session, and those used before it as far as they fit.
func (c *cache) put(s *session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned(s.Key)
	if el, ok := c.byKey[s.Key]; ok {
		if old, ok := el.Value.(kept); ok && old.session.Version >= s.Version {
			return
		}
		c.drop(el)
	}
	size := s.Size()
	if size > c.max {
		return // alone it would drive out all others, and stay above what may be kept
	}
	c.byKey[s.Key] = c.order.PushFront(kept{session: s, size: size})
	c.size += size
	for c.size > c.max {
		c.drop(c.order.Back())
	}
}

// running reports whether the session is kept here and was running when it was
// put back: then its wake is on its way, and there is no need to ask the store.
func (c *cache) running(key session.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byKey[key]
	if !ok {
		return false
	}
	k, ok := el.Value.(kept)
	return ok && k.session.Status == session.StatusRunning
}
