package queuetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue/queuetest"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// The test of an adapter: each case of the kit opens a queue of its own.
func Example() {
	testQueue := func(t *testing.T) {
		queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
			db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:", MaxReceives: 5})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return queuetest.Fixture{Queue: db.Queue(), DeadLetters: db.DeadLetters(), MaxReceives: 5, Second: 50 * time.Millisecond}
		})
	}
	_ = testQueue // in an adapter's package: func TestQueue(t *testing.T)
}
