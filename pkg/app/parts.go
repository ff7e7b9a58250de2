// Package app is what every wiring of the engine shares: the settings of the environment, new ids, the parts of a runtime.
//
// It is the one room that reads settings and makes ids, so that everything below
// it can be tested with values. Its rooms open an engine each: embedded the one in
// a file, serverless the one on AWS.
package app

import (
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Parts are what a runtime stands on: the ports, and the queue narrowed to one session.
type Parts struct {
	Store       store.Store
	Queue       queue.Queue
	DeadLetters queue.Queue
	// Only returns the queue as somebody sees it who works on one session alone.
	Only func(session.Key) queue.Queue
}
