package sqlite

import (
	"strings"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/process"
)

// NewOwner returns a name for this process that others can tell to be dead: it
// holds the process id, when the process started, its pid namespace, the boot
// of the machine, and a random part. Where the system does not tell these, an
// owner counts as alive until its leases lapse.
func NewOwner() string { return process.NewOwner() }

// deadOwners returns [process.OwnerDead] for owners met by this DB: its own are alive, without a
// look at the system, and one call asks once per owner.
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
