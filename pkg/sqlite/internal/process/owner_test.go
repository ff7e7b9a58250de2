//go:build linux

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		require.Equal(t, tt.dead, OwnerDead(tt.owner), name)
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
