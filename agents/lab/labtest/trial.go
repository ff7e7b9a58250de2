package labtest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Trial is one of many that run side by side: it records what was done and what is
// wrong, and prints it only if it fails. As a [require.TestingT] it stops the
// goroutine it is called on.
type Trial struct {
	Name string
	// Dir is a folder of its own, once it is tried.
	Dir string

	mu     sync.Mutex
	log    []string
	faults []string
	struck int
}

var _ require.TestingT = (*Trial)(nil)

// Errorf notes a fault.
func (t *Trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// FailNow ends the goroutine it is called on.
func (t *Trial) FailNow() { runtime.Goexit() }

// Failed reports whether there is a fault.
func (t *Trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.faults) > 0
}

// Note remembers what was done.
func (t *Trial) Note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// Notes are those with a text in them, a line each.
func (t *Trial) Notes(with string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(t.log), func(line string) bool { return !strings.Contains(line, with) }), "\n")
}

// Hit counts a kill, a freeze or another fault that struck.
func (t *Trial) Hit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.struck++
}

// Struck is how often something struck.
func (t *Trial) Struck() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.struck
}

// Try runs the trial in a folder of its own. If it fails, the folder is kept, and
// a report of all that is known of it is told.
func (t *Trial) Try(of testing.TB, do func(), report func() string) {
	of.Helper()
	var err error
	if t.Dir, err = os.MkdirTemp("", "adjourn-trial-"); err != nil {
		of.Error(err)
		return
	}
	// In a goroutine of its own, which a fault may end.
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	if !t.Failed() {
		_ = os.RemoveAll(t.Dir) // what somebody still writes there does no harm
		return
	}
	told := report()
	t.mu.Lock()
	defer t.mu.Unlock()
	// What is wrong comes last: of a long log, the end is read.
	of.Errorf("%s failed; its folder is kept: %s\n%s\n-- what is wrong\n%s", t.Name, t.Dir, told, strings.Join(t.faults, "\n"))
}

// Number reads a number of the environment.
func Number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// Seed is read from ADJOURN_CRASH_SEED, else from the clock; it is printed, so that the
// same trial can be run again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	n := uint64(Number(t, "ADJOURN_CRASH_SEED", 0))
	if n == 0 {
		n = uint64(time.Now().UnixNano() % 1e9)
	}
	t.Logf("ADJOURN_CRASH_SEED=%d", n)
	return n
}
