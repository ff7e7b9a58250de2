//go:build linux

package sqlite

import (
	"os"
	"os/exec"
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
		"this process":                        {me, false},
		"an invocation of this process":       {me + "/invocation", false},
		"a process that ended":                {with(1, pid(gone.Process.Pid)), true},
		"an invocation of one that ended":     {with(1, pid(gone.Process.Pid)) + "/7", true},
		"a process that has the pid of mine":  {with(2, "1"), true},
		"before the machine was started anew": {with(4, "another-boot"), true},
		"in another container":                {with(3, "1"), false},
		"on a system that tells nothing":      {with(4, ""), false},
		"the parent with my start":            {with(1, pid(os.Getppid())), true},
		"a name of somebody's own":            {"worker-1", false},
		"nobody":                              {"", false},
		"something like ours":                 {"pid:x:1:2:3:4", false},
	} {
		require.Equal(t, tt.dead, ownerDead(tt.owner), name)
	}
}
