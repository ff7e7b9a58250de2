// Package app holds what programs on a data file share with those on AWS: the settings of the environment, new ids, the parts of a runtime.
//
// Settings are read here and ids are made here, so that the packages it imports can be
// tested with values. A runtime is opened by one of two packages that import it:
// github.com/adjourn/adjourn/pkg/app/embedded on a data file,
// github.com/adjourn/adjourn/pkg/app/serverless on AWS.
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
