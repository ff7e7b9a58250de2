//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package prompt

import "errors"

// flush cannot throw away what was typed here, so nobody is asked.
func flush(int) error { return errors.ErrUnsupported }
