//go:build !aws

package runtime_test

import (
	"testing"
	"time"

	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// overEmulator says that each call of a store takes milliseconds.
const overEmulator = false

// watchEvery is how often a worker looks for signals, as the embedded engine has it.
const watchEvery = 100 * time.Millisecond

// openStore is the store of a world: that of the embedded engine.
func openStore(_ testing.TB, db *sqlite.DB) store.Store { return db.Store() }

// overLine is the store as it is: no line leads to the embedded engine.
func overLine(_ testing.TB, s store.Store, _ *traffic) store.Store { return s }
