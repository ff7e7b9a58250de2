//go:build !unix

package sqlite

func describeSelf(*process) {}

// processGone knows nothing: leases lapse by time.
func processGone(process) bool { return false }

func describeProcess(int) (name string, state ProcessState) { return "", ProcessUnknown }
