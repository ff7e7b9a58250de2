//go:build linux

package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestOwnerDead(t *testing.T) {
	t.Parallel()
	me := NewOwner()
	require.NotEqual(t, me, NewOwner())
	gone := exec.CommandContext(t.Context(), "true")
	require.NoError(t, gone.Run())
	with := func(field int, value string) string {
		parts := strings.Split(me, ":")
		parts[field] = value
		return strings.Join(parts, ":")
	}
	pid := func(n int) string { return strconv.Itoa(n) }
	for name, tt := range map[string]struct {
		owner string
		dead  bool
	}{
		"this process":                           {me, false},
		"an invocation of this process":          {me + "/invocation", false},
		"a process that ended":                   {with(1, pid(gone.Process.Pid)), true},
		"an invocation of one that ended":        {with(1, pid(gone.Process.Pid)) + "/7", true},
		"a process that has the pid of mine":     {with(2, "1"), true},
		"before the machine was started anew":    {with(4, "another-boot"), true},
		"in another container":                   {with(3, "1"), false},
		"in a container that says nothing of it": {with(3, ""), false},
		"by the clock of another container":      {with(3, strings.Split(strings.Split(me, ":")[3], ".")[0]+".1"), false},
		"on a system that tells nothing":         {with(4, ""), false},
		"the parent with my start":               {with(1, pid(os.Getppid())), true},
		"a name of somebody's own":               {"worker-1", false},
		"nobody":                                 {"", false},
		"something like ours":                    {"pid:x:1:2:3:4", false},
	} {
		require.Equal(t, tt.dead, ownerDead(tt.owner), name)
	}
}

// Where nothing is known of namespaces, pids are of no use: two containers have the same.
func TestProcessOfAnUnknownNamespace(t *testing.T) {
	t.Parallel()
	gone := exec.CommandContext(t.Context(), "true")
	require.NoError(t, gone.Run())
	p := machine()
	p.pid = gone.Process.Pid
	require.True(t, processGone(p))
	p.namespace = ""
	require.False(t, processGone(p))
}

func TestReadMachine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		self, pids string
		want       string
	}{
		"its own /proc":  {strconv.Itoa(os.Getpid()), "pid:[42]", "42.7"},
		"the host's":     {"1" + strconv.Itoa(os.Getpid()), "pid:[42]", ""},
		"one that hides": {strconv.Itoa(os.Getpid()), "", ""},
		"none":           {"", "", ""},
	} {
		proc := t.TempDir()
		self := filepath.Join(proc, tt.self)
		if tt.self != "" {
			require.NoError(t, os.MkdirAll(filepath.Join(self, "ns"), 0o700))
			require.NoError(t, os.Symlink(tt.self, filepath.Join(proc, "self")))
			require.NoError(t, os.Symlink("time:[7]", filepath.Join(self, "ns", "time")))
		}
		if tt.pids != "" {
			require.NoError(t, os.Symlink(tt.pids, filepath.Join(self, "ns", "pid")))
		}
		require.Equal(t, tt.want, readMachine(proc).namespace, name)
	}
}

// What a dead process had received is made visible once, and who knew that there
// was nothing, or waits for another session's, is told.
func TestReap(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
	require.Len(t, receiveNow(t, db.Queue()), 1)
	before := strings.Split(NewOwner(), ":")
	before[4] = "another-boot"
	var freed, known [2]bool
	var wakeAt time.Time
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) (err error) {
		if err = w.c.script(fmt.Sprintf("UPDATE owners SET name='%s'", strings.Join(before, ":"))); err != nil {
			return err
		}
		w.self = 0
		w.dry = [2]dry{{valid: true, at: w.db.now()}, {valid: true, at: w.db.now()}}
		w.wakeAt = w.db.now().Add(time.Hour)
		if freed[0], err = w.reap(); err != nil {
			return err
		}
		known, wakeAt = [2]bool{w.dry[0].valid, w.dry[1].valid}, w.wakeAt
		freed[1], err = w.reap()
		return err
	}}))
	require.Equal(t, [2]bool{true, false}, freed, "once")
	require.Equal(t, [2]bool{}, known)
	require.False(t, wakeAt.After(time.Now()))
	got := receiveNow(t, db.Queue())
	require.Len(t, got, 1)
	require.Equal(t, 2, got[0].Receives)
}
