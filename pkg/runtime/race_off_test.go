//go:build !race

package runtime_test

// raceEnabled says that the race detector is on.
const raceEnabled = false
