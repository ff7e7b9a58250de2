//go:build unix

package owned

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// User returns the id of the user a file belongs to.
func User(info fs.FileInfo) (id int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}

// UserName names a user for people: by name where there is one, else by number.
func UserName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("user %d", id)
}

func groupOf(info fs.FileInfo) int {
	if stat, known := info.Sys().(*syscall.Stat_t); known {
		return int(stat.Gid)
	}
	return -1
}

// alone reports whether nobody but a user is in a group, as far as this machine says.
func alone(id, group int) bool {
	u, err := user.LookupId(strconv.Itoa(id))
	if err != nil {
		return false
	}
	lines, err := os.ReadFile("/etc/group")
	return err == nil && inGroup(string(lines), strconv.Itoa(group), u.Username)
}
