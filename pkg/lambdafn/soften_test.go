package lambdafn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
)

// TestSoften_says_why: without the cause a step that is too long for Lambda would
// be tried, and paid for, for ever.
func TestSoften_says_why(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		soft, done := Config{Now: time.Now}.soften(ctx, workMargin)
		defer done()
		<-soft.Done()
		require.ErrorIs(t, context.Cause(soft), runtime.ErrOutOfTime)
		require.NoError(t, ctx.Err(), "while there is time left")
	})
}
