package storetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/storetest"
)

// The test of an adapter: each case of the kit opens a store of its own.
func Example() {
	testStore := func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return db.Store()
		})
	}
	_ = testStore // in an adapter's package: func TestStore(t *testing.T)
}
