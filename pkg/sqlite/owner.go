package sqlite

import (
	"strings"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/process"
)

// NewOwner returns a name for this process from which others can tell whether the process is
// dead: it holds the process id, the process's start time, its pid namespace, the boot of the
// machine, and a random part. If the system does not provide these, an owner counts as running
// until its leases lapse.
func NewOwner() string { return process.NewOwner() }

// deadOwners returns [process.OwnerDead] for the owners this DB meets. Its own owners are
// running, which needs no system call; other owners are checked once per call of deadOwners.
func (db *DB) deadOwners() func(owner string) bool {
	var known map[string]bool
	return func(owner string) bool {
		name, _, _ := strings.Cut(owner, "/")
		if name == "" || name == db.owner {
			return false
		}
		dead, ok := known[name]
		if !ok {
			dead = process.OwnerDead(name)
			if known == nil {
				known = map[string]bool{}
			}
			known[name] = dead
		}
		return dead
	}
}
