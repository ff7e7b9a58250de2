package main

import (
	"testing"
	"time"

	"github.com/adjourn/adjourn/pkg/queue/queuetest"
)

// The queue of the simulation keeps the contract of the port.
func TestQueueKit(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(*testing.T) queuetest.Fixture {
		dead := newSQS(sqsConfig{})
		return queuetest.Fixture{Queue: newSQS(sqsConfig{maxReceives: 3, deadLetters: dead, fair: true}), DeadLetters: dead, MaxReceives: 3, Second: 250 * time.Millisecond}
	})
}
