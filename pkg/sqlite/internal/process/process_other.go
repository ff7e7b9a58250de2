//go:build !unix

package process

func describeSelf(*process) {}

// processGone knows nothing: leases lapse by time.
func processGone(process) bool { return false }

// Describe knows nothing here.
func Describe(int) (name string, state State) { return "", Unknown }
