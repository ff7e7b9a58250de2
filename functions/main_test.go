//go:build aws && linux

package functions_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The tests here run the real bootstrap binaries of this folder in the Lambda
// harness, over emulators, and hold the promises of docs/design/chain.md:
//
//	main_test.go    the binaries, built once
//	world_test.go   a deployment: table, queues, functions, mappings, gateway
//	trial_test.go   one trial: sessions, what strikes, what was done
//	drive_test.go   what a client does until its session has ended
//	check_test.go   what must be true at the end
//
// Their scripts, and the promises they check, are labtest's.
// All others are the tests.

// names of the functions.
var names = []string{"start", "step", "resume", "submit", "query", "event", "sweep", "notice"}

// built are the real binaries, built once for all tests.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binary returns the path of a program below this folder.
func binary(t testing.TB, name string) string {
	t.Helper()
	built.once.Do(func() { built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, filepath.Base(name))
}

func build() error {
	var err error
	if built.dir, err = os.MkdirTemp("", "adjourn-functions-"); err != nil {
		return err
	}
	packages := []string{"build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", built.dir + "/", "./testdata/expiring"}
	for _, name := range names {
		packages = append(packages, "./"+name)
	}
	command := exec.CommandContext(context.Background(), "go", packages...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
