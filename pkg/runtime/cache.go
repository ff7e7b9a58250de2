package runtime

import (
	"container/list"
	"sync"

	"github.com/adjourn/adjourn/pkg/session"
)

// cache keeps folded sessions, so that a warm step reads only the tail. Whoever
// takes a session owns it until it is put back; entries are immutable, so a
// session that was folded once is never wrong, only behind.
type cache struct {
	mu    sync.Mutex
	max   int
	byKey map[session.Key]*list.Element
	order *list.List // the last used in front
}

func newCache(maxSessions int) *cache {
	return &cache{max: maxSessions, byKey: map[session.Key]*list.Element{}, order: list.New()}
}

func (c *cache) take(key session.Key) *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byKey[key]
	if !ok {
		return nil
	}
	delete(c.byKey, key)
	s, _ := c.order.Remove(el).(*session.Session)
	return s
}

func (c *cache) put(s *session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byKey[s.Key]; ok {
		if old, ok := el.Value.(*session.Session); ok && old.Version >= s.Version {
			return
		}
		c.order.Remove(el)
	}
	c.byKey[s.Key] = c.order.PushFront(s)
	for c.order.Len() > c.max {
		if old, ok := c.order.Remove(c.order.Back()).(*session.Session); ok {
			delete(c.byKey, old.Key)
		}
	}
}
