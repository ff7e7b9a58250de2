//go:build !linux && !darwin && !windows

package owned

func birthOf(string) (number uint64, nanoseconds int64, ok bool) { return 0, 0, false }
