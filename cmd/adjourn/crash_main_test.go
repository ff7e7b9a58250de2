//go:build linux

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The tests named Kill, Frozen and Race run the program as processes that are
// killed, stopped and raced: the promises of docs/design/chain.md, held by what a
// user would see.
//
//	crash_main_test.go    the two programs: the real binary, and the test's own that crashes where it is told
//	crash_child_test.go   the latter: the real commands over ports, tools and a model that count their calls
//	crash_world_test.go   one trial: a folder, a script, its processes
//	crash_check_test.go   what must be true of a trial at its end
//	crash_drive_test.go   what a user would do, until the session has ended
//	crash_serve_test.go   the same over HTTP, against a server that is killed and comes back
//
// Their scripts, and the promises they check, are labtest's.

// asChild makes the test's binary the program itself, with traps (see child).
const asChild = "ADJOURN_CRASH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		os.Exit(child())
	}
	// What the processes remember of data files is no business of whoever runs the tests.
	config, err := os.MkdirTemp("", "adjourn-config-")
	if err == nil {
		err = os.Setenv("XDG_CONFIG_HOME", config)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(config)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the real program, built once for all tests.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// binary returns the path of the real program.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "adjourn-crash-bin-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "adjourn")
		out, err := exec.CommandContext(context.Background(), "go", "build", "-o", built.path, ".").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// self returns the test's own binary, which with asChild set is the program with traps.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
