//go:build unix

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes the file for this writer alone, among all processes. When somebody
// else does not let go within patience, it goes on without.
func lock(ctx context.Context, file *os.File) (unlock func(), err error) {
	const pause = 5 * time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for waited := time.Duration(0); ; waited += pause {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }, nil // closing would do it too
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		case waited >= patience:
			return func() {}, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			timer.Reset(pause)
		}
	}
}
