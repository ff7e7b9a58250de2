package sqlite

import "github.com/adjourn/adjourn/pkg/sqlite/internal/process"

// NewOwner returns a name for this process from which others can tell whether the process is
// dead: it holds the process id, the process's start time, its pid namespace, the boot of the
// machine, and a random part. If the system does not provide these, an owner counts as running
// until its leases lapse.
func NewOwner() string { return process.NewOwner() }

// deadOwners returns whether an owner is dead, for the owners this DB meets: see [process.DeadOwners].
func (db *DB) deadOwners() func(owner string) bool { return process.DeadOwners(db.owner) }
