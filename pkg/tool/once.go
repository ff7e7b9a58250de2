package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrOnceReadOnly refuses Once in a tool that has no ledger to remember in.
var ErrOnceReadOnly = errors.New("a read-only tool remembers nothing: declare the tool tool.Idempotent or tool.SideEffect to use tool.Once")

// rememberTimeout bounds how long a result may take to become durable, once the
// function has run: its context's end does not cut that short.
const rememberTimeout = 10 * time.Second

type onceKey struct {
	call *Call
	key  string
}

// Once runs fn at most once to success for this call and key, over all runs of
// the tool: its result is durable before Once returns, and later runs get it
// back. An error of fn is returned and not remembered. When the process dies
// after fn and before its result is durable, the next run calls fn again: for
// what must not even then happen twice use the idempotency key.
//
// The result goes through JSON on the first run too, so that it reads the same
// on every one. Keys belong to the call: two calls never share one. A second
// Once of a key that is running waits for the first.
func Once[T any](ctx context.Context, c *Call, key string, fn func(context.Context) (T, error)) (T, error) {
	var none T
	raw, err := c.once(ctx, key, func(ctx context.Context) (any, error) { return fn(ctx) })
	if err != nil {
		return none, err
	}
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return none, fmt.Errorf("once %q: what is remembered does not fit %T: %w", key, none, err)
	}
	return value, nil
}

func (c *Call) once(ctx context.Context, key string, fn func(context.Context) (any, error)) (json.RawMessage, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("once: key %w", err)
	}
	if c.cfg.Remember == nil {
		return nil, fmt.Errorf("once %q: %w", key, ErrOnceReadOnly)
	}
	if ctx.Value(onceKey{c, key}) != nil {
		return nil, fmt.Errorf("once %q: it is called from within itself and would wait for ever", key)
	}
	free, raw, err := c.enter(ctx, key)
	if err != nil || raw != nil {
		return raw, err
	}
	defer free()
	value, err := fn(context.WithValue(ctx, onceKey{c, key}, true))
	if err != nil {
		return nil, err
	}
	raw, err = marshalValue(value)
	if err != nil {
		return nil, fmt.Errorf("once %q: %w", key, err)
	}
	// What has happened must be remembered even if the call was cancelled meanwhile.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberTimeout)
	defer cancel()
	if err := c.cfg.Remember(keep, key, raw); err != nil {
		return nil, fmt.Errorf("once %q: remember the result: %w", key, err)
	}
	c.mu.Lock()
	c.memo[key] = raw
	c.mu.Unlock()
	return raw, nil
}

// enter waits for its turn with a key: it returns what is remembered, or a
// function that frees the key for the next.
func (c *Call) enter(ctx context.Context, key string) (free func(), raw json.RawMessage, err error) {
	for {
		c.mu.Lock()
		if raw, ok := c.memo[key]; ok {
			c.mu.Unlock()
			return nil, raw, nil
		}
		if c.over {
			c.mu.Unlock()
			return nil, nil, fmt.Errorf("once %q: %w", key, ErrCallOver)
		}
		turn, taken := c.running[key]
		if !taken {
			turn = make(chan struct{})
			c.running[key] = turn
		}
		c.mu.Unlock()
		if err := ctx.Err(); err != nil {
			if !taken {
				c.leave(key, turn)
			}
			return nil, nil, fmt.Errorf("once %q: %w", key, context.Cause(ctx))
		}
		if !taken {
			return func() { c.leave(key, turn) }, nil, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
		}
	}
}

func (c *Call) leave(key string, turn chan struct{}) {
	c.mu.Lock()
	delete(c.running, key)
	c.mu.Unlock()
	close(turn)
}
