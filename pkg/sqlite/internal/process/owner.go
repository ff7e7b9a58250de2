// Package process says which process an owner's name or a file's lock belongs to.
package process

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
)

// State says what a process is doing.
type State string

// The states of a process. Where the system does not tell, it is unknown.
const (
	Running State = "running"
	Stopped State = "stopped"
	Waiting State = "waiting for its disk"
	Unknown State = "unknown"
)

// ownerScheme begins the names that say which process they belong to.
const ownerScheme = "pid"

// NewOwner returns a name for this process that others can tell to be dead: it
// holds the process id, when the process started, its pid namespace, the boot
// of the machine, and a random part. Where the system does not tell these, an
// owner counts as alive until its leases lapse.
func NewOwner() string {
	p := self()
	//nolint:forbidigo // an owner is a fact about this process, like its pid
	return strings.Join([]string{ownerScheme, strconv.Itoa(p.pid), p.start, p.namespace, p.boot, rand.Text()[:12]}, ":")
}

// process is what the system says of a process. Empty means unknown.
type process struct {
	pid                    int
	start, namespace, boot string
}

// OwnerDead reports whether the process that an owner names is known to be gone.
// What follows a slash (an invocation) is no part of the name. Nothing is
// remembered: a process that has just died is dead at the next call. A stopped
// one is alive.
func OwnerDead(owner string) bool {
	p, ok := parseOwner(owner)
	if !ok {
		return false
	}
	me := self()
	switch {
	case p.boot != me.boot:
		// Without a boot id on either side nothing is known.
		return p.boot != "" && me.boot != ""
	case p.namespace != me.namespace:
		return false // another container's pids mean nothing here
	}
	return processGone(p)
}

// DeadOwners returns [OwnerDead] for the owners that the process of an owner meets. Its own are
// running, which needs no system call; others are checked once per call of DeadOwners.
func DeadOwners(own string) func(owner string) bool {
	var known map[string]bool
	return func(owner string) bool {
		name, _, _ := strings.Cut(owner, "/")
		if name == "" || name == own {
			return false
		}
		dead, ok := known[name]
		if !ok {
			dead = OwnerDead(name)
			if known == nil {
				known = map[string]bool{}
			}
			known[name] = dead
		}
		return dead
	}
}

func parseOwner(owner string) (process, bool) {
	name, _, _ := strings.Cut(owner, "/")
	parts := strings.Split(name, ":")
	if len(parts) != 6 || parts[0] != ownerScheme {
		return process{}, false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid < 1 {
		return process{}, false
	}
	return process{pid: pid, start: parts[2], namespace: parts[3], boot: parts[4]}, true
}

func self() process {
	p := process{pid: os.Getpid()}
	describeSelf(&p)
	return p
}
