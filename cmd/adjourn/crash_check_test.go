//go:build linux

package main_test

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// data is the data file of a trial.
type data struct {
	w  *world
	db *sqlite.DB
}

func (w *world) open() *data {
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: w.path("adjourn.db"), Now: func() time.Time { return time.Now().Add(w.ahead) }})
	require.NoError(w, err)
	return &data{w, db}
}

func (d *data) close() { require.NoError(d.w, d.db.Close()) }

// records of the session; of one that does not exist they are empty.
func (d *data) records() labtest.Records {
	return labtest.Read(d.w, d.db.Store(), session.Key{Tenant: session.DefaultTenant, ID: sessionID})
}

// check holds the promises against a trial that has ended. It returns how many
// outcomes are unknown.
func (w *world) check() (unknown int) {
	db := w.open()
	defer db.close()
	unknown = labtest.Ended{Records: db.records(), Script: w.script, Disturbed: w.Struck() > 0}.Check(w)
	w.checkNothingLeft(db)
	return unknown
}

// checkNothingLeft: no message, no dead letter, nothing due.
func (w *world) checkNothingLeft(d *data) {
	for name, q := range map[string]queue.Queue{"queue": d.db.Queue(), "dead letters": d.db.DeadLetters()} {
		left, err := q.Receive(context.Background(), queue.ReceiveParams{Max: 10, Visibility: time.Minute})
		require.NoError(w, err)
		require.Empty(w, left, name)
	}
	labtest.NothingDue(w, d.db.Store(), time.Now().Add(24*time.Hour))
}
