package datafile

import (
	"context"
	"sync"
)

// pool lends the connections that read: the one that was given back last comes first, because its
// statements are prepared and it has pages of the file. Another one is opened only when all that are
// open are in use.
type pool struct {
	free chan struct{} // has a value for each that may be lent
	mu   sync.Mutex
	open []*Conn
}

func newPool(size int) *pool {
	p := &pool{free: make(chan struct{}, size)}
	for range size {
		p.free <- struct{}{}
	}
	return p
}

// take returns a connection, or nil if the caller is to open one.
func (p *pool) take(ctx context.Context, closing <-chan struct{}) (*Conn, error) {
	select {
	case <-closing:
		return nil, ErrClosed
	default:
	}
	select {
	case <-p.free:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-closing:
		return nil, ErrClosed
	}
	return p.pop(), nil
}

func (p *pool) pop() (c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.open) - 1; last >= 0 {
		c, p.open = p.open[last], p.open[:last]
	}
	return c
}

// give takes back what take returned, or what was opened in its place; nil if nothing was.
func (p *pool) give(c *Conn) {
	if c != nil {
		p.mu.Lock()
		p.open = append(p.open, c)
		p.mu.Unlock()
	}
	p.free <- struct{}{}
}

// each waits for all connections and hands them over one by one. Nothing is lent after it.
func (p *pool) each(do func(*Conn)) {
	for range cap(p.free) {
		<-p.free
		if c := p.pop(); c != nil {
			do(c)
		}
	}
}
