//go:build linux

package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

// What a dead process had received is made visible once, and who knew that there
// was nothing, or waits for another session's, is told.
func TestReleaseDead(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
	require.Len(t, receiveNow(t, db.Queue()), 1)
	before := strings.Split(NewOwner(), ":")
	before[4] = "another-boot"
	var freed, known [2]bool
	var wakeAt time.Time
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) (err error) {
		if err = w.c.Script(fmt.Sprintf("UPDATE owners SET name='%s'", strings.Join(before, ":"))); err != nil {
			return err
		}
		w.self = 0
		w.dry = [2]dry{{valid: true, at: w.db.now()}, {valid: true, at: w.db.now()}}
		w.wakeAt = w.db.now().Add(time.Hour)
		if freed[0], err = w.releaseDead(); err != nil {
			return err
		}
		known, wakeAt = [2]bool{w.dry[0].valid, w.dry[1].valid}, w.wakeAt
		freed[1], err = w.releaseDead()
		return err
	}}))
	require.Equal(t, [2]bool{true, false}, freed, "once")
	require.Equal(t, [2]bool{}, known)
	require.False(t, wakeAt.After(time.Now()))
	got := receiveNow(t, db.Queue())
	require.Len(t, got, 1)
	require.Equal(t, 2, got[0].Receives)
}
