package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// A reply whose calls were about to run is an entry and no checkpoint.
func TestCheckpointsLeaveRepliesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("colour", "pick") // asks inside a tool with effects, so its reply is committed before
	kinds := map[session.Kind]bool{}
	for _, e := range get[client.Entries](w, ann, "/sessions/colour/entries").Items {
		kinds[e.Kind] = true
	}
	require.True(t, kinds[session.KindReplied])
	for _, c := range get[client.Checkpoints](w, ann, "/sessions/colour/checkpoints").Items {
		require.NotEqual(t, session.KindReplied, c.Kind)
	}
}
