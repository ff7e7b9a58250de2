//go:build !unix

package sqlite

func describeSelf(*process) {}

// processGone knows nothing: leases lapse by time.
func processGone(process) bool { return false }
