//go:build linux

package main_test

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// phase is one command of the story, with where the session rests after it.
type phase struct {
	name string
	args []string
	// code the command ends with when nothing goes wrong.
	code int
	// before and after say where the session stands when the command had no
	// effect at all, and when it is done.
	before, after standing
}

// standing is where a session stands, as a user would see it.
type standing string

const (
	absent    standing = "absent"
	paused    standing = "paused, somebody must decide"
	completed standing = "completed"
	between   standing = "between two rests" // running, or decided and not resumed
)

// story is what a user does: start, see that it is paused, approve.
func story() []phase {
	return []phase{begin(), {
		name: "approve", code: 0, before: paused, after: completed,
		args: []string{"resume", "-c", shownCheckpoint, "--approve-all", "--output", "json"},
	}}
}

func begin() phase {
	return phase{
		name: "start", code: 10, before: absent, after: paused,
		args: []string{"run", "--agent", "lab", "--session", sessionID, "--idempotency-key", "k", "--input-file", "script.yaml", "--output", "json"},
	}
}

// unanswered is the story in which nobody approves before the deadline.
func unanswered() []phase {
	return []phase{begin(), {name: "expire", code: 0, before: paused, after: completed, args: []string{"work"}}}
}

// restart is what a user may type after a crash.
type restart int

const (
	again restart = iota // the same command once more
	work                 // adjourn work
	goOn                 // adjourn resume SESSION
)

const restarts = 3

func (p phase) restart(how restart) []string {
	switch how {
	case work:
		return []string{"work"}
	case goOn:
		return []string{"resume", sessionID, "--output", "json"}
	case again:
	}
	return p.args
}

// recover restarts after a crash and wants the phase to be done afterwards: by
// what was restarted, or, if the crash came before the command had any effect,
// by the same command once more.
func (w *world) recover(p phase, how restart) {
	r := w.run(p.restart(how)...)
	now := w.stands()
	switch how {
	case again:
		require.Equal(w, p.code, r.code, "exit code of the same command again")
	case work:
		require.Zero(w, r.code, "exit code of adjourn work")
	case goOn:
		switch {
		case r.code == p.code && now == p.after:
		case r.code == 3 && now == absent:
		case r.code == 5 && (now == p.before || now == p.after): // it rests already
		default:
			w.Errorf("adjourn resume exits %d, and the session is %s", r.code, now)
		}
	}
	if now == p.before && how != again {
		r = w.run(p.args...)
		require.Equal(w, p.code, r.code, "exit code of the same command again")
		now = w.stands()
	}
	require.Equal(w, p.after, now, "after the restart")
}

// stands reads where the session stands. Nothing must be running meanwhile.
func (w *world) stands() standing {
	if _, err := os.Stat(w.path("adjourn.db")); errors.Is(err, fs.ErrNotExist) {
		return absent
	}
	db := w.open()
	defer db.close()
	r := db.records()
	s := r.Fold(w)
	switch {
	case s == nil:
		return absent
	case s.Status == session.StatusCompleted:
		return completed
	case s.Status == session.StatusRunning:
		return between
	}
	require.Equal(w, session.StatusSuspended, s.Status)
	for _, item := range r.Waits {
		if item.State == session.WaitOpen {
			return paused
		}
	}
	return between
}

// finish decides once more, which must change nothing, and looks for work, of
// which there must be none.
func (w *world) finish(told []phase) {
	if last := told[len(told)-1]; last.name == "approve" {
		r := w.run(last.args...)
		require.Equal(w, last.code, r.code)
		require.Equal(w, "completed", w.manifest(r).Outcome)
		require.Contains(w, r.stderr, "Already settled")
		_, err := os.Stat(w.path("pause.json"))
		require.ErrorIs(w, err, fs.ErrNotExist, "pause.json of a session that has ended")
	}
	if w.ahead > 0 {
		// A message that was put off beside a lease, by the clock ahead, is there again. By the clock
		// that the check looks with it would be at once, for it is further ahead than any may be.
		w.moveClock(w.ahead + time.Hour)
	}
	r := w.run("work")
	require.Zero(w, r.code)
	require.Contains(w, r.stderr, "There was nothing to do")
}
