//go:build !unix

package process

// LockHolder does not know: the system does not tell who holds a lock.
func LockHolder(string, []int64) (pid int, held bool) { return 0, false }

// LockedNow does not know either.
func LockedNow(string, []int64) bool { return false }
