//go:build aws && linux

package functions_test

import (
	"os"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/session"
)

// records are what the table and the bucket hold of the session.
func (d *drive) records() labtest.Records { return labtest.Read(d, d.store, d.key) }

// check holds the promises against a session that has ended.
func (d *drive) check() {
	records := d.records()
	// On a machine that stands still for a lease, others take over from whoever
	// holds it, as if that one had died.
	disturbed := d.Struck() > 0 || d.stalled(d.began, d.lease)
	d.unknown = labtest.Ended{Records: records, Script: d.script, Disturbed: disturbed, OldDoors: os.Getenv("ADJOURN_OLD_FUNCTIONS") != "", Told: d.told}.Check(d)
	if d.started.SessionID != "" {
		require.Equal(d, d.started.Entry.CheckpointID, records.Entries[0].Checkpoint(d.key.ID).String(), "the checkpoint the start was answered with")
	}
}

// checkNothingLeft: nothing is due any more. The queues are empty already.
func (t *trial) checkNothingLeft() {
	var keys []session.Key
	for _, d := range t.sessions {
		keys = append(keys, d.key)
	}
	labtest.NothingDue(t, t.store, time.Now().Add(24*time.Hour), keys...)
}
